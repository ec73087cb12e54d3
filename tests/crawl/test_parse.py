"""Switched on in a wrong way, or gone past: ``scrapy parse --pipelines`` leaves out the spider middlewares."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.run import project
from tests.crawl.conftest import ROOT, Site
from tests.crawl.pages import html

SPIDER = """
import scrapy


class Daybook(scrapy.Spider):
    name = "daybook"

    def parse(self, response):
        yield {"url": response.url}
"""


def test_the_message_does_not_say_to_switch_on_the_add_on_that_is_on(site: Site, tmp_path: Path) -> None:
    site.content["/ferry"] = html("kelp-en")
    folder = project(tmp_path)
    (folder / "shop" / "spiders.py").write_text(SPIDER, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "scrapy", "parse", f"{site.base}/ferry", "--spider", "daybook", "--pipelines"),
            *("-s", "SPIDER_MODULES=shop.spiders", "-s", "NEARDUP_STORE=memory:"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    [line] = [line for line in done.stderr.splitlines() if "unjudged (no_content)" in line]
    assert "by 'scrapy parse --pipelines', which leaves out what hands responses over" in line
    assert "ADDONS" not in line
    assert f"{site.base}/ferry" in done.stdout


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["ADDONS={'scrapy_neardup.NearDupPipeline': 500}"], "ADDONS names scrapy_neardup.NearDupPipeline, which is a"),
        (["ADDONS={}", "ITEM_PIPELINES={'scrapy_neardup.Addon': 300}"], "ITEM_PIPELINES names scrapy_neardup.Addon,"),
    ],
    ids=["the pipeline as an add-on", "the add-on as a pipeline"],
)
def test_add_on_and_pipeline_in_each_others_place_stop_the_crawl(
    wrong: list[str], words: str, site: Site, tmp_path: Path
) -> None:
    """Scrapy takes both for components that have nothing to do, and every copy would pass."""
    folder = project(tmp_path)
    (folder / "shop" / "spiders.py").write_text(SPIDER, encoding="utf-8")
    options = [option.replace("'", '"') for option in ["SPIDER_MODULES=shop.spiders", *wrong]]
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", "daybook", *(part for option in options for part in ("-s", option))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert words in done.stderr
    assert 'ADDONS = {"scrapy_neardup.Addon": 500}' in done.stderr
    assert "item_scraped_count" not in done.stderr
