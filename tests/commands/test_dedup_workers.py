"""``dedup`` with NEARDUP_WORKERS: the same output in the same order, and no process left behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.cli import command_line, environment, run_scrapy
from tests.crawl.pages import ARTICLES, html
from tests.processes import MARK, processes, wait_until

pytestmark = pytest.mark.slow  # commands in processes of their own

ROOT = Path(__file__).parents[2]
SLUGS = sorted(path.stem for path in ARTICLES.glob("*.txt"))[:12]
SLOW = "tests.crawl.project.slow_extractor"
RISKY = html("metro-zh").replace("</article>", f"<p>{'<br>' * 9_000}</article>")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Articles as files in several charsets and as records of a feed; earlier ones take longer, some come again."""
    (tmp_path / "pages").mkdir()
    for number, slug in enumerate(SLUGS):
        charset = ["utf-8", "gb18030", "utf-16"][number % 3]
        page = html(slug).replace("<html>", f"<html><meta charset={charset}><!-- takes {0.05 * (number % 2)} -->")
        (tmp_path / "pages" / f"{slug}.html").write_bytes(page.encode(charset))
    (tmp_path / "pages" / "no page.html").write_bytes(b"%PDF-1.7 of the ferry")
    (tmp_path / "pages" / "long.html").write_text(RISKY, "utf-8")
    records: list[object] = [{"id": slug, "html": html(slug, "转载。")} for slug in SLUGS]
    records[3:3] = [{"id": "short", "text": "太短。"}, {"id": "nothing"}, {"id": "empty", "html": " "}]
    records[9:9] = [{"id": "own", "text": html(SLUGS[0]), "html": html(SLUGS[1])}, {"id": "long", "html": RISKY}]
    records += [{"url": f"http://a.example/{slug}", "html": html(slug)} for slug in SLUGS * 2]
    lines = [json.dumps(one, ensure_ascii=False) for one in records]
    lines.insert(5, '{"no": record')
    (tmp_path / "feed.jsonl").write_text("\n".join(lines), "utf-8")
    return tmp_path


@pytest.mark.parametrize("tag", [["--tag"], []])
def test_workers_that_end_out_of_order_write_the_same_bytes(folder: Path, tag: list[str]) -> None:
    found = []
    for workers in ("0", "2"):
        out, rejects = folder / f"{workers}.jsonl", folder / f"{workers}.rejects"
        values = (
            f"NEARDUP_WORKERS={workers} NEARDUP_SECRET={'secret' * 3} NEARDUP_MAX_SECONDS=60 NEARDUP_EXTRACTOR={SLOW}"
        )
        settings = [word for value in values.split() for word in ("-s", value)]
        files: list[str | Path] = ["pages", "feed.jsonl", "-o", out, "--rejects", rejects]
        done = run_scrapy("dedup", *files, *tag, "--json", *settings, cwd=folder)
        assert done.returncode == 1, done.stderr
        written = re.sub(rb'"(similar_id|first_seen)": "[^"]+"', rb'"\1": ""', out.read_bytes())  # they hold times
        found.append((written, rejects.read_bytes(), done.stdout.replace(f"{workers}.", ""), done.stderr))
    assert found[0] == found[1]
    written = found[0][0]
    if tag:
        assert written.count(b"\n") == 4 * len(SLUGS) + 7
        assert written.count(b'"duplicate"') > 5
        assert written.count(b'"same_bytes"') >= len(SLUGS), "these are not read, but written with their text"


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up as on Linux")
def test_ctrl_c_leaves_nothing_behind(folder: Path) -> None:
    feed = [json.dumps({"id": str(n), "html": f"<!-- takes 3 -->{html(SLUGS[n % 12])}"}) for n in range(20)]
    (folder / "slow.jsonl").write_text("\n".join(feed), "utf-8")
    options = ["-o", "out.jsonl", "-s", "NEARDUP_WORKERS=2", "-s", f"NEARDUP_EXTRACTOR={SLOW}"]
    with subprocess.Popen(
        command_line("dedup", "slow.jsonl", *options),
        cwd=folder,
        env={**environment(), "PYTHONPATH": str(ROOT), MARK: str(folder)},
        stderr=subprocess.PIPE,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - ignored in the background
    ) as job:
        wait_until(lambda: len(processes(folder)) == 3, seconds=60)
        time.sleep(1)
        begun = time.monotonic()
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=60)
        assert time.monotonic() - begun < 30
    assert job.returncode == 130
    assert processes(folder) == []
    assert not (folder / "out.jsonl").exists()
