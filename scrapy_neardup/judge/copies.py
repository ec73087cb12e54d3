"""What becomes of a page: it passes and is reserved, or it is dropped as a copy; and which copy leads its group."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import Enum

from scrapy_neardup.judge.context import Context
from scrapy_neardup.judge.drops import drop_row
from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled, Ruling
from scrapy_neardup.judge.matching import SimilarPage, describe_decision, is_older
from scrapy_neardup.judge.policy import Preference, holds_nearly_all
from scrapy_neardup.kv.base import Row
from scrapy_neardup.model import NO_SENTENCES, Fingerprint, Kind, Likeness, Match, Verdict
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.evidence import evidence as make_evidence
from scrapy_neardup.state.pages import PageStore, newest_replacement, representative_and_original, representative_of
from scrapy_neardup.state.record import Record

# Passing and dropping.


def reserve(
    context: Context,
    verdict: Verdict,
    record: Record,
    fingerprint: Fingerprint,
    evidence_of: tuple[Likeness | None, Match | None] | None = None,
    copied_from: tuple[Record, ...] = (),
) -> Ruled:
    """Let a page pass that is new to the state, or a new version of a known page.

    ``evidence_of``: kind and match for the evidence, if the verdict does not hold them. ``copied_from``: the pages
    that it copies.
    """
    known, page, policy = context.known, context.page, context.policy
    if known is not None and known.is_delivered:
        record = replace(record, since=known.age)
    likeness, match = evidence_of or (verdict.likeness, verdict.match)
    evidence = make_evidence(page, likeness, match, copy=record.original != record.id, keep=policy.keep)
    if verdict.kind is Kind.UNIQUE and evidence is not None:
        evidence = _add_near_miss(context, evidence)
    if policy.preference is not None and record.keys:
        evidence = policy.preference.add_evidence(context, evidence)
    replaces = known.id if known else 0
    return Ruled(verdict, Reservation(verdict, fingerprint, record, evidence, page.site, replaces, copied_from))


def _add_near_miss(context: Context, evidence: Evidence) -> Evidence:
    """Note the most similar page that this one was nearly a copy of, and why it is none."""
    rejected = context.search_result.rejected
    if rejected is None or context.person_says_keep:
        return evidence
    old, overused_keys = rejected.compared, context.search_result.overused_keys
    why = describe_decision(context.method, rejected.comparison, context.fingerprint, old.sketch, overused_keys)
    return replace(evidence, near_miss=old.url, near_why=why)


def drop_again(
    context: Context, known: Record, verdict: Verdict, copied_from: Collection[Record], renewed: Record | None = None
) -> Ruled:
    """Drop a page whose record stays, or becomes ``renewed``. The pages that it copies count as seen."""
    id = context.store.new_id()

    def write() -> None:
        context.store.touch(
            known, copied_from=copied_from, extra_rows=_list_drop(context, id, verdict), renewed=renewed
        )

    return Ruled(verdict, write=write)


def _list_drop(context: Context, id: int, verdict: Verdict) -> tuple[Row, ...]:
    """The row for the list of dropped pages, to be written with the page; nothing if the state keeps no list."""
    crawl = context.crawl
    return (drop_row(crawl.store, crawl.generation, id, verdict),) if crawl.lists_drops else ()


def count_sentences(
    store: PageStore, url: str, site: str, fingerprint: Fingerprint, *, everywhere: bool = True
) -> None:
    """Count the sentences of a page as candidates for boilerplate; raises StoreError.

    Those of a copy count for its site alone: an article on many sites is no boilerplate. A page counts once, even if it
    was rolled back in between; counted twice, its own sentences would look like those of its site. So the page itself
    is among the counts, and is forgotten with them.
    """
    if len(fingerprint.sentences):
        store.note(fingerprint.sentences, site, everywhere=everywhere, page=store.hashes.short(f"page {url}"))


def pass_or_drop(context: Context, nearest: SimilarPage, fingerprint: Fingerprint, *, by_hand: bool = False) -> Ruled:
    """Rule on a copy of ``nearest.original`` that does not lead its group.

    A copy like its original is found through that; one that differs much is filed as a variant. ``fingerprint`` has
    no overused keys. ``by_hand``: a manual verdict makes it a copy.
    """
    known, page, store = context.known, context.page, context.store
    match, likeness = context.match(nearest), nearest.comparison.likeness
    verdict = context.verdict(Kind.DUPLICATE, match=match, likeness=likeness, by_hand=by_hand)
    passes = context.policy.passes(verdict)
    copied_from = tuple(
        {one.id: one for one in (*representative_and_original(store, nearest.original), nearest.compared)}.values()
    )
    mark = 0 if passes or by_hand or not page.text else drop_mark(context, likeness)
    # The record of a delivered page stays: its text may come back, and other pages may be copies of it.
    if known is not None and not passes and (known.is_delivered or known.original == match.id):
        verdict = replace(verdict, id=known.id)
        ruled = drop_again(context, known, verdict, copied_from, _renewed(context, known, mark, match, likeness))
        return replace(ruled, was_delivered=known.is_delivered)
    differs = match.similarity < context.method.variant_below
    is_variant = differs and nearest.compared.is_original
    is_counted = differs and known is None
    id, keys = store.new_id(), fingerprint.keys if is_variant else ()
    sketch = fingerprint.sketch if is_variant or passes else b""
    body = 0 if by_hand else page.body  # a manual verdict may be removed
    record = Record(
        id=id,
        url=page.url,
        original=match.id,
        similarity=match.similarity,
        keys=keys,
        sketch=sketch,
        delivered=passes,
        dropped=mark,
        body=body,
    )
    verdict = replace(verdict, id=id)
    if passes:
        sentences = fingerprint.sentences if is_counted else NO_SENTENCES
        return reserve(
            context, verdict, record, replace(fingerprint, keys=keys, sentences=sentences), copied_from=copied_from
        )

    def write() -> None:
        if known is None:
            store.note_form(page.site, in_form=fingerprint.in_form)
        if is_counted:
            count_sentences(store, page.url, page.site, fingerprint, everywhere=False)
        evidence = make_evidence(page, likeness, match, copy=True, keep=context.policy.keep)
        store.add(
            record,
            evidence,
            replaces=known.id if known else 0,
            copied_from=copied_from,
            extra_rows=_list_drop(context, id, verdict),
        )

    return Ruled(verdict, write=write)


# Dropped copies that come again with the same text stay copies. The counts of the state move on: by now the lines of an
# article may count as its site's form, or a variant may be forgotten. Judged anew, the page could pass after all. So
# the record of a dropped copy holds a drop mark: a hash of title, text, kind and of all rules that decided. Any other
# text, threshold, method or policy gives another mark, and the page is judged as if it were new.


def drop_mark(context: Context, likeness: Likeness | None) -> int:
    """The mark of a page that is dropped as a copy of this kind; never 0."""
    kind = likeness and likeness.value
    return context.method.hashes.of(f"{context.content_hashes} {kind} {context.crawl.settings_text}") or 1


def judge_returned_copy(context: Context) -> Ruled | None:
    """A copy that was dropped at this URL comes again: it stays a copy while its original is there."""
    known, page, store = context.known, context.page, context.store
    if known is None or context.person_says_keep or not known.dropped:
        return None
    kinds = [kind for kind in (None, *Likeness) if drop_mark(context, kind) == known.dropped]
    if not kinds:
        return None
    original = representative_of(store, known, except_url=page.url)
    if original is None or not original.sketch:
        return None
    comparison = context.method.compare(context.fingerprint, original.sketch, frozenset())
    comparison = replace(comparison, similarity=known.similarity, likeness=kinds[0])
    match = context.match(SimilarPage(comparison=comparison, original=original, compared=original))
    verdict = context.verdict(Kind.DUPLICATE, known.id, match, likeness=kinds[0])
    if context.policy.passes(verdict):
        return None  # it is delivered, as what it is by now
    renewed = _renewed(context, known, known.dropped, match, kinds[0])
    return drop_again(context, known, verdict, representative_and_original(store, original), renewed)


def _renewed(context: Context, known: Record, mark: int, match: Match, likeness: Likeness | None) -> Record:
    """The record of a copy that is dropped once more, with another text or other bytes.

    It names the new bytes only if the evidence is still true, because a page known by its bytes shows that evidence.
    """
    if not mark or known.is_delivered:
        return known
    body = 0
    if mark == known.dropped:
        new_body = context.page.body
        kept = context.store.evidence(known.id) if new_body not in (0, known.body) else None
        now = (likeness and likeness.value, round(match.similarity, 4), round(match.containment, 4))
        is_true = kept is not None and (kept.likeness, kept.similarity, kept.containment) == now
        body = new_body if is_true else known.body
    return replace(known, dropped=mark, body=body)


# The place of a copy in its group. The first page of a group keeps its record, whoever leads the group later, and a
# better page must be a copy of that one. So a chain of better pages does not drift. A new version of a delivered page
# passes even if a newer page has the same text. So nobody can stop the updates of an article by publishing a copy.


class Role(Enum):
    """The place of a copy in its group."""

    #: Nothing but a copy.
    COPY = "copy"
    #: It is better than the page that leads the group, and leads from now on.
    BETTER = "better"
    #: A new version of the page that leads the group.
    LEADING = "leading"
    #: A new version of a delivered page whose group is led by a better one.
    FOLLOWS = "follows"
    #: It passes as an original. It is a new version of a page that was delivered before the similar page; or the
    #: longest is preferred, and it is a much longer page of another publisher.
    ORIGINAL = "original"

    @property
    def leads(self) -> bool:
        """Whether it leads the group."""
        return self in (Role.BETTER, Role.LEADING)


def find_role(context: Context, nearest: SimilarPage, overused_keys: frozenset[int]) -> Role:
    """The place of a copy of ``nearest.original``; overused keys are no evidence."""
    known, original = context.known, nearest.original
    if known is not None and known.leads and known.original == original.group:
        newest = newest_replacement(context.store, original.group)
        if newest is not None and newest.url == known.url:
            return Role.LEADING
    preference = context.policy.preference
    preferred = _preferred(context, nearest, overused_keys, preference) if preference is not None else None
    if preferred is not None:
        return preferred
    if known is None or not known.is_delivered:
        return Role.COPY
    if original.leads:
        return Role.FOLLOWS
    return Role.COPY if is_older(nearest.compared, known) else Role.ORIGINAL


def _preferred(
    context: Context, nearest: SimilarPage, overused_keys: frozenset[int], preference: Preference
) -> Role | None:
    """The place of a page that is better than the original, or too long to be dropped for it; else None."""
    original = nearest.original
    first = context.store.record(original.group)
    if first is None or first.url == context.page.url:
        first = original
    if not preference.is_better(context, original, first):
        return None
    for one in {first.id: first, original.id: original}.values():
        is_known = one.id == nearest.compared.id
        comparison = (
            nearest.comparison if is_known else context.method.compare(context.fingerprint, one.sketch, overused_keys)
        )
        if one.id == first.id and not is_known and not context.counts_as_copy(comparison):
            return None
        if preference.holds_all and not holds_nearly_all(context, one, comparison):
            return None
    return Role.ORIGINAL if preference.is_doubtful(context, first) else Role.BETTER


def pass_in_group(context: Context, role: Role, nearest: SimilarPage, fingerprint: Fingerprint) -> Ruling:
    """Pass a copy of ``nearest.original`` that leads its group, or is a new version of a delivered page."""
    group, original = nearest.original.group, nearest.original
    if role.leads and (leader := context.first(context.in_flight.with_key(group))) is not None:
        return Blocked(leader)  # two pages in flight must not lead one group
    match, likeness = context.match(nearest), nearest.comparison.likeness
    differs = match.similarity < context.method.variant_below
    keys = fingerprint.keys if role.leads or (differs and nearest.compared.is_original) else ()
    filed = replace(
        fingerprint,
        keys=(*keys, group) if role.leads else keys,
        sentences=fingerprint.sentences if differs and context.known is None else NO_SENTENCES,
    )
    page, id = context.page, context.store.new_id()
    record = Record(
        id=id,
        url=page.url,
        original=group,
        similarity=match.similarity,
        keys=filed.keys,
        sketch=fingerprint.sketch,
        delivered=True,
        body=page.body,
    )
    if role is Role.BETTER:
        verdict = context.verdict(Kind.BETTER, id, match, likeness=likeness, group=group)
    else:
        verdict = context.verdict(context.kind_of_update, id, context.previous or match, group=group)
    return reserve(
        context,
        verdict,
        record,
        filed,
        (likeness, match),
        copied_from=representative_and_original(context.store, original),
    )
