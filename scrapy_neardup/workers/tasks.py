"""What a worker is asked, what it answers, and how both travel.

A message is JSON with bytes behind it. Nothing is pickled, because a process that read hostile HTML answers: only
values of the kinds in ``_KINDS`` are made of a message.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from io import BytesIO
from operator import attrgetter
from typing import Any, BinaryIO, ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.source import PageContent, RiskyPage
from scrapy_neardup.workers.speculation import Assumption, PreparedFingerprint

#: Seconds that a page may take by default.
MAX_SECONDS = 1.5
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a worker reads pages; ``extractor`` is an import path, empty for our own reader.

    ``only_quick``: a page that may take long is not read, but comes back as ``RiskyPage``.
    """

    max_html: int
    max_text: int = MAX_TEXT
    extractor: str = ""
    only_quick: bool = False

    @property
    def can_be_sent(self) -> bool:
        """Whether another process can import the extractor."""
        return not self.extractor.startswith("__main__.")


@dataclass(frozen=True, slots=True)
class FingerprintOptions:
    """The method that makes fingerprints, its parameters, and the hashes of the state."""

    method: str
    parameters: Mapping[str, Any]
    hashes: Keyed = field(repr=False)

    @property
    def can_be_sent(self) -> bool:
        """Whether another process can import the method, and a message can hold its parameters."""
        try:
            send(BytesIO(), self)
        except (TypeError, ValueError):
            return False
        return not self.method.startswith("__main__.")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker may do, and how many ``seconds`` each task may take.

    With both ``reading`` and ``fingerprints`` it fingerprints each page that it reads.
    """

    seconds: float = MAX_SECONDS
    reading: ReadingOptions | None = None
    fingerprints: FingerprintOptions | None = None


class ReadPage(NamedTuple):
    """A page, and the fingerprint that a worker made of ``ItemMetadata.apply_to`` of it."""

    page: Page
    prepared: PreparedFingerprint | None = None


class Task(Generic[A]):
    """Work for a worker. ``answers``: the types that a result may have."""

    answers: ClassVar[tuple[type, ...]]


@dataclass(frozen=True)
class ReadTask(Task["ReadPage | RiskyPage | ExtractionError"]):
    """Read a page, and fingerprint it if the worker has a method."""

    answers: ClassVar[tuple[type, ...]] = (ReadPage, RiskyPage, ExtractionError)
    raw: PageContent


@dataclass(frozen=True)
class FingerprintTask(Task["list[PreparedFingerprint | None]"]):
    """Fingerprint pages that brought their text; None for a page without a fingerprint."""

    answers: ClassVar[tuple[type, ...]] = (list,)
    pages: Sequence[Page]


#: The lengths of a message's JSON and bytes.
_LENGTHS = struct.Struct(">QQ")
#: Codecs of longer strings. UTF-16 takes a third of the time of UTF-8 for Chinese.
_ASCII, _WIDE = ("ascii", "strict"), ("utf-16-le", "surrogatepass")
_LONG = 100
_LISTS: dict[str, Callable[[Iterable[Any]], Any]] = {"tuple": tuple, "list": list, "frozenset": frozenset}


def _values_of(kind: type) -> Callable[[Any], Iterable[Any]]:
    """The function that returns the fields of an object, as its class takes them."""
    if kind is ExtractionError:
        return lambda error: (error.reason, str(error))
    if issubclass(kind, tuple):
        return tuple
    names = ["secret"] if kind is Keyed else [one.name for one in fields(cast(Any, kind)) if one.init]
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)


#: The classes whose objects may be sent, by name.
_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(Page, PageContent, ItemMetadata, RiskyPage, ReadPage, ExtractionError),
        *(Fingerprint, Assumption, PreparedFingerprint, Keyed),
        *(ReadingOptions, FingerprintOptions, WorkerOptions, ReadTask, FingerprintTask),
    )
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
    """A value as plain data; long strings, bytes and arrays go to ``parts``, in their order."""
    if value is None or isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < _LONG):
        return value
    if isinstance(value, str):
        codec = _ASCII if value.isascii() else _WIDE
        parts.append(value.encode(*codec))
        return [codec[0], len(parts[-1])]
    if isinstance(value, bytes):
        parts.append(value)
        return ["bytes", len(value)]
    if isinstance(value, np.ndarray):
        parts.append(value.tobytes())
        return ["array", len(parts[-1]), value.dtype.str]
    kind = type(value)
    if kind.__name__ in _LISTS:
        return [kind.__name__, [_pack(one, parts) for one in value]]
    if isinstance(value, Mapping):
        return ["dict", [[name, _pack(one, parts)] for name, one in value.items()]]
    if _KINDS.get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} cannot be sent to another process")
    return [kind.__name__, [_pack(one, parts) for one in _VALUES[kind.__name__](value)]]


def _unpack(packed: Any, content: BinaryIO) -> Any:
    if type(packed) is not list:
        return packed
    kind, values = packed[0], packed[1]
    if kind in (_ASCII[0], _WIDE[0]):
        return _read(content, values).decode(*(_ASCII if kind == _ASCII[0] else _WIDE))
    if kind == "bytes":
        return _read(content, values)
    if kind == "array":
        return np.frombuffer(_read(content, values), packed[2])
    if kind == "dict":
        return {name: _unpack(one, content) for name, one in values}
    return (_LISTS.get(kind) or _unpacker(kind))([_unpack(one, content) for one in values])


def _unpacker(kind: str) -> Callable[[Iterable[Any]], Any]:
    return lambda values: _KINDS[kind](*values)
