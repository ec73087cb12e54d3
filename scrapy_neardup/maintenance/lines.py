"""The lines of an export: pages and manual verdicts as JSON objects."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from scrapy_neardup.hashing.keys import BITS
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.record import Record

#: Ids are nanoseconds; a store could not continue after this one.
_LAST_ID = 2**63
_LAST_SECOND = 2**32
_MOST_KEYS = 255
_HEX = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A record, its last sight in seconds since 1970, and its evidence."""

    record: Record
    seen: int
    evidence: Evidence | None = None


class Codec(NamedTuple):
    """How a field stands in JSON. ``decode`` gets the value and its name, and raises ValueError."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any, str], Any]


def _typed(kind: type) -> Callable[[Any, str], Any]:
    def decode(value: Any, name: str) -> Any:
        if type(value) is not kind:
            raise ValueError(f"its {name} must be of the type {kind.__name__}, not {value!r:.60}")
        return value

    return decode


def _decode_number(value: Any, name: str) -> int:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError(f"its {name} must be 16 hexadecimal digits, not {value!r:.60}")
    return int(value, 16)


def _decode_share(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"its {name} must be a number from 0 to 1, not {value!r:.60}")
    return float(value)


def _decode_bytes(value: Any, name: str) -> bytes:
    try:
        return b64decode(_TEXT.decode(value, name), validate=True)
    except ValueError as error:
        raise ValueError(f"its {name} is no base64 ({error})") from None


def _tuple_of(one: Codec) -> Codec:
    def decode(value: Any, name: str) -> tuple[Any, ...]:
        return tuple(one.decode(each, name) for each in _typed(list)(value, name))

    return Codec(lambda values: list(map(one.encode, values)), decode)


_TEXT, _INTEGER, _FLAG = (Codec(lambda value: value, _typed(kind)) for kind in (str, int, bool))
#: 16 hexadecimal digits, because JSON numbers lose digits in many languages.
_NUMBER = Codec(lambda value: f"{value:016x}", _decode_number)
_SHARE = Codec(lambda value: value, _decode_share)
_BYTES = Codec(lambda value: b64encode(value).decode(), _decode_bytes)
#: Fields of a record besides id and URL. Five decimals of a similarity keep its 65,536 steps.
_RECORD = {
    "original": _NUMBER,
    "similarity": Codec(lambda value: round(value, 5), _decode_share),
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
    record = entry.record
    data = {"id": _NUMBER.encode(record.id), "url": record.url, "seen": entry.seen}
    data |= _encode(_RECORD, record, Record(record.id, record.url, record.id))
    if entry.evidence is not None:
        data["evidence"] = _encode(_EVIDENCE, entry.evidence, _NO_EVIDENCE)
    return data


def page_from_data(data: Mapping[str, Any]) -> PageEntry:
    """Return the page in a line. Raises ValueError."""
    head = {"id": _NUMBER, "url": _TEXT, "seen": _INTEGER}
    if missing := head.keys() - data.keys():
        raise ValueError(f"its {min(missing)} is missing")
    id, url, seen = (codec.decode(data[name], name) for name, codec in head.items())
    rest = {name: value for name, value in data.items() if name not in head and name != "evidence"}
    values = {"original": id, **_decode(_RECORD, rest, "a page")}
    if not 0 < id < _LAST_ID or not 0 <= seen < _LAST_SECOND or len(values.get("keys", ())) > _MOST_KEYS:
        raise ValueError("an id, a time or a number of keys is out of range")
    record = Record(id, url, **values)
    if record.longest_key > BITS:
        raise ValueError(f"a key of its page has more than {BITS} bits")
    if "evidence" not in data:
        return PageEntry(record, seen)
    evidence = _typed(dict)(data["evidence"], "evidence")
    return PageEntry(record, seen, Evidence(**_decode(_EVIDENCE, evidence, "evidence")))


def _encode(codecs: Mapping[str, Codec], one: object, default: object) -> dict[str, Any]:
    values = {name: getattr(one, name) for name in codecs}
    return {name: codecs[name].encode(value) for name, value in values.items() if value != getattr(default, name)}


def _decode(codecs: Mapping[str, Codec], data: Mapping[str, Any], of: str) -> dict[str, Any]:
    if unknown := sorted(data.keys() - codecs.keys()):
        raise ValueError(f"{unknown[0]!r:.60} is no field of {of}")
    return {name: codecs[name].decode(value, name) for name, value in data.items()}


def verdict_to_data(one: ManualVerdict) -> dict[str, Any]:
    """Return a manual verdict as the object of its line.

    >>> verdict_to_data(ManualVerdict("https://a.example/", ManualKind.KEEP, "", 1714521600))
    {'judged': 'keep', 'url': 'https://a.example/', 'other': '', 'when': 1714521600}
    """
    return {"judged": one.kind.value, "url": one.url, "other": one.other, "when": one.when}


def verdict_from_data(data: Mapping[str, Any]) -> ManualVerdict:
    """Return the manual verdict in a line. Raises ValueError."""
    judged, url, other, when = (data.get(name) for name in ("judged", "url", "other", "when"))
    if len(data) != 4 or not isinstance(url, str) or not isinstance(other, str):
        raise ValueError("its manual verdict names no page")
    if type(when) is not int or not 0 <= when < _LAST_SECOND:
        raise ValueError("the time of its manual verdict is out of range")
    try:
        return ManualVerdict(url, ManualKind(judged), other, when)
    except ValueError:
        raise ValueError(f"its manual verdict must be keep or copy, not {judged!r:.60}") from None


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
