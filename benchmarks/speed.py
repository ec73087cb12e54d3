"""Time per page without extraction, beside datasketch on the same pages in the same run.

    python benchmarks/speed.py [PAGES]

Ours: fingerprint, candidates, comparison and filing in LevelDB on disk. datasketch: MinHash of the same
character 5-grams (128 permutations) and MinHashLSH query and insert in memory.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable

from datasketch import MinHash, MinHashLSH
from synthetic import pages

from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.stores import close_store, open_store
from scrapy_neardup.text.normalize import letters, normalize


def timed(judge: Callable[[Page], object], documents: list[Page]) -> float:
    """CPU milliseconds a page, of this process."""
    judge(documents[0])  # dictionaries are loaded once
    begun = time.process_time()
    for page in documents[1:]:
        judge(page)
    return (time.process_time() - begun) / (len(documents) - 1) * 1e3


def main() -> None:
    documents = list(pages(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(f"leveldb://{directory}/state", {})
        detector = Detector(make_method("cascade", {}), store, min_letters=40, who="benchmark")

        def ours(page: Page) -> None:
            verdict = detector.judge_now(page, sealed=False)
            assert verdict.kind is Kind.UNIQUE, verdict

        mine = timed(ours, documents)
        spent = {part: seconds / len(documents) * 1e3 for part, seconds in detector.spent.items()}
        close_store(store)
    lsh = MinHashLSH(threshold=0.7, num_perm=128)

    def theirs(page: Page) -> None:
        text = letters(normalize(page.text))
        sketch = MinHash(num_perm=128)
        sketch.update_batch([text[i : i + 5].encode() for i in range(len(text) - 4)])
        lsh.query(sketch)
        lsh.insert(page.url, sketch)

    other = timed(theirs, documents)
    print(f"{len(documents)} pages of {sum(len(page.text) for page in documents) / len(documents):.0f} characters")
    print(f"cascade on LevelDB    {mine:.2f} ms a page (method {spent['method']:.2f}, store {spent['store']:.2f})")
    print(f"datasketch in memory  {other:.2f} ms a page")
    print(f"ratio                 {mine / other:.2f}")


if __name__ == "__main__":
    main()
