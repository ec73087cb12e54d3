"""What each rule, weight and threshold of ``cascade`` gains on labelled corpora, and whether other weights do better.

    python benchmarks/ablation.py CORPUS ... [--answers FILE ...]

A corpus is a folder with docs.jsonl (plain or compressed), or with HTML pages. Beside them are labels: ``gold.jsonl``
has pairs that a person has read, ``known.jsonl`` copies by their origin. ``truth.json`` of HTML pages has sites, copies
by origin, related pages and different pages. ``--answers`` names further files of read pairs; each line names its
corpus.

The first table leaves out each rule, or moves one number to where it never acts. A variant judges the comparisons of
one crawl with today's rules, so pages that it keeps are not compared with later ones. The second table gives the
agreement with the labels, by corpus, with the present weights and with weights that were fitted on the other corpora.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.inspect.evaluation import DROP, open_empty_store, replay
from scrapy_neardup.inspect.sources import read_documents
from scrapy_neardup.methods.cascade import features, rules, site, sketch
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import FIXED as THRESHOLDS
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.rules import PairJudge
from scrapy_neardup.methods.cascade.sketch import Sketch
from scrapy_neardup.model import Comparison, Fingerprint, Page, SiteCounts
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS

_Floats = npt.NDArray[np.float64]

#: Values at which a weight or a threshold never acts.
PARAMETERS: Mapping[str, float] = {
    **dict.fromkeys(("by_site", "by_gone", "by_title", "by_reworded", "least"), 0.0),
    "catalogue": 1.0,
    "excerpt": 1.0,
    "short": 1,
}
NEVER: Mapping[str, float] = {
    **dict.fromkeys(("enough_left", "articles_apart", "least_article", "other_notice", "one_advert"), 0),
    **dict.fromkeys(("few_pages", "least_shared", "much_shared", "contained_retitled", "contained"), 0),
    **dict.fromkeys(("different_same", "different"), 1.0),
    **dict.fromkeys(("no_template", "same_article", "within_shared", "reworded"), 10**9),
    **dict.fromkeys(("cut", "titles_alike", "other_numbers"), 1.01),
    "names_again": 0,
    "edited": 2.0,
    "different_early": 0.0,
}
#: Similarity below which no variant finds a copy.
LEAST = 0.3
#: The modules that read rules and thresholds.
MODULES = (rules, features, site, sketch)
#: Labels of pairs: the publisher who wants each article once drops the later page or keeps it.
Labels = dict[tuple[str, str], bool]


@dataclass(frozen=True)
class Corpus:
    """Documents in their order, with their labels.

    ``read``: pairs that a person has read. ``known``: copies by their origin, and different pages. ``related``: the
    group of each page of HTML; a page that copies one of another group is wrongly dropped.
    """

    name: str
    documents: list[Page]
    read: Labels
    known: Labels
    related: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """Rules, checks, thresholds and parameters in place of the present ones."""

    name: str
    patches: Mapping[str, Any] = field(default_factory=dict)
    parameters: CascadeParameters = field(default_factory=CascadeParameters)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the patches into every module that has such a name."""
        places = [(module, name) for name in self.patches for module in MODULES if hasattr(module, name)]
        old = [getattr(module, name) for module, name in places]
        for module, name in places:
            setattr(module, name, self.patches[name])
        try:
            yield
        finally:
            for (module, name), value in zip(places, old, strict=True):
                setattr(module, name, value)


class ComparingCascade(Cascade):
    """Cascade that also asks each variant for its decision. ``originals``: page to original, by variant."""

    def __init__(self, variants: list[Variant]) -> None:
        super().__init__()
        self._variants = variants
        self._names: dict[bytes, str] = {}
        self._page = self._page_in_form = ""
        self.originals: dict[str, dict[str, str]] = {one.name: {} for one in variants}
        #: The same by the verdicts, which a variant that only compares two pages does not know: a page that copies a
        #: copy is not always a copy of its original.
        self.verdicts: dict[str, str] = {}
        #: Features of the score, where it decided, by pair.
        self.scored: dict[tuple[str, str], list[float]] = {}

    def fingerprint_own(self, page: Page, is_common: Any, site: SiteCounts | None = None) -> Fingerprint:
        found = super().fingerprint_own(page, is_common, site)
        self._page = page.url
        self._names[found.sketch] = page.url
        return found

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        earlier, minwise = self._names.get(old, ""), self.parameters.bins * self.parameters.bits // 8
        if new.in_form and self._page_in_form != self._page:  # judged again, now that it is known to be in one form
            self._page_in_form = self._page
            for found in self.originals.values():
                found.pop(self._page, None)
        sketches = Sketch.unpack(new.sketch, minwise), Sketch.unpack(old, minwise)
        today = PairJudge(self.parameters, new, *sketches, common)
        if today.decision().sentence.startswith("The score"):
            names = rules.weights(today.parameters)
            self.scored[earlier, self._page] = [float(getattr(today.features, name)) for name in names]
        for variant in self._variants if today.features.similarity >= LEAST else ():
            with variant.applied():
                if PairJudge(variant.parameters, new, *sketches, common).decision().duplicate:
                    self.originals[variant.name].setdefault(self._page, earlier)
        return super().compare(new, old, common)


