"""The outcomes of a page: it passes and is reserved, its record stays, or it is dropped as a copy.

A ruling changes nothing by itself. Its reservation is filed once the item comes through; its ``write`` notes a page
that does not pass.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from scrapy_neardup.judge.context import Context
from scrapy_neardup.judge.drops import drop_row
from scrapy_neardup.judge.groups import add_evidence
from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled, Ruling
from scrapy_neardup.judge.matching import SimilarPage
from scrapy_neardup.kv.base import Row
from scrapy_neardup.model import NO_SENTENCES, Fingerprint, Kind, Likeness, Match, Verdict
from scrapy_neardup.state.pages import PageStore, representative_and_original, representative_of
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.state.record import evidence as make_evidence


def reserve(
    context: Context,
    verdict: Verdict,
    record: Record,
    fingerprint: Fingerprint,
    likeness: Likeness | None = None,
    match: Match | None = None,
    copied_from: tuple[Record, ...] = (),
) -> Ruled:
    """Let a page pass that is new to the state, or a new version of a known page.

    If it gave up other pages in flight and would be unique, it is unjudged (``in_flight``).
    ``likeness``, ``match``: for the evidence. ``copied_from``: the pages that it copies.
    """
    known, page, policy = context.known, context.page, context.policy
    if (delivered := context.delivered) is not None:
        # Better pages lose this mark as originals. As old as their group, they do not become copies of its first page.
        since = delivered.original if delivered.has_led and record.is_original else delivered.age
        record = replace(record, since=since)
    evidence = make_evidence(page, likeness, match, copy=record.original != record.id, keep=policy.keep)
    if verdict.kind is Kind.UNIQUE and evidence is not None:
        evidence = _add_near_miss(context, evidence)
    if record.keys and not policy.prefers_first:
        evidence = add_evidence(context, evidence)
    if context.given_up and verdict.kind is Kind.UNIQUE:
        verdict = context.verdict(Kind.UNJUDGED, record.id, reason="in_flight")
    replaces = known.id if known else 0
    return Ruled(verdict, Reservation(record, fingerprint, evidence, page.site, replaces, copied_from))


def _add_near_miss(context: Context, evidence: Evidence) -> Evidence:
    """Note the most similar page that this one was nearly a copy of, and why it is none."""
    near = context.search_result.near_miss
    if near is None or context.person_says_keep:
        return evidence
    comparison, old = near.comparison, near.compared
    decision = context.method.decision(context.fingerprint, old.sketch, context.candidates.overused_keys)
    why = f"similarity {comparison.similarity:.4f}, containment {comparison.containment:.4f}: {decision}"
    return replace(evidence, near_miss=old.url, near_why=why)


def keep_record(
    context: Context,
    known: Record,
    verdict: Verdict,
    copied_from: Collection[Record] = (),
    renewed: Record | None = None,
) -> Ruled:
    """Hold a page back and keep its record, or ``renewed``. The pages that it copies count as seen."""

    def write() -> None:
        drop = _list_drop(context, verdict, context.store.new_id()) if verdict.kind is Kind.DUPLICATE else ()
        context.store.touch(known, copied_from=copied_from, extra_rows=drop, renewed=renewed)

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


def judge_as_copy(context: Context, nearest: SimilarPage, kind: Kind, *, by_hand: bool = False) -> Ruling:
    """Rule on a copy of ``nearest.leader``: it leads the group from now on, is dropped, or passes by the policy.

    A copy that differs much from its original is filed as a variant; others are found through the original. ``kind``:
    as of ``groups.kind_of_copy``, but not unique. ``by_hand``: a manual verdict makes it a copy.
    """
    known, page, store, group = context.known, context.page, context.store, nearest.leader.group
    leads = kind is not Kind.DUPLICATE
    if leads and (leader := context.first(context.in_flight.under(group))) is not None:
        return Blocked(leader)  # two pages in flight must not lead one group
    match, likeness = context.match(nearest), nearest.comparison.likeness
    verdict = context.verdict(Kind.DUPLICATE, match=match, likeness=likeness, by_hand=by_hand)
    passes = leads or context.policy.passes(verdict)
    pages = (*representative_and_original(store, nearest.leader), nearest.compared)
    copied_from = tuple({one.id: one for one in pages}.values())
    mark = 0 if passes or by_hand or not page.text else drop_mark(context, likeness)
    # The record of a delivered page stays: its text may come back, and other pages may be copies of it.
    if known is not None and not passes and (known.is_delivered or known.original == group):
        verdict = replace(verdict, id=known.id)
        renewed = replace(known, dropped=mark) if mark and not known.is_delivered else known
        ruled = keep_record(context, known, verdict, copied_from, renewed)
        return replace(ruled, was_delivered=known.is_delivered)
    filed = context.filed_fingerprint(in_form=not by_hand and context.search_result.in_form)
    differs = match.similarity < context.method.variant_below
    is_variant = differs and (by_hand or nearest.compared.is_original)
    keys = (*filed.keys, group) if leads else filed.keys if is_variant else ()
    record = Record(
        store.new_id(),
        page.url,
        group,
        match.similarity,
        keys,
        filed.sketch if is_variant or passes else b"",
        delivered=passes,
        dropped=mark,
        body=page.body if passes else 0,
    )
    if kind is Kind.DUPLICATE:
        verdict = replace(verdict, id=record.id)
    elif kind is Kind.BETTER:
        verdict = context.verdict(kind, record.id, match, likeness=likeness, group=group)
    else:
        verdict = context.verdict(context.kind_of_update, record.id, context.previous or match, group=group)
    if passes:
        filed = replace(filed, keys=keys, sentences=filed.sentences if differs else NO_SENTENCES)
        return reserve(context, verdict, record, filed, likeness, match, copied_from)

    def write() -> None:
        store.note_form(page.site, in_form=filed.in_form)
        if differs:
            count_sentences(store, page.url, page.site, filed, everywhere=False)
        evidence = make_evidence(page, likeness, match, copy=True, keep=context.policy.keep)
        drop = _list_drop(context, verdict, record.id)
        store.add(record, evidence, replaces=known.id if known else 0, copied_from=copied_from, extra_rows=drop)

    return Ruled(verdict, write=write)


# Dropped copies that come again with the same text stay copies. The counts of the state move on: by now the lines of an
# article may count as its site's form, or a variant may be forgotten. Then an ordinary comparison could let the page
# pass. So the record of a dropped copy holds a drop mark: a hash of title, text, kind and of all rules that decided.
# Any other text, threshold, method or policy gives another mark, and the page is judged as if it were new.


def drop_mark(context: Context, likeness: Likeness | None) -> int:
    """The mark of a page that is dropped as a copy of this kind; never 0."""
    hashes, page = context.method.hashes, context.page
    kind = likeness and likeness.value
    return hashes.of(f"{hashes.of(page.title)} {hashes.of(page.text)} {kind} {context.crawl.settings_text}") or 1


def judge_returned_copy(context: Context) -> Ruled | None:
    """A copy that was dropped at this URL comes again: it stays a copy while its original is there."""
    known, store = context.known, context.store
    if known is None or context.person_says_keep or not known.dropped:
        return None
    kinds = [kind for kind in (None, *Likeness) if drop_mark(context, kind) == known.dropped]
    original = representative_of(store, known, except_url=context.page.url) if kinds else None
    if original is None or not original.sketch:
        return None
    comparison = context.method.compare(context.fingerprint, original.sketch, frozenset())
    comparison = replace(comparison, similarity=known.similarity, likeness=kinds[0])
    match = context.match(SimilarPage(comparison, original, original))
    verdict = context.verdict(Kind.DUPLICATE, known.id, match, likeness=kinds[0])
    if context.policy.passes(verdict):
        return None  # it is delivered under its present verdict
    return keep_record(context, known, verdict, representative_and_original(store, original))
