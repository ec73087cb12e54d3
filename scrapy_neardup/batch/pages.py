"""Read inputs to tables of pages, with the fingerprint that each page has without boilerplate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scrapy_neardup.errors import NearDupError, PageError
from scrapy_neardup.files import Entry, InputRecord, Malformed, read_input
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.records import RecordReader
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.extraction import extractor_name
from scrapy_neardup.settings import Config
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.text.sentences import why_unjudged
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)
#: Pages of one record batch.
_ROWS = 1000
#: Bits of the number of a record within its input; the bits above number the input, from 1.
RECORD_BITS = 32


def rank_of(input: int, record: int) -> int:
    """Return the rank of a record, which is also its id while parts are judged; inputs count from 1, records from 0.

    >>> rank_of(1, 0) < rank_of(1, 7) < rank_of(2, 0)
    True
    """
    return input << RECORD_BITS | record


def place_of(rank: int) -> tuple[int, int]:
    """Return the number of the input and that of the record in it.

    >>> place_of(rank_of(2, 7))
    (2, 7)
    """
    return rank >> RECORD_BITS, rank & ((1 << RECORD_BITS) - 1)


def record_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a batch."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.record_batch(
        [pa.array(column, field.type) for field, column in zip(schema, columns, strict=True)], schema
    )


#: Pages in the order of their ranks. ``url`` is the name of the record. ``failed``: why no page could be made of it.
#: ``page``: other fields, as JSON, if there are any. ``keys``, ``sketch``, ``sentences``, ``own`` and ``quoted`` are
#: the fingerprint without boilerplate; ``sketch`` is null if there is none. Strings are bytes, as pages may hold halves
#: of surrogate pairs.
PAGES = pa.schema(
    [
        ("rank", pa.uint64()),
        *((name, pa.binary()) for name in ("failed", "url", "reader", "site", "canonical", "text", "page")),
        ("html", pa.uint64()),
        ("keys", pa.list_(pa.uint64())),
        ("sketch", pa.binary()),
        ("sentences", pa.list_(pa.uint32())),
        ("own", pa.int64()),
        ("quoted", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What all stages of a run have in common; it can be sent to other processes.

    ``secret`` keys all hashes; None before a run draws one. ``fields``, ``id_field``: see ``RecordReader``.
    ``format``: of the inputs, or empty.
    """

    config: Config
    secret: Secret | None
    fields: Mapping[str, str]
    id_field: str = "id"
    format: str = ""

    def make_method(self) -> Method:
        """Return the method, with the hashes of the run."""
        assert self.secret is not None
        return self.config.make_method().with_hashes(Keyed(self.secret.value))

    def as_data(self) -> dict[str, Any]:
        """Return as plain data all that must be equal in runs that go on with each other."""
        config = self.config
        method = config.make_method()
        reading = [config.max_html, config.max_text, extractor_name(config.make_extractor())]
        about: dict[str, Any] = {
            "fields": dict(self.fields),
            "id": self.id_field,
            "format": self.format,
            "reading": reading,
        }
        about |= {"recipe": method.recipe(), "deciding": config.deciding(method)}
        plain: dict[str, Any] = json.loads(json.dumps(about))
        return plain


@dataclass(slots=True)
class ReadRecord:
    """A record with its rank: its entry, and the page made of it. ``failed``: why there is none."""

    rank: int
    entry: InputRecord
    page: Page | None = None
    failed: str = ""


class InputReader:
    """Reads the pages of inputs. Pages that may take long are read in a process that can be killed."""

    def __init__(self, options: BatchOptions) -> None:
        self._options = options
        self._opened = ExitStack()
        source = self._opened.enter_context(options.config.open_source(options.fields, hashes_items=False))
        self._records = RecordReader(source, options.id_field)

    def close(self) -> None:
        """End the process."""
        self._opened.close()

    def read(self, input: int, name: str, has: Callable[[int], bool] = lambda record: True) -> Iterator[ReadRecord]:
        """Read the records of an input whose numbers, from 0, ``has`` accepts.

        An input that cannot be read to its end, such as a damaged archive, ends with a malformed record.
        """
        records, number = read_input(name, self._options.format), -1
        while True:
            number += 1
            try:
                entry = next(records)
            except StopIteration:
                return
            except NearDupError as error:
                if has(number):
                    yield ReadRecord(rank_of(input, number), Malformed(name, 0, "", str(error)))
                return
            if has(number):
                yield self._read(rank_of(input, number), entry)

    def _read(self, rank: int, entry: InputRecord) -> ReadRecord:
        if not isinstance(entry, Entry):
            return ReadRecord(rank, entry)
        name = self._records.name(entry)
        try:
            page = self._records.read(self._records.draft(entry, name), name)
            return ReadRecord(rank, entry, self._records.add_item_hash(page, entry))
        except PageError as error:
            return ReadRecord(rank, entry, Page(name), error.reason)
        except Exception:  # as ``judge.records.Batch.judge`` does
            logger.exception("%s could not be read. This is a bug; please report it with the traceback.", entry.place)
            return ReadRecord(rank, entry, Page(name), "method_failed")


