"""Seconds that nshash takes from texts to similar_ids, on LevelDB and in memory: the article's own measurement.

    python benchmarks/nshash.py [DOCUMENTS]

The article has 17,400 news pages in 2.47 s on LevelDB and in 1.6 s in memory, on a machine that it does not name. Ours
are as many synthetic articles of about 740 characters, the mean of a corpus of Chinese news; a tenth are copies with
one sentence edited. Every document is normalised, judged and committed; texts are made before the clock runs.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time

from synthetic import pages

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.state.opening import close_store, open_store

ROUNDS = 5


def documents(count: int) -> list[Page]:
    chance = random.Random(1)
    found: list[Page] = []
    for page in pages(count, letters=720):
        if found and chance.random() < 0.1:
            sentences = chance.choice(found).text.split("。")
            sentences[chance.randrange(len(sentences))] = page.text.split("。")[0]
            found.append(Page(page.url, page.title, text="。".join(sentences)))
        else:
            found.append(page)
    return found


def seconds(url: str, corpus: list[Page]) -> tuple[float, int]:
    """Time from the first document to the last similar_id, and how many different ones there are."""
    store = open_store(url, {})
    detector = Detector(make_method("nshash", {}), store, who="benchmark")
    similar_ids = set()
    begun = time.perf_counter()
    for page in corpus:
        similar_ids.add(detector.judge_now(page, sealed=False).similar_id)
    elapsed = time.perf_counter() - begun
    close_store(store)
    return elapsed, len(similar_ids)


def main() -> None:
    corpus = documents(int(sys.argv[1]) if len(sys.argv) > 1 else 17_400)
    print(f"{len(corpus)} documents of {sum(len(page.text) for page in corpus) / len(corpus):.0f} characters")
    with tempfile.TemporaryDirectory() as directory:
        for name, place in (("memory", "memory:"), ("LevelDB", f"leveldb://{directory}/state")):
            # The fastest round counts, as other work on the machine only adds.
            rounds = [seconds(place if name == "memory" else f"{place}{turn}", corpus) for turn in range(ROUNDS)]
            best, worst, groups = min(rounds)[0], max(rounds)[0], rounds[0][1]
            print(f"{name:8} {best:.2f} s, the slowest of {ROUNDS} rounds {worst:.2f} s; {groups} groups")


if __name__ == "__main__":
    main()
