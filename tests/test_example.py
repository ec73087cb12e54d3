"""The example project: every page gets the verdict that pages.json names; a second crawl keeps nothing twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, so that no crawl leaves anything in the checkout."""
    target = tmp_path_factory.mktemp("example") / "example_project"
    ignored = shutil.ignore_patterns(".scrapy", "*.jsonl", "__pycache__")
    shutil.copytree(ROOT / "example_project", target, ignore=ignored)
    return target


@pytest.fixture(scope="module")
def port() -> int:
    """A free port below those that the system gives to other tests' servers in the meantime."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as free:
            if free.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("no free port")


def crawl(project: Path, port: int, feed: str, *settings: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Crawl as the README says; returns the feed's items by path, and the log."""
    command = [sys.executable, "-m", "scrapy", "crawl", "mirror", "-s", f"NEWSMIRROR_PORT={port}", "-O", feed]
    for setting in settings:
        command += ["-s", setting]
    ran = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    items = [json.loads(line) for line in (project / feed).read_text(encoding="utf-8").splitlines()]
    return {"/" + item["url"].split("/", 3)[3]: item for item in items}, ran.stderr


def pages() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "example_project/site/pages.json").read_text(encoding="utf-8"))
    return found


def test_the_site_has_families_of_every_kind() -> None:
    kinds = {page["kind"] for page in pages()}
    assert len(pages()) >= 60
    assert {page["template"] for page in pages()} == {"morning", "portal", "daybook"}
    assert kinds == {
        *("original", "mirror", "template", "retitled", "edited3", "edited5", "edited10", "reordered"),
        *("excerpt", "same_title", "notice", "disclaimer", "near_empty"),
    }


def test_every_page_of_the_example_gets_the_verdict_that_it_should(project: Path, port: int) -> None:
    tagged, _ = crawl(project, port, "tagged.jsonl", "DROP_DUPLICATES=False", "NEARDUP_STORE=memory:")
    wrong = []
    for page in pages():
        tag = tagged[page["path"]]["neardup"]
        original = tag["original"] and "/" + tag["original"].split("/", 3)[3]
        expected = page["original"] if page["verdict"] == "duplicate" else None
        if (tag["verdict"], original) != (page["verdict"], expected):
            wrong.append((page["path"], page["kind"], page["verdict"], expected, "got", tag["verdict"], original))
    assert not wrong


def test_a_second_crawl_of_the_example_drops_every_page(project: Path, port: int) -> None:
    expected = {page["path"]: page["verdict"] for page in pages()}
    first, log = crawl(project, port, "first.jsonl")
    assert set(first) == {path for path, verdict in expected.items() if verdict != "duplicate"}
    assert f"{len(expected)} pages: " in log
    second, log = crawl(project, port, "second.jsonl")
    assert second == {}
    assert "77 pages: 0 unique, 23 duplicate, 54 unchanged, 0 updated, 0 unjudged." in log
