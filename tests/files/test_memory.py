"""Files are read as streams: four times the records need no more memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_neardup.files import Entry, read_input
from tests.files import samples
from tests.files.samples import PACKERS, Archive, page

STATUS = Path("/proc/self/status")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not STATUS.is_file(), reason="the most memory of a process is not known here"),
]

RECORDS = 8_000
#: Prints how much the most memory grew, in bytes, from the first file on. That of getrusage would be the parent's too.
READ = """
import re, sys
from scrapy_neardup.files import read_input
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
for name in sys.argv[1:]:
    before = peak()
    count = sum(1 for _ in read_input(name))
print(count, peak() - before)
"""


def written(format: str, count: int) -> bytes:
    texts = [f"{number} " + f"桥 and ferry {number * 7919 % 104729} " * 100 for number in range(count)]
    records = [{"url": f"https://a.example/{at}", "title": f"渡口 {at}", "text": text} for at, text in enumerate(texts)]
    if format != "warc":
        return samples.packed(format, records)
    made = Archive()
    for record in records:
        made.add(page(record), url=record["url"])
    return made.bytes()


@pytest.mark.parametrize("format", ["jsonl.zst", "csv", "parquet", "warc"])
def test_memory_does_not_grow_with_the_input(tmp_path: Path, format: str) -> None:
    kind, _, suffix = format.partition(".")
    pack = PACKERS[f".{suffix}" if suffix else ""]
    few, many = (tmp_path / f"{name}.{format}" for name in ("few", "many"))
    few.write_bytes(pack(written(kind, RECORDS // 4)))
    many.write_bytes(pack(raw := written(kind, RECORDS)))
    done = subprocess.run([sys.executable, "-c", READ, few, many], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    count, grown = map(int, done.stdout.split())
    assert count == RECORDS
    # The texts alone have more characters: to keep the records takes 16 MB.
    assert grown < RECORDS * 1_500, f"{grown:,} bytes more for {len(raw):,} bytes"


def test_a_record_is_given_before_the_next_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that still writes into a pipe is judged as it goes."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe, os.fdopen(writing, "wb", buffering=0) as crawl:
        monkeypatch.setattr(sys, "stdin", pipe)
        records = read_input("-")
        for number in (1, 2):
            crawl.write(json.dumps({"text": "桥"}).encode() + b"\n")
            assert next(records).place == f"standard input, line {number}"
        records.close()  # type: ignore[attr-defined]


def test_a_folder_is_read_lazily(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.html").write_bytes(b"x")
    records = read_input(str(tmp_path))
    next(records)
    (tmp_path / "1.html").write_bytes(b"changed meanwhile")
    second = next(records)
    assert isinstance(second, Entry)
    assert second.html == b"changed meanwhile"
    records.close()  # type: ignore[attr-defined]
