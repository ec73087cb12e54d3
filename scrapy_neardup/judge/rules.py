"""The rules that judge a page, and what becomes of it: ``RULES`` at the end lists the rules in their order.

A rule returns None if it does not apply; its docstring states when it applies. Otherwise it returns ``Ruled`` with the
verdict, or ``Blocked`` if the verdict depends on a page in flight. A ruling changes nothing by itself. Its reservation
is filed once the item comes through; its ``write`` notes a page that does not pass.

``state/record.Record`` describes the words for a known page: delivered, unjudged, former, original, variant, has led.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.context import NOT_COMPARED, SAME_SOURCE, Context
from scrapy_neardup.judge.groups import add_evidence, outcome_of_copy
from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled, Ruling
from scrapy_neardup.judge.lists import ManualKind, drop_row, original_at
from scrapy_neardup.judge.matching import SimilarPage, may_decide
from scrapy_neardup.kv.base import Row
from scrapy_neardup.model import LISTING, NO_SENTENCES, Comparison, Fingerprint, Kind, Match, Outcome, Verdict
from scrapy_neardup.state.pages import PageStore, representative_and_original, representative_of
from scrapy_neardup.state.record import Record, is_same_source, listing_source
from scrapy_neardup.state.record import evidence as make_evidence

#: Kinds that a manual copy may have; it is ``near`` if the method names none of these.
_COPIES = (Kind.IDENTICAL, Kind.NEAR, Kind.RETITLED)

# Pages that are compared with no other page: the items of a listing (``Page.row``), and pages without enough text. In
# place of a sketch their record holds the hash of their source (``Page.html``: a number, made from the HTML or from the
# item). So the same source at the same URL is unchanged in a later crawl.


def judge_uncompared(context: Context) -> Ruling | None:
    """An item of a listing, or a page without a text that can be judged."""
    if context.page.row:
        return _judge_by_source(context, LISTING)
    return None if context.is_compared else _judge_by_source(context, context.why_unjudged)


def _judge_by_source(context: Context, reason: AnyReason) -> Ruling:
    """Judge a page by its URL and source, without a comparison.

    A page is unchanged if its URL had the same source; else it passes as unjudged. Two differences for a listing:

    * An item with enough text is updated if its URL had another source.
    * Items with little text all pass within one crawl: two equal ones of one URL may mean different things.
    """
    page, known = context.page, context.known
    verdict = context.verdict(Outcome.UNJUDGED, reason=reason)
    if not page.html:
        return Ruled(verdict)
    source = listing_source(page.html) if page.row else page.html.to_bytes(8, "big")
    has_text = page.row and not context.why_unjudged
    all_pass = page.row and not has_text
    in_flight = context.same_url_in_flight
    if in_flight is not None:
        if is_same_source(in_flight.record.sketch, source) and not all_pass:
            return Blocked(in_flight)  # unchanged, if the item of the other comes through
        return Ruled(verdict)  # it passes in any case, so it waits for nobody; the state keeps the other
    if known is not None and not known.is_unjudged:
        return Ruled(verdict)  # an article was here; perhaps only its text failed to load, so the record stays
    if known is not None and is_same_source(known.sketch, source):
        was_filed_in_this_crawl = known.id > context.crawl.generation  # an id is a time
        return Ruled(verdict) if all_pass and was_filed_in_this_crawl else _hold_back(context)
    id = context.store.new_id()
    if has_text:
        verdict = replace(verdict, id=id)
        if known is not None:
            verdict = replace(verdict, outcome=Outcome.UPDATED, reason="")
    record = Record(id, page.url, id, 0.0, sketch=source, body=page.body)  # similarity 0: not compared
    return reserve(context, verdict, record, Fingerprint((), source))


def _hold_back(context: Context, outcome: Outcome = Outcome.UNCHANGED, comparison: Comparison = SAME_SOURCE) -> Ruled:
    """Rule that a page came again at its URL, and keep its record. If it is unchanged, the record gets its new bytes.

    ``comparison``: with the known page. The page that represents its group counts as seen.
    """
    known = context.known
    assert known is not None
    representative = representative_of(context.store, known) or known
    match = context.match(SimilarPage(comparison, representative, known))
    renewed = replace(known, body=context.page.body or known.body) if outcome is Outcome.UNCHANGED else known
    copied_from = representative_and_original(context.store, representative)
    return keep_record(context, context.verdict(outcome, known.id, match), copied_from, renewed)


# The page's own URL.


def judge_bytes(context: Context) -> Ruled | None:
    """The caller found the very same bytes at the URL as before, so reading the page would show that it is unchanged.

    This is the only rule for a page that was not read. An unjudged page is read if there is a manual verdict on it.
    """
    known = context.known
    if known is None or context.same_url_in_flight is not None:
        return None
    if not known.is_delivered and (not known.is_unjudged or context.manual_verdict is not None):
        return None
    ruled = _hold_back(context)
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
        return _hold_back(context, Outcome.UNCHANGED, comparison)
    if not context.is_minor_update:
        return None
    ruled = _hold_back(context, Outcome.MINOR_UPDATE, comparison)
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
    # A page of a former recipe cannot be compared. A copy of similarity 0 would be shown without its original.
    comparison = NOT_COMPARED if original.former else context.compare(original)
    kind = comparison.kind if comparison.kind in _COPIES else Kind.NEAR
    similarity = max(comparison.similarity, 1 / 65535)
    comparison = replace(comparison, duplicate=True, kind=kind, similarity=similarity)
    return judge_as_copy(context, SimilarPage(comparison, original, original), Outcome.DUPLICATE, by_hand=True)


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
    if nearest is None or context.person_says_keep or not nearest.comparison.is_copy(context.policy.also_copies):
        return None
    outcome = outcome_of_copy(context, nearest)
    return pass_as_original(context) if outcome is Outcome.UNIQUE else judge_as_copy(context, nearest, outcome)


def wait_for_original_in_flight(context: Context) -> Blocked | None:
    """The page is a copy of a page in flight."""
    if not context.in_flight or context.person_says_keep:
        return None

    def is_original(other: Reservation) -> bool:
        comparison = context.compare(other.record)
        return may_decide(other.record, comparison) and comparison.is_copy(context.policy.also_copies)

    original = context.first(filter(is_original, context.in_flight.sharing(context.fingerprint)))
    return None if original is None else Blocked(original)


def pass_as_original(context: Context) -> Ruled:
    """No other rule applies, or the page is a copy that passes all the same (``groups.outcome_of_copy``).

    It is a new original, or a new version of a page that was delivered.
    """
    nearest, previous, id = context.search_result.nearest, context.previous, context.store.new_id()
    is_copy = nearest is not None and nearest.comparison.is_copy(context.policy.also_copies)
    by_hand = is_copy and context.person_says_keep
    if previous is not None:
        outcome, group = (Outcome.MINOR_UPDATE, id) if context.is_minor_update else (Outcome.UPDATED, 0)
        verdict = context.verdict(outcome, id, previous, group=group, by_hand=by_hand)
    elif nearest is not None:
        kind = None if is_copy else nearest.comparison.kind
        verdict = context.verdict(Outcome.UNIQUE, id, context.match(nearest), kind=kind, by_hand=by_hand)
    else:
        verdict = context.verdict(Outcome.UNIQUE, id)
    filed = context.filed
    record = Record(id, context.page.url, id, keys=filed.keys, sketch=filed.sketch, body=context.page.body)
    return reserve(context, verdict, record, filed, verdict.kind, verdict.match)


# The outcomes: a page passes and is reserved, its record stays, or it is dropped as a copy.


def reserve(
    context: Context,
    verdict: Verdict,
    record: Record,
    fingerprint: Fingerprint,
    kind: Kind | None = None,
    match: Match | None = None,
    copied_from: tuple[Record, ...] = (),
) -> Ruled:
    """Let a page pass that is new to the state, or a new version of a known page.

    If it stopped waiting for other pages in flight and would be unique, it is unjudged (``in_flight``).
    ``kind``, ``match``: for the evidence. ``copied_from``: the pages that it copies.
    """
    known, page, policy = context.known, context.page, context.policy
    if (delivered := context.delivered) is not None:
        # A page that led a group, and is an original now, stays as old as the group. Else it could become a copy of the
        # group's first page.
        since = delivered.original if delivered.has_led and record.is_original else delivered.age
        record = replace(record, since=since)
    evidence = make_evidence(page, kind, match, copy=record.original != record.id, keep=policy.keep)
    if (
        evidence is not None
        and verdict.outcome is Outcome.UNIQUE
        and (near := context.search_result.near_miss) is not None
        and not context.person_says_keep
    ):
        comparison, old = near.comparison, near.compared  # nearly its original: why is it none?
        decision = context.method.decision(fingerprint, old.sketch, context.search_result.overused_keys)
        why = f"similarity {comparison.similarity:.4f}, containment {comparison.containment:.4f}: {decision}"
        evidence = replace(evidence, near_miss=old.url, near_why=why)
    if record.keys and not policy.prefers_first:
        evidence = add_evidence(context, evidence)
    if context.given_up and verdict.outcome is Outcome.UNIQUE:
        verdict = context.verdict(Outcome.UNJUDGED, record.id, reason="in_flight")
    replaces = known.id if known else 0
    return Ruled(verdict, Reservation(record, fingerprint, evidence, page.site, replaces, copied_from))


def keep_record(context: Context, verdict: Verdict, copied_from: Collection[Record], renewed: Record) -> Ruled:
    """Hold a page back and keep its record as ``renewed``. The pages that it copies count as seen."""
    known, store = context.known, context.store
    assert known is not None

    def write() -> None:
        drop = _list_drop(context, verdict, store.new_id()) if verdict.outcome is Outcome.DUPLICATE else ()
        store.touch(known, copied_from=copied_from, extra_rows=drop, renewed=renewed)

    return Ruled(verdict, write=write)


def _list_drop(context: Context, verdict: Verdict, id: int) -> tuple[Row, ...]:
    """The row for the list of dropped pages; nothing if the state keeps no list."""
    crawl = context.crawl
    return (drop_row(crawl.store, crawl.generation, id, verdict),) if crawl.lists_drops else ()


def count_sentences(
    store: PageStore, url: str, site: str, fingerprint: Fingerprint, *, everywhere: bool = True
) -> None:
    """Count the sentences of a page as candidates for boilerplate; raises StoreError.

    Sentences of a copy count only for its site: an article on many sites is no boilerplate. A page counts once, even if
    it was rolled back in between; counted twice, its own sentences would look like boilerplate. So the counts hold the
    page itself, and forget it with the sentences.
    """
    if len(fingerprint.sentences):
        store.note(fingerprint.sentences, site, everywhere=everywhere, page=store.hashes.short(f"page {url}"))


def judge_as_copy(context: Context, nearest: SimilarPage, outcome: Outcome, *, by_hand: bool = False) -> Ruling:
    """Rule on a copy of ``nearest.leader``: it leads the group from now on, is dropped, or passes by the policy.

    A copy that differs much from its original is filed as a variant; others are found through the original.
    ``outcome``: that of ``groups.outcome_of_copy``, but not unique. ``by_hand``: a manual verdict makes it a copy.
    """
    known, page, store, group = context.known, context.page, context.store, nearest.leader.group
    leads = outcome is not Outcome.DUPLICATE
    if leads and (leader := context.first(context.in_flight.under(group))) is not None:
        return Blocked(leader)  # two pages in flight must not lead one group
    match, kind = context.match(nearest), nearest.comparison.kind
    verdict = context.verdict(Outcome.DUPLICATE, match=match, kind=kind, by_hand=by_hand)  # unless it leads, see below
    passes = leads or context.policy.passes(verdict)
    pages = (*representative_and_original(store, nearest.leader), nearest.compared)
    copied_from = tuple({one.id: one for one in pages}.values())
    drop_hash = 0 if passes or by_hand or not page.text else drop_hashes(context, kind)[0]
    # The record of a delivered page stays: its text may come back, and other pages may be copies of it. So does that of
    # a page that was already in the group.
    if known is not None and not passes and (known.is_delivered or known.original == group):
        verdict = replace(verdict, id=known.id)
        renewed = replace(known, dropped=drop_hash) if drop_hash and not known.is_delivered else known
        ruled = keep_record(context, verdict, copied_from, renewed)
        return replace(ruled, was_delivered=known.is_delivered)
    filed = replace(context.filed, in_form=False) if by_hand else context.filed
    differs = match.similarity < context.method.variant_below
    is_variant = differs and (by_hand or nearest.compared.is_original)
    # An equal text under many titles of a site is its form, so it becomes boilerplate. Of HTML the lines show a form.
    counts = differs or (nearest.comparison.other_title and not page.reader)
    # Under its group a page is found that leads it.
    keys = (*filed.keys, group) if leads else filed.keys if is_variant else ()
    record = Record(
        store.new_id(),
        page.url,
        group,
        match.similarity,
        keys,
        filed.sketch if is_variant or passes else b"",
        delivered=passes,
        dropped=drop_hash,
        body=page.body if passes else 0,
    )
    if outcome is Outcome.UPDATED:
        outcome = Outcome.MINOR_UPDATE if context.is_minor_update else outcome
        verdict = context.verdict(outcome, record.id, context.previous or match, group=group)
    else:
        verdict = replace(verdict, outcome=outcome, id=record.id, group=group if leads else 0)
    if passes:
        filed = replace(filed, keys=keys, sentences=filed.sentences if counts else NO_SENTENCES)
        return reserve(context, verdict, record, filed, kind, match, copied_from)

    def write() -> None:
        store.note_form(page.site, in_form=filed.in_form)
        if counts:
            count_sentences(store, page.url, page.site, filed, everywhere=False)
        evidence = make_evidence(page, kind, match, copy=True, keep=context.policy.keep)
        drop = _list_drop(context, verdict, record.id)
        store.add(record, evidence, replaces=known.id if known else 0, copied_from=copied_from, extra_rows=drop)

    return Ruled(verdict, write=write)


# Dropped copies that come again with the same text stay copies. The counts of the state move on: by now the lines of an
# article may count as its site's form, or a variant may be forgotten. Then an ordinary comparison could let the page
# pass. So the record of a dropped copy holds a drop hash: of title, text, kind and all rules that decided.
# Any other text, threshold, method or policy gives another hash, and the page is judged as if it were new.


def drop_hashes(context: Context, *kinds: Kind | None) -> list[int]:
    """The hashes of a page that is dropped as a copy of each of these kinds; never 0."""
    hashes, page = context.method.hashes, context.page
    text = f"{hashes.of(page.title)} {hashes.of(page.text)}"
    return [hashes.of(f"{text} {kind and kind.value} {context.crawl.settings_text}") or 1 for kind in kinds]


def judge_returned_copy(context: Context) -> Ruled | None:
    """A copy that was dropped at this URL comes again: it stays a copy while its original is there."""
    known, store = context.known, context.store
    if known is None or context.person_says_keep or not known.dropped:
        return None
    every = None, *Kind
    pairs = zip(every, drop_hashes(context, *every), strict=True)
    kinds = [kind for kind, drop_hash in pairs if drop_hash == known.dropped]
    leader = representative_of(store, known, except_url=context.page.url) if kinds else None
    if leader is None or not leader.sketch:
        return None
    comparison = context.method.compare(context.fingerprint, leader.sketch, frozenset())
    comparison = replace(comparison, similarity=known.similarity, kind=kinds[0])
    match = context.match(SimilarPage(comparison, leader, leader))
    verdict = context.verdict(Outcome.DUPLICATE, known.id, match, kind=kinds[0])
    if context.policy.passes(verdict):
        return None  # it is delivered under its present verdict
    return keep_record(context, verdict, representative_and_original(store, leader), known)


#: The first rule that answers decides; if none does, ``pass_as_original``.
RULES: tuple[Callable[[Context], Ruling | None], ...] = (
    judge_uncompared,
    wait_for_same_url,
    judge_delivered,
    judge_manual_copy,
    judge_little_text,
    judge_copy,
    wait_for_original_in_flight,
)


def judge_page(context: Context) -> Ruling:
    """Judge a page that was read. Raises StoreError; then nothing is reserved."""
    for rule in RULES:
        if (ruling := rule(context)) is not None:
            return ruling
    return pass_as_original(context)
