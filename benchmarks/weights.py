"""Fit the weights with which the default method tells reposts from filled-in forms, and cross-validate them.

python benchmarks/weights.py CORPUS

CORPUS is a folder as ``scrapy neardup evaluate`` reads it, whose documents name their account (``source``) and ``date``
and whose pairs say ``account_same``. Every document is compared with its labelled earlier partners by the sketches that
a crawl would hold at that moment, noise and boilerplate guard included. A logistic regression is fitted on reposts and
near copies (Jaccard 0.8 to 0.9) against forms; its weights are printed in units of that of similarity. The weights of
numbers and site are not fitted but set: numbers are there for English notices, of which the corpus has none, and the
site defines what the labels call a repost. Needs pip install scikit-learn.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from scrapy_neardup.evaluation.documents import json_lines
from scrapy_neardup.evaluation.labels import read_corpus
from scrapy_neardup.inputs.packed import find_file
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.methods.cascade import Cascade
from scrapy_neardup.methods.cascade_check import FineCheck
from scrapy_neardup.methods.cascade_features import Features
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.stores import open_store
from scrapy_neardup.stores.secret import NO_SECRET

FITTED = ("similarity", "title", "title_numbers", "vocabulary")
#: What else could be weighed; each is tried beside the fitted ones.
OTHERS = ("containment", "sentences", "whole")
FOLDS = 10


@dataclass
class Row:
    """A document and one of its labelled partners."""

    document: str
    label: str
    positive: bool
    account: str
    month: str
    features: Features


def rows_of(folder: Path, method: Cascade) -> list[Row]:
    """The pairs that the rule has to decide, with their features as a crawl would see them."""
    corpus = read_corpus(folder)
    docs, pairs_file = find_file(folder, "docs.jsonl"), find_file(folder, "pairs.jsonl")
    assert docs is not None
    assert pairs_file is not None
    about = {entry.fields["id"]: entry.fields for entry in json_lines(docs, "")}
    partners: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for pair in (entry.fields for entry in json_lines(pairs_file, "")):
        partners[pair["a"]].append((pair["b"], pair))
        partners[pair["b"]].append((pair["a"], pair))
    store = open_store("memory:", method.recipe(), secret=NO_SECRET)
    detector = Detector(method, store, min_letters=40, who="weights")
    seen: dict[str, bytes] = {}
    rows = []
    for document in corpus.documents():
        page = document.page()
        known = store.on_site(page.site)
        new = method.guarded(page, known.is_common, known)
        label = corpus.labels[document.id]
        for earlier, pair in partners[document.id]:
            if earlier in seen and (positive := is_positive(label, pair)) is not None:
                found = features(method, new, seen[earlier])
                info = about[document.id]
                rows.append(Row(document.id, label, positive, info["source"], info["date"][:7], found))
        seen[document.id] = new.sketch
        detector.judge_now(page, sealed=True)
    return rows


def is_positive(label: str, pair: Mapping[str, Any]) -> bool | None:
    """Whether a pair should be a duplicate; None if it is not one to learn from."""
    similarity, same = pair["jaccard"], pair["account_same"]
    if label == "repost" and 0.6 <= similarity < 0.8 and not same:
        return True
    if label == "template" and 0.5 <= similarity < 0.75 and same:
        return False
    return True if label == "pos" and 0.8 <= similarity < 0.9 else None


def features(method: Cascade, new: Fingerprint, old: bytes) -> Features:
    """The features as ``Cascade.compare`` computes them."""
    return FineCheck(method.parameters, new, method._unpack(new.sketch), method._unpack(old), frozenset()).features


def scores(rows: list[Row], method: Cascade, names: tuple[str, ...], groups: list[str] | None) -> Any:
    """The score of each row in units of similarity, by weights fitted without its group; and the weights of all."""
    p = method.parameters
    table = np.array([[getattr(row.features, name) for name in names] for row in rows])
    fixed = np.array([p.by_numbers * row.features.numbers + p.by_site * row.features.site for row in rows])
    wanted = np.array([row.positive for row in rows])
    many = Counter(row.document for row in rows)
    share = np.array([1 / many[row.document] for row in rows])
    share[wanted] *= share[~wanted].sum() / share[wanted].sum()
    everything = np.arange(len(rows))
    folds = GroupKFold(FOLDS).split(table, wanted, groups) if groups else [(everything, everything)]
    found, weights = np.zeros(len(rows)), np.zeros(len(names))
    for train, test in folds:
        model = LogisticRegression(C=30, max_iter=5000).fit(table[train], wanted[train], sample_weight=share[train])
        weights = model.coef_[0] / model.coef_[0][0]
        # Where the two classes are equally likely is 0, whatever the fold's weights are.
        found[test] = model.decision_function(table[test]) / model.coef_[0][0] - fixed[test]
    certain = np.array([row.features.similarity >= p.certain for row in rows])
    return np.where(certain, 1.0, found), weights, model.intercept_[0] / model.coef_[0][0]


def dropped(rows: list[Row], found: Any, label: str, least: float) -> int:
    """Documents of that label of which one pair at least reaches the score."""
    return len({row.document for row, score in zip(rows, found, strict=True) if row.label == label and score >= least})


def best(rows: list[Row], found: Any, label: str) -> list[float]:
    """Each document's best score, the highest first."""
    top: dict[str, float] = defaultdict(lambda: -1.0)
    for row, score in zip(rows, found, strict=True):
        if row.label == label:
            top[row.document] = max(top[row.document], float(score))
    return sorted(top.values(), reverse=True)


def main() -> None:
    method = Cascade()
    rows = rows_of(Path(sys.argv[1]), method)
    documents = {label: len({row.document for row in rows if row.label == label}) for label in ("repost", "template")}
    print(f"{len(rows)} pairs: {json.dumps(documents)}")
    _, weights, intercept = scores(rows, method, FITTED, None)
    print(
        "weights:", ", ".join(f"{n} {w:+.2f}" for n, w in zip(FITTED, weights, strict=True)), f"border {-intercept:.3f}"
    )
    print("templates dropped when so many reposts are | fitted on all | by account | by month")
    print("| features | reposts | all | by account | by month |\n|---|---|---|---|---|")
    groupings = (None, [row.account for row in rows], [row.month for row in rows])
    sets = [FITTED[:1], FITTED[:2], FITTED[:3], FITTED, *((*FITTED, other) for other in OTHERS)]
    for names in sets:
        judged = [scores(rows, method, names, groups)[0] for groups in groupings]
        for count in (90, 98, 101):
            border = [best(rows, found, "repost")[count - 1] for found in judged]
            told = [dropped(rows, found, "template", least) for found, least in zip(judged, border, strict=True)]
            print(f"| {', '.join(names)} | {count} | {' | '.join(map(str, told))} |")


if __name__ == "__main__":
    main()
