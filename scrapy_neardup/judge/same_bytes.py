"""A page whose bytes were judged before need not be parsed.

It gets the verdict that parsing would give; only the match may differ, because it names the page with the same bytes.
The page is parsed if anything else could matter: a manual verdict, a preference that reads texts, a delivered page with
other bytes, new boilerplate, or missing evidence.
"""

from __future__ import annotations

from dataclasses import replace

from scrapy_neardup.judge.context import Context, match_with
from scrapy_neardup.judge.copies import Role, drop_again, find_role, pass_or_drop
from scrapy_neardup.judge.in_flight import Blocked, InFlight, Ruled, Ruling
from scrapy_neardup.judge.matching import SimilarPage, may_decide
from scrapy_neardup.judge.rules import keep_delivered, keep_uncompared
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Page
from scrapy_neardup.state.evidence import Keep, kept_page
from scrapy_neardup.state.pages import PageStore, representative_and_original, representative_of
from scrapy_neardup.state.record import Record


def knows_bytes(store: PageStore, in_flight: InFlight, url: str, body: int) -> bool:
    """Whether a page with this digest of its bytes was judged or is in flight, so ``judge_bytes`` may answer.

    Every page of a state on a server is read: to ask the server takes as long.
    """
    if not body or store.is_shared:
        return False
    known = store.find(url)
    return (known is not None and known.body == body) or bool(in_flight.with_body(body)) or bool(store.by_body(body))


def judge_bytes(context: Context) -> Ruling | None:
    """Judge a page by its URL and the digest of its bytes; None if it must be read. Raises StoreError."""
    page, known = context.page, context.known
    if (in_flight := context.same_url_in_flight) is not None:
        return Blocked(in_flight) if in_flight.record.body == page.body else None
    if known is not None and known.body == page.body:
        return _judge_again(context, known)
    is_new = known is None or not (known.is_delivered or known.former)
    return _judge_elsewhere(context) if is_new else None


def _judge_again(context: Context, known: Record) -> Ruled | None:
    """The URL has the same bytes as before."""
    if known.is_delivered:
        comparison = context.method.compare(Fingerprint((), known.sketch), known.sketch, frozenset())
        return _by_bytes(keep_delivered(context, known, comparison), context.page) if comparison.identical else None
    if context.manual_verdict is not None:
        return None
    if known.original == known.id:  # it was not compared: too little or too much text
        return _by_bytes(keep_uncompared(context, known), context.page)
    return _judge_dropped(context, known)


def _judge_dropped(context: Context, known: Record) -> Ruled | None:
    """The same bytes were dropped as a copy at this URL."""
    original = _newest_original(context, known)
    evidence = context.store.evidence(known.id)
    if context.policy.preference is not None or original is None or not original.sketch:
        return None
    if evidence is None or not evidence.likeness:
        return None
    match = match_with(
        original, similarity=evidence.similarity, containment=evidence.containment, shared=evidence.shared
    )
    verdict = context.verdict(Kind.DUPLICATE, known.id, match, likeness=Likeness(evidence.likeness))
    if context.policy.passes(verdict):
        return None  # it is delivered, so its text must be known
    ruled = drop_again(context, known, verdict, representative_and_original(context.store, original))
    return _by_bytes(ruled, replace(context.page, title=evidence.title))


def _judge_elsewhere(context: Context) -> Ruling | None:
    """Another URL has, or had, the same bytes."""
    preference, page = context.policy.preference, context.page
    if (preference is not None and preference.reads) or context.manual_verdict is not None:
        return None
    found = context.store.by_body(page.body)
    if found is None:
        in_flight = context.first(context.in_flight.with_body(page.body))
        if in_flight is None or not in_flight.record.is_original or _compare(context, in_flight.record) is None:
            return None
        return Blocked(in_flight)
    compared, whole = _compare(context, found), _whole_page(context, found)
    original = _newest_original(context, found)
    if compared is None or whole is None or original is None or found.url == page.url:
        return None
    comparison, sketch = compared
    similar = SimilarPage(comparison=comparison, original=original, compared=found)
    context = context.with_page(whole, Fingerprint((), sketch))
    if find_role(context, similar, frozenset()) is not Role.COPY:
        return None
    verdict = context.verdict(Kind.DUPLICATE, match=context.match(similar), likeness=comparison.likeness)
    if context.policy.passes(verdict):
        return None  # its tag needs the shared sentences, so it must be parsed
    return _by_bytes(pass_or_drop(context, similar, context.fingerprint), whole)


def _by_bytes(ruled: Ruled, page: Page) -> Ruled:
    return replace(ruled, verdict=replace(ruled.verdict, same_bytes=True, reader=""), page=page)


def _newest_original(context: Context, record: Record) -> Record | None:
    """Return the original of a record's group; None if the original's URL has a newer version."""
    original = representative_of(context.store, record, except_url=context.page.url)
    newest = context.store.find(original.url) if original is not None else None
    return original if original is not None and newest is not None and newest.id == original.id else None


def _compare(context: Context, found: Record) -> tuple[Comparison, bytes] | None:
    """Return the comparison with a page of the same bytes, and the judged page's sketch; None unless it is a copy."""
    site = context.page.site
    again = context.method.compare_same_bytes(found.sketch, site, context.store.on_site(site))
    return again if again is not None and context.counts_as_copy(again[0]) and may_decide(found, again[0]) else None


def _whole_page(context: Context, found: Record) -> Page | None:
    """Return the judged page with title and text of the page with the same bytes; None if the state lacks them."""
    page, keep = context.page, context.policy.keep
    if keep is Keep.NOTHING:
        return page
    evidence = context.store.evidence(found.id)
    if evidence is None:
        return None
    if keep is Keep.EVIDENCE:
        return replace(page, title=evidence.title, letters=evidence.letters)
    whole = kept_page(page.url, evidence)
    return replace(whole, site=page.site, body=page.body) if whole is not None else None
