"""The safety brake in crawls: what it saves, what a second crawl makes of that, what the log and the stats say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.commands import brake
from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.parts import text
from tests.states.states import run as run_command

OLD = [f"/old/{number}" for number in range(25)]
NEW = [f"/new/{number}" for number in range(20)]
#: The first page of which only the footer is read is an original; with the fifth that is dropped the brake comes on.
LOST, SAVED = NEW[1:6], NEW[6:]
RELAUNCHED = {"NEARDUP_EXTRACTOR": "tests.crawl.project.half_broken_extractor"}


@pytest.fixture
def relaunched(site: Site) -> Site:
    """Pages of which the text is read, and pages of which nothing but the footer is."""
    site.content |= {path: f"<title>Story {path}</title><p>{text(number)}</p>" for number, path in enumerate(OLD + NEW)}
    return site


def warnings(result: Result) -> list[str]:
    return [line for line in result.log.splitlines() if "WARNING" in line and "crawl.braking" in line]


def test_a_site_of_which_only_the_footer_is_read_gets_its_pages_in_two_crawls(relaunched: Site, crawl: Crawl) -> None:
    first, second, third = (crawl(OLD + NEW, **RELAUNCHED) for _ in range(3))
    assert first.paths == [*OLD, NEW[0], *SAVED]
    tags = {path: item.get("neardup") for path, item in zip(first.paths, first.items, strict=True)}
    assert [path for path, tag in tags.items() if tag] == SAVED
    assert {(tag["verdict"], tag["kind"]) for tag in tags.values() if tag} == {("duplicate", "identical")}
    assert {tag["original"] for tag in tags.values() if tag} == {relaunched.base + NEW[0]}
    assert (first.count("brake/original"), first.count("brake/site"), first.count("brake/passed")) == (1, 0, len(SAVED))
    assert first.count("duplicate") == len(NEW) - 1
    assert f"{len(SAVED)} passed though they are copies, as the safety brake was on." in first.log

    [told] = warnings(first)
    base = relaunched.base
    assert f"5 pages of 127.0.0.1, each under another title, were dropped for one page, {base}/new/0: " in told
    assert 'both say "' in told
    assert f"scrapy neardup compare {base}/new/5 {base}/new/0. " in told
    assert told.endswith(": " + ", ".join(relaunched.base + path for path in LOST))

    assert second.paths == LOST, "what passed as the brake was on was delivered, and is known by its own URL"
    assert (second.count("unchanged"), second.count("brake/passed")) == (len(OLD) + 1 + len(SAVED), len(LOST))
    assert (second.count("brake/kept"), second.count("brake/original")) == (1, 0)
    [told] = warnings(second)
    assert f"came on in an earlier crawl, for {base}/new/0: copies of theirs pass, tagged." in told
    assert (third.items, third.count("unchanged")) == ([], len(OLD + NEW))
    assert first.count("state/pages") == third.count("state/pages") == len(OLD + NEW)


def test_where_it_is_released_copies_are_dropped_as_before(
    relaunched: Site, crawl: Crawl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = {"NEARDUP_STORE": f"sqlite://{tmp_path}/state.db"}
    crawl(OLD + NEW[:7], **RELAUNCHED, **store)
    name = relaunched.base + NEW[0]

    def brakes(*arguments: str) -> tuple[int, str, str]:
        return run_command(brake, *arguments, "--store", store["NEARDUP_STORE"]), *capsys.readouterr()

    capsys.readouterr()
    assert f"| {name} | original, copied by 127.0.0.1 | 20" in brakes()[1]
    code, said, error = brakes("--release", "b.example")
    assert (code, said) == (1, "released: 0 brakes\n")
    assert "The safety brake never came on for b.example" in error
    assert brakes("--release", name) == (0, "released: 1 brake\n", "")
    [listed] = json.loads(brakes("--json")[1])["brakes"]
    assert (listed["name"], listed["site"], listed["released"]) == (name, "127.0.0.1", True)
    second = crawl(OLD + NEW[:10], **RELAUNCHED, **store)
    assert (second.items, second.count("duplicate"), warnings(second)) == ([], 8, [])


def test_articles_of_a_site_that_were_forged_come_in_two_crawls(crawl: Crawl, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"texts": [text(number) for number in range(70)], "foreign_from": 30}
    feed = {"FEEDS": {str(tmp_path / "feed.jsonl"): {"format": "jsonlines"}}}
    first, second, third = (crawl(None, "ForeignSpider", **arguments, **feed) for _ in range(3))
    own = [f"http://river.example/{number}" for number in range(70)]
    assert [url for url in first.urls if "river" in url] == own[:30] + own[43:]
    [told] = warnings(first)
    assert "Of the last pages of river.example 13 were dropped as copies, of those before 0%: " in told
    assert told.endswith(": " + ", ".join(own[30:43]))
    assert (first.count("brake/site"), first.count("brake/original")) == (1, 0)
    assert second.urls == own[30:43]
    assert third.items == []
    assert [len(warnings(one)) for one in (second, third)] == [1, 1], "it is on until somebody releases it"
    assert "are not sealed" not in first.log + second.log + third.log
    delivered = [json.loads(line)["url"] for line in (tmp_path / "feed.jsonl").read_text("utf-8").splitlines()]
    assert sorted(delivered) == sorted(first.urls + second.urls)


def test_what_it_does_is_a_setting_and_whatever_becomes_of_the_items_none_is_lost_by_it(
    relaunched: Site, run: Callable[..., list[Result]]
) -> None:
    relaunched.content["/new/drop"] = relaunched.content[NEW[6]]
    settings = {"ADDONS": ADDONS, **ONE_BY_ONE, "NEARDUP_STORE": "memory:", **RELAUNCHED}
    paths = [*OLD, *NEW, "/new/drop"]

    def job(spider: str = "PathSpider", kinds: tuple[str, ...] = ("dict",), **more: Any) -> dict[str, Any]:
        arguments = {"base": relaunched.base, "paths": paths, "kinds": kinds}
        return {"spider": spider, "arguments": arguments, "settings": {**settings, **more}}

    warned, closed, lossy, untaggable, many, tagged = run(
        job(NEARDUP_BRAKE="warn"),
        job(NEARDUP_BRAKE="close"),
        job(ITEM_PIPELINES={"tests.crawl.project.DropSome": 900}),
        job(kinds=("untaggable",)),
        job("ManyItemsSpider"),
        job(DROP_DUPLICATES=False),
    )
    passed = [*OLD, NEW[0], *SAVED, "/new/drop"]

    assert warned.paths == [*OLD, NEW[0]]
    assert (warned.count("brake/original"), warned.count("brake/passed")) == (1, 0)
    assert "They go on being dropped, as NEARDUP_BRAKE is 'warn'." in warned.log

    assert closed.stats["finish_reason"] == "neardup_brake"
    assert closed.paths == passed[: len(closed.paths)], "what is on its way passes"
    assert closed.stats["item_dropped_count"] == len(LOST)

    assert lossy.paths == passed[:-1]
    assert lossy.count("rolled_back") == 1, "as any page that passed, and is lost behind us"

    assert untaggable.paths == passed
    assert "UntaggableItem cannot be tagged" in untaggable.log
    assert untaggable.stats["finish_reason"] == "finished"

    assert [item["name"] for item in many.items] == [
        f"{relaunched.base}{path} {n}" for path in passed for n in range(3)
    ]
    assert many.count("brake/passed") == 3 * (len(SAVED) + 1)

    assert tagged.paths == paths
    assert tagged.count("brake/original") == 0, "where nothing is dropped there is nothing to save"

    assert len(warnings(warned)) == 5
    assert {one.stats.get("log_count/ERROR", 0) for one in (warned, closed, lossy, untaggable, many, tagged)} == {0}
