"""``scrapy parse --pipelines`` hands items to the pipelines past the spider middlewares."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
            sys.executable,
            "-m",
            "scrapy",
            "parse",
            f"{site.base}/ferry",
            "--spider",
            "daybook",
            "--pipelines",
            "-s",
            "SPIDER_MODULES=shop.spiders",
            "-s",
            "NEARDUP_STORE=memory:",
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
