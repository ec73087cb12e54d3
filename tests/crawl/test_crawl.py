"""Whole crawls of a small site: kinds of items and loops, several items of one response, items that are lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.maintenance.scan import statistics
from scrapy_neardup.maintenance.tables import CRAWLS
from scrapy_neardup.report.gather import gather
from scrapy_neardup.state.opening import close_store, open_snapshot, open_store
from tests.build import article_text
from tests.cli import start_scrapy
from tests.crawl.conftest import NEWS, SLUGS, Crawl, Site, job, killed
from tests.crawl.engineless import Result, crawl_items
from tests.crawl.pages import article, html, text, with_items
from tests.crawl.parts import Log

Run = Callable[..., list[Result]]

PIPELINE_ALONE = {"ADDONS": {}, "ITEM_PIPELINES": {"scrapy_neardup.NearDupPipeline": 300}}
MANY = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}


# Kinds of items


@pytest.mark.parametrize("reactor", ["asyncio", "none"])
def test_each_kind_of_item_is_judged_by_its_own_response(site: Site, crawl: Crawl, reactor: str) -> None:
    """An earlier pipeline replaces the items of the copies."""
    for name in SLUGS[:5]:
        site.content |= {f"/{name}": html(name), f"/copy/{name}": html(name, "Sent in by a reader.")}
    paths = sorted(site.content, key=lambda path: path.startswith("/copy"))
    earlier, kinds = {"tests.crawl.project.ReplaceCopies": 100}, ["dict", "dataclass", "attrs", "pydantic", "Item"]
    more: dict[str, Any] = {"ITEM_PIPELINES": earlier, "CONCURRENT_REQUESTS": 8, "reactor": reactor}
    result = crawl([*paths, "/missing"], kinds=kinds, **more)
    assert (result.count("duplicate"), result.count("unique")) == (5, 5)
    assert sorted(path.rpartition("/")[2] for path in result.paths) == sorted([*SLUGS[:5], "missing"])
    assert result.count("unjudged/http_error") == 1  # the errback's item must not be judged by the error page
    assert "Traceback" not in result.log


def test_the_pipeline_alone_judges_items_that_bring_their_text_or_html(crawl: Crawl) -> None:
    items = [
        {"url": "http://a.example/1", "text": text("bridge-zh")},
        {"url": "http://b.example/2", "html": html("bridge-zh")},
        {"url": "http://b.example/3", "text": text("tea-zh").split("\n")},
        {"url": "http://c.example/4", "html": html("tea-zh")},
        {"url": "http://d.example/5", "text": text("kelp-en")},
    ]
    result = crawl(items=items, CONCURRENT_ITEMS=1, **PIPELINE_ALONE)
    assert result.urls == ["http://a.example/1", "http://b.example/3", "http://d.example/5"]


def test_fields_of_other_names_are_read_where_the_setting_says_and_their_lack_has_one_cure(caplog: Log) -> None:
    items = [{"link": f"http://a.example/{n}", "content": text("bridge-zh")} for n in range(2)]
    fields = {"NEARDUP_FIELDS": {"url": "link", "text": "content"}}
    assert crawl_items(*items, NEARDUP_STORE="memory:", **fields).items == items[:1]
    bare = [{"url": f"http://a.example/{n}", "price": n} for n in range(3)]
    result = crawl_items(*bare, NEARDUP_STORE="memory:")
    assert (result.items, result.count("unjudged/no_content")) == (bare, 3)
    assert caplog.text.count("NEARDUP_FIELDS") == 1
    assert "http://a.example/0" in caplog.text


def test_a_request_opts_out_by_meta_and_a_crawl_by_a_setting(site: Site, run: Run) -> None:
    site.content |= dict.fromkeys(("/a", "/b", "/c"), html("bridge-zh"))
    memory: dict[str, Any] = {"NEARDUP_STORE": "memory:"}
    both = (memory, {"NEARDUP_ENABLED": False})
    result, off = run(*(job(site, ["/a", "/b", "/c"], one, optout=["/b"]) for one in both))
    assert (result.paths, result.count("opted_out"), result.count("pages")) == (["/a", "/b"], 1, 2)
    assert (len(off.items), off.count("pages")) == (3, 0)


def test_settings_without_a_scrapy_cfg_do_not_switch_it_off(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    """As under scrapyd or in a container: Scrapy has no data directory there, and says NotConfigured."""
    env = {"SCRAPY_SETTINGS_MODULE": "tests.crawl.pages"}
    site.content |= {"/a": html("bridge-zh"), "/b": html("bridge-zh", "Copied.")}
    result = crawl(["/a", "/b"], env=env)
    assert (result.paths, result.count("duplicate")) == (["/a"], 1)
    assert "There is no scrapy.cfg" in result.log
    assert f"the state is kept in {tmp_path / '.scrapy' / 'neardup'}" in result.log
    assert crawl(["/a", "/b"], env=env).items == []
    done = start_scrapy("neardup", "stats", "--json", cwd=tmp_path, **env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pages"] == 2


def test_an_item_class_without_the_field_closes_the_crawl_with_the_cure(site: Site, crawl: Crawl) -> None:
    site.content |= {f"/{n}": html("bridge-zh", f"Copy {n}.") for n in range(9)}
    result = crawl([f"/{n}" for n in range(9)], kinds=["untaggable"], DROP_DUPLICATES=False)
    assert result.stats["finish_reason"] == "neardup_no_tag_field"
    assert result.log.count("neardup = scrapy.Field()") == 1
    assert len(result.items) == result.stats["response_received_count"]


def test_no_url_title_or_sentence_of_a_page_forges_a_line_of_the_log_or_steers_a_terminal(crawl: Crawl) -> None:
    forged = "2026-01-01 00:00:00 [scrapy] ERROR: forged"
    evil = f"http://a.example/\x1b[2J\r\n{forged}\x85\u2028{forged}\u202egnp\x9b2J\ud800"
    account = f"http://mp.weixin.qq.com/s?__biz=%1b[2J%0a{forged.replace(' ', '%20')}&mid="
    items = [
        {"url": f"{evil}1", "title": evil, "text": article_text(1)},
        {"url": f"{evil}2", "title": evil, "text": article_text(1, 1)},
        {"url": f"{evil}3", "text": "\x1b[2J"},
        {"url": f"{evil}4"},
        *({"url": f"{account}{n}", "title": f"{n} {evil}", "text": f"{article_text(2)} {evil}"} for n in "abcdefghi"),
    ]
    result = crawl(items=items)
    kinds = ("unique", "duplicate", "unjudged/too_short", "unjudged/no_content", "suspicious_drops/titles")
    assert [result.count(kind) for kind in kinds] == [2, 9, 1, 1, 1]
    for said in ("is a copy of", "unjudged (too_short):", "unjudged (no_content):"):
        assert f"{said} http://a.example/\\x1b[2J" in result.log
    assert "pages of mp.weixin.qq.com \\x1b[2J" in result.log
    assert "Dropped:" not in result.log, "Scrapy would print the page"
    assert not [line for line in re.split(r"[\n\x85\u2028]", result.log) if line.startswith(forged)]
    assert not set(result.log) & set("\x1b\x9b\x85\u2028\u202e\ud800\r")
    ours = [line for line in result.log.split("\n") if "[scrapy_neardup" in line]
    assert len(ours) > 12
    assert all(line.isprintable() for line in ours)


# Several items of one response


def test_an_article_and_its_comments_come_once(site: Site, run: Run, tmp_path: Path) -> None:
    """Whether the article comes first or last; without a URL it keeps that of its page when comments come."""
    remarks = [{"text": line} for slug in ("kelp-en", "chess-en") for line in article(slug)[1]]

    def serve(path: str, slug: str, *comments: dict[str, Any], **more: Any) -> None:
        own = {"text": article(slug)[1], **more}
        items = [*comments, own] if "/last" in path else [own, *comments]
        site.content[path] = with_items(html(slug), items)

    for place in ("/last", "/first"):
        for slug, comments in {"bridge-zh": remarks[:3], "tea-zh": remarks[3:6]}.items():
            path = f"{place}/{slug}"
            serve(path, slug, *comments, url=f"{site.base}{path}", title=article(slug)[0])
    serve("/one", "birds-zh")
    jobs = [
        job(
            site,
            [path for path in site.content if path.startswith(start)],
            {"NEARDUP_STORE": f"sqlite://{tmp_path}{start}"},
        )
        for start in ("/last", "/first", "/one")
    ]
    *firsts, _ = run(*jobs)
    serve("/one", "birds-zh", {"text": "A remark that nobody has made before, long enough to be judged."})
    *seconds, bare = run(*jobs)
    for first, second in zip(firsts, seconds, strict=True):
        assert (len(first.items), first.count("unique"), first.count("updated")) == (8, 8, 0)
        assert (second.items, second.count("unchanged")) == ([], 8)
        assert "NEARDUP_FIELDS" not in first.log
    assert (bare.count("unchanged"), bare.count("unique")) == (1, 1)


def test_the_rows_of_many_listings_at_once_come_once(site: Site, crawl: Crawl) -> None:
    def listing(path: str, many: int = 7) -> str:
        return with_items(html("bridge-zh"), ({"headline": f"{path} headline {number}"} for number in range(many)))

    paths = [f"/{number}" for number in range(30)]
    site.content |= {path: listing(path) for path in paths}
    first, second = (crawl(paths, **MANY) for _ in range(2))
    assert len({item["headline"] for item in first.items}) == len(first.items) == 210
    assert (first.count("pages"), first.count("unjudged/listing"), first.count("duplicate")) == (210, 210, 0)
    assert first.log.count("One of several items without text: ") == 1
    assert (second.items, second.count("unchanged")) == ([], 210)
    site.content["/0"] = listing("/0", 9)
    assert [item["headline"] for item in crawl(paths, **MANY).items] == ["/0 headline 7", "/0 headline 8"]


def test_rows_are_counted_as_rows_everywhere(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    """Records that bring their text in a field that nobody has named."""
    lines = [line for slug in ("kelp-en", "chess-en", "cheese-en") for line in article(slug)[1]]
    many, state = len(lines), f"sqlite:///{tmp_path}/state.sqlite"
    site.content["/api"] = with_items("<p>", ({"id": str(place), "body": line} for place, line in enumerate(lines)))
    first = crawl(["/api"], NEARDUP_STORE=state)
    assert (len(first.items), first.count("unique"), first.count("unjudged/listing")) == (many, 0, many)
    assert f" {many} rows, 0 unjudged" in first.log
    [hint] = [line for line in first.log.splitlines() if "One of several items" in line]
    assert "NEARDUP_FIELDS = {'text': 'body'}" in hint
    pages = open_snapshot(state)
    found, report = statistics(pages), gather(pages)
    close_store(pages)
    assert (found.pages, found.rows, found.unjudged, found.originals) == (many, many, 0, 0)
    assert (report.totals.rows, report.totals.unjudged, report.unjudged) == (many, 0, {})
    assert [report.crawls[0][name] for name in ("rows", "unjudged", "unique")] == [many, 0, 0]
    assert crawl(["/api"], NEARDUP_STORE=state).count("unchanged") == many
    named = crawl(["/api"], NEARDUP_STORE="memory:", NEARDUP_FIELDS={"text": "body"})
    assert (named.count("unique"), " rows, " in named.log) == (many, False)


# Items that are lost


def test_of_each_family_one_page_is_kept_if_any_comes_through(site: Site, crawl: Crawl) -> None:
    for slug in SLUGS:
        site.content |= {f"/{slug}/{n}": html(slug, f"Copy {n}.") for n in range(12)}
    paths = [f"/{slug}/{n}" for n in range(12) for slug in SLUGS]
    fate = {"ITEM_PIPELINES": {"tests.crawl.project.Fate": 800}, "NEARDUP_STORE": "memory:"}
    result = crawl(paths, **fate, **MANY)
    kept = [path.split("/")[1] for path in result.paths]
    assert sorted(kept) == sorted(SLUGS), "kept twice, or lost"
    assert result.count("pages") == len(paths)
    assert result.count("rolled_back") + len(kept) == result.count("unique")


def test_a_later_pipeline_that_collects_items_does_not_deadlock(site: Site, crawl: Crawl) -> None:
    site.content |= {f"/{slug}/{n}": html(slug, f"Copy {n}.") for slug in SLUGS[:3] for n in range(2)}
    batch = {"ITEM_PIPELINES": {"tests.crawl.project.Batch": 800}, "CONCURRENT_REQUESTS": 8, "NEARDUP_WAIT": 0.3}
    result = crawl(list(site.content), **batch)
    assert len(result.items) == 6
    assert (result.count("unique"), result.count("unjudged/in_flight")) == (3, 3)


def test_pages_are_sealed_at_once_by_setting_or_without_a_feed(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    site.content |= {f"/{slug}": html(slug) for slug in SLUGS}
    feed = {"FEEDS": {f"file://{tmp_path}/out.jsonl": {"format": "jsonlines"}}, "NEARDUP_COMMIT": "item"}
    for name, settings in {"item": feed, "no feed": {}}.items():
        store = {"NEARDUP_STORE": f"sqlite://{tmp_path}/{name.replace(' ', '-')}.db"}
        assert crawl(list(site.content), **killed(4), **settings, **store).code == 9
        again = crawl(list(site.content), **store)
        assert (again.count("taken_back"), again.count("unchanged")) == (0, 3), name


def test_a_kill_between_the_items_of_a_page_loses_none(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    for path in (f"/{slug}" for slug in SLUGS[:3]):
        items = ({"name": number, "url": site.base + path} for number in range(3))
        site.content[path] = with_items(html(path[1:]), items)
    paths, feed = list(site.content), {"format": "jsonlines", "batch_item_count": 2}
    settings: dict[str, Any] = {"FEEDS": {f"file://{tmp_path}/%(batch_time)s.jsonl": feed}, "CONCURRENT_ITEMS": 1}
    assert crawl(paths, **settings, **killed(6)).code == 9
    again = crawl(paths, **settings)
    assert again.count("taken_back") == 1
    assert again.paths == [path for path in paths[1:] for _ in range(3)]


@pytest.mark.parametrize(
    ("fails", "priority", "breaks", "came"),
    [(1, 10, 9, 2), (3, 10, 9, 2), (1, 500, 9, 2), (2, 500, 9, 2), (0, 10, 2, 2)],
)
def test_a_page_does_not_count_if_a_pipeline_or_the_callback_lost_one_of_its_items(
    site: Site, crawl: Crawl, fails: int, priority: int, breaks: int, came: int
) -> None:
    items = [{"n": number, "url": f"{site.base}/{SLUGS[0]}"} for number in (1, 2, 3)]
    site.content[f"/{SLUGS[0]}"] = with_items(html(SLUGS[0]), items)
    settings: dict[str, Any] = {"ITEM_PIPELINES": {"tests.crawl.project.Fails": priority}}
    settings["CONCURRENT_ITEMS"] = 100 if priority == 10 else 1  # 1: an item ends before the next one is judged
    cases = [(fails, breaks), (0, 9)]
    results = [crawl([f"/{SLUGS[0]}"], FAILS=number, breaks=where, **settings) for number, where in cases]
    assert [len(result.items) for result in results] == [came, 3]


def test_a_failing_state_loses_no_item_and_closes_the_crawl_or_not(site: Site, crawl: Crawl) -> None:
    site.content |= {f"/{slug}": html(slug) for slug in SLUGS}
    broken = {"ITEM_PIPELINES": {"tests.crawl.project.BreakStore": 100}, "NEARDUP_STORE": "memory:"}
    closed = crawl(list(site.content), **broken)
    assert closed.stats["finish_reason"] == "neardup_store_failed"
    assert len(closed.items) + closed.count("duplicate") == closed.stats["response_received_count"]
    assert "The disk is full." in closed.log
    passed = crawl(list(site.content), **broken, NEARDUP_ON_STORE_ERROR="pass")
    assert passed.stats["finish_reason"] == "finished"
    assert (len(passed.items), passed.count("unjudged/store_failed")) == (8, 5)


# Crawls one after the other, and at once


def test_two_spiders_of_a_process_share_a_state(news: Site, run: Run, tmp_path: Path) -> None:
    one = job(news, NEWS, {"NEARDUP_STORE": f"sqlite://{tmp_path}/state"})
    results = run(one, one)
    urls = [url for result in results for url in result.urls]
    # The same URL in both: whichever comes second is unchanged, and of each article one page is kept.
    assert len(urls) == 2
    assert {url.rpartition("/")[2] for url in urls} <= {"bridge-zh", "tea-zh", "copy"}
    assert "Traceback" not in results[0].log


def test_the_state_remembers_each_crawl_with_its_counts(news: Site, crawl: Crawl, tmp_path: Path) -> None:
    state, feed = f"sqlite://{tmp_path}/state.db", tmp_path / "out.gz"
    feed.write_bytes(b"\x1f\x8b")
    gzip = {"format": "csv", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}
    assert crawl(NEWS, NEARDUP_STORE=state, **killed(2)).code == 9
    opened = open_store(state, None)  # as a command does; it rolls back
    [killed_one] = CRAWLS.read(opened)
    CRAWLS.write(opened, replace(killed_one, generation=killed_one.generation + 1, ended=1))  # it wrote no feed
    close_store(opened)
    crawl(NEWS, NEARDUP_STORE=state, FEEDS={f"file://{feed}": gzip})
    assert Path(f"{feed}.broken-1").exists(), "a kill may break off a compressed feed"
    opened = open_store(state, None)
    dead, _, ended = CRAWLS.read(opened)
    close_store(opened)
    assert (dead.who, dead.ended, dict(dead.counts)) == ("paths", 0, {})
    assert ended.begun - 1 <= ended.ended <= ended.begun + 100
    assert [ended.counts[name] for name in ("unique", "duplicate", "unchanged", "pages")] == [1, 1, 1, 3]


@pytest.mark.parametrize("workers", [0, 2])
def test_known_bytes_are_not_read_in_the_next_crawl(site: Site, crawl: Crawl, workers: int) -> None:
    site.content |= {f"/{copy}/{slug}": html(slug) for copy in "ab" for slug in SLUGS[:3]} | {"/short": "<p>见附件。"}
    first, second = (crawl(list(site.content), NEARDUP_WORKERS=workers) for _ in range(2))
    assert (first.count("same_bytes"), first.count("duplicate")) == (0, 3)
    assert (second.count("same_bytes"), second.count("unchanged"), second.count("duplicate")) == (4, 4, 3)
    assert (second.count("extraction/article"), second.items) == (3, [])
