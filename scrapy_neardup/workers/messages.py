"""What a worker and its pool tell each other.

A message is JSON with bytes behind it. Nothing is pickled, because a process that read hostile HTML answers: only
values of the kinds in ``_KINDS`` are made of a message.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from io import BytesIO
from operator import attrgetter
from typing import Any, BinaryIO, cast

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.source import PageContent, RiskyPage

#: Seconds that a page may take by default.
MAX_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a worker reads pages; ``extractor`` is an import path, empty for our own reader.

    ``seconds``: how long a page may take. ``only_quick``: a page that may take long is not read, but comes back as
    ``RiskyPage``.
    """

    max_html: int
    max_text: int = MAX_TEXT
    extractor: str = ""
    seconds: float = MAX_SECONDS
    only_quick: bool = False

    @property
    def can_be_sent(self) -> bool:
        """Whether another process can import the extractor."""
        return not self.extractor.startswith("__main__.")


#: The lengths of a message's JSON and bytes.
_LENGTHS = struct.Struct(">QQ")
#: Codecs of longer strings. UTF-16 takes a third of the time of UTF-8 for Chinese.
_ASCII, _WIDE = ("ascii", "strict"), ("utf-16-le", "surrogatepass")
_LONG = 100


def _values_of(kind: type) -> Callable[[Any], Iterable[Any]]:
    """Return the function that returns the fields of an object, as its class takes them."""
    if kind is ExtractionError:
        return lambda error: (error.reason, str(error))
    if issubclass(kind, tuple):
        return tuple
    names = [one.name for one in fields(cast(Any, kind))]
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)


#: The classes whose objects may be sent, by name.
_KINDS = {
    kind.__name__: kind for kind in (tuple, Page, PageContent, ItemMetadata, RiskyPage, ExtractionError, ReadingOptions)
}
_VALUES = {name: _values_of(kind) for name, kind in _KINDS.items()}


def send(pipe: BinaryIO, value: Any) -> None:
    """Write a message. Raises OSError, and TypeError for a value that no message holds."""
    parts = list[bytes]()
    head = json.dumps(_pack(value, parts)).encode()
    pipe.write(_LENGTHS.pack(len(head), sum(map(len, parts))) + head)
    for part in parts:
        pipe.write(part)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read a message. Raises EOFError if there is none or only a part of it, ValueError if it is malformed."""
    lengths = _LENGTHS.unpack(_read(pipe, _LENGTHS.size))
    head, content = (_read(pipe, length) for length in lengths)
    try:
        return _unpack(json.loads(head), BytesIO(content))
    except (TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"a message is malformed: {error}") from None


def _read(pipe: BinaryIO, length: int) -> bytes:
    found = pipe.read(length)
    if len(found) < length:
        raise EOFError
    return found


def _pack(value: Any, parts: list[bytes]) -> Any:
    """Return a value as plain data; long strings and bytes go to ``parts``, in their order."""
    if value is None or isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < _LONG):
        return value
    if isinstance(value, str):
        codec = _ASCII if value.isascii() else _WIDE
        parts.append(value.encode(*codec))
        return [codec[0], len(parts[-1])]
    if isinstance(value, bytes):
        parts.append(value)
        return ["bytes", len(value)]
    name = type(value).__name__
    if _KINDS.get(name) is not type(value):
        raise TypeError(f"{name} cannot be sent to another process")
    return [name, [_pack(one, parts) for one in _VALUES[name](value)]]


def _unpack(packed: Any, content: BinaryIO) -> Any:
    if type(packed) is not list:
        return packed
    name, values = packed
    if name in (_ASCII[0], _WIDE[0]):
        return _read(content, values).decode(*(_ASCII if name == _ASCII[0] else _WIDE))
    if name == "bytes":
        return _read(content, values)
    unpacked = [_unpack(one, content) for one in values]
    return tuple(unpacked) if name == "tuple" else _KINDS[name](*unpacked)
