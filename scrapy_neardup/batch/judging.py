"""Judge the pages of one part, as a small crawl that begins with the rows that it is given."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from scrapy_neardup.batch.pages import BatchOptions, StoredPage, stored_pages
from scrapy_neardup.batch.part_store import Call, PartStore, Question
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Kind, Likeness, Match, Page, SiteCounts, Verdict
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)


def judge_part(
    options: BatchOptions,
    part: int,
    pages: Iterable[pa.RecordBatch],
    given: pa.Table,
    memory: dict[int, KnownJudgement] | None = None,
) -> pa.Table:
    """Judge the pages of a part, and return what they ask and leave behind.

    ``pages``: PAGES in the order of their ranks. ``given``: GIVEN rows for this part, in any order. ``memory``: the
    judgements of an earlier round that compared pages, by rank. They are repeated if all answers are the same as then.
    This function changes it.
    """
    method = options.make_method()
    store = PartStore(method, options, given)
    policy = replace(options.config.make_policy(), keep=Keep.NOTHING)
    detector = Detector(method, store, who="batch", policy=policy)
    memory = {} if memory is None else memory
    for batch in pages:
        some = list(stored_pages(batch))
        store.hash_sentences(some)
        for stored in some:
            store.begin_page(stored.rank)
            known = memory.pop(stored.rank, None)
            if known is not None and store.ask_again(known.questions):
                store.repeat(known.effects)
            else:
                known = KnownJudgement(pack_verdict(_judge(detector, stored)), store.questions, store.effects)
            if known.has_candidates:
                memory[stored.rank] = known
            store.verdicts[stored.rank] = known.verdict
    return store.rows_of(part)


@dataclass(frozen=True, slots=True)
class KnownJudgement:
    """The verdict on a page, all that was asked for it with the answers, and what was written.

    It stays true while the answers do.
    """

    verdict: bytes
    questions: list[Question]
    effects: list[Call]

    @property
    def has_candidates(self) -> bool:
        """Whether earlier pages were compared, which takes most of the time."""
        return any(call[0] == "records_of" for call, _ in self.questions)


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
        return replace(made, site=counts, title=_LateTitle(page, counts, method))


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
