"""Measures archives in batch beside other tools, on the same drawn texts in the same run.

    python benchmarks/batch.py COUNT [RIVAL ...] [--workers N] [--python PYTHON]

Each text has about 1,500 characters of made-up words, four of five are new, and one of five is an earlier text with a
twentieth of its words replaced. RIVAL is one of

    batch        scrapy neardup batch, with this environment
    spark        the same with --runner spark
    datasketch   MinHash of 128 permutations and MinHashLSH (threshold 0.7), made by N processes
    datatrove    MinHash in 14 buckets of 8, as in its example: signatures, buckets, clusters, filter
    text-dedup=COMMAND   any command, in which {input} and {output} are replaced

PYTHON runs the other tools, if they are installed in another environment. They get the texts as JSON lines, too, and
compare sets of five words. For each the command prints seconds, texts a second, processor seconds, the peak memory of
all its processes (proportional set size, sampled each second), and how many texts it drops.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from multiprocessing import Pool
from pathlib import Path
from typing import Any

_WORDS, _LETTERS = 250, 1500
_SYLLABLES = ["ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "ko", "zu"]


def texts(count: int, seed: int = 1) -> Iterator[str]:
    """Texts of words whose frequencies are those of a language, about one in five a copy of an earlier one."""
    chance = random.Random(seed)
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(20_000)]
    weights = list(accumulate(1 / (10 + rank) for rank in range(len(words))))
    recent: list[list[str]] = []
    for _ in range(count):
        if recent and chance.random() < 0.2:
            drawn = list(chance.choice(recent))
            for at in chance.sample(range(len(drawn)), len(drawn) // 50):
                drawn[at] = chance.choices(words, cum_weights=weights)[0]
        else:
            drawn = chance.choices(words, cum_weights=weights, k=_WORDS)
            recent.append(drawn)
            del recent[:-5000]
        lines = [" ".join(drawn[at : at + 12]) + "." for at in range(0, len(drawn), 12)]
        yield "\n".join(lines)[:_LETTERS]


def write_texts(file: Path, count: int) -> None:
    with file.open("w", encoding="utf-8") as lines:
        for number, text in enumerate(texts(count)):
            lines.write(json.dumps({"id": str(number), "text": text}) + "\n")


# The rivals, each in a process of its own.


def _grams(text: str) -> set[bytes]:
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[at : at + 5]).encode() for at in range(max(1, len(words) - 4))}


def _signature(line: str) -> Any:
    from datasketch import LeanMinHash, MinHash

    made = MinHash(num_perm=128)
    made.update_batch(_grams(json.loads(line)["text"]))
    return LeanMinHash(made)


def run_datasketch(source: Path, workers: int) -> int:
    """Drop each text that is like an earlier one in the index; return how many."""
    from datasketch import MinHashLSH

    index, dropped = MinHashLSH(threshold=0.7, num_perm=128), 0
    with Pool(workers) as pool, source.open(encoding="utf-8") as lines:
        for number, made in enumerate(pool.imap(_signature, lines, chunksize=200)):
            if index.query(made):
                dropped += 1
            else:
                index.insert(number, made)
    return dropped


def run_datatrove(source: Path, folder: Path, workers: int) -> int:
    """Run the four stages of datatrove's example; returns how many texts it drops."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter

    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "in").mkdir()
    for number in range(workers):
        (folder / "in" / f"{number}.jsonl").write_text("".join(lines[number::workers]), encoding="utf-8")
    del lines
    config = MinhashConfig(num_buckets=14, hashes_per_bucket=8, n_grams=5)
    names = {name: str(folder / name) for name in ("in", "signatures", "buckets", "removed", "out")}
    read = JsonlReader(names["in"])
    stages: list[tuple[list[Any], int]] = [
        ([read, MinhashDedupSignature(names["signatures"], config=config)], workers),
        ([MinhashDedupBuckets(names["signatures"], names["buckets"], config=config)], 14),
        ([MinhashDedupCluster(names["buckets"], names["removed"], config=config)], 1),
        ([read, MinhashDedupFilter(names["removed"]), JsonlWriter(names["out"], compression=None)], workers),
    ]
    for number, (pipeline, tasks) in enumerate(stages):
        logs = str(folder / f"logs{number}")
        LocalPipelineExecutor(pipeline, tasks=tasks, workers=workers, logging_dir=logs).run()
    kept = sum(len(file.read_bytes().splitlines()) for file in (folder / "out").glob("*.jsonl"))
    return len(source.read_bytes().splitlines()) - kept


def run_rival(rival: str, source: Path, folder: Path, workers: int) -> int | None:
    """Run a rival in this process; returns how many texts it drops, if that is known."""
    if rival in ("batch", "spark"):
        runner = "local" if rival == "batch" else rival
        command = [
            sys.executable,
            "-m",
            "scrapy",
            "neardup",
            "batch",
            str(source),
            "-o",
            str(folder / "verdicts.parquet"),
            "--json",
        ]
        options = ["-s", f"NEARDUP_WORKERS={workers}", "--memory", "2GB", "--runner", runner]
        done = subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE)
        verdicts: dict[str, int] = json.loads(done.stdout)["verdicts"]
        return sum(count for kind, count in verdicts.items() if kind not in ("unique", "unjudged", "updated"))
    if rival == "datasketch":
        return run_datasketch(source, workers)
    if rival == "datatrove":
        return run_datatrove(source, folder, workers)
    command = shlex.split(rival.partition("=")[2].format(input=source, output=folder / "out"))
    subprocess.run(command, check=True)
    return None


# Measuring.


def _memory(process: int) -> int:
    """The proportional set size of a process and all below it, in bytes."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(stat.parent.name))
    found, wanted = 0, [process]
    while wanted:
        one = wanted.pop()
        wanted += parents.get(one, [])
        try:
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        found += 1024 * int(rollup.partition("\nPss:")[2].split()[0]) if "\nPss:" in rollup else 0
    return found


def measure(rival: str, source: Path, count: int, workers: int, python: str) -> None:
    """Run a rival in a process of its own, and print what it takes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans become children of this process, which counts them
    with tempfile.TemporaryDirectory() as folder:
        began, before = time.perf_counter(), os.times()
        result = Path(folder, "result")
        python = sys.executable if rival in ("batch", "spark") else python
        command = [python, __file__, "--run", rival, str(source), folder, str(workers), str(result)]
        process, peak = subprocess.Popen(command), 0
        while process.poll() is None:
            peak = max(peak, _memory(process.pid))
            time.sleep(1)
        seconds = time.perf_counter() - began
        with suppress(ChildProcessError):
            while True:
                os.wait()  # a fork server ends after its command
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        dropped = result.read_text() if process.returncode == 0 else f"failed with {process.returncode}"
    name = rival.partition("=")[0]
    print(
        f"{name:12} {seconds:8.1f} s {count / seconds:8.0f} texts/s {spent:8.1f} s of processor "
        f"{peak / 1e6:8.0f} MB, dropped {dropped}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", metavar="COUNT", type=int)
    parser.add_argument("rivals", metavar="RIVAL", nargs="*", default=["batch"])
    parser.add_argument("--workers", metavar="N", type=int, default=2)
    parser.add_argument("--python", metavar="PYTHON", default=sys.executable)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "texts.jsonl")
        write_texts(source, given.count)
        for rival in given.rivals:
            measure(rival, source, given.count, given.workers, given.python)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        rival, source, folder, workers, result = sys.argv[2:]
        Path(result).write_text(str(run_rival(rival, Path(source), Path(folder), int(workers))))
    else:
        main()
