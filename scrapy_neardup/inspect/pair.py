"""The verdict on two pages, its features and its rule."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from scrapy_neardup.errors import AnyReason, describe_reason
from scrapy_neardup.inspect.pages import inspect_near_miss
from scrapy_neardup.inspect.sources import Side, fingerprint_page
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.matching import candidates, filed_fingerprint, may_decide
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Match, Outcome, Verdict
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.text.marking import Mark, mark_sentences, own_letters, sentence_letters

#: More sentences than a sketch holds.
_ALL = 1_000_000
_NO_COPY = {
    Kind.EXCERPT: "B is no copy of A, but one contains most of the other and much more",
    Kind.SAME_TITLE: "B is no copy of A, but has the same title",
}


def inspect_pair(
    method: Method, config: Config, a: Side, b: Side, store: PageStore | None, why_no_store: str = ""
) -> dict[str, Any]:
    """Judge ``b`` as a crawl that has seen ``a``. The state knows boilerplate and common keys.

    ``action``: a crawl does this with B. ``comparison``: see ``_describe_comparison``; None if a page cannot be judged.
    ``near_miss``: why a crawl let B pass, if it was nearly a copy of A. Raises LexiconNeeded if the method cannot read
    one of the pages.
    """
    method = method.with_hashes(store.hashes) if store else method
    old, old_reason = _fingerprint(method, a, config.make_policy(), store)
    new, new_reason = _fingerprint(method, b, config.make_policy(), store)
    shown, verdict = None, Verdict(Outcome.UNJUDGED, "B", reason=new_reason or old_reason)
    if old is not None and new is not None and not verdict.reason:
        common = candidates(method, store, new.keys).overused_keys if store else frozenset()
        comparison = method.compare(new, old.sketch, common)
        shown = _describe_comparison(method, a, old, b, new, common, comparison)
        outcome = Outcome.DUPLICATE if comparison.is_copy(config.also_copies) else Outcome.UNIQUE
        match = Match(0, "A", 0.0, comparison.similarity, comparison.containment)
        verdict = Verdict(outcome, "B", match=match, kind=comparison.kind)
        sentence = _describe(verdict, comparison)
    else:
        why = " ".join(
            f"{name}: {describe_reason(reason) if reason else 'Too little text when it was crawled.'}"
            for name, fingerprint, reason in (("A", old, old_reason), ("B", new, new_reason))
            if reason or fingerprint is None
        )
        sentence = f"{verdict.headline}. {why} An unjudged page is no copy and has no copies."
    drops = shown is not None and shown["compared_in_a_crawl"]
    near_miss = inspect_near_miss(store, b.record) if store and b.record else None
    return {
        "verdict": verdict.outcome,
        "kind": verdict.kind_name,
        "reason": verdict.reason or None,
        "sentence": sentence,
        "action": config.action(verdict if drops else Verdict(Outcome.UNIQUE, "B")),
        "method": method.name,
        "parameters": method.parameters.as_data(),
        "comparison": shown,
        "near_miss": near_miss if near_miss and a.record and near_miss["url"] == a.record.url else None,
        "a": _inspect_side(method, a, old, b, new),
        "b": _inspect_side(method, b, new, a, old),
        "store": store.location if store else None,
        "why_no_store": why_no_store or None,
    }


def _fingerprint(
    method: Method, side: Side, policy: Policy, store: PageStore | None
) -> tuple[Fingerprint | None, AnyReason]:
    """Return the fingerprint, and the reason if the page cannot be judged."""
    record, page = side.record, side.page
    if record is not None and record.similarity > 0:
        return filed_fingerprint(record, store) if store else Fingerprint(record.keys, record.sketch), ""
    if record is not None:
        return None, ""  # the state does not say why
    assert page is not None
    return fingerprint_page(method, page, policy, store)


def _describe_comparison(
    method: Method, a: Side, old: Fingerprint, b: Side, new: Fingerprint, common: Set[int], comparison: Comparison
) -> dict[str, Any]:
    """Return the comparison of two pages that can be judged.

    ``adds``: what a feature adds to the score. Without a score the method has only a similarity. ``keys``: of B's keys,
    those ``shared`` with A, all ``of`` them, and the ``common`` ones, which too many pages have to count.
    """
    explanation = method.explain(new, old.sketch, common)
    features = [
        {
            "name": one.name,
            "value": round(one.value, 4),
            "weight": one.weight,
            "adds": round(one.value * one.weight, 4) + 0.0,  # + 0.0 turns -0 into 0
            "meaning": one.meaning,
        }
        for one in (explanation.features if explanation else ())
    ]
    shared = len((set(new.keys) & set(old.keys)) - common)
    names_a = a.record is not None and b.page is not None and b.page.canonical == a.record.url
    return {
        "similarity": round(comparison.similarity, 4),
        "containment": round(comparison.containment, 4),
        "certain": comparison.certain,
        "features": features if explanation else None,
        "score": round(explanation.score, 4) if explanation else None,
        "needed": explanation.needed if explanation else None,
        "decision": method.decision(new, old.sketch, common),
        "keys": {"shared": shared, "of": len(new.keys), "common": len(common)},
        "compared_in_a_crawl": (shared > 0 or names_a) and (a.record is None or may_decide(a.record, comparison)),
    }


def _describe(verdict: Verdict, comparison: Comparison) -> str:
    relation = "B is a copy of A"
    if verdict.outcome is not Outcome.DUPLICATE:
        relation = (verdict.kind and _NO_COPY.get(verdict.kind)) or "B is no copy of A"
    figures = f"similarity {comparison.similarity:.2f}, containment {comparison.containment:.2f}"
    return f"{verdict.headline}: {relation}, {figures}."


def _inspect_side(
    method: Method, side: Side, own: Fingerprint | None, other: Side, others: Fingerprint | None
) -> dict[str, Any]:
    """Return a side with its text if that is known. Mark boilerplate, and sentences that the other side has too."""
    page, simplified = side.page, method.parameters.simplified
    if page is None:
        return {"name": side.name, "title": None, "text": None}
    shared: Set[str] = frozenset()
    if other.page is not None:
        shared = sentence_letters(other.page.text, simplified=simplified)
    elif others is not None:
        found = method.shared(page, others.sketch, _ALL)
        shared = frozenset(own_letters(one, simplified=simplified) for one in found)
    boilerplate = own.boilerplate if own else frozenset()

    def mark(sentence: str) -> Mark:
        if boilerplate and method.hashes.short(sentence) in boilerplate:
            return Mark.BOILERPLATE
        return Mark.SHARED if sentence in shared else Mark.NONE

    text = list(mark_sentences(page.text, mark, simplified=simplified))
    return {"name": side.name, "title": page.title, "text": text}
