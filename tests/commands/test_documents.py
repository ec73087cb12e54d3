"""``scrapy neardup pairs``, ``lexicon`` and ``robustness`` on documents of files."""

from __future__ import annotations

import gzip
import json
import re
import sys
from itertools import combinations
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import pytest

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.lab.robustness import CONTROL
from scrapy_neardup.methods import METHODS, Method
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.text.lexicon import lexicon
from tests.cli import Invoke, run, run_scrapy
from tests.lab.corpus import drafts, five_grams, write_feed

# Pairs


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


# Lexicons

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


# Robustness


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """Six articles without a sentence in common."""
    return write_feed(tmp_path, drafts(of=6)[:6])


def first_cells(out: str) -> list[str]:
    """The first cell of each row of a table, without the head."""
    return [line.strip("|").split("|")[0].strip() for line in out.rstrip().splitlines()[4:]]


@pytest.mark.slow
def test_all_methods_are_compared_by_default_and_drawn(articles: Path) -> None:
    arguments = ("--pages", "2", "--edits", "delete", "--json", "-o", "curves.svg")
    done = run_scrapy("robustness", articles, *arguments, cwd=articles.parent)
    assert done.returncode == 0
    left_out = {name for name in METHODS if f"left out: {name}" in done.stderr}
    there = {json.loads(line)["method"] for line in done.stdout.splitlines()}
    assert there | left_out == set(METHODS)
    assert "cascade" in there
    root = ET.parse(articles.parent / "curves.svg").getroot()
    ids = {group.get("id") for group in root.iter("{http://www.w3.org/2000/svg}g")}
    assert {f"delete {name}" for name in there} <= ids


class Weak(Cascade):
    """Wants a lexicon."""

    name: ClassVar[str] = "weak"

    def fingerprint(self, page: Page) -> Fingerprint:
        raise NearDupError("no lexicon for this language")


def test_by_default_a_method_without_a_lexicon_is_left_out_with_a_sentence(
    articles: Path, invoke: Invoke, methods: dict[str, type[Method]]
) -> None:
    for name in set(methods) - {"cascade"}:
        del methods[name]
    methods["weak"] = Weak
    done = invoke("robustness", articles, "--edits", "wrap")
    assert done.err == "robustness: left out: weak: no lexicon for this language\n"
    assert first_cells(done.out) == ["cascade"]
    with pytest.raises(NearDupError, match=r"^weak: no lexicon for this language$"):
        run("robustness", articles, "--edits", "wrap", "--method", "weak", "--method", "cascade")
    del methods["cascade"]
    with pytest.raises(NearDupError, match="No method can judge these documents"):
        run("robustness", articles, "--edits", "wrap", NEARDUP_METHOD="weak")


def test_without_opencc_the_edit_of_scripts_is_left_out_with_a_sentence(
    articles: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    done = invoke("robustness", articles, "--edits", "script,width", "--method", "cascade")
    assert done.err.startswith('robustness: left out: The edit "script" needs the library opencc')
    assert [cell.strip() for cell in done.out.splitlines()[2].strip("|").split("|")] == ["method", "width", CONTROL]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "none.jsonl does not exist"),
        (["one.txt"], "only 1 differ"),
        (["feed.jsonl", "--edits", "add,shuffle"], "There is no edit 'shuffle'"),
        (["feed.jsonl", "--method", "cascade:bins=3"], "cascade: bins must be"),
        (["feed.jsonl", "-o", "curves.jpg"], ".svg or .png or .pdf"),
        (["feed.jsonl", "-o", "none/curves.svg"], "The folder none does not exist"),
    ],
)
def test_robustness_refuses_in_a_sentence(
    articles: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(articles.parent)
    Path("one.txt").write_text("只有一篇文章，没有别的句子可以借用。", encoding="utf-8")
    with pytest.raises(NearDupError, match=re.escape(message)):
        run("robustness", *arguments)
