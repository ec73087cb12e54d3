"""How the default method's rule does field by field, and what weights a fit without that field would give it.

python benchmarks/fields.py CORPUS [CORPUS …] [--gold FILE] [--without CORPUS:LABEL …] [--show]

CORPUS is a folder as ``scrapy neardup evaluate`` reads it: documents, pairs.jsonl, and gold.jsonl, pairs that were read
by hand; --gold is such a file for several of them, and counts in place of theirs. Each corpus is a field. --without
leaves out a class of it (pos, repost, template) or a label of its gold.

Every document goes through a crawl, so that a labelled pair is compared by the sketches that it would have at that
moment, boilerplate left out. A pair that was read is one row; of every other document of a class its most similar
earlier partner is. The fit is a logistic regression over what the score weighs. A pair that was read counts three times
a pair of a class, and a field's pairs of one answer count by the root of their weight, so that no field decides alone.
What is reported is the field that was left out of the fit, never the fit on its own pairs.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tabulate import tabulate

from scrapy_neardup.files.compression import find_file
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.lab.labels import POS, REPOST, TEMPLATE, Corpus, Gold, pair_lines, read_corpus, read_gold
from scrapy_neardup.methods.cascade.features import Features
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.rules import FineCheck, Judgement, weights
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.recipe import NO_SECRET

#: The classes of documents that should be dropped, and those that should not.
CLASSES = {POS: True, REPOST: True, TEMPLATE: False}
#: How many pairs of a class one counts for that was read.
READ = 3.0
#: Of each weight the parameter that sets it, and what of the weight that is.
PARAMETERS = {
    "form": ("by_site", -1.0),
    "gone": ("by_gone", -0.5),
    "same_title": ("by_title", 1.0),
    "reworded": ("by_reworded", 1.0),
    "numbers": ("by_numbers", -1.0),
}
#: How much weights are held back.
RIDGE = 0.01

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A pair of a field: whether the later one is to be dropped, and the comparison as ``Cascade.compare`` makes it."""

    field: str
    earlier: str
    later: str
    label: str
    drop: bool
    read: bool
    check: FineCheck

    @property
    def features(self) -> Features:
        """What the score weighs; found out once, as looking for what is gone takes longest."""
        return self.check.features

    def judgement(self, p: CascadeParameters) -> Judgement:
        """What the whole rule says under other weights, on which the features do not depend."""
        return self.check.with_parameters(p).judgement()


@dataclass(frozen=True)
class Fit:
    """Weights in units of that of similarity, and the border that their sum must reach."""

    weights: dict[str, float]
    border: float

    def drops(self, features: Features) -> bool:
        """What the sum alone says."""
        found: float = sum(weight * getattr(features, name) for name, weight in self.weights.items())
        return found >= self.border

    def into(self, p: CascadeParameters) -> CascadeParameters:
        """The rule under these weights; one of the wrong sign is 0 there."""
        found = {name: self.weights[feature] * share for feature, (name, share) in PARAMETERS.items()}
        values: dict[str, Any] = {name: _bounded(value) for name, value in {**found, "base": self.border}.items()}
        return replace(p, **values)


def _bounded(value: float) -> float:
    return min(1.0, max(0.0, value))


def pairs_of(folder: Path, named: Path | None, without: set[str]) -> tuple[Corpus, dict[str, list[tuple[Gold, bool]]]]:
    """The corpus, and by the later document the pairs to look at, each with whether it was read."""
    corpus = read_corpus(folder)
    order = {id: place for place, id in enumerate(corpus.labels)}
    gold = (read_gold(named, order, {corpus.name}) if named else []) or list(corpus.gold)
    found: dict[str, list[tuple[Gold, bool]]] = defaultdict(list)
    for one in gold:
        if one.drop is not None and f"{corpus.name}:{one.label}" not in without:
            found[one.later].append((one, True))
    # What a reader has seen is not a pair of a class as well, even where he was unsure or it is left out.
    best: dict[str, tuple[float, str]] = {}
    for later, earlier, similarity in _partners(folder, corpus, order):
        if later not in {one.later for one in gold} and f"{corpus.name}:{corpus.labels[later]}" not in without:
            best[later] = max(best.get(later, (0.0, "")), (similarity, earlier))
    for later, (_, earlier) in best.items():
        label = corpus.labels[later]
        found[later].append((Gold(earlier, later, CLASSES[label], label), False))
    return corpus, found


