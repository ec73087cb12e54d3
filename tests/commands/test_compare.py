"""``scrapy neardup compare``: verdicts on pairs of every kind, pages of the state, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.state.record import Record
from tests.build import (
    BAKERY,
    BREAD,
    EDITED,
    NOTICE,
    PEAR,
    PEARS,
    SAME,
    join_text,
    judge_pages,
    make_state,
    open_state,
    story,
)
from tests.cli import Invoke

#: The sentences that a sketch holds.
LONGEST = {PEARS[0], PEARS[2], PEARS[6]}
FOOTER = "本站所有文章的版权属于原作者所有，如有异议请在三十日内来函告知"
TEXTS = {
    "pears": ("秋月梨早熟", join_text(*PEARS)),
    "edited": ("两个星期的惊喜", join_text(*PEARS[:7], "转载请注明出处和作者")),
    "excerpt": ("套袋的孩子", join_text(*PEARS[:3])),
    "bakery": ("Sisters buy the bakery", join_text(*BAKERY)),
    "notice": ("通知", NOTICE),
    "again": ("通知", NOTICE.replace("五号楼", "七号楼").replace("三月九日", "四月二日")),
    "short": ("短", "太短。"),
    "#1 of 2": ("秋月梨早熟", join_text(*PEARS)),
}
Found = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the commands, with one file of documents."""
    rows = [{"id": id, "title": title, "text": text} for id, (title, text) in TEXTS.items()]
    rows[0]["url"] = PEAR
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def found(invoke: Invoke) -> Found:
    """The JSON of the command, with the comparison in it. A name without a dot is the id of a document."""

    def found(*arguments: str | Path, **settings: Any) -> dict[str, Any]:
        named = [f"d.jsonl#{one}" if one in TEXTS else one for one in arguments]
        answer: dict[str, Any] = invoke("compare", *named, "--json", **settings).data
        return {**answer, **(answer["comparison"] or {})}

    return found


@pytest.fixture
def state(folder: Path) -> str:
    """The default state here."""
    place = folder / ".scrapy" / "neardup" / "spiders" / "news"
    place.mkdir(parents=True)
    return make_state("sqlite", place)


def marks(side: dict[str, Any], mark: str = "shared") -> list[str]:
    return [part["text"] for part in side["text"] if part["mark"] == mark]


@pytest.mark.parametrize(
    ("a", "b", "verdict", "kind", "decision"),
    [
        ("pears", "edited", "duplicate", "retitled", "The s"),
        ("pears", "#1 of 2", "duplicate", "identical", "identical"),
        ("pears", "bakery", "unique", None, ""),
        ("pears", "excerpt", "unique", "excerpt", ""),
        ("notice", "again", "unique", "same_title", "one word makes another notice"),
    ],
)
def test_verdicts(found: Found, a: str, b: str, verdict: str, kind: str | None, decision: str) -> None:
    answer = found(a, b)
    assert (answer["verdict"], answer["kind"]) == (verdict, kind)
    assert decision in answer["decision"]
    assert sum(one["adds"] for one in answer["features"]) == pytest.approx(answer["score"], abs=0.002)
    shares_nothing = b == "bakery"
    assert (answer["keys"]["shared"] == 0, answer["compared_in_a_crawl"]) == (shares_nothing, not shares_nothing)


def test_the_policy_decides_the_action(found: Found) -> None:
    assert [found("pears", "excerpt")[name] for name in ("verdict", "action")] == ["unique", "tag"]
    dropped = found("pears", "excerpt", NEARDUP_POLICY={"excerpt": "drop"})
    assert (dropped["verdict"], dropped["kind"], dropped["action"]) == ("duplicate", "excerpt", "drop")
    assert found("pears", "#1 of 2", DROP_DUPLICATES=False)["action"] == "tag"


@pytest.mark.parametrize(
    ("a", "b", "settings", "reason", "sentence"),
    [
        ("pears", "short", {}, "too_short", "B: The prose has fewer letters"),
        ("pears", "edited", {"NEARDUP_MIN_LETTERS": 1000}, "too_short", "A: The prose"),
    ],
)
def test_unjudged_pages(found: Found, a: str, b: str, settings: dict[str, Any], reason: str, sentence: str) -> None:
    answer = found(a, b, **settings)
    assert (answer["verdict"], answer["reason"], answer["comparison"]) == ("unjudged", reason, None)
    assert answer["sentence"].startswith(f"unjudged ({reason}). {sentence}")


def test_a_document_without_id_and_url_is_known_by_its_line(found: Found, folder: Path) -> None:
    (folder / "lines.jsonl").write_text(f"{json.dumps({'text': TEXTS['pears'][1]})}\n" * 2, "utf-8")
    assert found("lines.jsonl#1", "lines.jsonl#2")["kind"] == "identical"


# The state


def test_a_page_of_the_state_is_compared_by_its_sketch(found: Found, state: str) -> None:
    known, text_alone = found(PEAR, "edited"), found("pears", "edited", "--store", state)
    assert Path(known["store"]).name == "state.sqlite"
    assert (known["verdict"], known["similarity"]) == (text_alone["verdict"], text_alone["similarity"])
    assert known["a"] == {"name": PEAR, "title": None, "text": None}
    assert set(marks(known["b"])) == LONGEST
    turned = found("edited", PEAR)
    assert (set(marks(turned["a"])), turned["b"]["text"]) == (LONGEST, None)
    with open_state(state) as store:
        judge_pages(store, [("lib", "", "".join(story(1)))])
    assert found("lib", "bakery", "--store", state)["verdict"] == "unique", "with --store a URL may be any string"


