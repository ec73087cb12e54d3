"""Judge the pages of one part, as a small crawl that begins with the rows that it is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from scrapy_neardup.batch.pages import BatchOptions, StoredPage, stored_pages
from scrapy_neardup.batch.part_store import PartQuestions, PartStore
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Kind, Likeness, Match, Page, SiteCounts, Verdict
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)


def judge_part(
    options: BatchOptions, part: int, pages: Iterable[pa.RecordBatch], given: pa.Table, questions: PartQuestions
) -> Iterator[pa.Table]:
    """Judge the pages of a part, and return what they ask and leave behind, as ROWS of each topic.

    ``pages``: PAGES in the order of their ranks. ``given``: GIVEN rows for this part, in any order. ``questions``: of
    these pages.
    """
    method = options.make_method()
    store = PartStore(method, options, given, questions)
    policy = replace(options.config.make_policy(), keep=Keep.NOTHING)
    detector = Detector(method, store, who="batch", policy=policy)
    for batch in pages:
        for stored in stored_pages(batch):
            made = stored.fingerprint
            store.begin_page(stored.rank, made.sentences if made is not None else None)
            store.end_page(pack_verdict(_judge(detector, stored)))
    return store.rows_of(part)


def _judge(detector: Detector, stored: StoredPage) -> Verdict:
    page = stored.page
    if stored.failed:
        return Verdict(Kind.UNJUDGED, page.url, reason=stored.failed)  # type: ignore[arg-type]  # as it was stored
    prepared = StoredFingerprint(stored.fingerprint) if stored.fingerprint is not None else None
    try:
        return detector.judge_now(page, sealed=False, prepared=prepared)
    except Exception:  # one page must not end the part
        logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", page.url)
        return Verdict(Kind.UNJUDGED, page.url, reason="method_failed")


@dataclass(frozen=True, slots=True)
class StoredFingerprint:
    """A fingerprint made before boilerplate was known. It is used if no sentence of it is boilerplate now."""

    fingerprint: Fingerprint

    def verified(self, page: Page, counts: SiteCounts, method: Method) -> Fingerprint:
        """See ``detector.PreparedFingerprint``."""
        made = self.fingerprint
        if counts.is_common(made.sentences).any():
            return method.for_state(page, counts)
        title = _LateTitle(page, counts, method)
        return Fingerprint(
            made.keys, made.sketch, made.sentences, own=made.own, site=counts, title=title, quoted=made.quoted
        )


class _LateTitle:
    """``Fingerprint.title``, made at the first access: most pages are compared with none."""

    def __init__(self, *about: Any) -> None:
        self._about = about

    @cached_property
    def _title(self) -> Any:
        page, counts, method = self._about
        return method.for_state(page, counts).title

    def __getattr__(self, name: str) -> Any:
        return getattr(self._title, name)


# Verdicts, as rows hold them.


def pack_verdict(verdict: Verdict) -> bytes:
    """Return a verdict as bytes; no bytes for a unique page without a match. The ids in it are ranks."""
    match = verdict.match
    if verdict.kind is Kind.UNIQUE and match is None:
        return b""
    packed = [
        *(verdict.kind.value, verdict.id, verdict.reason, verdict.kind_of_likeness, verdict.reader, verdict.group),
        match and [match.id, match.url, match.similarity, match.containment, match.shared],
    ]
    return json.dumps(packed).encode()


def unpack_verdict(rank: int, url: str, reader: str, packed: bytes) -> Verdict:
    """Return a verdict that ``pack_verdict`` packed, or that on a unique page like no other. Matches have no time."""
    if not packed:
        return Verdict(Kind.UNIQUE, url, rank, reader=reader)
    kind, id, reason, likeness, reader, group, about = json.loads(packed)
    match = Match(about[0], about[1], 0.0, about[2], about[3], tuple(about[4])) if about else None
    why: AnyReason = reason
    return Verdict(Kind(kind), url, id, match, why, Likeness(likeness) if likeness else None, reader, group)
