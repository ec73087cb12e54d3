"""The rules that judge a page, in their order: see ``RULES``.

A rule returns None if it does not apply; its docstring states when it applies. Otherwise it returns ``Ruled`` with the
verdict, or ``Blocked`` if the verdict depends on a page in flight, whose item is still in the pipelines.

``state/record.Record`` describes the words for a known page: delivered, unjudged, former, original, variant, leads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.context import Context, match_with
from scrapy_neardup.judge.copies import (
    Role,
    drop_again,
    find_role,
    judge_returned_copy,
    pass_in_group,
    pass_or_drop,
    reserve,
)
from scrapy_neardup.judge.in_flight import Blocked, InFlight, Reservation, Ruled, Ruling
from scrapy_neardup.judge.manual_verdicts import ManualKind, as_copy, original_at
from scrapy_neardup.judge.matching import SimilarPage, candidates, may_decide, without_overused_keys
from scrapy_neardup.model import ROW, Comparison, Fingerprint, Kind, Likeness, Page, Verdict
from scrapy_neardup.state.evidence import Keep, kept_page
from scrapy_neardup.state.pages import PageStore, representative_and_original, representative_of
from scrapy_neardup.state.record import Record, is_same_mark, row_mark

# Pages that are compared with no other page: the items of a listing (``Page.row``), and pages without enough text. In
# place of a sketch their record holds the hash of their source (``Page.html``: a number, made from the HTML or from the
# item). So the same source at the same URL is unchanged in a later crawl.


def judge_uncompared(context: Context) -> Ruling | None:
    """An item of a listing, or a page without a text that can be judged."""
    if context.page.row:
        return _judge_by_source(context, ROW)
    return _judge_by_source(context, context.reason) if context.reason else None


def _judge_by_source(context: Context, reason: AnyReason) -> Ruling:
    """Judge a page by its URL and source alone, without a comparison.

    * A page without enough text is unchanged if its URL had the same source; else it passes as unjudged.
    * An item of a listing with little text: the same, but within one crawl all pass. Two equal items of one URL may
      mean different things.
    * An item of a listing with enough text: the same, but with another source than before it is updated.
    """
    page, known = context.page, context.known
    verdict = context.verdict(Kind.UNJUDGED, reason=reason)
    if not page.html:
        return Ruled(verdict)
    source = row_mark(page.html) if page.row else _pack_source(page.html)
    is_listed_text = page.row and not context.reason
    all_pass = page.row and not is_listed_text
    in_flight = context.same_url_in_flight
    if in_flight is not None:
        if is_same_mark(in_flight.record.sketch, source) and not all_pass:
            return Blocked(in_flight)  # unchanged, if the item of the other comes through
        return Ruled(verdict)  # it passes in any case, so it waits for nobody; the state keeps the other
    if known is not None and not known.is_unjudged:
        return Ruled(verdict)  # an article was here; perhaps only its text failed to load, so the record stays
    if known is not None and is_same_mark(known.sketch, source):
        was_filed_in_this_crawl = known.id > context.crawl.generation  # both are nanoseconds since 1970
        return Ruled(verdict) if all_pass and was_filed_in_this_crawl else keep_uncompared(context, known)
    id = context.store.new_id()
    if is_listed_text:
        verdict = replace(verdict, id=id)
        if known is not None:
            verdict = replace(verdict, kind=Kind.UPDATED, reason="")
    record = Record(id=id, url=page.url, original=id, similarity=0.0, sketch=source, body=page.body)
    return reserve(context, verdict, record, Fingerprint((), source))


def keep_uncompared(context: Context, known: Record) -> Ruled:
    """Rule that a page that was compared with no other is unchanged."""
    match = match_with(known, similarity=1.0, containment=1.0)
    return _keep_record(context, known, context.verdict(Kind.UNCHANGED, known.id, match))


def _keep_record(context: Context, known: Record, verdict: Verdict, copied_from: tuple[Record, ...] = ()) -> Ruled:
    """Give the verdict on a page whose record stays. If it is unchanged, the record gets the digest of its bytes.

    ``copied_from``: the state notes that it has seen these records, too.
    """
    body = context.page.body if verdict.kind is Kind.UNCHANGED else 0
    renewed = replace(known, body=body or known.body)
    return Ruled(verdict, write=lambda: context.store.touch(known, copied_from=copied_from, renewed=renewed))


def _pack_source(source: int) -> bytes:
    return source.to_bytes(8, "big")


# The page's own URL.


def wait_for_same_url(context: Context) -> Blocked | None:
    """Another version of the page is in flight."""
    in_flight = context.same_url_in_flight
    return None if in_flight is None else Blocked(in_flight)


def judge_unchanged(context: Context) -> Ruled | None:
    """The page was delivered with the same text."""
    known = context.known
    if known is None or known.former or not known.is_delivered or not context.known_comparison.identical:
        return None
    return keep_delivered(context, known, context.known_comparison)


def judge_minor_update(context: Context) -> Ruled | None:
    """The page was delivered, only a few letters of it differ, and the policy drops such updates.

    The state keeps the delivered version. So small edits that add up pass as an update.
    """
    if context.known is None or not context.is_minor_update:
        return None
    ruled = keep_delivered(context, context.known, context.known_comparison, Kind.MINOR_UPDATE)
    return None if context.policy.passes(ruled.verdict) else ruled


def keep_delivered(context: Context, known: Record, comparison: Comparison, kind: Kind = Kind.UNCHANGED) -> Ruled:
    """Rule that a page that was delivered is unchanged, or a minor update."""
    original = representative_of(context.store, known) or known
    match = context.match(SimilarPage(comparison=comparison, original=original, compared=known))
    verdict = context.verdict(kind, known.id, match)
    return _keep_record(context, known, verdict, representative_and_original(context.store, original))


# Manual verdicts, then earlier pages, then pages in flight; the last rule makes an original.


def judge_manual_copy(context: Context) -> Ruling | None:
    """A person called the page a copy, and its original is there or in flight."""
    manual = context.manual_verdict
    if manual is None or manual.kind is not ManualKind.COPY:
        return None
    original = original_at(context.store, manual.other, context.page.url)
    if original is None:
        in_flight = context.first(context.in_flight.at_url(manual.other))
        return Blocked(in_flight) if in_flight is not None else None
    overused_keys = _overused_keys(context)
    comparison = as_copy(context.method.compare(context.fingerprint, original.sketch, overused_keys))
    filed = without_overused_keys(context.fingerprint, overused_keys)
    similar = SimilarPage(comparison=comparison, original=original, compared=original)
    return pass_or_drop(context, similar, filed, by_hand=True)


def _overused_keys(context: Context) -> frozenset[int]:
    """The overused keys of the page, without a search for similar pages."""
    return candidates(context.method, context.store, context.fingerprint.keys).overused_keys


def judge_little_text(context: Context) -> Ruling | None:
    """Without boilerplate and quoted messages, too little text is left."""
    reason = context.fingerprint.why_unjudged(context.policy.min_letters)
    return (judge_returned_copy(context) or _judge_by_source(context, reason)) if reason else None


def judge_copy(context: Context) -> Ruling | None:
    """The page is a copy of an earlier one, or was dropped as one at this URL.

    A dropped copy that comes again keeps its group, though by now it may be more like another original. A page that is
    known by its bytes does the same. But with a preference the copy may lead a group.
    """
    if context.policy.preference is None:
        return judge_returned_copy(context) or _judge_similar(context)
    return _judge_similar(context) or judge_returned_copy(context)


def _judge_similar(context: Context) -> Ruling | None:
    overused_keys, nearest = context.search_result.overused_keys, context.search_result.nearest
    if nearest is None or context.person_says_keep or not context.counts_as_copy(nearest.comparison):
        return None
    role = find_role(context, nearest, overused_keys)
    if role is Role.ORIGINAL:
        return pass_as_original(context)
    filed = without_overused_keys(context.filed_fingerprint, overused_keys)
    if role is Role.COPY:
        return pass_or_drop(context, nearest, filed)
    return pass_in_group(context, role, nearest, filed)


def wait_for_original_in_flight(context: Context) -> Blocked | None:
    """The page is a copy of a page in flight."""
    if not context.in_flight or context.person_says_keep:
        return None
    overused_keys = context.search_result.overused_keys

    def is_original(other: Reservation) -> bool:
        comparison = context.method.compare(context.fingerprint, other.record.sketch, overused_keys)
        return may_decide(other.record, comparison) and context.counts_as_copy(comparison)

    original = context.first(filter(is_original, context.in_flight.sharing(context.fingerprint)))
    return None if original is None else Blocked(original)


def pass_as_original(context: Context) -> Ruled:
    """No other rule applies, or the page is a copy that passes all the same (``Role.ORIGINAL``).

    It is a new original, or a new version of a page that was delivered.
    """
    nearest, previous, id = context.search_result.nearest, context.previous, context.store.new_id()
    is_copy = nearest is not None and context.counts_as_copy(nearest.comparison)
    by_hand = is_copy and context.person_says_keep
    if previous is not None:
        group = id if context.is_minor_update else 0
        verdict = context.verdict(context.kind_of_update, id, previous, group=group, by_hand=by_hand)
    elif nearest is not None:
        likeness = None if is_copy else nearest.comparison.likeness
        verdict = context.verdict(Kind.UNIQUE, id, context.match(nearest), likeness=likeness, by_hand=by_hand)
    else:
        verdict = context.verdict(Kind.UNIQUE, id)
    page, fingerprint = context.page, context.filed_fingerprint
    keys = without_overused_keys(fingerprint, context.search_result.overused_keys).keys
    record = Record(id=id, url=page.url, original=id, keys=keys, sketch=fingerprint.sketch, body=page.body)
    return reserve(context, verdict, record, fingerprint)


#: A rule answers, or leaves the page to the next rule.
Rule = Callable[[Context], Ruling | None]

#: The first rule that answers decides.
RULES: tuple[Rule, ...] = (
    judge_uncompared,
    wait_for_same_url,
    judge_unchanged,
    judge_minor_update,
    judge_manual_copy,
    judge_little_text,
    judge_copy,
    wait_for_original_in_flight,
    pass_as_original,
)


def judge_page(context: Context) -> Ruling:
    """Judge a page that was read. Raises StoreError; then nothing is reserved."""
    for rule in RULES:
        if (ruling := rule(context)) is not None:
            return ruling
    raise AssertionError("the last rule answers for every page")


# A page whose bytes were judged before need not be read. It gets the verdict that reading would give; only the match
# may differ, because it names the page with the same bytes. The page is read where more than its bytes matters: for
# a manual verdict, a preference that reads texts, a delivered page with other bytes, new boilerplate, missing evidence.


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
