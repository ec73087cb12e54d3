"""What a worker is asked, and what it answers.

Messages are JSON with bytes behind it. Nothing is pickled, because a process that read hostile HTML answers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from io import BytesIO
from operator import attrgetter
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.source import PageContent, RiskyPage
from scrapy_neardup.workers.speculation import CODEC, Assumption, Boilerplate, PreparedFingerprint

#: Seconds that a page may take by default.
MAX_SECONDS = 1.5
#: The lengths of a message's head and content.
_LENGTHS = struct.Struct(">QQ")
_HTML_CODEC = "utf-8", "surrogatepass"
_FIELDS = tuple(field.name for field in fields(Page) if field.name != "text")
_field_values = attrgetter(*_FIELDS)
A = TypeVar("A", covariant=True)


class Message(NamedTuple):
    """A question or an answer: plain data, and bytes that belong to it."""

    head: dict[str, Any]
    content: bytes = b""


def send(pipe: BinaryIO, message: Message) -> None:
    """Write a message. Raises OSError."""
    head = json.dumps(message.head).encode()
    pipe.write(_LENGTHS.pack(len(head), len(message.content)) + head)
    pipe.write(message.content)
    pipe.flush()


def receive(pipe: BinaryIO) -> Message:
    """Read a message. Raises EOFError if there is none or only a part of it, ValueError if it is malformed."""
    lengths = _LENGTHS.unpack(_read(pipe, _LENGTHS.size))
    head, content = (_read(pipe, length) for length in lengths)
    return Message(json.loads(head), content)


def _read(pipe: BinaryIO, length: int) -> bytes:
    found = pipe.read(length)
    if len(found) < length:
        raise EOFError
    return found


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
    boilerplate: Boilerplate = field(default_factory=Boilerplate, repr=False)

    @property
    def can_be_sent(self) -> bool:
        """Whether another process can import the method, and JSON can hold its parameters."""
        try:
            json.dumps(self.as_data())
        except (TypeError, ValueError):
            return False
        return not self.method.startswith("__main__.")

    def as_data(self) -> dict[str, Any]:
        """The options as plain data."""
        hashes = {"secret": self.hashes.secret.hex()}
        return {"method": self.method, "parameters": dict(self.parameters), **hashes}


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker may do, and how many ``seconds`` each task may take.

    With both ``reading`` and ``fingerprints`` it fingerprints each page that it reads.
    """

    seconds: float = MAX_SECONDS
    reading: ReadingOptions | None = None
    fingerprints: FingerprintOptions | None = None

    def as_data(self) -> dict[str, Any]:
        """The options as plain data."""
        reading = asdict(self.reading) if self.reading else None
        fingerprints = self.fingerprints.as_data() if self.fingerprints else None
        return {"seconds": self.seconds, "reading": reading, "fingerprints": fingerprints}


class Task(Protocol[A]):
    """Work for a worker."""

    def encode(self) -> Message:
        """The question."""

    def decode(self, answer: Message, boilerplate: Boilerplate) -> A:
        """The result; ``boilerplate`` is what the worker assumes."""