@dataclass(frozen=True)
class Agreement:
    """``right``: labelled pairs, read or known, on which a variant agrees. ``wrong``: pages of HTML wrongly dropped."""

    read: frozenset[tuple[str, str]]
    known: frozenset[tuple[str, str]]
    wrong: int
    drops: int


def read_corpus(place: Path, answers: list[Path]) -> Corpus:
    """Read a corpus and its labels. A law that was revised is either answer, so such pairs are left out."""
    source, packed = PageSource(DEFAULT_FIELDS, HtmlReader(5_000_000)), [*place.glob("docs.jsonl*")]
    documents = list(read_documents(str((packed or [place])[0]), source, Counter(), "id" if packed else "path"))
    truth = json.loads((place / "truth.json").read_text(encoding="utf-8")) if (place / "truth.json").exists() else {}
    if truth:
        random.Random(7).shuffle(documents)
        documents = [replace(one, site=truth["site"].get(one.url, "")) for one in documents]
    order = {page.url: at for at, page in enumerate(documents)}
    read: Labels = {}
    for row in chain.from_iterable(_rows(file) for file in (place / "gold.jsonl", *answers)):
        if row.get("corpus", place.name) == place.name and (copy := _answer(row)) is not None:
            read[_in_order(row, order)] = copy
    known: Labels = {_in_order(row, order): True for row in _rows(place / "known.jsonl")}
    for name, copy in ("known", True), ("different", False):
        for row in truth.get(name, ()):
            earlier, later = _in_order(row, order)
            if earlier in order and (not copy or row["j"] >= 0.8):
                known[earlier, later] = copy
    return Corpus(place.name, documents, read, known, _group(truth))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


#: Words of some readers for pairs, and whether the later page is a copy.
_VERDICTS = {"repost": True, "reissue": True, "extended": True, "template": False, "sharedcode": False}


def _answer(row: Mapping[str, Any]) -> bool | None:
    """Return whether a reader calls the later page a copy; None if unsure, or if either answer will do."""
    copy = DROP[row["drop"]] if "drop" in row else _VERDICTS.get(row["verdict"])
    return None if copy is False and row.get("label") == "reissue" else copy


def _in_order(row: Mapping[str, Any], order: Mapping[str, int]) -> tuple[str, str]:
    earlier, later = sorted((str(row["a"]), str(row["b"])), key=lambda one: order.get(one, -1))
    return earlier, later


def _group(truth: Mapping[str, Any]) -> dict[str, str]:
    """Return the group of each related page."""
    rows = [*truth.get("known", ()), *(row for row in truth.get("pairs", ()) if row.get("v") != "boilerplate")]
    pairs = [(row["a"], row["b"]) for row in rows]
    pairs += [(group[0], other) for group in truth.get("exact", ()) for other in group[1:]]
    members: dict[str, set[str]] = {}
    for a, b in pairs:
        joined = members.get(a, {a}) | members.get(b, {b})
        members.update(dict.fromkeys(joined, joined))
    return {page: min(group) for page, group in members.items()}


def compare_variants(corpora: list[Corpus], variants: list[Variant]) -> dict[str, ComparingCascade]:
    """Crawl each corpus once, and let all variants decide."""
    found = {}
    for corpus in corpora:
        found[corpus.name] = method = ComparingCascade(variants)
        with open_empty_store(method) as store:
            for page, verdict in replay(corpus.documents, method, store):
                if verdict.match is not None and verdict.is_copy:
                    method.verdicts[page.url] = verdict.match.url
    return found


def score_variant(corpus: Corpus, originals: Mapping[str, str]) -> Agreement:
    """Compare the drops of a variant with the labels of a corpus."""
    related = corpus.related
    wrong = sum(related.get(page, page) != related.get(old, old) for page, old in originals.items()) if related else 0
    return Agreement(_agreed(corpus.read, originals), _agreed(corpus.known, originals), wrong, len(originals))


