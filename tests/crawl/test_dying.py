"""A crawl dies at each of its steps: after the next one nothing is missing, and twice is what the open feeds held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crawl.conftest import PLYVEL, ROOT

NEEDS_PLYVEL = pytest.mark.skipif(not PLYVEL, reason="no plyvel here")


def dies_at_every_step(folder: Path, *how: str) -> int:
    """Let it die, look at what came of it, and return at how many steps."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crawl.dying", *how],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1000,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected, before = found["reference"]["feeds"], found["reference"]["taken_back"]
    assert all(sum(feed.values()) - len(feed) <= before for feed in expected.values())
    took_back = set()
    for name, died, ended, outcome in found["runs"]:
        assert (died, ended) == (9, 0), name
        most = max(outcome["taken_back"], before)
        for feed, items in outcome["feeds"].items():
            assert items.keys() == expected[feed].keys(), f"{name}: in {feed} something is missing, or came that is new"
            assert sum(items.values()) - len(items) <= most, f"{name}: in {feed} too much came twice"
        assert outcome["nothing_new"], f"{name}: a third crawl brings something"
        assert outcome["wrong"] == {}, name
        took_back.add(outcome["taken_back"])
    assert len(took_back) > 1, "it died at steps that are all the same"
    return len(found["runs"])


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    ("scheme", "more", "least"),
    [
        pytest.param("leveldb", "", 20, marks=NEEDS_PLYVEL),
        pytest.param("sqlite", "", 20, marks=pytest.mark.soak),
        # The opening that takes pages back.
        pytest.param("leveldb", "again", 5, marks=NEEDS_PLYVEL),
        ("sqlite", "again", 5),
    ],
)
def test_whenever_a_crawl_dies_nothing_is_lost_and_twice_is_what_the_open_feeds_held(
    tmp_path: Path, scheme: str, more: str, least: int
) -> None:
    assert dies_at_every_step(tmp_path, scheme, str(tmp_path), *more.split()) > least
