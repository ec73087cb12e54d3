"""``scrapy neardup pairs``, and what ``evaluate`` makes of it."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from scrapy_neardup.errors import SettingsError
from tests.cli import run
from tests.lab.corpus import drafts, five_grams, write_feed


def test_the_pairs_of_a_feed_are_those_of_its_texts(tmp_path: Path) -> None:
    made = drafts()
    assert run("pairs", write_feed(tmp_path), "-o", tmp_path / "pairs.jsonl") == 0
    found = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    sets = {one["url"]: five_grams(one["text"]) for one in made}
    expected = {}
    for a, b in combinations(sets, 2):
        both, least = len(sets[a] & sets[b]), min(len(sets[a]), len(sets[b]))
        if both / len(sets[a] | sets[b]) >= 0.5 or both / least >= 0.8:
            expected[a, b] = round(both / len(sets[a] | sets[b]), 4)
    assert {(one["a"], one["b"]): one["jaccard"] for one in found} == expected
    assert len(expected) > 10
    assert [one["jaccard"] for one in found] == sorted(expected.values(), reverse=True)
    assert found[0].keys() == {"a", "b", "jaccard", "containment", "title", "title_same", "same_site"}
    assert {one["same_site"] for one in found} == {True, False}
    assert all(0.5 < one["title"] < 1 and not one["title_same"] for one in found)


def test_evaluate_takes_them_as_json_lines_and_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = write_feed(tmp_path)
    said = []
    for name in ("pairs.jsonl", "pairs.csv"):
        assert run("pairs", feed, "-o", tmp_path / name) == 0
        capsys.readouterr()
        assert run("evaluate", feed, "--pairs", tmp_path / name, "--json") == 0
        score = json.loads(capsys.readouterr().out)
        said.append({name: score[name] for name in ("documents", "pos", "neg", "missed", "false_drops")})
    assert said[0] == said[1]
    assert said[0]["documents"] == 48
    assert said[0]["pos"] > 3
    assert said[0]["missed"] == said[0]["false_drops"] == 0


def test_limits_are_checked(tmp_path: Path) -> None:
    for option in ("--jaccard", "--containment"):
        with pytest.raises(SettingsError, match=option):
            run("pairs", write_feed(tmp_path), option, "0")
    assert (
        run("pairs", tmp_path / "feed.jsonl", "-o", tmp_path / "few.jsonl", "--jaccard", "1", "--containment", "1") == 0
    )
    assert 0 < len((tmp_path / "few.jsonl").read_text().splitlines()) < 6
