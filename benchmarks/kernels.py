"""Where the time of a page goes, stage by stage: compiled and in Python alone.

    python benchmarks/kernels.py [--rounds N]

Each round is a process of its own for each way, in turns: medians of processor time, in microseconds for a synthetic
page of 1,520 characters.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = 200


def stages() -> dict[str, tuple[Callable[[Any], object], list[Any]]]:
    """What is measured, each with what it is given."""
    import numpy as np
    from synthetic import pages

    from scrapy_neardup.hashing.farmhash import fingerprint_bytes
    from scrapy_neardup.hashing.keyed import Keyed
    from scrapy_neardup.methods import make_method
    from scrapy_neardup.methods.cascade.features import TitleWords
    from scrapy_neardup.methods.cascade.sketch import sketch_form
    from scrapy_neardup.state.boilerplate import Counts, CountsOfSite
    from scrapy_neardup.text.lexicon import core_words, words_and_core
    from scrapy_neardup.text.normalize import letters, normalize, segment
    from scrapy_neardup.text.prose import has_prose
    from scrapy_neardup.text.quotes import may_quote

    documents = list(pages(PAGES))
    keyed = Keyed(bytes(range(32)))
    method = make_method("cascade", {}).with_hashes(keyed)
    counts = Counts()
    known = CountsOfSite(counts, "", keyed)
    prints = [np.array([keyed.short(line) for line in page.text.splitlines()], np.uint32) for page in documents]

    def count(found: Any) -> None:
        known.is_common(found)
        counts.note(found, "news.example", keyed, everywhere=True)

    form, texts = sketch_form(method.parameters), [segment(page.text, keyed) for page in documents]
    titles = [words_and_core(page.title, 4)[0] for page in documents]
    sketches = [method.fingerprint(page).sketch for page in documents]
    return {
        "fingerprint, all of it": (lambda page: method.fingerprint_own(page, known.is_common, known), documents),
        "cut_text: spelling, sentences, hashes": (lambda page: segment(page.text, keyed), documents),
        "cut_hashes, cut_lengths": (lambda text: (text.line_hashes(6), text.lengths), texts),
        "cut_sentences, cut_lines": (lambda text: segment(text, keyed).lines, [page.text for page in documents]),
        "cut_without": (lambda text: text.without(frozenset(text.line_hashes()[:3].tolist())), texts),
        "cut_sketch": (lambda text: text._make_sketch(form), texts),
        "cut_title": (lambda both: TitleWords(*both).encode(32), list(zip(titles, texts, strict=True))),
        "cut_lacking, if another title is compared": (lambda text: text.missing_grams([7, 8], 2, 8, 0xFFFFFC), texts),
        "hash_texts: title, its part, site": (lambda page: keyed.shorts((page.title, "title", page.url)), documents),
        "folded, letters: title, description": (
            lambda page: (letters(normalize(page.title)), normalize(page.description)),
            documents,
        ),
        "has_prose": (lambda page: has_prose(page.text, 40), documents),
        "strings, holds_any": (lambda page: may_quote(page.text), documents),
        "lexicon, words": (
            lambda page: (words_and_core(page.title, 4), core_words(page.description, 4)),
            documents,
        ),
        "are_common, count_page": (count, prints),
        "fingerprint64: record, tally": (
            lambda sketch: [fingerprint_bytes(sketch), fingerprint_bytes(b"key")],
            sketches,
        ),
    }


def one_round() -> None:
    found = {}
    for name, (stage, inputs) in stages().items():
        for one in inputs[:20]:
            stage(one)
        begun = time.process_time()
        for one in inputs:
            stage(one)
        found[name] = (time.process_time() - begun) / len(inputs) * 1e6
    print(json.dumps(found))


def measure(*, pure: bool) -> dict[str, float]:
    """Run one round in a process of its own."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}"}
    env.pop("NEARDUP_PURE", None)
    env.update({"NEARDUP_PURE": "1"} if pure else {})
    command = [sys.executable, __file__, "--one"]
    found: dict[str, float] = json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one_round()
        return
    from scrapy_neardup.hashing import compiled

    rounds = [[measure(pure=True), measure(pure=False)] for _ in range(given.rounds)]
    print(f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores. {compiled.sentence()}")
    print(f"{'µs a page':42}{'Python':>10}{'compiled':>10}{'ratio':>8}")
    for name in rounds[0][0]:
        python, native = (median(one[way][name] for one in rounds) for way in (0, 1))
        print(f"{name:42}{python:10.1f}{native:10.1f}{python / native:8.1f}")


if __name__ == "__main__":
    main()
