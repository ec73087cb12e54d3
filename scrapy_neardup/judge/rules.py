"""The rules that judge a page, in their order: see ``RULES``.

A rule returns None if it does not apply; its docstring states when it applies. Otherwise it returns ``Ruled`` with the
verdict, or ``Blocked`` if the verdict depends on a page in flight.

``state/record.Record`` describes the words for a known page: delivered, unjudged, former, original, variant, has led.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.context import Context, match_with
from scrapy_neardup.judge.copies import judge_as_copy, judge_returned_copy, keep_record, reserve
from scrapy_neardup.judge.groups import kind_of_copy
from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled, Ruling
from scrapy_neardup.judge.manual_verdicts import ManualKind, compare_by_hand, original_at
from scrapy_neardup.judge.matching import SimilarPage, may_decide
from scrapy_neardup.model import ROW, Comparison, Fingerprint, Kind
from scrapy_neardup.state.pages import representative_and_original, representative_of
from scrapy_neardup.state.record import Record, is_same_mark, row_mark

# Pages that are compared with no other page: the items of a listing (``Page.row``), and pages without enough text. In
# place of a sketch their record holds the hash of their source (``Page.html``: a number, made from the HTML or from the
# item). So the same source at the same URL is unchanged in a later crawl.


def judge_uncompared(context: Context) -> Ruling | None:
    """An item of a listing, or a page without a text that can be judged."""
    if context.page.row:
        return _judge_by_source(context, ROW)
    return None if context.is_compared else _judge_by_source(context, context.why_unjudged)


def _judge_by_source(context: Context, reason: AnyReason) -> Ruling:
    """Judge a page by its URL and source, without a comparison.

    * A page without enough text is unchanged if its URL had the same source; else it passes as unjudged.
    * An item of a listing with little text: the same, but within one crawl all pass. Two equal items of one URL may
      mean different things.
    * An item of a listing with enough text: the same, but with another source than before it is updated.
    """
    page, known = context.page, context.known
    verdict = context.verdict(Kind.UNJUDGED, reason=reason)
    if not page.html:
        return Ruled(verdict)
    source = row_mark(page.html) if page.row else page.html.to_bytes(8, "big")
    has_text = page.row and not context.why_unjudged
    all_pass = page.row and not has_text
    in_flight = context.same_url_in_flight
    if in_flight is not None:
        if is_same_mark(in_flight.record.sketch, source) and not all_pass:
            return Blocked(in_flight)  # unchanged, if the item of the other comes through
        return Ruled(verdict)  # it passes in any case, so it waits for nobody; the state keeps the other
    if known is not None and not known.is_unjudged:
        return Ruled(verdict)  # an article was here; perhaps only its text failed to load, so the record stays
    if known is not None and is_same_mark(known.sketch, source):
        was_filed_in_this_crawl = known.id > context.crawl.generation  # both are nanoseconds since 1970
        return Ruled(verdict) if all_pass and was_filed_in_this_crawl else _hold_back(context, known)
    id = context.store.new_id()
    if has_text:
        verdict = replace(verdict, id=id)
        if known is not None:
            verdict = replace(verdict, kind=Kind.UPDATED, reason="")
    record = Record(id, page.url, id, 0.0, sketch=source, body=page.body)
    return reserve(context, verdict, record, Fingerprint((), source))


def _hold_back(
    context: Context, known: Record, kind: Kind = Kind.UNCHANGED, comparison: Comparison | None = None
) -> Ruled:
    """Rule that a page came again at its URL, and keep its record; an unchanged page gives it the digest of its bytes.

    ``comparison``: with the known page; None if their sources are the same. The page that represents its group counts
    as seen.
    """
    original = representative_of(context.store, known) or known
    if comparison is None:
        match = match_with(original, similarity=1.0, containment=1.0)
    else:
        match = context.match(SimilarPage(comparison, original, known))
    renewed = replace(known, body=context.page.body or known.body) if kind is Kind.UNCHANGED else None
    copied_from = representative_and_original(context.store, original)
    return keep_record(context, known, context.verdict(kind, known.id, match), copied_from, renewed)


# The page's own URL.


def judge_bytes(context: Context) -> Ruled | None:
    """The URL has the very same bytes as before, so reading the page would show that it is unchanged.

    Only this rule answers for a page that was not read. An unjudged page is read if a person judged it since.
    """
    known = context.known
    if known is None or context.same_url_in_flight is not None:
        return None
    if not known.is_delivered and (not known.is_unjudged or context.manual_verdict is not None):
        return None
    ruled = _hold_back(context, known)
    return replace(ruled, verdict=replace(ruled.verdict, same_bytes=True))


def wait_for_same_url(context: Context) -> Blocked | None:
    """Another version of the page is in flight."""
    in_flight = context.same_url_in_flight
    return None if in_flight is None else Blocked(in_flight)


def judge_delivered(context: Context) -> Ruled | None:
    """The page was delivered with the same text; or only a few letters differ, and the policy drops such updates.

    After a minor update the state keeps the delivered version. So small edits that add up pass as an update.
    """
    known = context.delivered
    if known is None or known.former:
        return None
    comparison = context.known_comparison
    if comparison.identical:
        return _hold_back(context, known, Kind.UNCHANGED, comparison)
    if not context.is_minor_update:
        return None
    ruled = _hold_back(context, known, Kind.MINOR_UPDATE, comparison)
    return None if context.policy.passes(ruled.verdict) else ruled


# Manual verdicts, then earlier pages, then pages in flight; the last rule makes an original.


def judge_manual_copy(context: Context) -> Ruling | None:
    """A person called the page a copy, and its original is there or in flight."""
    manual = context.manual_verdict
    if manual is None or manual.kind is not ManualKind.COPY:
        return None
    original = original_at(context.store, manual.other, context.page.url)
    if original is None:
        in_flight = context.first(context.in_flight.under(manual.other))
        return Blocked(in_flight) if in_flight is not None else None
    comparison = compare_by_hand(context.method, context.fingerprint, original, context.candidates.overused_keys)
    return judge_as_copy(context, SimilarPage(comparison, original, original), Kind.DUPLICATE, by_hand=True)


def judge_little_text(context: Context) -> Ruling | None:
    """Without boilerplate and quoted messages, the text that is left is short."""
    reason = context.fingerprint.why_unjudged(context.policy.min_letters)
    return (judge_returned_copy(context) or _judge_by_source(context, reason)) if reason else None


def judge_copy(context: Context) -> Ruling | None:
    """The page is a copy of an earlier one, or was dropped as one at this URL.

    A dropped copy that comes again keeps its group, though by now it may be more like another original. But with a
    preference the copy may lead a group.
    """
    if context.policy.prefers_first:
        return judge_returned_copy(context) or _judge_similar(context)
    return _judge_similar(context) or judge_returned_copy(context)


def _judge_similar(context: Context) -> Ruling | None:
    nearest = context.search_result.nearest
    if nearest is None or context.person_says_keep or not context.counts_as_copy(nearest.comparison):
        return None
    kind = kind_of_copy(context, nearest)
    return pass_as_original(context) if kind is Kind.UNIQUE else judge_as_copy(context, nearest, kind)


def wait_for_original_in_flight(context: Context) -> Blocked | None:
    """The page is a copy of a page in flight."""
    if not context.in_flight or context.person_says_keep:
        return None
    overused_keys = context.candidates.overused_keys

    def is_original(other: Reservation) -> bool:
        comparison = context.method.compare(context.fingerprint, other.record.sketch, overused_keys)
        return may_decide(other.record, comparison) and context.counts_as_copy(comparison)

    original = context.first(filter(is_original, context.in_flight.sharing(context.fingerprint)))
    return None if original is None else Blocked(original)


def pass_as_original(context: Context) -> Ruled:
    """No other rule applies, or the page is a copy that passes all the same (``groups.kind_of_copy``).

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
    filed = context.filed_fingerprint(in_form=context.search_result.in_form)
    record = Record(id, context.page.url, id, keys=filed.keys, sketch=filed.sketch, body=context.page.body)
    return reserve(context, verdict, record, filed, verdict.likeness, verdict.match)


#: A rule answers, or leaves the page to the next rule.
Rule = Callable[[Context], Ruling | None]

#: The first rule that answers decides.
RULES: tuple[Rule, ...] = (
    judge_uncompared,
    wait_for_same_url,
    judge_delivered,
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
