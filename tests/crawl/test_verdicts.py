"""What becomes of items, crawl after crawl: by kind, at other addresses, changed, dropped wrongly, expired."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from itemadapter import ItemAdapter
from scrapy import Spider
from scrapy.crawler import Crawler

from scrapy_neardup import NearDupPipeline
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.model import Outcome, Verdict
from scrapy_neardup.settings import Config
from tests.cli import run as run_command
from tests.crawl.engineless import Result, article, crawl_items
from tests.crawl.pages import article as read_article
from tests.crawl.pages import html, text
from tests.crawl.parts import Log
from tests.crawl.project import KINDS as CLASSES

BASE = "http://a.example"


@pytest.fixture
def state(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/state"


# Kinds, and NEARDUP_POLICY


def under(title_of: str, slug: str) -> str:
    return html(slug).replace(read_article(slug)[0], read_article(title_of)[0])


KINDS = ["identical", "near", "retitled", "excerpt", "same_title"]
ORIGINALS = {**dict.fromkeys(KINDS, "/port"), "same_title": "/tea"}
HEADING = f"<article><p>港务</p><h1>{read_article('port-zh')[0]}</h1>"
#: Two originals, then a page of each kind that is like one of them.
ALIKE = {
    "/port": html("port-zh"),
    "/tea": html("tea-zh"),
    "/identical": html("port-zh"),
    "/near": html("port-zh", "本文由衡津港务通讯供稿，转载时略有增补，图片从略。"),
    "/retitled": under("museum-zh", "port-zh").replace("<article>", HEADING),
    "/excerpt": html("port-excerpt-zh"),
    "/same_title": under("tea-zh", "bridge-zh"),
}


def crawl_alike(**settings: Any) -> tuple[Result, dict[str, Any]]:
    """What came of these pages, and the tags by path."""
    items = [{"url": BASE + path, "html": content} for path, content in ALIKE.items()]
    result = crawl_items(*items, NEARDUP_STORE="memory:", **settings)
    assert {kind: result.count(f"kind/{kind}") for kind in KINDS} == dict.fromkeys(KINDS, 1)
    return result, dict(zip(result.paths, (item.get("neardup") for item in result.items), strict=True))


def test_by_default_copies_are_dropped_excerpts_and_same_titles_tagged(caplog: Log) -> None:
    caplog.set_level(logging.DEBUG)
    result, tags = crawl_alike()
    assert list(tags) == ["/port", "/tea", "/excerpt", "/same_title"]
    assert "Error caught on signal handler" not in caplog.text
    assert (tags["/port"], tags["/tea"]) == (None, None)
    for kind in ("excerpt", "same_title"):
        tag = tags[f"/{kind}"]
        assert (tag["verdict"], tag["kind"], tag["reason"]) == ("unique", kind, None)
        assert (tag["original"], tag["like"]) == (None, BASE + ORIGINALS[kind])
        assert tag["first_seen"].startswith("20")
    assert tags["/excerpt"]["containment"] > 0.8 > 0.5 > tags["/excerpt"]["similarity"]
    assert tags["/excerpt"]["similar_id"] != tags["/same_title"]["similar_id"]
    shared = tags["/excerpt"]["shared"]
    assert shared
    assert all(sentence in text("port-zh") for sentence in shared)
    assert "7 pages: 4 unique, 3 duplicate, 0 unchanged, 0 updated, 0 unjudged. State: 7 pages, " in caplog.text
    assert (result.count("state/pages"), result.count("state/bytes") > 0) == (7, True)
    assert all(result.stats[f"neardup/time/{part}"] > 0 for part in ("extraction", "method", "store"))
    assert f"unique (excerpt): {BASE}/excerpt is like {BASE}/port (containment " in caplog.text
    assert f"duplicate (retitled): {BASE}/retitled is a copy of {BASE}/port (similarity " in caplog.text


@pytest.mark.parametrize(
    ("policy", "drops", "tagged", "passes", "copies"),
    [
        ({"retitled": "tag"}, True, ["retitled", "excerpt", "same_title"], [], 3),
        ('{"near": "pass", "identical": "pass"}', True, ["excerpt", "same_title"], ["identical", "near"], 3),
        ({"excerpt": "drop", "same_title": "drop"}, True, [], [], 5),
        ({"excerpt": "pass", "same_title": "pass"}, True, [], ["excerpt", "same_title"], 3),
        # Without dropping every item is tagged.
        ({"near": "pass", "excerpt": "drop"}, False, KINDS, [], 4),
    ],
)
def test_the_policy_says_what_becomes_of_each_kind(
    policy: Any, drops: bool, tagged: list[str], passes: list[str], copies: int
) -> None:
    result, tags = crawl_alike(NEARDUP_POLICY=policy, DROP_DUPLICATES=drops)
    assert [kind for kind in KINDS if tags.get(f"/{kind}")] == tagged
    originals = [] if tagged is KINDS else ["port", "tea"]
    assert [path.strip("/") for path, tag in tags.items() if not tag] == [*originals, *passes]
    for kind in tagged:
        tag, is_copy = tags[f"/{kind}"], kind not in ("excerpt", "same_title") or (kind == "excerpt" and copies > 3)
        assert (tag["verdict"], tag["kind"]) == ("duplicate" if is_copy else "unique", kind)
        assert (tag["original"], tag["like"])[not is_copy] == BASE + ORIGINALS[kind]
    assert (result.count("unique"), result.count("duplicate")) == (7 - copies, copies)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind != "untaggable"])
def test_each_class_of_items_takes_a_tag(kind: str) -> None:
    item, verdict = CLASSES[kind](url=BASE), Verdict(Outcome.UNIQUE, BASE, 1)
    NearDupPipeline(Crawler(Spider), Config())._tag(item, verdict, None)  # type: ignore[arg-type]  # not needed
    assert ItemAdapter(item)["neardup"] == verdict.as_tag()


# Short items


SHORT: list[dict[str, Any]] = [
    {"url": f"{BASE}/1", "text": "A photo."},
    {"url": f"{BASE}/2", "text": "A photo."},
    {"url": f"{BASE}/3", "text": "", "html": "<p>An advert.</p>"},
]


def test_short_items_are_known_by_their_own_content_where_they_have_a_url(state: str) -> None:
    first, second = (crawl_items(*SHORT, NEARDUP_STORE=state) for _ in range(2))
    assert (first.items, first.count("unjudged/too_short")) == (SHORT, 3)
    assert (second.items, second.count("unchanged")) == ([], 3)
    changed = [{**SHORT[0], "text": "Two photos."}, {**SHORT[1], "author": "B"}, SHORT[2]]
    assert crawl_items(*changed, NEARDUP_STORE=state).items == changed[:2]
    nameless = [{"text": "A photo."}, {"text": "A photo."}, {"text": "Another."}]
    for _ in range(2):
        assert crawl_items(*nameless, NEARDUP_STORE=state).items == nameless


# Methods for memory alone, and pages that expire

NEWS = [article(1), article(2), article(2, 1)]


def test_a_method_for_memory_alone_stops_the_crawl_and_leaves_no_state(tmp_path: Path, state: str) -> None:
    with pytest.raises(NearDupError, match=r"works only in memory\. Set NEARDUP_STORE = 'memory:'"):
        crawl_items(*NEWS, NEARDUP_STORE=state, NEARDUP_METHOD="cosine")
    assert not list(tmp_path.iterdir())
    imported = crawl_items(*NEWS, NEARDUP_STORE="memory:", NEARDUP_METHOD="scrapy_neardup.methods.literature.NSHash")
    assert (imported.items, imported.count("errors")) == (NEWS[:2], 0)


def test_a_crawl_leaves_as_many_pages_as_it_may_and_counts_the_expired(tmp_path: Path, state: str, caplog: Log) -> None:
    caplog.set_level(logging.INFO)
    bounded: dict[str, Any] = {"NEARDUP_STORE": state, "NEARDUP_MAX_PAGES": 1}
    first = crawl_items(*NEWS[:2], **bounded, FEEDS={f"file://{tmp_path}/out.jsonl": {"format": "jsonlines"}})
    assert first.items == NEWS[:2], "unsealed pages count, however many they are"
    assert (first.count("expired"), first.count("state/pages")) == (1, 1)
    assert "1 old pages expired." in caplog.text
    second = crawl_items(NEWS[1], **bounded)
    assert (second.items, second.count("expired")) == ([], 0)
    third = crawl_items(NEWS[0], **bounded)
    assert third.items == NEWS[:1], "the older one was forgotten, and comes again"
    assert (third.count("expired"), third.count("state/pages")) == (1, 1)


# A page that is dropped wrongly


def test_what_was_dropped_wrongly_comes_back_also_in_a_state_brought_elsewhere(tmp_path: Path, state: str) -> None:
    elsewhere, exported = f"sqlite://{tmp_path}/elsewhere", tmp_path / "state.gz"
    port, near = article(1), article(1, 1)
    assert crawl_items(port, near, NEARDUP_STORE=state).count("duplicate") == 1
    assert run_command("keep", "--last", "--store", state) == 0
    assert run_command("export", "-o", exported, "--store", state) == 0
    assert run_command("merge", exported, "--store", elsewhere) == 0
    for place in (state, elsewhere):
        third, fourth = (crawl_items(port, near, NEARDUP_STORE=place) for _ in range(2))
        assert (third.items, third.count("by_hand"), third.count("unique")) == ([near], 1, 1)
        assert (fourth.items, fourth.count("unchanged")) == ([], 2)
    edited = {**near, "text": near["text"] + "图片从略，文字照旧。"}
    last = crawl_items(port, edited, {**edited, "url": "http://new.example/"}, NEARDUP_STORE=state)
    assert (last.items, last.count("updated"), last.count("duplicate")) == ([edited], 1, 1)
