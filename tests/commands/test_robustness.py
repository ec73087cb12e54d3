"""``scrapy neardup robustness`` as it is run by a user."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.robustness import CONTROL
from scrapy_neardup.methods import METHODS, Method
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.model import Fingerprint, Page
from tests.cli import run, run_scrapy
from tests.lab.corpus import drafts, write_feed


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """Six articles that have no sentence in common."""
    return write_feed(tmp_path, drafts(of=6)[:6])


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.slow
def test_all_methods_are_compared_by_default_and_drawn(articles: Path) -> None:
    arguments = ("--pages", "2", "--edits", "delete", "--json", "-o", "curves.svg")
    done = run_scrapy("robustness", articles, *arguments, cwd=articles.parent)
    assert done.returncode == 0
    told = {name for name in METHODS if f"left out: {name}" in done.stderr}
    there = {json.loads(line)["method"] for line in done.stdout.splitlines()}
    assert there | told == set(METHODS)
    assert "cascade" in there
    root = ET.parse(articles.parent / "curves.svg").getroot()
    ids = {group.get("id") for group in root.iter("{http://www.w3.org/2000/svg}g")}
    assert {f"delete {name}" for name in there} <= ids


class Weak(Cascade):
    """Wants a lexicon."""

    name: ClassVar[str] = "weak"

    def fingerprint(self, page: Page) -> Fingerprint:
        raise NearDupError("no lexicon for this language")


def test_by_default_a_method_that_needs_a_lexicon_is_left_out_with_a_sentence(
    articles: Path, capsys: pytest.CaptureFixture[str], methods: dict[str, type[Method]]
) -> None:
    for name in set(methods) - {"cascade"}:
        del methods[name]
    methods["weak"] = Weak
    assert run("robustness", str(articles), "--edits", "wrap") == 0
    out, err = capsys.readouterr()
    assert err == "robustness: left out: weak: no lexicon for this language\n"
    assert [cells(line)[0] for line in out.rstrip().splitlines()[4:]] == ["cascade"]
    with pytest.raises(NearDupError, match=r"^weak: no lexicon for this language$"):
        run("robustness", str(articles), "--edits", "wrap", "--method", "weak", "--method", "cascade")
    del methods["cascade"]
    with pytest.raises(NearDupError, match="No method can judge these documents"):
        run("robustness", str(articles), "--edits", "wrap", NEARDUP_METHOD="weak")


def test_without_opencc_the_edit_of_scripts_is_left_out_with_a_sentence(
    articles: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    assert run("robustness", str(articles), "--edits", "script,width", "--method", "cascade") == 0
    out, err = capsys.readouterr()
    assert err.startswith('robustness: left out: The edit "script" needs the library opencc')
    assert cells(out.splitlines()[2]) == ["method", "width", CONTROL]


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
def test_what_cannot_be_done_is_said_in_a_sentence(
    articles: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(articles.parent)
    Path("one.txt").write_text("只有一篇文章，没有别的句子可以借用。", encoding="utf-8")
    with pytest.raises(NearDupError, match=re.escape(message)):
        run("robustness", *arguments)
