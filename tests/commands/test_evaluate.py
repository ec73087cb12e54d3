"""``scrapy neardup evaluate``: its documents, labels, scores, tables and refusals."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from scrapy_neardup.cli import load
from scrapy_neardup.errors import LexiconNeeded, NearDupError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.inspect.evaluation import Label, evaluate, read_labels
from scrapy_neardup.inspect.sources import read_documents
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.methods.base import Parameters, number, whole
from scrapy_neardup.methods.cascade.parameters import PROFILES
from scrapy_neardup.model import Comparison, Fingerprint, Page
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from tests.build import story
from tests.cli import Invoke
from tests.files.samples import PACKERS

# Methods whose answers are known beforehand


@dataclass(frozen=True, slots=True)
class FirstParameters(Parameters):
    """The letters that count, and the least similarity; 0 drops all pages with a common key."""

    method: ClassVar[str] = "first"

    letters: int = whole(10_000, 1, 10_000)
    least: float = number(1.0)


class First(Method):
    """Pages are filed under their first letter, and are copies if they begin alike."""

    name = "first"
    version = 1
    parameters_type = FirstParameters

    def fingerprint(self, page: Page) -> Fingerprint:
        begin = OPEN.of(page.text[: self.parameters.letters])
        return Fingerprint((ord(page.text[0]),), struct.pack(">Q", begin))

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        same = float(new.sketch == old)
        return Comparison(same, same, same >= self.parameters.least, bool(same), bool(same))

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        return ()


class Broken(First):
    """A method that cannot be used on any corpus."""

    name = "broken"

    def fingerprint(self, page: Page) -> Fingerprint:
        raise NearDupError("The lexicon is of another language; make one from this corpus.")


class Picky(First):
    """A method that cannot judge texts with a Latin letter in front."""

    name = "picky"

    def fingerprint(self, page: Page) -> Fingerprint:
        if page.text[0].isascii():
            raise LexiconNeeded("no_lexicon", "Count a lexicon first.")
        return super().fingerprint(page)


class Unmakeable(First):
    """A method that is not even there."""

    name = "unmakeable"

    def __init__(self, parameters: Any = None) -> None:
        raise NearDupError("A lexicon is missing; name one.")


# Documents

#: Documents are d00 to d29: 21 of their own, 4 copies of d00 to d03, 3 edited copies of d04 to d06, a short one twice.
LABELS = [
    *({"a": f"d{n:02}", "b": f"d{n + 21}", "drop": "yes"} for n in range(7)),
    *({"a": f"d{n:02}", "b": f"d{n + 1:02}", "drop": "no"} for n in range(7, 20)),
]


def lines(objects: Sequence[object]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)


def mixed() -> list[dict[str, Any]]:
    texts = ["".join(story(seed)) for seed in [*range(21), *range(4)]]
    texts += ["".join([*story(seed)[:-1], *story(100 + seed)[:1]]) for seed in range(4, 7)]
    return [{"id": f"d{n:02}", "text": text} for n, text in enumerate([*texts, "闭馆一天。", "闭馆一天。"])]


TEXT = "The ferry to the island sails again from Monday on, at nine and at four, weather permitting."
SOURCE = PageSource(DEFAULT_FIELDS, HtmlReader(100_000), hashes_items=False)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": TEXT}, Page("crawl.jsonl#2", text=TEXT)),
        ({"id": 7, "url": "https://a.example/1"}, Page("7", site="a.example", address="https://a.example/1")),
        ({"id": True, "url": " https://a.example/1 "}, Page("https://a.example/1", site="a.example")),
        (
            {"id": "x", "keywords": "桥, 船；塔", "title": "渡口", "description": "d", "date": 5},
            Page("x", "渡口", ("桥", "船", "塔"), "d", TEXT),
        ),
        ({"id": "x", "text": "half \ud83d a smile"}, Page("x", text="half \ud83d a smile")),
    ],
)
def test_a_record_is_a_named_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], expected: Page
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("crawl.jsonl").write_text(f"\n{json.dumps({'text': TEXT, **record})}\n")
    [found] = read_documents("crawl.jsonl", SOURCE, Counter())
    assert found == replace(expected, text=expected.text or TEXT)


def test_records_that_are_no_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    records = [
        {"url": "https://a.example/1", "text": TEXT},
        {"url": "https://a.example/2"},
        {"url": "https://a.example/1", "text": "another version"},
        {"id": "long", "text": "x" * 1_000_000},
    ]
    (tmp_path / "feed.jsonl").write_text('{"broken\n' + lines(records), encoding="utf-8")
    left_out = Counter[str]()
    found = read_documents(str(tmp_path / "feed.jsonl"), SOURCE, left_out)
    assert [(one.url, one.text) for one in found] == [("https://a.example/1", TEXT)]
    assert left_out == dict.fromkeys(("malformed", "no_content", "another version of a page", "too_large"), 1)


def test_a_file_that_breaks_off_is_named_after_its_documents(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl.xz").write_bytes(PACKERS[".xz"](b'{"text": "%s"}\n' % TEXT.encode() * 3)[:-9])
    documents = read_documents(str(tmp_path / "cut.jsonl.xz"), SOURCE, Counter())
    assert next(documents).text == TEXT
    with pytest.raises(NearDupError, match="cannot be read to its end"):
        list(documents)


# Labels

PLACES = {id: place for place, id in enumerate("abcdefgh")}


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "labels.jsonl"
    path.write_text(lines(rows), encoding="utf-8")
    return path


def test_a_label_is_turned_by_the_order_of_documents_and_the_last_line_counts(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"a": "b", "b": "a", "drop": "no", "jaccard": 0.5},
        {"a": "a", "b": "c", "drop": "unsure", "label": None},
        {"a": "a", "b": "b", "drop": "yes", "label": "repost"},
    )
    assert read_labels(path, PLACES) == [Label("a", "b", True), Label("a", "c", None)]
    table = tmp_path / "labels.csv"
    table.write_text("a,b,drop\na,b,yes\na,c,unsure\n")
    assert read_labels(table, PLACES) == [Label("a", "b", True), Label("a", "c", None)]


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    right = {"a": "a", "b": "b", "drop": "yes"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"b": "z"}, "no document has the id 'z'.* the feed of a dry run, or the field of the ids with --id"),
        ({"b": None}, "a and b must name two documents"),
        ({"b": "a"}, "a and b are the same document"),
        ({"drop": "perhaps"}, "drop must be one of yes, no, unsure, not 'perhaps'"),
        ({"drop": ["no"]}, r"drop must be one of yes, no, unsure, not \['no'\]"),
    ]
    for wrong, said in cases:
        with pytest.raises(NearDupError, match=rf"labels\.jsonl, line 2: {said}; each line must be"):
            read_labels(write(tmp_path, right, {**right, **wrong}), PLACES)
    (tmp_path / "labels.jsonl").write_text(lines([right]) + "yes\n")
    with pytest.raises(NearDupError, match=r"labels\.jsonl, line 2 is not JSON.*; each line must be"):
        read_labels(tmp_path / "labels.jsonl", PLACES)
    with pytest.raises(NearDupError, match=r"gone\.jsonl with labels does not exist"):
        read_labels(tmp_path / "gone.jsonl", PLACES)


# Scores

DOCUMENTS = [Page(one["id"], text=one["text"]) for one in mixed()]
PAIRS = [Label(one["a"], one["b"], one["drop"] == "yes") for one in LABELS]


def test_a_score_counts_kept_copies_and_wrong_drops() -> None:
    score = evaluate(make_method("cascade", {}), DOCUMENTS, PAIRS)
    assert (score.method, score.parameters, score.documents) == ("cascade", {}, 30)
    assert (score.pairs, score.different, score.copies, score.wrong) == (20, 13, 7, [])
    assert 0 < score.ms_per_page < 1000
    assert score.bytes_per_page > 50
    strict = evaluate(First(), DOCUMENTS, PAIRS)
    assert (strict.kept_wrongly, strict.dropped_wrongly) == (3, 0)
    assert {one.b for one in strict.wrong} == {"d25", "d26", "d27"}
    lax = evaluate(First(FirstParameters(letters=1)), DOCUMENTS, PAIRS)
    firsts = [page.text[0] for page in DOCUMENTS[:21]]
    again = sum(first in firsts[:at] for at, first in enumerate(firsts) if at > 7)
    assert (lax.parameters, lax.dropped_wrongly, lax.kept_wrongly) == ({"letters": 1}, again, 0)
    both = [*PAIRS, Label(DOCUMENTS[0].url, next(one.b for one in PAIRS if one.is_copy), False)]
    assert evaluate(make_method("cascade", {}), DOCUMENTS, both).wrong == [], "a copy of another page is no wrong drop"


def test_refused_pages_are_kept_unless_they_are_most_pages() -> None:
    """They pass in a crawl too; but figures of a method that judged hardly a page would mislead."""
    text, english = DOCUMENTS[0].text, "The ferry sails again after eleven years"
    for others in (1, 3, 4, 60):
        documents = [Page(f"e{number}", text=f"{english} {number:050}") for number in range(others)]
        documents += [Page(str(number), text=text) for number in range(3)]
        if others < 4:
            score = evaluate(Picky(FirstParameters()), documents, [Label("0", "1", True), Label("e0", "0", False)])
            assert (score.pairs, score.wrong, score.documents) == (2, [], 3 + others)
        else:
            with pytest.raises(LexiconNeeded, match="Count a lexicon first"):
                evaluate(Picky(FirstParameters()), documents, [])


# The command

NO_LEXICON = "The lexicon is of another language; make one from this corpus."


@pytest.fixture(autouse=True)
def few_methods(methods: dict[str, type[Method]]) -> None:
    load("evaluate")  # its help names the methods of the package
    for name in set(methods) - {"cascade"}:
        del methods[name]
    methods.update({one.name: one for one in (First, Broken, Unmakeable)})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | Path, ...]:
    """The arguments that name documents and labels."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "docs.jsonl").write_text(lines(mixed()), encoding="utf-8")
    (folder / "gold.jsonl").write_text(lines(LABELS), encoding="utf-8")
    return folder / "docs.jsonl", "--pairs", folder / "gold.jsonl"


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ((), PROFILES["catalogue"]),
        (("--method", "cascade:base=0.6"), {"base": 0.6}),
        (("--method", "first:letters=5,least=0.5"), {"letters": 5, "least": 0.5}),
    ],
)
def test_parameters_come_from_the_line_and_else_from_the_profile(
    invoke: Invoke, corpus: tuple[str | Path, ...], given: tuple[str, ...], parameters: dict[str, Any]
) -> None:
    assert invoke("evaluate", *corpus, "--json", *given, NEARDUP_PROFILE="catalogue").data["parameters"] == parameters


