"""The lines of an export: pages and manual verdicts as JSON objects."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from scrapy_neardup.hashing.keys import BITS
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.record import Record

#: Ids are nanoseconds; a store could not continue after this one.
_LAST_ID = 2**63
_LAST_SECOND = 2**32
_MOST_KEYS = 255


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A record, its last sight in seconds since 1970, and its evidence."""

    record: Record
    seen: int
    evidence: Evidence | None = None


class Codec(NamedTuple):
    """How a field stands in JSON: as one of ``types``, which ``what`` describes. ``decode`` may raise ValueError."""

    what: str
    types: tuple[type, ...]
    encode: Callable[[Any], Any] = lambda value: value
    decode: Callable[[Any], Any] = lambda value: value

    def read(self, value: Any, name: str) -> Any:
        """Return the value of a field. Raises ValueError for one that ``encode`` would not give."""
        if type(value) in self.types:
            with suppress(ValueError):
                decoded = self.decode(value)
                if self.encode(decoded) == value:
                    return decoded
        raise ValueError(f"its {name} must be {self.what}, not {value!r:.60}")


def _tuple_of(one: Codec) -> Codec:
    def decode(values: list[Any]) -> tuple[Any, ...]:
        return tuple(one.read(each, "item") for each in values)

    return Codec(f"a list, each {one.what}", (list,), lambda values: list(map(one.encode, values)), decode)


def _decode_share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError
    return float(value)


_TEXT, _INTEGER, _FLAG = Codec("a text", (str,)), Codec("an integer", (int,)), Codec("true or false", (bool,))
#: JSON numbers lose digits in many languages.
_NUMBER = Codec("16 hexadecimal digits", (str,), "{:016x}".format, lambda value: int(value, 16))
_SHARE = Codec("a number from 0 to 1", (int, float), decode=_decode_share)
_BYTES = Codec("base64", (str,), lambda value: b64encode(value).decode(), b64decode)
#: Fields of a line.
_HEAD = {"id": _NUMBER, "url": _TEXT, "seen": _INTEGER}
_VERDICT = {
    "judged": Codec("keep or copy", (str,), lambda kind: kind.value, ManualKind),
    "url": _TEXT,
    "other": _TEXT,
    "when": _INTEGER,
}
#: Fields of a record besides id and URL. Five decimals of a similarity keep its 65,536 steps.
_RECORD = {
    "original": _NUMBER,
    "similarity": _SHARE,
    "keys": _tuple_of(_NUMBER),
    "sketch": _BYTES,
    "delivered": _FLAG,
    "former": _FLAG,
    "dropped": _NUMBER,
    "body": _NUMBER,
    "since": _NUMBER,
}
_NO_EVIDENCE = Evidence()
_BY_TYPE = {str: _TEXT, int: _INTEGER, float: _SHARE, tuple: _tuple_of(_TEXT)}
_EVIDENCE = {one.name: _BY_TYPE[type(getattr(_NO_EVIDENCE, one.name))] for one in fields(Evidence)} | {"like": _NUMBER}


def page_to_data(entry: PageEntry) -> dict[str, Any]:
    """Return a page as the object of its line, without default values.

    >>> page_to_data(PageEntry(Record(26, "https://a.example/", 26), 1714521600))
    {'id': '000000000000001a', 'url': 'https://a.example/', 'seen': 1714521600}
    """
    record = replace(entry.record, similarity=round(entry.record.similarity, 5))
    data = {"id": _NUMBER.encode(record.id), "url": record.url, "seen": entry.seen}
    data |= _encode(_RECORD, record, Record(record.id, record.url, record.id))
    if entry.evidence is not None:
        data["evidence"] = _encode(_EVIDENCE, entry.evidence, _NO_EVIDENCE)
    return data


def page_from_data(data: Mapping[str, Any]) -> PageEntry:
    """Return the page in a line. Raises ValueError."""
    id, url, seen = (codec.read(data.get(name), name) for name, codec in _HEAD.items())
    rest = {name: value for name, value in data.items() if name not in _HEAD and name != "evidence"}
    values = {"original": id, **_decode(_RECORD, rest, "a page")}
    if not 0 < id < _LAST_ID or not 0 <= seen < _LAST_SECOND or len(values.get("keys", ())) > _MOST_KEYS:
        raise ValueError("an id, a time or a number of keys is out of range")
    record = Record(id, url, **values)
    if Record.unpack(id, record.pack()).keys != record.keys:
        raise ValueError(f"a key of its page has more than {BITS} bits")
    evidence = data.get("evidence", {})
    if type(evidence) is not dict:
        raise ValueError("its evidence is no object")
    return PageEntry(record, seen, Evidence(**_decode(_EVIDENCE, evidence, "evidence")) if "evidence" in data else None)


def _encode(codecs: Mapping[str, Codec], one: object, default: object) -> dict[str, Any]:
    """Return the fields of an object, without those of ``default``."""
    values = {name: getattr(one, name) for name in codecs}
    return {name: codecs[name].encode(value) for name, value in values.items() if value != getattr(default, name)}


def _decode(codecs: Mapping[str, Codec], data: Mapping[str, Any], of: str) -> dict[str, Any]:
    if unknown := sorted(data.keys() - codecs.keys()):
        raise ValueError(f"{unknown[0]!r:.60} is no field of {of}")
    return {name: codecs[name].read(value, name) for name, value in data.items()}


def verdict_to_data(one: ManualVerdict) -> dict[str, Any]:
    """Return a manual verdict as the object of its line.

    >>> verdict_to_data(ManualVerdict("https://a.example/", ManualKind.KEEP, "", 1714521600))
    {'judged': 'keep', 'url': 'https://a.example/', 'other': '', 'when': 1714521600}
    """
    return {"judged": one.kind.value, "url": one.url, "other": one.other, "when": one.when}


def verdict_from_data(data: Mapping[str, Any]) -> ManualVerdict:
    """Return the manual verdict in a line. Raises ValueError."""
    values = _decode(_VERDICT, data, "a manual verdict")
    if values.keys() != _VERDICT.keys() or not 0 <= values["when"] < _LAST_SECOND:
        raise ValueError("its manual verdict is incomplete, or its time is out of range")
    return ManualVerdict(values["url"], values["judged"], values["other"], values["when"])


def to_line(data: Mapping[str, Any]) -> bytes:
    """Format a line; lone surrogates stay readable for Python."""
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass") + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """Parse a line. Raises ValueError."""
    try:
        data = json.loads(line.decode("utf-8", "surrogatepass"))
    except RecursionError:
        data = None
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data
