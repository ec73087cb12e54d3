"""How long ``scrapy neardup dedup`` takes for records that bring their text, with so many workers.

    python benchmarks/dedup.py [FEED.jsonl] [--before CHECKOUT] [--workers 0 1 2 auto] [--count N] [--rounds N]

Without a feed, drawn pages: each fifth one is a copy with a word changed, and all have two lines of their site. Each
run is a process of its own, with all that it starts; the runs of a round take turns, and each line has the medians of
its rounds. ``CPU``: of the command's own process, and of its workers. ``--before``: another checkout of this project,
which is run without ``--workers``. All runs are checked to have written the same, and whether that did is told as well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from synthetic import pages

ROOT = Path(__file__).parents[1]
BEFORE = "before"
#: What differs from run to run in what is written: the time at which a page was judged.
_TIMES = re.compile(rb'"(similar_id|first_seen)": "[^"]+"')
_RUN = """
import atexit, json, os, resource, sys, time
begun = time.perf_counter()
@atexit.register
def tell():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    told = [time.perf_counter() - begun, *(one.ru_utime + one.ru_stime for one in used)]
    sys.stderr.write("\\n" + json.dumps(told))
from scrapy.cmdline import execute
sys.argv = ["scrapy", "neardup", "dedup", *sys.argv[1:]]
execute()
"""


def drawn(count: int) -> Iterator[dict[str, Any]]:
    """Records with copies and boilerplate in them."""
    last = ""
    for number, page in enumerate(pages(count)):
        site = f"本站编辑部在第{number % 50}仓库二楼办公。\n转载请写信给第{number % 50}仓库的编辑部。"
        text = f"{last[:600]}也{last[600:]}" if number % 5 == 4 else page.text
        last = page.text
        yield {"url": page.url, "title": page.title, "text": f"{text}\n{site}", "keywords": list(page.keywords)}


def ran(feed: Path, workers: str, before: Path | None) -> tuple[list[float], str]:
    """Seconds, those of processor here and in workers, and what was written."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        options = [feed, "--tag", "-o", out, "-s", "NEARDUP_SECRET=one for all that are compared"]
        root = before if workers == BEFORE and before is not None else ROOT
        options += [] if workers == BEFORE else ["--workers", workers]
        command = [sys.executable, "-c", _RUN, *map(str, options)]
        env = {**os.environ, "PYTHONPATH": str(root)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled already
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        written = hashlib.sha256(_TIMES.sub(b"", out.read_bytes())).hexdigest()
        return json.loads(done.stderr.splitlines()[-1]), written


def main(arguments: Iterable[str] | None = None) -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("feed", type=Path, nargs="?", metavar="FEED.jsonl")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT")
    parser.add_argument("--workers", nargs="+", default=["0", "1", "2"], help="numbers, or auto")
    parser.add_argument("--count", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(None if arguments is None else list(arguments))
    lines = [BEFORE] * (given.before is not None) + given.workers
    with tempfile.TemporaryDirectory() as folder:
        feed = given.feed.absolute() if given.feed else Path(folder) / "feed.jsonl"
        if not given.feed:
            feed.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in drawn(given.count)), "utf-8")
        print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}, {platform.system()}")
        print(f"{feed.stat().st_size / 1e6:.1f} MB, {given.rounds} rounds, load before: {os.getloadavg()[0]:.1f}\n")
        before = given.before.absolute() if given.before else None
        found: dict[str, list[tuple[list[float], str]]] = {line: [] for line in lines}
        for _ in range(given.rounds):
            for line in lines:
                found[line].append(ran(feed, line, before))
    told = {line: [median(column) for column in zip(*(one for one, _ in found[line]), strict=True)] for line in lines}
    print("| workers | s | times as fast | CPU, s: own | of the workers |\n|---|---|---|---|---|")
    for line, (seconds, own, others) in told.items():
        print(f"| {line} | {seconds:.1f} | {told[lines[0]][0] / seconds:.2f} | {own:.1f} | {others:.1f} |")
    written = {hashed for line in given.workers for _, hashed in found[line]}
    print("\nThe output is the same." if len(written) == 1 else "\nTHE OUTPUT DIFFERS.")
    if given.before:
        same = written == {hashed for _, hashed in found[BEFORE]}
        print(f"It is {'the same' if same else 'NOT THE SAME'} as before.")


if __name__ == "__main__":
    main()
