"""Read inputs to tables of pages and their fingerprints, before anything is known of boilerplate."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import fields, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.batch.rows import make_table
from scrapy_neardup.batch.runs import PAGES, BatchOptions, BatchRun, Stretch, decode, new_arrow, rank_of
from scrapy_neardup.errors import NearDupError, PageError
from scrapy_neardup.files import Entry, InputRecord, Malformed, Skipped, read_input
from scrapy_neardup.judge.records import RecordReader
from scrapy_neardup.methods import METHODS
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.item import TEXT_PREFIX
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: The strings of a page with a column each, and the other fields, without those that records lack.
_STRINGS = ("url", "reader", "site", "canonical", "text")
_OTHERS = [one.name for one in fields(Page) if one.name not in (*_STRINGS, "html", "row", "body")]
_strings_of, _others_of = attrgetter(*_STRINGS), attrgetter(*_OTHERS)
_to_json = json.JSONEncoder(ensure_ascii=False).encode
#: Pages of a batch, and characters of their strings. A file is written batch by batch, and memory holds one.
_BATCH, _CHARACTERS = 1000, 8_000_000
_NOTHING = Fingerprint((), b"")


def read_stretch(run: BatchRun, stretch: Stretch) -> int:
    """Read every ``run.strides``-th file of pages of an input; return how many records these are."""
    skipped, options, size, count = Counter[str](), run.options, run.records_of_file, 0

    def is_own(number: int) -> bool:
        return number // size % run.strides == stretch.stride

    numbered = enumerate(_entries(stretch.name, is_own))
    own = ((number, entry) for number, entry in numbered if is_own(number))
    # Beside other processes, one has so much less of a core: 1.25 times for each step of niceness.
    patience = 1.25 ** max(0, os.nice(0)) if hasattr(os, "nice") else 1.0
    config = replace(options.config, max_seconds=options.config.max_seconds * patience)
    with config.open_source(options.fields, hashes_items=False) as source, ThreadPoolExecutor(1) as disk:
        reader = PageTabulator(options, source)
        written: Future[Any] = disk.submit(int)
        for group, members in groupby(own, lambda one: one[0] // size):
            malformed, path = list[Malformed](), run.pages_file(stretch.input, group)
            with ExitStack() as file:
                writer = file.enter_context(new_arrow(path, PAGES))
                for number, entry in members:
                    count += 1
                    if isinstance(entry, Entry):
                        if reader.read(rank_of(stretch.input, number), entry):
                            writer.write_table(reader.take())
                    elif isinstance(entry, Skipped):
                        skipped[entry.why] += 1
                    else:
                        malformed.append(entry)
                writer.write_table(reader.take())
                written.result()
                written = disk.submit(file.pop_all().close)  # the disk takes a while, and reading goes on
            _write_rejects(path.with_suffix(".rejects"), malformed)
        written.result()
    with replace_file(run.marker(stretch), shared=True) as draft:
        draft.write_text(json.dumps({"records": count, "skipped": skipped}))
    return count


def _entries(name: str, is_wanted: Callable[[int], bool]) -> Iterator[InputRecord]:
    """Yield the records of an input. If its rest cannot be read, as in a damaged archive, the last one is malformed."""
    try:
        yield from read_input(name, is_wanted)
    except NearDupError as error:
        yield Malformed(name, 0, "", str(error))


def _write_rejects(path: Path, malformed: list[Malformed]) -> None:
    if malformed:
        with replace_file(path, shared=True) as draft, draft.open("w", encoding="utf-8") as file:
            for one in malformed:
                file.write(json.dumps([one.source, one.number, one.unit, one.why, one.raw.hex()]) + "\n")


def skipped_records(run: BatchRun) -> Counter[str]:
    """Return how many records of archives are no pages, by reason."""
    markers = (json.loads(file.read_text()) for file in run.folder.glob("pages/[0-9]*.json"))
    return sum((Counter(marker["skipped"]) for marker in markers), Counter[str]())


def malformed_records(run: BatchRun) -> Iterator[Malformed]:
    """Return the malformed records in the order of the inputs."""
    for file in sorted(run.folder.glob("pages/[0-9]*.rejects")):
        for line in file.read_text(encoding="utf-8").splitlines():
            source, number, unit, why, raw = json.loads(line)
            yield Malformed(source, number, unit, why, bytes.fromhex(raw))


class PageTabulator:
    """Reads and fingerprints pages."""

    def __init__(self, options: BatchOptions, source: PageSource) -> None:
        self._method, self._policy = options.make_method(), options.config.make_policy()
        self._fields, self._records = source.fields, RecordReader(source, options.id_field)
        #: A method of the user may look at the counts of a site, which only the state knows.
        self._is_ours = self._method.name in METHODS
        self._rows, self._characters = list[tuple[Any, ...]](), 0

    def take(self) -> pa.Table:
        """Return the pages that were read, as PAGES, and forget them."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(PAGES)
        self._rows, self._characters = [], 0
        return make_table(columns, PAGES)

    def read(self, rank: int, entry: Entry) -> bool:
        """Read the page of a record; return whether the pages that were read make a batch."""
        name, failed, item = self._records.name(entry), "", ""
        made: Fingerprint | None = None
        page, html = Page(name), 0
        try:
            page = self._records.read(self._records.draft(entry, name), name)
            is_judged = self._is_ours and not (page.row or page.unread or self._policy.why_unjudged(page.text))
            if is_judged and not (page.html or page.url.startswith(TEXT_PREFIX)):
                item = self._fields.pack_rest(entry.fields, page.text)
            html = 0 if item else self._records.item_hash(page, entry)
            made = self._method.for_state(page, None) if is_judged else None
        except PageError as error:
            failed = error.reason
        except Exception:  # as ``judge.records.Batch.judge`` does
            logger.exception("%s could not be read. This is a bug; please report it with the traceback.", entry.place)
            failed = "method_failed"
        others = _others_of(page)
        named = zip(_OTHERS, others, strict=True)
        packed = _to_json({name: value for name, value in named if value}) if any(others) else ""
        of = made or _NOTHING
        strings = failed, *_strings_of(page), packed, item
        self._characters += sum(map(len, strings))
        self._rows.append((rank, *strings, html, of.keys, made and made.sketch, of.sentences, of.own))
        return len(self._rows) >= _BATCH or self._characters >= _CHARACTERS


def stored_pages(batch: pa.RecordBatch) -> Iterator[tuple[Page, str, str]]:
    """Return the pages of PAGES, each with the reason why it could not be read, and with ``item``, or empty strings."""
    columns = [batch.column(name).to_pylist() for name in (*_STRINGS, "page", "html", "failed", "item")]
    for *strings, others, html, failed, item in zip(*columns, strict=True):
        about = json.loads(others) if others else {}
        about.update({name: tuple(about[name]) for name in ("keywords", "quotes") if name in about})
        about.update(zip(_STRINGS, map(decode, strings), strict=True))
        yield Page(html=html, **about), failed.decode(), decode(item)
