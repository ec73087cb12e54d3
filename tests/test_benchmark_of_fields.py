"""The fit by field: which pairs are rows, what the weights of a drawn set are, and what is printed of two corpora."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.rules import weights
from tests.lab.corpus import article, edited, lines, mixed

FILE = Path(__file__).parent.parent / "benchmarks" / "fields.py"


@pytest.fixture(scope="module")
def fields() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("benchmark_of_fields", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def corpus(folder: Path, *, chinese: bool) -> Path:
    """The made corpus, with two articles that share a third; a reader keeps those, and drops an edited copy."""
    made = mixed(chinese=chinese)
    one = article(50, chinese=chinese)
    made.add(one, "50")
    made.add(edited(one, 6, chinese=chinese), "51")
    made.write(folder)
    gold = [
        {"a": "d30", "b": "d31", "drop": "no", "label": "form", "corpus": folder.name},
        {"a": "d04", "b": "d25", "drop": "yes", "label": "edited", "corpus": folder.name},
        {"a": "d05", "b": "d26", "drop": "unsure", "label": "edited", "corpus": folder.name},
    ]
    (folder / "gold.jsonl").write_text(lines(gold), encoding="utf-8")
    return folder


def test_rows_are_what_was_read_and_of_a_class_the_most_similar_earlier_partner(
    fields: ModuleType, tmp_path: Path
) -> None:
    folder = corpus(tmp_path / "town", chinese=True)
    rows = fields.rows_of(*fields.pairs_of(folder, None, set()), Cascade())
    told = [(row.earlier, row.later, row.label, row.drop, row.read) for row in rows]
    assert told == [
        ("d00", "d21", "pos", True, False),
        ("d01", "d22", "pos", True, False),
        ("d02", "d23", "pos", True, False),
        ("d03", "d24", "pos", True, False),
        ("d04", "d25", "edited", True, True),
        ("d06", "d27", "pos", True, False),
        ("d30", "d31", "form", False, True),
    ]
    assert rows[0].features.similarity == 1.0
    _, left = fields.pairs_of(folder, None, {"town:pos", "town:form"})
    assert [one.label for found in left.values() for one, _ in found] == ["edited"]
    other = tmp_path / "other.jsonl"
    other.write_text(lines([{"a": "d07", "b": "d08", "drop": "no", "corpus": "town"}]))
    _, named = fields.pairs_of(folder, other, {"town:pos"})
    assert list(named) == ["d08"]


@dataclass
class Drawn:
    """A row of which the features are known."""

    features: Any
    drop: bool
    read: bool = False
    field: str = "town"


def test_a_pair_that_was_read_counts_three_times_and_a_field_by_the_root(fields: ModuleType) -> None:
    rows = [Drawn(None, True), Drawn(None, True, read=True), Drawn(None, False), *[Drawn(None, True, field="x")] * 9]
    assert fields.shares(rows).tolist() == pytest.approx([1 / 2, 3 / 2, 1, *[1 / 3] * 9])


def test_the_fit_finds_weights_that_made_the_answers(fields: ModuleType) -> None:
    draw, rows = np.random.default_rng(5), []
    names = list(weights(CascadeParameters()))
    for _ in range(1500):
        drawn = dict(zip(names, draw.random(len(names)).tolist(), strict=True))
        sum_of = drawn["similarity"] - 0.5 * drawn["form"] + 0.25 * drawn["same_title"]
        likely = 1 / (1 + np.exp(-20 * (sum_of - 0.4)))
        rows.append(Drawn(type("Features", (), drawn)(), bool(draw.random() < likely)))
    fit = fields.fitted(rows, CascadeParameters())
    expected = dict.fromkeys(names, 0.0) | {"similarity": 1.0, "form": -0.5, "same_title": 0.25}
    assert fit.weights == pytest.approx(expected, abs=0.07)
    assert fit.border == pytest.approx(0.4, abs=0.07)
    under = fit.into(CascadeParameters())
    assert (-under.by_site, under.base) == pytest.approx((fit.weights["form"], fit.border))
    assert weights(under)["gone"][0] == pytest.approx(min(0.0, fit.weights["gone"]))


def test_a_weight_of_the_wrong_sign_is_none_in_the_rule(fields: ModuleType) -> None:
    names = list(weights(CascadeParameters()))
    under = fields.Fit(dict.fromkeys(names, 0.5), 0.4).into(CascadeParameters())
    positive = {"similarity": 1.0, "same_title": 0.5, "reworded": 0.5}
    assert {name: weights(under)[name][0] for name in names} == {name: positive.get(name, 0.0) for name in names}


def test_it_prints_the_rule_the_field_left_out_and_the_weights(
    fields: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    town, village = corpus(tmp_path / "town", chinese=True), corpus(tmp_path / "village", chinese=False)
    monkeypatch.setattr(sys, "argv", ["fields.py", str(town), str(village), "--without", "town:pos"])
    fields.main()
    machine, *told = capsys.readouterr().out.splitlines()
    assert machine.startswith("CPython ")
    assert machine.endswith(f"{village} --without town:pos")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in told if line.startswith("| ")]
    assert [row[0] for row in rows[:4]] == ["field", "town", "village", "all"]
    assert rows[1][1:5] == ["2 of 2 (100%)", "0 of 1", "0 of 1", "–"]
    assert rows[2][4] == "0 of 5"
    assert [row[0] for row in rows[-4:]] == ["as it stands", "fitted on all", "without town", "without village"]
    assert all(row[1] == "+1.00" for row in rows[-4:])
