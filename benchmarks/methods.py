"""Milliseconds that each method takes to fingerprint a page, beside what others offer for the same in the same run.

    python benchmarks/methods.py [PAGES]

The pages are of 1,500 Chinese characters (``synthetic.py``). Compared with datasketch: MinHash of 128 permutations over
character 5-grams. With the package simhash: 64 bits over character 4-grams. Needs pip install datasketch simhash.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

from datasketch import MinHash
from simhash import Simhash
from synthetic import pages

from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Page
from scrapy_neardup.text.normalize import letters, normalize

#: Rounds over all pages; the fastest one counts, as other work on the machine only adds.
ROUNDS = 5


def milliseconds(work: Callable[[Page], object], documents: list[Page]) -> float:
    """CPU time a page, in the fastest of the rounds."""
    work(documents[0])  # dictionaries are loaded once
    rounds = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for page in documents:
            work(page)
        rounds.append((time.process_time() - begun) / len(documents) * 1e3)
    return min(rounds)


def datasketch_minhash(page: Page) -> object:
    text = letters(normalize(page.text))
    sketch = MinHash(num_perm=128)
    sketch.update_batch([text[i : i + 5].encode() for i in range(len(text) - 4)])
    return sketch


def simhash_package(page: Page) -> object:
    text = letters(normalize(page.text))
    return Simhash([text[i : i + 4] for i in range(len(text) - 3)])


def main() -> None:
    documents = list(pages(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
    print(f"{len(documents)} pages of {sum(len(page.text) for page in documents) / len(documents):.0f} characters")
    print(f"segmenter: {'rjieba' if find_spec('rjieba') else 'jieba'}")
    for name in METHODS:
        print(f"{name:18} {milliseconds(make_method(name, {}).fingerprint, documents):6.3f} ms")
    for name, parameters, peer, work in (
        ("minhash", {}, "datasketch", datasketch_minhash),
        ("simhash", {"features": "characters"}, "simhash (package)", simhash_package),
    ):
        mine = milliseconds(make_method(name, parameters).fingerprint, documents)
        other = milliseconds(work, documents)
        print(f"{name} {parameters or ''} {mine:.3f} ms, {peer} {other:.3f} ms, {other / mine:.1f} times as fast")


if __name__ == "__main__":
    main()