def _agreed(labels: Labels, originals: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the pairs that are judged as labelled; of different pages only their match would be wrong."""
    return frozenset((a, b) for (a, b), copy in labels.items() if (b in originals if copy else originals.get(b) != a))


def list_variants() -> list[Variant]:
    """Return today's rules, and one variant without each rule, check, weight and threshold."""
    found = [Variant("today")]
    for name in ("RULES", "CHECKS"):
        for rule in getattr(rules, name)[: -1 if name == "RULES" else None]:  # the score always answers
            left = tuple(one for one in getattr(rules, name) if one is not rule)
            found.append(Variant(f"`{rule.__name__}`", {name: left}))
    known = {one.name for one in fields(CascadeParameters)}
    for name, value in PARAMETERS.items():
        if name in known:
            changed: dict[str, Any] = {name: value}
            found.append(Variant(f"`{name}`", parameters=CascadeParameters(**changed)))
    for name, value in NEVER.items():
        changed = {name: value}
        found.append(Variant(f"`{name}`", {"FIXED": THRESHOLDS._replace(**changed)}))
    return found


def print_ablation(corpora: list[Corpus], found: Mapping[str, ComparingCascade], variants: list[Variant]) -> None:
    """Print a line for each variant. What it loses without a rule, the rule gains."""
    today = [score_variant(corpus, found[corpus.name].originals["today"]) for corpus in corpora]
    pairs = sum(len(corpus.read) + len(corpus.known) for corpus in corpora)
    print(f"{pairs} labelled pairs, {sum(one.drops for one in today)} pages dropped")
    print("| without | read pairs better | worse | pairs by origin better | worse | wrong pages | drops |")
    print("|---|---|---|---|---|---|---|")
    for variant in variants[1:]:
        sums = np.zeros(6, int)
        for corpus, old in zip(corpora, today, strict=True):
            new = score_variant(corpus, found[corpus.name].originals[variant.name])
            read, known = ((len(n - o), len(o - n)) for n, o in ((new.read, old.read), (new.known, old.known)))
            sums += [*read, *known, new.wrong - old.wrong, new.drops - old.drops]
        print(f"| {variant.name} | {' | '.join(map(str, sums[:4]))} | {sums[4]:+} | {sums[5]:+} |")


def fit(rows: _Floats, copies: _Floats) -> _Floats:
    """Fit a logistic regression with a small ridge by Newton's method; the last weight is the intercept."""
    x = np.column_stack((rows, np.ones(len(rows))))
    weights = np.zeros(x.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-(x @ weights)))
        curve = x.T @ (x * (chance * (1 - chance))[:, None]) + 0.1 * np.eye(x.shape[1])
        weights += np.linalg.solve(curve, x.T @ (copies - chance) - 0.1 * weights)
    return weights


def _score_rows(labels: Labels, method: ComparingCascade) -> tuple[_Floats, _Floats]:
    """Return the features of the labelled pairs that the score decided, and whether each is a copy."""
    scored = [(method.scored[pair], copy) for pair, copy in labels.items() if pair in method.scored]
    rows = np.array([row for row, _ in scored]).reshape(len(scored), len(rules.weights(CascadeParameters())))
    return rows, np.array([float(copy) for _, copy in scored])


def print_fit(corpora: list[Corpus], found: Mapping[str, ComparingCascade]) -> None:
    """Print how many pairs agree by the present weights, and by weights that were fitted on the other corpora.

    These are the read pairs; of HTML pages, which nobody has read in pairs, those by origin.
    """
    p = CascadeParameters()
    present = np.array(list(rules.weights(p).values()))
    labels = {corpus.name: corpus.read or corpus.known for corpus in corpora}
    data = {name: _score_rows(pairs, found[name]) for name, pairs in labels.items()}
    print("| left out | pairs | decided by the score | agree today | agree with weights fitted on the others |")
    print("|---|---|---|---|---|")
    sums = np.zeros(4, int)
    for name, (rows, copies) in data.items():
        others = [one for other, one in data.items() if other != name and len(one[0])]
        fitted = fit(np.concatenate([one[0] for one in others]), np.concatenate([one[1] for one in others]))
        by_present = rows @ present >= p.base
        by_fitted = np.column_stack((rows, np.ones(len(rows)))) @ fitted >= 0
        agreed = len(_agreed(labels[name], found[name].verdicts))
        gained = int((by_fitted == copies).sum()) - int((by_present == copies).sum())
        line = [len(labels[name]), len(rows), agreed, agreed + gained]
        sums += line
        print(f"| {name} | {' | '.join(map(str, line))} |")
    print(f"| all | {' | '.join(map(str, sums))} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--answers", nargs="*", type=Path, default=[], help="pairs with answers, for several corpora")
    options = parser.parse_args()
    corpora = [read_corpus(place, options.answers) for place in options.corpora]
    variants = list_variants()
    found = compare_variants(corpora, variants)
    print_ablation(corpora, found, variants)
    print()
    print_fit(corpora, found)


if __name__ == "__main__":
    main()
