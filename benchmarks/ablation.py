"""What each rule, weight and threshold of ``cascade`` gains on labelled corpora.

    python benchmarks/ablation.py CORPUS ... [--fit]

A corpus is a folder or file of documents, as ``scrapy neardup evaluate`` reads it, with pairs that a person has read in
``gold.jsonl`` beside them. Each variant leaves out one rule, or moves one number to where it never acts, and replays
all corpora. It prints how many read pairs change for better and worse, and how many more pages are dropped. ``--fit``
fits the weights of the score instead, and leaves out each corpus in turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.lab.documents import Document, DocumentReader
from scrapy_neardup.lab.evaluate import make_judge, open_empty_store, replay
from scrapy_neardup.lab.pairs import COPY, SKIP, Pair, read_answers
from scrapy_neardup.methods.cascade import features, rules, site
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import FIXED as THRESHOLDS
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS

#: Values at which a weight or a threshold never acts.
PARAMETERS: Mapping[str, float] = {
    **dict.fromkeys(("by_site", "by_gone", "by_title", "by_reworded", "by_numbers", "least", "short_least"), 0.0),
    "catalogue": 1.0,
    "excerpt": 1.0,
    "short": 1,
}
NEVER: Mapping[str, float] = {
    **dict.fromkeys(("enough_left", "articles_apart", "least_article", "other_notice", "nearly", "contained"), 0),
    **dict.fromkeys(("few_pages", "least_shared", "much_shared", "opening", "contained_retitled"), 0),
    **dict.fromkeys(("different_same", "different"), 1.0),
    **dict.fromkeys(("no_template", "same_article", "within_shared", "reworded"), 10**9),
    "cut": 1.01,
    "edited": 2.0,
    "titles_alike": 1.01,
    "mostly_listing": 1.01,
    "different_early": 0.0,
}


class Corpus(NamedTuple):
    """Documents in their order, and the pairs that a person has read."""

    name: str
    documents: list[Document]
    pairs: list[Pair]


class Outcome(NamedTuple):
    """The pairs on which the method agrees with the reader, by corpus and documents, and the number of drops."""

    right: frozenset[tuple[str, str, str]]
    drops: int


def read_corpus(place: Path) -> Corpus:
    """Read a corpus; ``gold.jsonl`` is in its folder."""
    documents = list(DocumentReader(PageSource(DEFAULT_FIELDS, 5_000_000, None)).read(place))
    order = {document.id: at for at, document in enumerate(documents)}
    folder = place if place.is_dir() else place.parent
    pairs = [pair for pair in read_answers(folder / "gold.jsonl", known=order) if pair.answer != SKIP]
    return Corpus(place.name, documents, pairs)


def measure(corpora: list[Corpus], parameters: Mapping[str, Any]) -> Outcome:
    """Replay all corpora."""
    method, right, drops = Cascade(CascadeParameters(**parameters)), set(), 0
    for corpus in corpora:
        with open_empty_store(method) as store:
            found = {document.id: verdict for document, verdict in replay(corpus.documents, make_judge(method, store))}
        drops += sum(verdict.is_copy for verdict in found.values())
        for pair in corpus.pairs:
            if found[pair.b].is_copy is (pair.answer == COPY):
                right.add((corpus.name, pair.a, pair.b))
    return Outcome(frozenset(right), drops)


@contextmanager
def _change(**values: Any) -> Iterator[None]:
    """Replace lists of rules, or fixed thresholds wherever they are imported."""
    old = {name: getattr(rules, name) for name in values}
    modules = (rules, features, site)
    for name, value in values.items():
        for module in modules:
            if hasattr(module, name):
                setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in old.items():
            for module in modules:
                if hasattr(module, name):
                    setattr(module, name, value)


def list_variants(corpora: list[Corpus]) -> Iterator[tuple[str, Outcome]]:
    """Yield the name of each rule, weight and threshold, with the outcome without it."""
    for name in ("RULES", "CHECKS"):
        for rule in getattr(rules, name)[: -1 if name == "RULES" else None]:  # the score always answers
            with _change(**{name: tuple(one for one in getattr(rules, name) if one is not rule)}):
                yield f"rule {rule.__name__}", measure(corpora, {})
    known = {field.name for field in fields(CascadeParameters)}
    for name, value in PARAMETERS.items():
        if name in known:
            yield f"{name}={value:g}", measure(corpora, {name: value})
    for name, value in NEVER.items():
        changed: Any = {name: value}
        with _change(FIXED=THRESHOLDS._replace(**changed)):
            yield f"{name}={value:g}", measure(corpora, {})


def print_ablation(corpora: list[Corpus]) -> None:
    """Print a line for each variant. What it loses without a rule, the rule gains."""
    base = measure(corpora, {})
    print(f"{len(base.right)} of {sum(len(corpus.pairs) for corpus in corpora)} pairs, {base.drops} drops")
    print("| without | pairs better | pairs worse | drops |\n|---|---|---|---|")
    for name, found in list_variants(corpora):
        better, worse = len(found.right - base.right), len(base.right - found.right)
        print(f"| {name} | {better} | {worse} | {found.drops - base.drops:+} |", flush=True)


def _score_features(corpus: Corpus, method: Cascade) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the features of the score of all pairs that the score decides, and whether each is a copy."""
    pages = {document.id: document.page for document in corpus.documents}
    rows, copies = [], []
    for pair in corpus.pairs:
        new, old = (method.fingerprint(pages[one]) for one in (pair.b, pair.a))
        judge = method.judge(new, old.sketch, frozenset())
        if judge.decision().rule == "score":
            rows.append([float(getattr(judge.features, name)) for name in rules.weights(method.parameters)])
            copies.append(float(pair.answer == COPY))
    return np.array(rows).reshape(len(rows), -1), np.array(copies)


def fit(rows: npt.NDArray[np.float64], copies: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Fit a logistic regression with a small ridge by Newton's method; the last weight is the intercept."""
    x = np.column_stack((rows, np.ones(len(rows))))
    weights = np.zeros(x.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-(x @ weights)))
        curve = x.T @ (x * (chance * (1 - chance))[:, None]) + 0.1 * np.eye(x.shape[1])
        weights += np.linalg.solve(curve, x.T @ (copies - chance) - 0.1 * weights)
    return weights


def print_fit(corpora: list[Corpus]) -> None:
    """Print for each corpus how many pairs agree by weights that were fitted on the others, and by the present ones."""
    method = Cascade()
    p = method.parameters
    present = np.array(list(rules.weights(p).values()))
    data = {corpus.name: _score_features(corpus, method) for corpus in corpora}
    print("| left out | pairs | fitted on the others | present weights |\n|---|---|---|---|")
    for name, (rows, copies) in data.items():
        if not len(rows):
            continue
        others = [found for other, found in data.items() if other != name and len(found[0])]
        weights = fit(np.concatenate([one[0] for one in others]), np.concatenate([one[1] for one in others]))
        fitted = np.column_stack((rows, np.ones(len(rows)))) @ weights >= 0
        print(f"| {name} | {len(rows)} | {(fitted == copies).sum()} | {((rows @ present >= p.base) == copies).sum()} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    corpora = [read_corpus(place) for place in options.corpora]
    (print_fit if options.fit else print_ablation)(corpora)


if __name__ == "__main__":
    main()
