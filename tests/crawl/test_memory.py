"""What a crawl holds does not grow with its pages, but for a few bytes of each that waits for its feed."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.build import WORDS
from tests.crawl.engineless import crawl

#: Pages after which memory is looked at; the first few hundred fill what is of fixed size.
LOOKS = (500, 1200, 1900)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_page_leaves_forty_bytes_at_most_in_memory(tmp_path: Path) -> None:
    held: dict[int, int] = {}

    def items() -> Iterator[dict[str, Any]]:
        chance = random.Random(1)
        for number in range(LOOKS[-1] + 1):
            text = "".join("".join(chance.choices(WORDS, k=12)) + "。" for _ in range(5))
            yield {"url": f"http://{number % 50}.example/{number}", "title": f"标题{number}", "text": text}
            if number in LOOKS:
                gc.collect()
                held[number] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        feed = {f"file://{tmp_path}/out.jsonl": {"format": "jsonlines"}}
        stats = crawl(items(), NEARDUP_STORE=f"sqlite://{tmp_path}/state", FEEDS=feed)
    finally:
        tracemalloc.stop()
    assert stats["neardup/unique"] == LOOKS[-1] + 1
    # A table that grows once, or a module that is loaded late, adds to one of the two; a leak adds to both.
    assert min((held[after] - held[before]) / (after - before) for before, after in pairwise(LOOKS)) < 40
