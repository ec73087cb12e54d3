"""Time per page without extraction, beside datasketch and rensa on the same pages in the same run.

    python benchmarks/speed.py [PAGES]
    python benchmarks/speed.py [PAGES] --methods    # the fingerprint alone, with each method

Ours: fingerprint, candidates, comparison and filing in LevelDB on disk. The others: MinHash of the same character
5-grams (128 permutations), which are made here, and query and insert in their tables in memory. Their texts are
normalised by us, as they do not do that. They take turns, 250 pages each: medians of processor time.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from statistics import median

from datasketch import MinHash, MinHashLSH
from rensa import RMinHash, RMinHashLSH
from synthetic import pages

from scrapy_neardup.hashing import compiled
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.text.normalize import letters, normalize

TURN = 250
PERMUTATIONS, THRESHOLD = 128, 0.7
#: For rensa; datasketch derives a similar number from the threshold.
BANDS = 16

Judge = Callable[[Page], object]


def by_datasketch() -> Judge:
    lsh = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)

    def judge(page: Page) -> None:
        sketch = MinHash(num_perm=PERMUTATIONS)
        sketch.update_batch([one.encode() for one in shingles(page)])
        lsh.query(sketch)
        lsh.insert(page.url, sketch)

    return judge


def by_rensa() -> Judge:
    lsh = RMinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=BANDS)
    keys = iter(range(sys.maxsize))

    def judge(page: Page) -> None:
        sketch = RMinHash(num_perm=PERMUTATIONS, seed=1)
        sketch.update(shingles(page))
        lsh.query(sketch)
        lsh.insert(next(keys), sketch)

    return judge


def shingles(page: Page) -> list[str]:
    text = letters(normalize(page.text))
    return [text[at : at + 5] for at in range(len(text) - 4)]


def by_us(detector: Detector) -> Judge:
    def judge(page: Page) -> None:
        verdict = detector.judge_now(page, sealed=False)
        assert verdict.outcome is Outcome.UNIQUE, verdict

    return judge


def timed(judge: Judge, documents: list[Page]) -> float:
    """Milliseconds of this process a page."""
    gc.freeze()  # the tables of the others must not slow the collector down
    begun = time.process_time()
    for page in documents:
        judge(page)
    return (time.process_time() - begun) / len(documents) * 1e3


def machine() -> str:
    """The machine and the versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "datasketch", "rensa"))
    return f"{platform.machine()}, Python {platform.python_version()}, {packages}. {compiled.sentence()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=int, nargs="?", default=5000)
    parser.add_argument("--methods", action="store_true")
    given = parser.parse_args()
    documents = list(pages(given.pages))
    print(machine())
    print(f"{len(documents)} pages of {sum(len(page.text) for page in documents) / len(documents):.0f} characters")
    if given.methods:
        for name in METHODS:
            fingerprint = make_method(name, {}).fingerprint
            fingerprint(documents[0])  # dictionaries are loaded once
            print(f"{name:18} {min(timed(fingerprint, documents) for _ in range(5)):6.3f} ms")
    else:
        compare(documents)


def compare(documents: list[Page]) -> None:
    """Let all judge the same pages, in turns."""
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(f"leveldb://{directory}/state", {})
        detector = Detector(make_method("cascade", {}), store, who="benchmark")
        judges = {
            "cascade on LevelDB": by_us(detector),
            "datasketch in memory": by_datasketch(),
            "rensa in memory": by_rensa(),
        }
        taken: dict[str, list[float]] = {name: [] for name in judges}
        for judge in judges.values():
            judge(documents[0])  # dictionaries are loaded once
        for start in range(1, len(documents), TURN):
            for name, judge in judges.items():
                taken[name].append(timed(judge, documents[start : start + TURN]))
        spent = {part: seconds / len(documents) * 1e3 for part, seconds in detector.spent.items()}
        close_store(store)
    found = {name: median(times) for name, times in taken.items()}
    ours = found["cascade on LevelDB"]
    for name, time_taken in found.items():
        print(f"{name:22}{time_taken:6.2f} ms a page{time_taken / ours:8.2f} x ours")
    print(f"of ours, by the clock: method {spent['method']:.2f}, store {spent['store']:.2f} ms")


if __name__ == "__main__":
    main()