def _partners(folder: Path, corpus: Corpus, order: dict[str, int]) -> Iterator[tuple[str, str, float]]:
    """Later and earlier document of each pair that makes the class of the later one, and their similarity."""
    path = find_file(folder, "pairs.jsonl")
    for pair in (entry.fields for entry in pair_lines(path, "a pair a line")) if path else ():
        earlier, later = sorted((str(pair["a"]), str(pair["b"])), key=order.__getitem__)
        label = corpus.labels[later]
        if label in CLASSES and not (label == REPOST and pair.get("account_same")):
            clean = pair.get("jaccard_clean")
            yield later, earlier, pair["jaccard"] if clean is None else clean


def rows_of(corpus: Corpus, pairs: dict[str, list[tuple[Gold, bool]]], method: Cascade) -> list[Row]:
    """The pairs with their sketches, as a crawl would have them when the later page comes."""
    store = open_store("memory:", method.recipe(), secret=NO_SECRET)
    detector = Detector(method, store, who="fields")
    wanted = {id for found in pairs.values() for one, _ in found for id in (one.earlier, one.later)}
    seen: dict[str, bytes] = {}
    rows = []
    for document in corpus.documents():
        page = document.page()
        if document.id in wanted:
            known = store.on_site(page.site)
            new = method.fingerprint_own(page, known.is_common, known)
            seen[document.id] = new.sketch
            for pair, read in pairs.get(document.id, ()):
                one, other = method._unpack(new.sketch), method._unpack(seen[pair.earlier])
                label, drop = pair.label, bool(pair.drop)
                check = FineCheck(method.parameters, new, one, other, frozenset())
                rows.append(Row(corpus.name, pair.earlier, pair.later, label, drop, read, check))
        detector.judge_now(page, sealed=True)
    return rows


def shares(rows: Sequence[Row]) -> Numbers:
    """How much each row counts."""
    plain = np.array([READ if row.read else 1.0 for row in rows])
    sums: dict[tuple[str, bool], float] = defaultdict(float)
    for row, share in zip(rows, plain, strict=True):
        sums[row.field, row.drop] += float(share)
    return np.array([share / sums[row.field, row.drop] ** 0.5 for row, share in zip(rows, plain, strict=True)])


def fitted(rows: Sequence[Row], p: CascadeParameters) -> Fit:
    """A logistic regression by Newton's method; the border is not held back."""
    names = list(weights(p))
    table = np.array([[1.0, *(float(getattr(row.features, name)) for name in names)] for row in rows])
    wanted, share = np.array([float(row.drop) for row in rows]), shares(rows)
    ridge = np.diag([0.0, *[RIDGE] * len(names)])
    found = np.zeros(len(names) + 1)
    for _ in range(400):
        likely = 1 / (1 + np.exp(-table @ found))
        curvature = (table.T * (share * likely * (1 - likely))) @ table + ridge + 1e-9 * np.eye(len(found))
        step = np.linalg.solve(curvature, table.T @ (share * (wanted - likely)) - ridge @ found)
        found += np.clip(step, -2, 2)
        if abs(step).max() < 1e-6:
            break
    unit = found[1 + names.index("similarity")]
    return Fit(dict(zip(names, (found[1:] / unit).tolist(), strict=True)), float(-found[0] / unit))


