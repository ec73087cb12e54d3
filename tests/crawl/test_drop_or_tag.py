"""What is dropped, what is tagged, what the log and the stats say; pages that cannot be judged."""

from __future__ import annotations

import re

from tests.build import article_text
from tests.crawl.conftest import Crawl, Site
from tests.crawl.pages import html


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
        *({"url": f"{account}{n}", "title": f"{n} {evil}", "text": f"{article_text(2)} {evil}"} for n in range(9)),
    ]
    result = crawl(None, "OwnContentSpider", items=items)
    kinds = ("unique", "duplicate", "unjudged/too_short", "unjudged/no_content", "suspicious_drops/titles")
    assert [result.count(kind) for kind in kinds] == [2, 9, 1, 1, 1]
    for said in ("is a copy of", "unjudged (too_short):", "unjudged (no_content):"):
        assert f"{said} http://a.example/\\x1b[2J" in result.log
    assert "pages of mp.weixin.qq.com \\x1b[2J" in result.log
    assert not [line for line in re.split(r"[\n\x85\u2028]", result.log) if line.startswith(forged)]
    assert not set(result.log) & set("\x1b\x9b\x85\u2028\u202e\ud800\r")
    ours = [line for line in result.log.split("\n") if "[scrapy_neardup" in line]
    assert len(ours) > 12
    assert all(line.isprintable() for line in ours)
