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
from tests.processes import MARK, processes

pytestmark = pytest.mark.slow  # commands in processes of their own

ROOT = Path(__file__).parents[2]
SLUGS = sorted(path.stem for path in ARTICLES.glob("*.txt"))[:12]
SECRET = "one secret for all of them"
SLOW = "tests.crawl.project.slow_extractor"
RISKY = html("metro-zh").replace("</article>", f"<p>{'<br>' * 9_000}</article>")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Articles as files in several charsets and as records of a feed, of which the earlier ones take the longer."""
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
    lines = [json.dumps(one, ensure_ascii=False) for one in records]
    lines.insert(5, '{"no": record')
    (tmp_path / "feed.jsonl").write_text("\n".join(lines), "utf-8")
    return tmp_path


def dedup_twice(folder: Path, *arguments: str, code: int) -> bytes:
    """Run dedup without and with workers; return the output, which is the same except for times and ids."""
    found = []
    for workers in ("0", "2"):
        out, rejects = folder / f"{workers}.jsonl", folder / f"{workers}.rejects"
        files: list[str | Path] = ["-o", out, "--rejects", rejects]
        values = (f"NEARDUP_WORKERS={workers}", f"NEARDUP_SECRET={SECRET}", "NEARDUP_MAX_SECONDS=60")
        settings = [word for value in values for word in ("-s", value)]
        done = run_scrapy("dedup", *arguments, *files, *settings, cwd=folder)
        assert done.returncode == code, done.stderr
        written = re.sub(rb'"(similar_id|first_seen)": "[^"]+"', rb'"\1": ""', out.read_bytes())
        rejected = rejects.read_bytes() if rejects.exists() else b""
        found.append((written, rejected, done.stdout.replace(f"{workers}.", ""), done.stderr))
    assert found[0] == found[1]
    return found[0][0]


@pytest.mark.parametrize("tag", ["--tag", ""])
def test_unread_records_with_the_same_bytes_are_written(folder: Path, tag: str) -> None:
    """A document that is written is read for its text; the first, second and third of each are of other sites."""
    for number, copy in enumerate(("a", "b", "c")):
        (folder / "pages" / copy).mkdir()
        for slug in SLUGS[:4]:
            (folder / "pages" / copy / f"{slug}.html").write_text(html(slug, "转载。" * (number == 2)), "utf-8")
    records = [
        {"url": f"http://{copy}.example/{slug}", "html": html(slug), "n": copy} for copy in "ab" for slug in SLUGS
    ]
    (folder / "feed.jsonl").write_text("\n".join(json.dumps(one) for one in records * 2), "utf-8")
    written = dedup_twice(folder, "feed.jsonl", "pages", *tag.split(), code=0)
    lines = [line for line in written.splitlines() if b'"same_bytes"' in line]
    assert len(lines) >= (2 * len(SLUGS) if tag else 0)
    assert all(json.loads(line)["text" if b'"html"' not in line else "html"] for line in lines)


def test_workers_that_end_out_of_order_write_the_same_bytes(folder: Path) -> None:
    slow = ("-s", f"NEARDUP_EXTRACTOR={SLOW}")
    written = dedup_twice(folder, "pages", "feed.jsonl", "--tag", "--json", *slow, code=1)
    assert written.count(b'"duplicate"') > 5
    assert written.count(b"\n") == 2 * len(SLUGS) + 7


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up as on Linux")
def test_ctrl_c_leaves_nothing_behind(folder: Path) -> None:
    feed = [json.dumps({"id": str(n), "html": f"<!-- takes 3 -->{html(SLUGS[n % 12])}"}) for n in range(20)]
    (folder / "slow.jsonl").write_text("\n".join(feed), "utf-8")
    options = ["-o", "out.jsonl", "-s", "NEARDUP_WORKERS=2", "-s", f"NEARDUP_EXTRACTOR={SLOW}"]
    env = {**environment(), "PYTHONPATH": str(ROOT), MARK: str(folder)}
    with subprocess.Popen(
        command_line("dedup", "slow.jsonl", *options),
        cwd=folder,
        env=env,
        stderr=subprocess.PIPE,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - ignored in the background
    ) as job:
        deadline = time.monotonic() + 60
        while len(processes(folder)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1)
        begun = time.monotonic()
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=60)
        assert time.monotonic() - begun < 30
    assert job.returncode != 0
    assert processes(folder) == []
    assert not (folder / "out.jsonl").exists()
