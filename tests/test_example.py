"""The example project: every page gets the verdict that pages.json names."""

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

from scrapy_neardup.model import Kind

ROOT = Path(__file__).parents[1]
#: Similarities are estimated under the secret of a state: a test that fails fails again.
SECRET = "the example is crawled under this one"


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
    for setting in (*settings, f"NEARDUP_SECRET={SECRET}"):
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
    return {path_of(item["url"]): item for item in items}, ran.stderr


def path_of(url: str) -> str:
    host, name = url.removeprefix("http://").split("/")
    return f"/{host.removesuffix('.example')}/{name}"


def pages() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "example_project/site/pages.json").read_text(encoding="utf-8"))
    return found


def test_the_site_has_families_of_every_kind() -> None:
    assert 100 <= len(pages()) <= 120
    assert {page["template"] for page in pages()} == {"morning", "portal", "daybook", "county"}
    assert {page["made"] for page in pages()} == {
        *("original", "mirror", "template", "retitled", "edited3", "edited5", "edited10", "reordered"),
        *("edited_retitled", "excerpt", "same_title", "notice", "short_notice", "disclaimer", "near_empty"),
        *("bulletin", "frame"),
    }
    assert {page["kind"] for page in pages()} == {None, *(kind.value for kind in Kind)}


@pytest.mark.slow
def test_every_page_of_the_example_gets_the_verdict_that_it_should(project: Path, port: int) -> None:
    tagged, log = crawl(project, port, "tagged.jsonl", "DROP_DUPLICATES=False", "NEARDUP_STORE=memory:")
    wrong = []
    for page in pages():
        tag = tagged[page["path"]]["neardup"]
        other = tag["original"] or tag["like"]
        original = other and path_of(other)
        expected = page["verdict"], page["kind"], page["original"]
        if (tag["verdict"], tag["kind"], original) != expected:
            wrong.append((page["path"], page["made"], expected, "got", tag["verdict"], tag["kind"], original))
    assert not wrong
    [frame] = [page["path"] for page in pages() if page["made"] == "frame"]
    assert tagged[frame]["neardup"]["reason"] == "boilerplate"
    for kind in Kind:
        count = sum(page["kind"] == kind.value for page in pages())
        assert f"'neardup/kind/{kind.value}': {count}," in log