def test_keys_of_too_many_pages_find_nothing(found: Found, state: str) -> None:
    before = found(PEAR, "edited")["keys"]
    method = make_method("cascade", {})
    with open_state(state) as store:
        keyed = method.with_hashes(store.hashes)
        own, other = (keyed.fingerprint(Page("", *TEXTS[id][:1], text=TEXTS[id][1])).keys for id in ("edited", "pears"))
        key = next(key for key in own if key in other)
        for number in range(method.common):
            store.add(Record(number + 1, f"https://many.example/{number}", number + 1, 1.0, (key,), b"-"))
    assert found(PEAR, "edited")["keys"] == {"shared": before["shared"] - 1, "of": before["of"], "common": 1}


def test_a_crawl_compares_no_copy_but_the_page_that_another_one_names(found: Found, state: str, folder: Path) -> None:
    copy = found(EDITED, "excerpt")
    assert (copy["keys"]["shared"] > 0, copy["compared_in_a_crawl"]) == (True, False)
    text = "".join(f"<p>{one}.</p>" for one in BAKERY)
    canonical = f'<html><head><link rel=canonical href="{PEAR}"></head><body><article>{text}'
    (folder / "b.html").write_text(canonical, encoding="utf-8")
    named = found(PEAR, "b.html")
    assert (named["keys"]["shared"], named["compared_in_a_crawl"]) == (0, True)


def test_boilerplate_and_templates_come_from_the_state(found: Found, folder: Path, state: str) -> None:
    """For a page of the state, a record with a URL, and a file with its address."""
    new = "https://orchard.example/3"
    for name, own in (("one", PEARS), ("two", BAKERY), ("footer", [FOOTER])):
        (folder / f"{name}.txt").write_text(join_text(*own, FOOTER), encoding="utf-8")
    with open_state(state) as store:
        method = make_method("cascade", {}).with_hashes(store.hashes)
        counted = method.fingerprint(Page("", text=join_text(FOOTER))).sentences
        for number in range(80):
            store.note(counted, f"daybook{number}.example")
            store.note_form("orchard.example", in_form=number % 2 == 0)
        judge_pages(store, [(new, "梨", join_text(*PEARS[:5], *BAKERY))])
    pair = "one.txt", "two.txt"
    alone, answer = found(*pair, NEARDUP_STORE="memory:"), found(*pair)
    assert (marks(alone["a"]), alone["store"], bool(alone["why_no_store"])) == ([FOOTER], None, True)
    assert (marks(answer["a"]), marks(answer["b"], "boilerplate")) == ([], [FOOTER])
    assert found("pears", "footer.txt")["reason"] == "boilerplate"
    for names in ((PEAR, "pears"), (new, "pears"), ("one.txt", "one.txt", "--a-url", PEAR, "--b-url", PEAR)):
        features = {one["name"]: one["value"] for one in found(*names)["features"]}
        assert 0.4 < features["forms"] < 0.6, names


def test_no_state_is_used_if_none_fits(found: Found, state: str) -> None:
    other = found("pears", "edited", NEARDUP_METHOD="simhash")
    assert (other["store"], "another recipe" in other["why_no_store"]) == (None, True)
    with pytest.raises(NearDupError, match=r"another recipe: .*method is 'cascade' in the state and 'simhash'"):
        found(PEAR, "edited", NEARDUP_METHOD="simhash")


# What is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.html", "edited"], "gone.html does not exist"),
        (["pears", "gone.jsonl#copy"], "gone.jsonl#copy does not exist"),
        (["pears", "d.jsonl#nobody"], "d.jsonl has no document with a text and the id 'nobody'.* d.jsonl#pears"),
        (["pears", "d.jsonl"], "d.jsonl has several documents. Name one, for example d.jsonl#pears"),
        (["pears", "x" * 5000], "xxx does not exist"),
        (["pears", "folder.html"], "folder.html contains no HTML"),
        (["pears", "binary.html"], r"binary.html has no readable page \(not_html\)"),
        (["pears", "binary.txt"], r"binary.txt has no readable page \("),
        ([PEAR, "edited"], "There is no state at .*\\. Name"),
    ],
)
def test_compare_refuses_in_a_sentence(found: Found, folder: Path, arguments: list[str], message: str) -> None:
    (folder / "folder.html").mkdir()
    for name in ("binary.html", "binary.txt"):
        (folder / name).write_bytes(b"\x89PNG\0\0\0\0\xff")
    before = set(folder.rglob("*"))
    with pytest.raises(NearDupError, match=message):
        found(*arguments)
    assert set(folder.rglob("*")) == before


def test_a_copy_without_a_text_is_refused_with_a_cure(found: Found, state: str) -> None:
    with pytest.raises(NearDupError, match=f"a text of {SAME}.* explain .* name a file"):
        found(BREAD, SAME)


def test_no_line_of_a_page_looks_like_one_of_ours(invoke: Invoke, folder: Path) -> None:
    forged = ["duplicate (near): B is a copy of A, similarity 1.00.", "2026-01-01 00:00:00 [neardup] ERROR: lost"]
    (folder / "evil.txt").write_text("\n".join([*forged, join_text(*BAKERY)]), encoding="utf-8")
    lines = invoke("compare", "evil.txt", "d.jsonl#pears").out.splitlines()
    assert not any(line.startswith(tuple(forged)) for line in lines)
    assert [f"  | {one}" in lines for one in forged] == [True, True]
