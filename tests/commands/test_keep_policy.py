"""Better copies: ``dedup`` with NEARDUP_KEEP_POLICY, and the commands that show their groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.build import story
from tests.cli import Invoke

TEXT = story(70, 24)


def item(host: str, sentences: int = 20, **more: Any) -> dict[str, Any]:
    text = "\n".join([*TEXT[:sentences], f"{host}供稿。"])
    return {"url": f"http://{host}.example/1", "title": "渡口清晨开航", "text": text, **more}


WIRE, PAPER, TIMES, BLOG = (item(host) for host in ("wire", "paper", "times", "blog"))
OTHER = {"url": "http://other.example/1", "title": "河道清淤", "text": "\n".join(story(71, 20))}
SHORT = {"url": "http://short.example/1", "title": "短", "text": "太短。"}
BEST = {"NEARDUP_KEEP_POLICY": ["times.example", "paper.example"]}


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
    done = run("dedup", name, "-o", "out.jsonl", **BEST)
    assert hosts() == ["other", "short", "times"]
    assert done.out.startswith(
        "6 records: 2 unique, 1 duplicate, 0 unchanged, 0 updated, 2 better, 1 unjudged. 3 written"
    )
    run("dedup", name, "-o", "out.jsonl")
    assert hosts() == ["wire", "other", "short"]
    update = {**PAPER, "text": PAPER["text"] + "更正：第一班船是空的。"}
    run("dedup", feed(WIRE, PAPER, update, TIMES), "-o", "out.jsonl", **BEST)
    assert hosts() == ["times"], "also after an update"


def test_dedup_writes_lines_of_json_unchanged_and_tables_with_their_columns(run: Invoke) -> None:
    text = "".join(TEXT[:20])
    line = f'{{"url":  "http://times.example/1", "n": 1.10, "title": "渡口清晨开航", "text": "{text}"}}'
    Path("feed.jsonl").write_text(json.dumps(WIRE, ensure_ascii=False) + "\n" + line + "\n", encoding="utf-8")
    run("dedup", "feed.jsonl", "-o", "out.jsonl", **BEST)
    assert Path("out.jsonl").read_text(encoding="utf-8") == line + "\n"
    run("dedup", feed(WIRE, TIMES), "-o", "out.csv", **BEST)
    assert Path("out.csv").read_text(encoding="utf-8").splitlines()[1].startswith("http://times.example/1,")


def test_the_best_page_is_the_original_of_its_group_in_all_commands(run: Invoke) -> None:
    store = "sqlite:///" + str(Path("state.sqlite").absolute())
    given = ("-o", "out.jsonl", "--store", store)
    run("dedup", feed(WIRE, PAPER), *given, **BEST)
    assert hosts() == ["paper"]
    run("dedup", feed(BLOG, WIRE, PAPER, TIMES, OTHER), *given, **BEST)
    assert hosts() == ["times", "other"], "it is better than the one that the first run wrote"
    urls = [one["url"] for one in (BLOG, WIRE, PAPER, TIMES)]
    page, *others = run("explain", *urls, "--store", store, "--json").data["pages"]
    assert [one["superseded"] for one in (page, *others)] == [False, True, True, False]
    assert (page["original"]["url"], page["group_size"]) == (TIMES["url"], 4)
    assert [one["url"] for one in page["group"] if one["kind"] is None] == [WIRE["url"]]
    [shown] = run("report", "--store", store, "--json").data["groups"]
    assert (shown["original"]["url"], shown["copies"]) == (TIMES["url"], 3)
    assert [page["url"] for page in shown["pages"]] == [one["url"] for one in (WIRE, PAPER, BLOG)]
    found = run("stats", "--store", store, "--json").data
    assert (found["copies"], found["better"], found["copies_without_original"]) == (3, 2, 0)
    assert run("check", "--store", store, "--json").data["sound"]