class ReadPage(NamedTuple):
    """A page, and the fingerprint that a worker made of ``ItemMetadata.apply_to`` of it."""

    page: Page
    prepared: PreparedFingerprint | None = None


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Read a page, and fingerprint it if the worker has a method."""

    raw: PageContent

    def encode(self) -> Message:
        """See ``Task``."""
        raw, html = self.raw, self.raw.content
        is_text = isinstance(html, str)
        content = html.encode(*_HTML_CODEC) if isinstance(html, str) else html
        return Message({"raw": [raw.url, raw.content_type, raw.is_of_url, raw.metadata, is_text]}, content)

    def decode(self, answer: Message, boilerplate: Boilerplate) -> ReadPage | RiskyPage | ExtractionError:
        """See ``Task``."""
        head, content = answer.head, BytesIO(answer.content)
        if "reason" in head:
            return ExtractionError(head["reason"], head["message"])
        if "page" not in head:
            return RiskyPage(answer.content.decode(*_HTML_CODEC))
        return ReadPage(_decode_page(head["page"], content), _decode_fingerprint(head["made"], content, boilerplate))


@dataclass(frozen=True, slots=True)
class FingerprintTask:
    """Fingerprint pages that brought their text; None for a page without a fingerprint."""

    pages: Sequence[Page]

    def encode(self) -> Message:
        """See ``Task``."""
        rows, texts = zip(*map(_encode_page, self.pages), strict=True)
        return Message({"pages": rows}, b"".join(texts))

    def decode(self, answer: Message, boilerplate: Boilerplate) -> list[PreparedFingerprint | None]:
        """See ``Task``."""
        content = BytesIO(answer.content)
        return [_decode_fingerprint(row, content, boilerplate) for row in answer.head["made"]]


def decode_raw(question: Message) -> PageContent:
    """What a ``ReadTask`` asks to read."""
    url, content_type, is_named, said, is_text = question.head["raw"]
    html = question.content.decode(*_HTML_CODEC) if is_text else question.content
    return PageContent(url, html, content_type, is_of_url=is_named, metadata=ItemMetadata.from_json(said))


def decode_pages(question: Message) -> list[Page]:
    """The pages of a ``FingerprintTask``."""
    content = BytesIO(question.content)
    return [_decode_page(row, content) for row in question.head["pages"]]


#: A fingerprint as plain data, and the bytes of its title.
EncodedFingerprint = tuple[list[Any] | None, bytes]


def encode_read_page(page: Page, fingerprint: EncodedFingerprint) -> Message:
    """Answer a ``ReadTask``."""
    (row, text), (made, title) = _encode_page(page), fingerprint
    return Message({"page": row, "made": made}, text + title)


def encode_fingerprints(made: Sequence[EncodedFingerprint]) -> Message:
    """Answer a ``FingerprintTask``."""
    rows, titles = zip(*made, strict=True)
    return Message({"made": rows}, b"".join(titles))


def encode_risky(html: str) -> Message:
    """Give back a page that may take long."""
    return Message({}, html.encode(*_HTML_CODEC))


def encode_fingerprint(made: Fingerprint, title: str, assumptions: Sequence[Assumption]) -> EncodedFingerprint:
    """A fingerprint with its assumptions; ``title``: see ``Method.pack_title``."""
    content = title.encode(*CODEC)
    # The sentences of the first assumption are most often those that the state counts. Then they are sent once.
    is_same = assumptions and np.array_equal(assumptions[0].sentences, made.sentences)
    row = [
        _hex(made.keys, "<u8"),
        made.sketch.hex(),
        None if is_same else _hex(made.sentences, "<u4"),
        made.whole.hex(),
        made.own,
        _hex(sorted(made.boilerplate), "<u4"),
        made.site_free.hex(),
        len(content),
        made.quoted,
        made.site is not None,
        [(one.query, _hex(one.sentences, "<u4"), one.answers.tobytes().hex()) for one in assumptions],
    ]
    return row, content


def _decode_fingerprint(
    row: Sequence[Any] | None, content: BinaryIO, boilerplate: Boilerplate
) -> PreparedFingerprint | None:
    if row is None:
        return None
    keys, sketch, sentences, whole, own, common, site_free, title, quoted, has_site, answers = row
    assumptions = tuple(
        Assumption(query, _array(asked, "<u4"), np.frombuffer(bytes.fromhex(said), np.bool_))
        for query, asked, said in answers
    )
    made = Fingerprint(
        tuple(_array(keys, "<u8").tolist()),
        bytes.fromhex(sketch),
        assumptions[0].sentences if sentences is None else _array(sentences, "<u4"),
        bytes.fromhex(whole),
        own,
        boilerplate=frozenset(_array(common, "<u4").tolist()),
        site_free=bytes.fromhex(site_free),
        quoted=quoted,
    )
    return PreparedFingerprint(made, assumptions, content.read(title), has_site, boilerplate)


def _encode_page(page: Page) -> tuple[list[Any], bytes]:
    text = page.text.encode(*CODEC)
    return [*_field_values(page), len(text)], text


def _decode_page(row: Sequence[Any], content: BinaryIO) -> Page:
    *values, size = row
    given = dict(zip(_FIELDS, values, strict=True))
    tuples = {"keywords": tuple(given["keywords"]), "quotes": tuple(given["quotes"])}  # lists in JSON
    return Page(**{**given, **tuples, "text": content.read(size).decode(*CODEC)})


def _hex(numbers: npt.ArrayLike, kind: str) -> str:
    return np.array(numbers, kind).tobytes().hex()


def _array(encoded: str, kind: str) -> npt.NDArray[Any]:
    return np.frombuffer(bytes.fromhex(encoded), kind)
