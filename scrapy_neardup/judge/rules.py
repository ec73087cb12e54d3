"""The rules that judge a page, in their order: see ``RULES``.

A rule returns None if it does not apply. Its docstring states when it applies. A ruling is ``Ruled`` (a verdict, and a
reservation if the page passes) or ``Blocked`` (wait for a page in flight, which passed and whose item is still in the
pipelines).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.context import Context, CrawlContext
from scrapy_neardup.judge.copies import (
    Standing,
    count_sentences,
    find_standing,
    judge_returned_copy,
    list_drop,
    pass_in_group,
    pass_or_drop,
    reserve,
)
from scrapy_neardup.judge.in_flight import Blocked, Ruled, Ruling
from scrapy_neardup.judge.manual_verdicts import ManualKind, as_copy, original_at
from scrapy_neardup.judge.matching import Found, candidates, distinctive_keys, may_decide, with_distinctive_keys
from scrapy_neardup.model import ROW, Comparison, Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.state.evidence import Keep, kept_page
from scrapy_neardup.state.pages import stands_for, with_first
from scrapy_neardup.state.record import Record, is_same_mark, row_mark

# Pages that are compared with no other page. Their record has no sketch but a mark: the 64-bit hash of their source
# (``Page.html``). So the same source at the same URL is unchanged in a later crawl.


def judge_uncompared(context: Context) -> Ruling | None:
    """A row of a listing, or a page without a text that can be judged."""
    if context.page.row:
        return _judge_by_mark(context, ROW)
    return _judge_by_mark(context, context.reason) if context.reason else None


def _judge_by_mark(context: Context, reason: AnyReason) -> Ruling:
    """Judge a page by its mark alone. It passes as unjudged, or is unchanged.

    Rows with little text may be equal and mean different things, so within one crawl all of them pass. A row with
    enough text (``is_full_row``) is unchanged or updated like an article.
    """
    page, store = context.page, context.store
    verdict = context.verdict(Kind.UNJUDGED, reason=reason)
    if not page.html:
        return Ruled(verdict)
    mark = row_mark(page.html) if page.row else _pack_mark(page.html)
    is_full_row = page.row and not context.reason
    twins_pass = page.row and not is_full_row
    if (twin := context.in_flight.of_url(page.url)) is not None:
        return Blocked(twin) if is_same_mark(twin.record.sketch, mark) and not twins_pass else Ruled(verdict)
    known = context.known
    if known is not None and known.similarity > 0:
        return Ruled(verdict)  # an article was here; perhaps only its text failed to load, so the record stays
    if known is not None and is_same_mark(known.sketch, mark):
        is_twin = twins_pass and known.id > context.crawl.generation  # a row of this crawl, as ids are times
        return Ruled(verdict if is_twin else _unchanged_mark(context, known))
    id = store.new_id()
    if is_full_row:
        verdict = replace(verdict, id=id)
        if known is not None:
            verdict = replace(verdict, kind=Kind.UPDATED, reason="")
    record = Record(id, page.url, id, 0.0, (), mark, body=page.body)
    return reserve(context, verdict, record, Fingerprint((), mark))


def _unchanged_mark(context: Context, known: Record) -> Verdict:
    context.store.touch(known, renewed=replace(known, body=context.page.body or known.body))
    return context.verdict(Kind.UNCHANGED, known.id, Match(known.id, known.url, known.first_seen, 1.0, 1.0))


def has_mark(known: Record | None, mark: int) -> bool:
    """Whether a page that was not compared was made from the source with this mark."""
    return bool(mark) and known is not None and known.similarity == 0 and known.sketch == _pack_mark(mark)


def _pack_mark(mark: int) -> bytes:
    return mark.to_bytes(8, "big")


# The page's own URL.


def wait_for_same_url(context: Context) -> Blocked | None:
    """Another version of the page is in flight."""
    twin = context.in_flight.of_url(context.page.url)
    return None if twin is None else Blocked(twin)


def judge_former(context: Context) -> Ruled | None:
    """A former recipe judged this URL, and by that recipe the page is unchanged, or still a copy of its original."""
    known, store = context.known, context.store
    if known is None or context.former is None:
        return None
    base, comparison = context.former.base, context.former.comparison
    if not (comparison.identical if known.former else context.is_copy(comparison)):
        return None
    original = stands_for(store, base) or base
    match = Match(original.id, original.url, original.first_seen, comparison.similarity, comparison.containment)
    if known.former:
        _file_anew(context, known)
        return Ruled(context.verdict(Kind.UNCHANGED, known.id, match))
    verdict = context.verdict(Kind.DUPLICATE, known.id, match, likeness=comparison.likeness)
    if context.policy.passes(verdict):
        return None  # the policy lets it pass, so a later rule files it like a new page
    rows = list_drop(context, store.new_id(), match, comparison.likeness)
    store.touch(known, of=(original,), along=rows)
    return Ruled(verdict)


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
    return Ruled(_unchanged(context, known, context.known_comparison))


def _unchanged(context: Context, known: Record, comparison: Comparison) -> Verdict:
    """Return the verdict, and let the record name the present bytes of the page."""
    store = context.store
    original = stands_for(store, known) or known
    renewed = replace(known, body=context.page.body or known.body)
    store.touch(known, of=with_first(store, original), renewed=renewed)
    return context.verdict(Kind.UNCHANGED, known.id, context.match(Found(comparison, original, known)))


# Manual verdicts, then earlier pages, then pages in flight; the last rule makes an original.


def judge_manual_copy(context: Context) -> Ruling | None:
    """A person called the page a copy, and its original is there or in flight."""
    manual = context.manual_verdict
    if manual is None or manual.kind is not ManualKind.COPY:
        return None
    original = original_at(context.store, manual.other, context.page.url)
    if original is None:
        twin = context.in_flight.of_url(manual.other)
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
    return (judge_returned_copy(context) or _judge_by_mark(context, reason)) if reason else None


def judge_copy(context: Context) -> Ruling | None:
    """The page is a copy of an earlier one."""
    common, best, _ = context.matched
    if best is None or context.is_kept or not context.is_copy(best.comparison):
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
    if not context.in_flight or context.is_kept:
        return None
    for twin in context.in_flight.sharing(context.fingerprint):
        comparison = context.method.compare(context.fingerprint, twin.record.sketch, context.matched.common)
        if may_decide(twin.record, comparison) and context.is_copy(comparison):
            return Blocked(twin)
    return None


def pass_as_original(context: Context) -> Ruled:
    """No other rule applies: the page is a new original, or a new version of a delivered page."""
    common, best, _ = context.matched
    fingerprint, page = context.filed_fingerprint, context.page
    previous = context.previous if context.known is not None else None
    kind, match, likeness, by_hand = Kind.UNIQUE, None, None, False
    if best is not None:
        is_copy = context.is_copy(best.comparison)
        by_hand = is_copy and context.is_kept
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


# A page whose bytes were judged before need not be parsed. It gets the verdict that parsing would give; only the match
# may differ, because it names the page with the same bytes. The page is parsed if anything else could matter: a manual
# verdict, a preference that reads texts, a delivered page with other bytes, new boilerplate, or missing evidence.


def knows_bytes(crawl: CrawlContext, url: str, body: int) -> bool:
    """Whether a page with this digest of its bytes was judged or is in flight, so ``judge_bytes`` may answer."""
    if not body:
        return False
    known = crawl.store.find(url)
    return (
        (known is not None and known.body == body)
        or crawl.in_flight.of_body(body) is not None
        or crawl.store.by_body(body) is not None
    )


def judge_bytes(context: Context) -> Ruling | None:
    """Judge a page by its URL and the digest of its bytes; None if it must be read. Raises StoreError."""
    page, known = context.page, context.known
    if (twin := context.in_flight.of_url(page.url)) is not None:
        return Blocked(twin) if twin.record.body == page.body else None
    if known is None:
        return _judge_bytes_elsewhere(context)
    if known.body == page.body:
        return _judge_bytes_again(context, known)
    return None if known.is_delivered or known.former else _judge_bytes_elsewhere(context)


def _judge_bytes_again(context: Context, known: Record) -> Ruled | None:
    """The URL has the same bytes as before."""
    if known.is_delivered:
        comparison = context.method.compare(Fingerprint((), known.sketch), known.sketch, frozenset())
        return _ruled_by_bytes(_unchanged(context, known, comparison), context.page) if comparison.identical else None
    if context.manual_verdict is not None:
        return None
    if known.original == known.id:  # it was not compared: too little or too much text
        return _ruled_by_bytes(_unchanged_mark(context, known), context.page)
    return _judge_dropped_bytes(context, known)


def _judge_dropped_bytes(context: Context, known: Record) -> Ruled | None:
    """The same bytes were dropped as a copy at this URL."""
    store = context.store
    original = _present_original(context, known)
    kept = store.evidence(known.id)
    if context.policy.preference is not None or original is None or not original.sketch:
        return None
    if kept is None or not kept.likeness:
        return None
    likeness = Likeness(kept.likeness)
    comparison = Comparison(kept.similarity, kept.containment, True, False, False)
    match = replace(context.match(Found(comparison, original, original)), shared=kept.shared)
    verdict = context.verdict(Kind.DUPLICATE, known.id, match, likeness=likeness)
    if context.policy.passes(verdict):
        return None  # it is delivered, so its text must be known
    rows = list_drop(context, store.new_id(), match, likeness)
    store.touch(known, of=with_first(store, original), along=rows)
    return _ruled_by_bytes(verdict, replace(context.page, title=kept.title))


def _judge_bytes_elsewhere(context: Context) -> Ruling | None:
    """Another URL has, or had, the same bytes."""
    preference = context.policy.preference
    if (preference is not None and preference.reads) or context.manual_verdict is not None:
        return None
    page = context.page
    found = context.store.by_body(page.body)
    if found is None:
        twin = context.in_flight.of_body(page.body)
        is_copy = twin is not None and twin.record.is_original and _compare_bytes(context, twin.record) is not None
        return Blocked(twin) if twin is not None and is_copy else None
    compared, whole = _compare_bytes(context, found), _kept_page(context, found)
    original = _present_original(context, found)
    if compared is None or whole is None or original is None or found.url == page.url:
        return None
    comparison, sketch = compared
    best = Found(comparison, original, found)
    context = Context(context.crawl, whole, Fingerprint((), sketch))
    if find_standing(context, best, frozenset()) is not Standing.COPY:
        return None
    verdict = context.verdict(Kind.DUPLICATE, match=context.match(best), likeness=comparison.likeness)
    if context.policy.passes(verdict):
        return None  # its tag needs the shared sentences, so it must be parsed
    return _ruled_by_bytes(pass_or_drop(context, best, context.fingerprint).verdict, whole)


def _ruled_by_bytes(verdict: Verdict, page: Page) -> Ruled:
    return Ruled(replace(verdict, same_bytes=True, reader=""), page=page)


def _present_original(context: Context, record: Record) -> Record | None:
    """Return the original of a record's group; None if the original's URL has a newer version."""
    original = stands_for(context.store, record, besides=context.page.url)
    newest = context.store.find(original.url) if original is not None else None
    return original if original is not None and newest is not None and newest.id == original.id else None


def _compare_bytes(context: Context, found: Record) -> tuple[Comparison, bytes] | None:
    """Return the comparison with a page of the same bytes, and the judged page's sketch; None unless it is a copy."""
    site = context.page.site
    again = context.method.compare_same_bytes(found.sketch, site, context.store.on_site(site))
    return again if again is not None and context.is_copy(again[0]) and may_decide(found, again[0]) else None


def _kept_page(context: Context, found: Record) -> Page | None:
    """Return the judged page with title and text of the page with the same bytes; None if the state lacks them."""
    page, keep = context.page, context.policy.keep
    if keep is Keep.NOTHING:
        return page
    kept = context.store.evidence(found.id)
    if kept is None:
        return None
    if keep is Keep.EVIDENCE:
        return replace(page, title=kept.title, letters=kept.letters)
    whole = kept_page(page.url, kept)
    return replace(whole, site=page.site, body=page.body) if whole is not None else None
