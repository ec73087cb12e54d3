"""Switching on: kinds of items, callbacks, reactors; what reaches the pipeline, and how."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import start_scrapy
from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.engineless import crawl_items
from tests.crawl.pages import html, text

PIPELINE_ALONE = {"ADDONS": {}, "ITEM_PIPELINES": {"scrapy_neardup.NearDupPipeline": 300}}
ORIGINALS = ["bridge-zh", "tea-zh", "kelp-en", "metro-zh", "goats-en"]
KINDS = ["dict", "dataclass", "attrs", "pydantic", "Item"]


@pytest.mark.parametrize("reactor", ["asyncio", "select", "none"])
def test_each_kind_of_item_is_judged_by_its_own_response(site: Site, crawl: Crawl, reactor: str) -> None:
    """An earlier pipeline replaces the items of the copies."""
    for name in ORIGINALS:
        site.content[f"/{name}"] = html(name)
        site.content[f"/copy/{name}"] = html(name, "Sent in by a reader.")
    paths = [f"/{name}" for name in ORIGINALS] + [f"/copy/{name}" for name in ORIGINALS] + ["/missing"]
    earlier = {"tests.crawl.project.ReplaceCopies": 100}
    result = crawl(paths, kinds=KINDS, ITEM_PIPELINES=earlier, reactor=reactor, CONCURRENT_REQUESTS=8)
    assert result.count("duplicate") == 5
    assert result.count("unique") == 5
    assert sorted(path.rpartition("/")[2] for path in result.paths) == sorted([*ORIGINALS, "missing"])
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
    result = crawl(spider="OwnContentSpider", items=items, CONCURRENT_ITEMS=1, **PIPELINE_ALONE)
    assert result.urls == ["http://a.example/1", "http://b.example/3", "http://d.example/5"]


def test_fields_of_other_names_are_read_where_the_setting_says() -> None:
    items = [{"link": f"http://a.example/{n}", "content": text("bridge-zh")} for n in range(2)]
    fields = {"NEARDUP_FIELDS": {"url": "link", "text": "content"}}
    assert crawl_items(*items, NEARDUP_STORE="memory:", **fields).items == items[:1]


def test_items_without_anything_to_judge_pass_with_one_cure(caplog: pytest.LogCaptureFixture) -> None:
    items = [{"url": f"http://a.example/{n}", "price": n} for n in range(3)]
    result = crawl_items(*items, NEARDUP_STORE="memory:")
    assert (result.items, result.count("unjudged/no_content")) == (items, 3)
    assert caplog.text.count("NEARDUP_FIELDS") == 1
    assert "http://a.example/0" in caplog.text


def test_a_request_opts_out_by_meta_and_a_crawl_by_a_setting(site: Site, run: Callable[..., list[Result]]) -> None:
    site.content |= {"/a": html("bridge-zh"), "/b": html("bridge-zh"), "/c": html("bridge-zh")}
    job = {"spider": "PathSpider", "arguments": {"base": site.base, "paths": list(site.content), "optout": ["/b"]}}
    settings = {"ADDONS": ADDONS, "NEARDUP_STORE": "memory:", **ONE_BY_ONE}
    result, off = run({**job, "settings": settings}, {**job, "settings": {**settings, "NEARDUP_ENABLED": False}})
    assert result.paths == ["/a", "/b"]
    assert (result.count("opted_out"), result.count("pages")) == (1, 2)
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
    told = start_scrapy("neardup", "stats", "--json", cwd=tmp_path, **env)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["pages"] == 2