def line_of(name: str, rows: Sequence[Row], dropped: Sequence[bool]) -> list[str]:
    """A row of a table: agreement with readers, then what of each class is decided wrongly."""
    both = list(zip(rows, dropped, strict=True))

    def wrong(chosen: list[tuple[Row, bool]]) -> str:
        return f"{sum(row.drop != drop for row, drop in chosen)} of {len(chosen)}" if chosen else "–"

    read = [one for one in both if one[0].read]
    agree = sum(row.drop == drop for row, drop in read)
    cells = [f"{agree} of {len(read)}" + f" ({agree / len(read):.0%})" if read else "–"]
    cells += [wrong([one for one in read if one[0].drop is drop]) for drop in (False, True)]
    cells += [wrong([one for one in both if not one[0].read and one[0].label == label]) for label in CLASSES]
    return [name, *cells]


def by_field(rows: Sequence[Row], dropped: Sequence[bool]) -> str:
    """The table of all fields, and of all together."""
    headers = ["field", "read by hand", "dropped wrongly", "kept wrongly", "pos kept", "reposts kept", "forms dropped"]
    both = list(zip(rows, dropped, strict=True))
    lines = []
    for field in dict.fromkeys(row.field for row in rows):
        chosen = [one for one in both if one[0].field == field]
        lines.append(line_of(field, [row for row, _ in chosen], [drop for _, drop in chosen]))
    return tabulate([*lines, line_of("all", rows, dropped)], headers, tablefmt="github", disable_numparse=True)


def left_out(rows: Sequence[Row], p: CascadeParameters) -> dict[str, Fit]:
    """Of each field the fit on all others."""
    fields = dict.fromkeys(row.field for row in rows)
    return {field: fitted([row for row in rows if row.field != field], p) for field in fields}


def report(rows: Sequence[Row], p: CascadeParameters) -> None:
    """Print the tables."""
    print("\nThe rule as it stands:\n")
    print(by_field(rows, [row.judgement(p).duplicate for row in rows]))
    fits = left_out(rows, p)
    if len(fits) > 1:
        under = {field: fit.into(p) for field, fit in fits.items()}
        print("\nThe rule with weights that were fitted without the field:\n")
        print(by_field(rows, [row.judgement(under[row.field]).duplicate for row in rows]))
        print("\nThe sum of these weights alone, without the rest of the rule:\n")
        print(by_field(rows, [fits[row.field].drops(row.features) for row in rows]))
    print("\nWeights in units of that of similarity, and the border:\n")
    names = list(weights(p))
    stands = Fit({name: weight for name, (weight, _) in weights(p).items()}, p.base)
    every = {"as it stands": stands, "fitted on all": fitted(rows, p)}
    every |= {f"without {field}": fit for field, fit in fits.items()} if len(fits) > 1 else {}
    table = [[name, *(f"{fit.weights[one]:+.2f}" for one in names), f"{fit.border:.2f}"] for name, fit in every.items()]
    print(tabulate(table, ["", *names, "border"], tablefmt="github", disable_numparse=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="+", metavar="CORPUS")
    parser.add_argument("--gold", type=Path, metavar="FILE", help="pairs that were read, of several corpora")
    parser.add_argument("--without", nargs="+", default=[], metavar="CORPUS:LABEL", help="leave these pairs out")
    parser.add_argument("--show", action="store_true", help="name the pairs that the rule decides wrongly, and why")
    arguments = parser.parse_args()
    method = Cascade()
    rows: list[Row] = []
    for folder in arguments.corpus:
        rows += rows_of(*pairs_of(folder, arguments.gold, set(arguments.without)), method)
    command = " ".join(map(shlex.quote, ["python", *sys.argv]))
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores of {platform.machine()}; {command}")
    report(rows, method.parameters)
    for row in rows if arguments.show else ():
        one = row.judgement(method.parameters)
        if one.duplicate != row.drop:
            wrong = "dropped" if one.duplicate else "kept"
            print(row.field, row.earlier, row.later, "read" if row.read else "class", row.label, wrong, one.decision)


if __name__ == "__main__":
    main()
