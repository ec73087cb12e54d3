"""``scrapy neardup pairs`` and ``lexicon`` on documents of files."""

from __future__ import annotations

import gzip
import json
from itertools import combinations
from pathlib import Path

import pytest

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.text.lexicon import lexicon
from tests.cli import Invoke, run
from tests.lab.corpus import drafts, five_grams, write_feed


def test_the_pairs_of_a_feed_are_those_of_its_texts(tmp_path: Path) -> None:
    assert run("pairs", write_feed(tmp_path), "-o", tmp_path / "pairs.jsonl") == 0
    found = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    sets = {one["url"]: five_grams(one["text"]) for one in drafts()}
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


def test_evaluate_takes_pairs_as_json_lines_and_as_a_table(tmp_path: Path, invoke: Invoke) -> None:
    feed = write_feed(tmp_path)
    scores = []
    for name in ("pairs.jsonl", "pairs.csv"):
        assert run("pairs", feed, "-o", tmp_path / name) == 0
        score = invoke("evaluate", feed, "--pairs", tmp_path / name, "--json").data
        scores.append([score[name] for name in ("documents", "missed", "false_drops", "pos", "neg")])
    assert scores[0] == scores[1]
    assert scores[0][:3] == [48, 0, 0]
    assert scores[0][3] > 3


def test_limits_of_pairs_are_checked(tmp_path: Path) -> None:
    for option in ("--jaccard", "--containment"):
        with pytest.raises(SettingsError, match=option):
            run("pairs", write_feed(tmp_path), option, "0")
    strict = ("--jaccard", "1", "--containment", "1")
    assert run("pairs", tmp_path / "feed.jsonl", "-o", tmp_path / "few.jsonl", *strict) == 0
    assert 0 < len((tmp_path / "few.jsonl").read_text().splitlines()) < 6


PAGES = [
    {"id": "1", "title": "New ferry", "text": "The ferry is back. The ferry is blue."},
    {"id": "2", "title": "", "text": "The FERRY sinks; nobody is hurt."},
    {"id": "3", "title": "渡口开航", "text": "渡口的船来了。"},
]


def test_a_lexicon_keeps_words_of_single_documents_if_asked(tmp_path: Path, invoke: Invoke) -> None:
    pages, output = write_feed(tmp_path, PAGES), tmp_path / "words.tsv"
    done = invoke("lexicon", pages, pages, "-o", output, "--at-least", "1")
    assert done.out == f"{output}: 15 words that occur in 1 or more of 6 documents\n"
    assert {"渡口", "的", "来", "new", "sinks"} < set(lexicon(str(output)).idf)


def test_a_lexicon_counts_traditional_characters_as_simplified_if_asked(tmp_path: Path) -> None:
    pytest.importorskip("opencc")
    (tmp_path / "1.txt").write_text("鎮上的老戲院關燈了。", encoding="utf-8")
    (tmp_path / "2.txt").write_text("镇上的老戏院关灯了。", encoding="utf-8")
    run("lexicon", tmp_path, "-o", tmp_path / "as they stand.tsv")
    run("lexicon", tmp_path, "-o", tmp_path / "simplified.tsv", "--simplified")
    assert "戏院" not in lexicon(str(tmp_path / "as they stand.tsv")).idf
    assert "戏院" in lexicon(str(tmp_path / "simplified.tsv")).idf


def test_a_lexicon_replaces_no_input_and_broken_documents_leave_nothing_behind(tmp_path: Path) -> None:
    pages = write_feed(tmp_path, PAGES)
    before = pages.read_bytes()
    with pytest.raises(NearDupError, match=r"feed\.jsonl is also an input\. Name another file with -o\."):
        run("lexicon", pages, "-o", pages, "--force")
    assert pages.read_bytes() == before
    pages.write_bytes(gzip.compress(before)[:-9])
    broken = pages.rename(pages.with_suffix(".jsonl.gz"))
    with pytest.raises(NearDupError, match=r"feed\.jsonl\.gz cannot be read to its end"):
        run("lexicon", broken, "-o", tmp_path / "words.tsv")
    assert [file.name for file in tmp_path.iterdir()] == [broken.name]
