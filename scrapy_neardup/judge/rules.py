"""The rules that judge a page, in their order: see ``RULES``.

A rule returns None if it does not apply. Its docstring states when it applies. A ruling is ``Ruled`` (a verdict, and a
reservation if the page passes) or ``Blocked`` (wait for a page in flight, which passed and whose item is still in the
pipelines).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.context import Context
from scrapy_neardup.judge.copies import (
    Standing,
    count_sentences,
    drop_again,
    find_standing,
    judge_returned_copy,
    pass_in_group,
    pass_or_drop,
    reserve,
)
from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled, Ruling
from scrapy_neardup.judge.manual_verdicts import ManualKind, as_copy, original_at
from scrapy_neardup.judge.matching import Found, candidates, distinctive_keys, may_decide, with_distinctive_keys
from scrapy_neardup.model import ROW, Comparison, Fingerprint, Kind, Match, Verdict
from scrapy_neardup.state.pages import representative_and_original, representative_of
from scrapy_neardup.state.record import Record, is_same_mark, row_mark

# Pages that are compared with no other page. Their record has no sketch but the hash of their source (``Page.html``).
# So the same source at the same URL is unchanged in a later crawl.


def judge_uncompared(context: Context) -> Ruling | None:
    """A row of a listing, or a page without a text that can be judged."""
    if context.page.row:
        return _judge_by_source(context, ROW)
    return _judge_by_source(context, context.reason) if context.reason else None


def _judge_by_source(context: Context, reason: AnyReason) -> Ruling:
    """Judge a page by its URL and source alone. It passes as unjudged, or is unchanged.

    Rows with little text may be equal and mean different things, so within one crawl all of them pass. A row with
    enough text (``is_full_row``) is unchanged or updated like an article.
    """
    page, known = context.page, context.known
    verdict = context.verdict(Kind.UNJUDGED, reason=reason)
    if not page.html:
        return Ruled(verdict)
    source = row_mark(page.html) if page.row else _pack_source(page.html)
    is_full_row = page.row and not context.reason
    all_pass = page.row and not is_full_row
    if (twin := context.same_url) is not None:
        return Blocked(twin) if is_same_mark(twin.record.sketch, source) and not all_pass else Ruled(verdict)
    if known is not None and known.similarity > 0:
        return Ruled(verdict)  # an article was here; perhaps only its text failed to load, so the record stays
    if known is not None and is_same_mark(known.sketch, source):
        is_of_this_crawl = known.id > context.crawl.generation  # ids are times
        return Ruled(verdict) if all_pass and is_of_this_crawl else keep_unjudged(context, known)
    id = context.store.new_id()
    if is_full_row:
        verdict = replace(verdict, id=id)
        if known is not None:
            verdict = replace(verdict, kind=Kind.UPDATED, reason="")
    record = Record(id, page.url, id, 0.0, (), source, body=page.body)
    return reserve(context, verdict, record, Fingerprint((), source))


def keep_unjudged(context: Context, known: Record) -> Ruled:
    """A page that was not compared with others is unchanged."""
    match = Match(known.id, known.url, known.first_seen, 1.0, 1.0)
    return _keep_known(context, known, context.verdict(Kind.UNCHANGED, known.id, match))


def _keep_known(context: Context, known: Record, verdict: Verdict, of: tuple[Record, ...] = ()) -> Ruled:
    """The page is unchanged, and its record names its present bytes. The pages ``of`` its group count as seen."""
    renewed = replace(known, body=context.page.body or known.body)
    return Ruled(verdict, write=lambda: context.store.touch(known, copied_from=of, renewed=renewed))


def has_source(known: Record | None, source: int) -> bool:
    """Whether a page that was not compared was made from the source with this hash."""
    return bool(source) and known is not None and known.similarity == 0 and known.sketch == _pack_source(source)


def _pack_source(source: int) -> bytes:
    return source.to_bytes(8, "big")


# The page's own URL.


def wait_for_same_url(context: Context) -> Blocked | None:
    """Another version of the page is in flight."""
    twin = context.same_url
    return None if twin is None else Blocked(twin)


def judge_former(context: Context) -> Ruled | None:
    """A former recipe judged this URL, and by that recipe the page is unchanged, or still a copy of its original."""
    known, store = context.known, context.store
    if known is None or context.former is None:
        return None
    base, comparison = context.former.base, context.former.comparison
    if not (comparison.identical if known.former else context.is_copy(comparison)):
        return None
    original = representative_of(store, base) or base
    match = Match(original.id, original.url, original.first_seen, comparison.similarity, comparison.containment)
    if known.former:
        verdict = context.verdict(Kind.UNCHANGED, known.id, match)
        return Ruled(verdict, write=lambda: _file_anew(context, known))
    verdict = context.verdict(Kind.DUPLICATE, known.id, match, likeness=comparison.likeness)
    if context.policy.passes(verdict):
        return None  # the policy lets it pass, so a later rule files it like a new page
    return drop_again(context, known, verdict, (original,))


def _file_anew(context: Context, known: Record) -> None:
    """File a page of a former recipe by the present one, under its id."""
    store, page, fingerprint = context.store, context.page, context.fingerprint
    keys = distinctive_keys(fingerprint.keys, _common_keys(context)) if known.is_original else ()
    record = replace(known, keys=keys, sketch=fingerprint.sketch, former=False, body=page.body)
    store.add(record, store.evidence(known.id), replaces=known.id)
    count_sentences(store, page.url, page.site, fingerprint, everywhere=not known.delivered)


def judge_unchanged(context: Context) -> Ruled | None:
    """The page was delivered with the same text."""
    known = context.known
    if known is None or known.former or not known.is_delivered or not context.known_comparison.identical:
        return None
    return keep_delivered(context, known, context.known_comparison)


def keep_delivered(context: Context, known: Record, comparison: Comparison) -> Ruled:
    """A page that was delivered is unchanged."""
    original = representative_of(context.store, known) or known
    verdict = context.verdict(Kind.UNCHANGED, known.id, context.match(Found(comparison, original, known)))
    return _keep_known(context, known, verdict, representative_and_original(context.store, original))


# Manual verdicts, then earlier pages, then pages in flight; the last rule makes an original.


def judge_manual_copy(context: Context) -> Ruling | None:
    """A person called the page a copy, and its original is there or in flight."""
    manual = context.manual_verdict
    if manual is None or manual.kind is not ManualKind.COPY:
        return None
    original = original_at(context.store, manual.other, context.page.url)
    if original is None:
        twin = context.first(context.in_flight.at_url(manual.other))
        return Blocked(twin) if twin is not None else None
    common = _common_keys(context)
    comparison = as_copy(context.method.compare(context.fingerprint, original.sketch, common))
    filed = with_distinctive_keys(context.fingerprint, common)
    return pass_or_drop(context, Found(comparison, original, original), filed, by_hand=True)


def _common_keys(context: Context) -> frozenset[int]:
    return candidates(context.method, context.store, context.fingerprint.keys).common


def judge_little_text(context: Context) -> Ruling | None:
    """Without boilerplate and quoted messages, too little text is left."""
    reason = context.fingerprint.why_unjudged(context.policy.min_letters)
    return (judge_returned_copy(context) or _judge_by_source(context, reason)) if reason else None


def judge_copy(context: Context) -> Ruling | None:
    """The page is a copy of an earlier one."""
    common, best, _ = context.matched
    if best is None or context.is_no_copy or not context.is_copy(best.comparison):
        return None
    standing = find_standing(context, best, common)
    if standing is Standing.ORIGINAL:
        return pass_as_original(context)
    filed = with_distinctive_keys(context.filed_fingerprint, common)
    if standing is Standing.COPY:
        return pass_or_drop(context, best, filed)
    return pass_in_group(context, standing, best, filed)


def wait_for_copy(context: Context) -> Blocked | None:
    """The page is a copy of a page in flight."""
    if not context.in_flight or context.is_no_copy:
        return None

    def is_copied(twin: Reservation) -> bool:
        comparison = context.method.compare(context.fingerprint, twin.record.sketch, context.matched.common)
        return may_decide(twin.record, comparison) and context.is_copy(comparison)

    twin = context.first(filter(is_copied, context.in_flight.sharing(context.fingerprint)))
    return None if twin is None else Blocked(twin)


def pass_as_original(context: Context) -> Ruled:
    """No other rule applies: the page is a new original, or a new version of a delivered page."""
    common, best, _ = context.matched
    fingerprint, page = context.filed_fingerprint, context.page
    previous = context.previous if context.known is not None else None
    kind, match, likeness, by_hand = Kind.UNIQUE, None, None, False
    if best is not None:
        is_copy = context.is_copy(best.comparison)
        by_hand = is_copy and context.is_no_copy
        if previous is None:
            match, likeness = context.match(best), None if is_copy else best.comparison.likeness
    if previous is not None:
        kind, match = Kind.UPDATED, previous
    id = context.store.new_id()
    verdict = context.verdict(kind, id, match, likeness=likeness, by_hand=by_hand)
    keys = distinctive_keys(fingerprint.keys, common) if common else fingerprint.keys
    record = Record(id, page.url, id, 1.0, keys, fingerprint.sketch, body=page.body)
    return reserve(context, verdict, record, fingerprint)


#: A rule answers, or leaves the page to the next rule.
Rule = Callable[[Context], Ruling | None]

#: The first rule that answers decides.
RULES: tuple[Rule, ...] = (
    judge_uncompared,
    wait_for_same_url,
    judge_former,
    judge_unchanged,
    judge_manual_copy,
    judge_little_text,
    judge_copy,
    judge_returned_copy,
    wait_for_copy,
    pass_as_original,
)


#: Rules that never apply to a new URL. Most URLs are new, so skipping these saves time.
_FOR_KNOWN_URLS: tuple[Rule, ...] = (judge_former, judge_unchanged, judge_returned_copy)
_FOR_NEW_URLS = tuple(rule for rule in RULES if rule not in _FOR_KNOWN_URLS)


def judge(context: Context) -> Ruling:
    """Judge a page that was read. Raises StoreError; then nothing is reserved."""
    for rule in _FOR_NEW_URLS if context.known is None else RULES:
        if (ruling := rule(context)) is not None:
            return ruling
    raise AssertionError("the last rule answers for every page")
