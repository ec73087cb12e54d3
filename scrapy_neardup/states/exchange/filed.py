"""All that a state holds of a page, and how it is written in a line of an export."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from scrapy_neardup.stores import Evidence, Record

#: An id is the time in nanoseconds; from here on a store could give no larger one.
_LAST_ID = 2**63
_LAST_SECOND = 2**32
_HEX = re.compile(r"[0-9a-f]{16}")
_NAMES = frozenset(
    ("id", "url", "seen", "original", "similarity", "keys", "sketch", "delivered", "former", "dropped", "body", "since")
) | {"evidence"}
_EMPTY = Evidence()
_EVIDENCE = {one.name: type(getattr(_EMPTY, one.name)) for one in fields(Evidence)}


@dataclass(frozen=True, slots=True)
class Filed:
    """A page's record, when the page was last seen (in seconds since 1970), and what can be told of it."""

    record: Record
    seen: int
    evidence: Evidence | None = None


def to_data(filed: Filed) -> dict[str, Any]:
    """A page as the object of its line; what is as most pages have it is left out.

    Ids and keys are 16 hexadecimal digits, as JSON's numbers lose the last ones in many languages. A similarity
    has five decimals, which tell each of its 65,536 steps.

    >>> to_data(Filed(Record(26, "https://a.example/", 26), 1714521600))
    {'id': '000000000000001a', 'url': 'https://a.example/', 'seen': 1714521600}
    """
    record, told = filed.record, filed.evidence
    data: dict[str, Any] = {"id": f"{record.id:016x}", "url": record.url, "seen": filed.seen}
    if record.original != record.id:
        data["original"] = f"{record.original:016x}"
    if record.similarity != 1.0:
        data["similarity"] = round(record.similarity, 5)
    if record.keys:
        data["keys"] = [f"{key:016x}" for key in record.keys]
    if record.sketch:
        data["sketch"] = b64encode(record.sketch).decode()
    if record.delivered:
        data["delivered"] = True
    if record.former:
        data["former"] = True
    if record.dropped:
        data["dropped"] = f"{record.dropped:016x}"
    if record.body:
        data["body"] = f"{record.body:016x}"
    if record.since:
        data["since"] = f"{record.since:016x}"
    if told is not None:
        values = {name: getattr(told, name) for name in _EVIDENCE if getattr(told, name) != getattr(_EMPTY, name)}
        data["evidence"] = {**values, "like": f"{told.like:016x}"} if told.like else values
    return data


def from_data(data: Mapping[str, Any]) -> Filed:
    """The page of a line's object; raises ValueError that says what is wrong with it."""
    if unknown := sorted(data.keys() - _NAMES):
        raise ValueError(f"{unknown[0]!r:.60} is no field of a page")
    id = _number(data.get("id"), "id")
    url, seen = _typed(data.get("url"), "url", str), _typed(data.get("seen"), "seen", int)
    keys = _typed(data.get("keys", []), "keys", list)
    if not 0 < id < _LAST_ID or not 0 <= seen < _LAST_SECOND or len(keys) > 255:
        raise ValueError("an id, a time or a number of keys is out of range")
    original = _number(data["original"], "original") if "original" in data else id
    similarity = _share(data.get("similarity", 1.0), "similarity")
    try:
        sketch = b64decode(_typed(data.get("sketch", ""), "sketch", str), validate=True)
    except ValueError as error:
        raise ValueError(f"its sketch is no base64 ({error})") from None
    delivered = _typed(data.get("delivered", False), "delivered", bool)
    former = _typed(data.get("former", False), "former", bool)
    filed = tuple(_number(key, "key") for key in keys)
    dropped = _number(data["dropped"], "dropped") if "dropped" in data else 0
    body = _number(data["body"], "body") if "body" in data else 0
    since = _number(data["since"], "since") if "since" in data else 0
    record = Record(id, url, original, similarity, filed, sketch, delivered, former, dropped, body, since)
    return Filed(record, seen, _evidence(_typed(data["evidence"], "evidence", dict)) if "evidence" in data else None)


def to_line(data: Mapping[str, Any]) -> bytes:
    """A line of an export. Text stands as it is; lone surrogates too, in the way of UTF-8 that Python can read back."""
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass") + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """The object of a line; raises ValueError for anything else."""
    try:
        data = json.loads(line.decode("utf-8", "surrogatepass"))
    except RecursionError:
        data = None
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


def _evidence(data: Mapping[str, Any]) -> Evidence:
    if unknown := sorted(data.keys() - _EVIDENCE.keys()):
        raise ValueError(f"{unknown[0]!r:.60} is no field of evidence")
    values: dict[str, Any] = {}
    for name, given in data.items():
        kind = _EVIDENCE[name]
        if name == "like":
            values[name] = _number(given, name)
        elif kind is float:
            values[name] = _share(given, name)
        elif kind is tuple:
            values[name] = tuple(_typed(one, name, str) for one in _typed(given, name, list))
        else:
            values[name] = _typed(given, name, kind)
    return Evidence(**values)


def _number(value: Any, name: str) -> int:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError(f"its {name} must be 16 hexadecimal digits, not {value!r:.60}")
    return int(value, 16)


def _share(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"its {name} must be a number from 0 to 1, not {value!r:.60}")
    return float(value)


def _typed(value: Any, name: str, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"its {name} must be of the type {kind.__name__}, not {value!r:.60}")
    return value