READ = [
    {"a": "d00", "b": "d21", "drop": "yes"},
    {"a": "d01", "b": "d22", "drop": "no"},
    {"a": "d04", "b": "d25", "drop": "yes"},
    {"a": "d03", "b": "d24", "drop": "unsure"},
]


def test_verdicts_are_compared_with_a_reader(invoke: Invoke, corpus: tuple[str | Path, ...], tmp_path: Path) -> None:
    pairs = tmp_path / "read.jsonl"
    pairs.write_text(lines(READ), encoding="utf-8")
    given = ("evaluate", corpus[0], "--method", "first", "--pairs", pairs)
    found = invoke(*given, "--json").data
    numbers = [found[name] for name in ("pairs", "different", "dropped_wrongly", "copies", "kept_wrongly", "unsure")]
    assert (numbers, found["wrong"]) == ([3, 1, 1, 2, 1, 1], READ[1:3])
    out = invoke(*given).out
    [row] = [cells(line) for line in out.splitlines() if line.startswith("| first")]
    assert row[:4] == ["first", "1/3", "1/1", "1/2"]
    assert out.endswith("\n\ndropped wrongly: d22 after d01\nkept wrongly: d25 after d04\n")


def test_a_method_that_fails_does_not_stop_the_others(invoke: Invoke, corpus: tuple[str | Path, ...]) -> None:
    code, out, _ = invoke("evaluate", *corpus, "--method", "all")
    assert code == 1
    methods = [cells(line)[0].partition(" ")[0] for line in out.splitlines() if line.startswith("| ")]
    assert list(dict.fromkeys(methods)) == ["method", "cascade", "first"]
    assert f"broken: {NO_LEXICON}\n" in out
    assert "unmakeable: A lexicon is missing; name one.\n" in out


def test_a_failure_is_a_line_of_json_and_alone_an_error(invoke: Invoke, corpus: tuple[str | Path, ...]) -> None:
    done = invoke("evaluate", *corpus, "--method", "broken:letters=5", "--method", "first", "--json")
    assert (done.code, len(done.rows)) == (1, 2)
    assert done.rows[0] == {"method": "broken", "parameters": {"letters": 5}, "error": NO_LEXICON}
    for name in ("broken", "unmakeable"):
        with pytest.raises(NearDupError, match="lexicon"):
            invoke("evaluate", *corpus, "--method", name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "first", "--method", "second"], "There is no method 'second'"),
        (["--method", "first:width=2"], "first has no parameter width"),
        (["--pairs", "gone.jsonl"], "gone.jsonl with labels"),
    ],
)
def test_wrong_arguments_are_refused(
    invoke: Invoke, corpus: tuple[str | Path, ...], arguments: list[str], said: str
) -> None:
    with pytest.raises(NearDupError, match=said):
        invoke("evaluate", *corpus, *arguments)
