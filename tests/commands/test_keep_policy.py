"""The commands on better copies: ``dedup --keep-policy``, and what explain, groups, stats, check and report tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import SettingsError
from tests.build import story
from tests.cli import Invoke

TEXT = story(70, 24)


def item(host: str, sentences: int = 20, **more: Any) -> dict[str, Any]:
    text = "\n".join([*TEXT[:sentences], f"{host}供稿。"])
    return {"url": f"http://{host}.example/1", "title": "渡口清晨开航", "text": text, **more}


WIRE, PAPER, TIMES, BLOG = (item(host) for host in ("wire", "paper", "times", "blog"))
OTHER = {"url": "http://other.example/1", "title": "河道清淤", "text": "\n".join(story(71, 20))}
SHORT = {"url": "http://short.example/1", "title": "短", "text": "太短。"}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> Invoke:
    """Runs a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return invoke


def feed(*items: dict[str, Any]) -> str:
    lines = [json.dumps(one, ensure_ascii=False) for one in items]
    Path("feed.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "feed.jsonl"


def hosts(name: str = "out.jsonl") -> list[str]:
    found = [json.loads(line)["url"] for line in Path(name).read_text(encoding="utf-8").splitlines()]
    return [url.split("/")[2].removesuffix(".example") for url in found]


def test_dedup_writes_the_best_of_each_group_in_its_place_in_the_input(run: Invoke) -> None:
    name = feed(WIRE, OTHER, PAPER, SHORT, BLOG, TIMES)
    _, said, _ = run("dedup", name, "-o", "out.jsonl", "--keep-policy", "times.example,paper.example")
    assert hosts() == ["other", "short", "times"]
    assert said.startswith("6 records: 2 unique, 1 duplicate, 0 unchanged, 0 updated, 2 better, 1 unjudged. 3 written")
    run("dedup", name, "-o", "out.jsonl")
    assert hosts() == ["wire", "other", "short"]


def test_dedup_takes_the_policy_of_the_project_and_its_own_before_that(run: Invoke) -> None:
    name = feed(item("a", 20), item("b", 24), item("c", 20))
    run("dedup", name, "-o", "out.jsonl", NEARDUP_KEEP_POLICY="longest")
    assert hosts() == ["b"]
    run("dedup", name, "-o", "out.jsonl", "--keep-policy", '["c.example"]', NEARDUP_KEEP_POLICY="longest")
    assert hosts() == ["c"]
    run("dedup", name, "-o", "out.jsonl", "--keep-policy", "first", NEARDUP_KEEP_POLICY="longest")
    assert hosts() == ["a"]
    with pytest.raises(SettingsError, match=r"--keep-policy is 'newest'.* first, longest, canonical"):
        run("dedup", name, "-o", "out.jsonl", "--keep-policy", "newest")


def test_dedup_writes_lines_of_json_as_they_stand_and_tables_with_their_columns(run: Invoke) -> None:
    line = (
        '{"url":  "http://times.example/1", "n": 1.10, "title": "渡口清晨开航", "text": "' + "".join(TEXT[:20]) + '"}'
    )
    Path("feed.jsonl").write_text(json.dumps(WIRE, ensure_ascii=False) + "\n" + line + "\n", encoding="utf-8")
    run("dedup", "feed.jsonl", "-o", "out.jsonl", "--keep-policy", "times.example")
    assert Path("out.jsonl").read_text(encoding="utf-8") == line + "\n"
    run("dedup", feed(WIRE, TIMES), "-o", "out.csv", "--keep-policy", "times.example")
    assert Path("out.csv").read_text(encoding="utf-8").splitlines()[1].startswith("http://times.example/1,")


def test_dedup_tags_all_records_as_they_come(run: Invoke) -> None:
    run("dedup", feed(WIRE, PAPER, BLOG), "-o", "out.jsonl", "--tag", "--keep-policy", "paper.example")
    tags = [json.loads(line)["neardup"] for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [one["verdict"] for one in tags] == ["unique", "better", "duplicate"]
    assert [one["supersedes"] for one in tags] == [None, WIRE["url"], None]
    assert [one["original"] for one in tags] == [None, None, PAPER["url"]]


def test_a_second_run_on_the_same_state_writes_what_is_better_than_what_the_first_one_wrote(run: Invoke) -> None:
    store = (
        "--store",
        "sqlite:///" + str(Path("state.sqlite").absolute()),
        "--keep-policy",
        "times.example,paper.example",
    )
    run("dedup", feed(WIRE, PAPER), "-o", "one.jsonl", *store)
    run("dedup", feed(BLOG, WIRE, PAPER, TIMES), "-o", "two.jsonl", *store)
    assert (hosts("one.jsonl"), hosts("two.jsonl")) == (["paper"], ["times"])


def test_a_new_version_of_what_is_superseded_is_not_written_either(run: Invoke) -> None:
    update = {**PAPER, "text": PAPER["text"] + "更正：第一班船是空的。"}
    run("dedup", feed(WIRE, PAPER, update, TIMES), "-o", "out.jsonl", "--keep-policy", "times.example,paper.example")
    assert hosts() == ["times"]


@pytest.fixture
def state(run: Invoke) -> str:
    """One of four pages of an article, of which the third is the best, and another article."""
    store = "sqlite:///" + str(Path("state.sqlite").absolute())
    policy = "times.example,paper.example"
    run("dedup", feed(WIRE, PAPER, TIMES, BLOG, OTHER), "-o", "out.jsonl", "--store", store, "--keep-policy", policy)
    return store


def test_groups_and_the_report_name_it_as_the_original(run: Invoke, state: str) -> None:
    [group] = map(json.loads, run("groups", "--store", state)[1].splitlines())
    assert (group["original"], group["size"]) == (TIMES["url"], 4)
    assert [page["url"] for page in group["pages"] if page["kind"] is None] == [WIRE["url"]]
    [shown] = json.loads(run("report", "--store", state, "--json")[1])["groups"]
    assert (shown["original"]["url"], shown["copies"]) == (TIMES["url"], 3)
    assert [page["url"] for page in shown["pages"]] == [one["url"] for one in (WIRE, PAPER, BLOG)]


def test_stats_counts_better_pages_and_check_finds_nothing_wrong(run: Invoke, state: str) -> None:
    found = json.loads(run("stats", "--store", state, "--json")[1])
    assert (found["copies"], found["better"], found["copies_without_original"]) == (3, 2, 0)
    assert "- copies that are better than their original" in run("stats", "--store", state)[1]
    assert json.loads(run("check", "--store", state, "--json")[1])["copies_without_original"] == 0