def fingerprint(method: Method, page: Page, min_letters: int) -> Fingerprint | None:
    """Return the fingerprint of a page without boilerplate; None if it has none, or only the state can make it."""
    if page.row or page.unread or why_unjudged(page.text, min_letters):
        return None
    counts = _NoBoilerplate()
    try:
        made = method.for_state(page, counts)
    except Exception:  # the judge tries again, with the state, and reports it
        return None
    return made if counts.asked <= set(made.sentences.tolist()) else None


class _NoBoilerplate:
    """Stands in for the ``SiteCounts`` of a state, and notes the sentences that a method asks about."""

    def __init__(self) -> None:
        self.asked = set[int]()

    def is_common(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """See ``SiteCounts``: nothing is boilerplate."""
        self.asked.update(sentences.tolist())
        return np.zeros(len(sentences), np.bool_)

    is_own = is_common

    def _refuse(self, *_: object) -> Any:
        raise NotImplementedError("Only a state can tell.")

    pages = stood_on = forms = _refuse


def tabulate(records: Iterable[ReadRecord], options: BatchOptions) -> Iterator[pa.RecordBatch]:
    """Fingerprint pages, and return them as PAGES; records without a page are left out."""
    method, least, rows = options.make_method(), options.config.min_letters, list[_PackedPage]()
    for record in records:
        if record.page is not None:
            rows.append(_pack(record, record.page, None if record.failed else fingerprint(method, record.page, least)))
        if len(rows) == _ROWS:
            yield record_batch(rows, PAGES)
            rows = []
    if rows:
        yield record_batch(rows, PAGES)


#: The values of a row of PAGES.
_PackedPage = tuple[Any, ...]
_NOTHING = Fingerprint((), b"")


def _pack(record: ReadRecord, page: Page, made: Fingerprint | None) -> _PackedPage:
    fields = {name: value for name in _FIELDS if (value := getattr(page, name))}
    others = json.dumps(fields, ensure_ascii=False) if fields else ""
    strings = (record.failed, page.url, page.reader, page.site, page.canonical, page.text, others)
    of = made or _NOTHING
    packed = (one.encode("utf-8", "surrogatepass") for one in strings)
    return (record.rank, *packed, page.html, of.keys, made and made.sketch, of.sentences, of.own, of.quoted)


#: The fields of a page, without those that records lack or that have a column of their own.
_FIELDS = [
    one.name
    for one in fields(Page)
    if one.name not in ("url", "reader", "site", "canonical", "text", "html", "row", "body", "letters")
]


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A row of PAGES: the page with its rank, and its fingerprint without boilerplate, if it has one."""

    rank: int
    page: Page
    failed: str
    fingerprint: Fingerprint | None


def stored_pages(batch: pa.RecordBatch) -> Iterator[StoredPage]:
    """Return the pages of a batch of PAGES."""
    lists = ("keys", "sentences")
    columns = [batch.column(name).to_pylist() for name in PAGES.names if name not in lists]
    keys, sentences = (_slices(batch.column(name)) for name in lists)
    rows = zip(*columns, keys, sentences, strict=True)
    for rank, failed, url, reader, site, canonical, text, others, html, sketch, own, quoted, its_keys, counted in rows:
        about = json.loads(others) if others else {}
        about.update({name: tuple(about[name]) for name in ("keywords", "quotes") if name in about})
        about.update(site=decode(site), canonical=decode(canonical), text=decode(text), reader=decode(reader))
        made = None
        if sketch is not None:
            made = Fingerprint(tuple(its_keys.tolist()), sketch, counted, own=own, quoted=quoted)
        yield StoredPage(rank, Page(decode(url), html=html, **about), failed.decode(), made)


def decode(packed: bytes) -> str:
    """Return a string of PAGES."""
    return packed.decode("utf-8", "surrogatepass")


def _slices(column: pa.ListArray) -> Iterator[npt.NDArray[Any]]:
    """Return the list of each row as an array."""
    ends, values = column.offsets.to_pylist(), column.values.to_numpy()
    return (values[low:high] for low, high in pairwise(ends))
