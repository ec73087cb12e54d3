"""Where the time of a page goes, stage by stage: compiled, in Python alone, and in another checkout of this project.

    python benchmarks/kernels.py [--before CHECKOUT] [--rounds N]

Another checkout is measured with the compiled module that was built there, if there is one, and else in Python. Each
round is a process of its own for each of them, which take turns: medians of processor time, in microseconds for a
synthetic page of 1,520 characters.
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
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = 200
#: Those that were to take a fifth of their time.
KERNELS = "read: one spelling, sentences, hashes", "sketch and keys"


def stages() -> dict[str, tuple[Callable[[Any], object], list[Any]]]:
    """What is measured, each with what it is given; of an older checkout by the calls that its method made."""
    import numpy as np
    from synthetic import pages

    from scrapy_neardup.hashing.keyed import Keyed
    from scrapy_neardup.methods import make_method
    from scrapy_neardup.state.boilerplate import Counts, CountsOfSite
    from scrapy_neardup.text.normalize import letters_each, normalize
    from scrapy_neardup.text.sentences import sentences

    documents = list(pages(PAGES))
    keyed = Keyed(bytes(range(32)))
    method = make_method("cascade", {}).with_hashes(keyed)
    p = method.parameters
    lines = [[line for line in letters_each(sentences(normalize(page.text))) if line] for page in documents]
    prints = [np.array([keyed.short(line) for line in one], np.uint32) for one in lines]
    counts = Counts()
    known = CountsOfSite(counts, "", keyed)

    def count(found: Any) -> None:
        known.is_common(found)
        counts.note(found, "news.example", keyed, everywhere=True)

    try:
        from scrapy_neardup.methods.cascade.sketch import Shingles
        from scrapy_neardup.text.sentences import read
    except ImportError:
        reading, sketching = _as_it_was(keyed, p)
        texts: list[Any] = ["".join(one) for one in lines]
    else:

        def reading(text: str) -> object:
            return read(text, keyed)

        def sketching(text: Any) -> object:
            return Shingles.of(text, p)

        texts = [read(page.text, keyed) for page in documents]
    return {
        "read: one spelling, sentences, hashes": (reading, [page.text for page in documents]),
        "sketch and keys": (sketching, texts),
        "fingerprint, all of it": (lambda page: method.fingerprint_own(page, known.is_common, known), documents),
        "count sentences": (count, prints),
    }


def _as_it_was(keyed: Any, p: Any) -> tuple[Callable[[Any], object], Callable[[Any], object]]:
    """Reading and sketching where a text was lists of strings."""
    try:
        remembering = vars(import_module("scrapy_neardup.hashing.keyed"))["Remembering"]
        read = vars(import_module("scrapy_neardup.text.sentences"))["read"]
        of = import_module("scrapy_neardup.methods.cascade.sketch").Shingles.of
    except (ImportError, KeyError):
        return _as_it_began(keyed, p)

    def reading(text: str) -> object:
        hashes = remembering(keyed)
        found = read(text, hashes)[1]
        return hashes.every(found), hashes.every([*found[:16], *found[-8:]]), hashes.every(found[:5])

    return reading, lambda text: of(text, p, keyed)


def _as_it_began(keyed: Any, p: Any) -> tuple[Callable[[Any], object], Callable[[Any], object]]:
    """The same before there was a compiled module."""
    from scrapy_neardup.methods.cascade import method as cascade
    from scrapy_neardup.methods.cascade.minwise import sketch
    from scrapy_neardup.text.normalize import letters_each, normalize
    from scrapy_neardup.text.sentences import sentences
    from scrapy_neardup.text.shingles import distinct, shingles
    from scrapy_neardup.text.tokens import has_unspaced

    smallest: Callable[[Any, int], object] = vars(cascade)["_smallest"]

    def reading(text: str) -> object:
        found = letters_each(sentences(normalize(text)))
        return [[keyed.of(one) for one in some] for some in (found, found[:16], found[-8:], found[:5])]

    def sketching(text: str) -> object:
        grams = distinct(shingles(text, p.shingle, keyed))
        opening = sketch(shingles(text[:80], p.shingle, keyed), 16, 4)
        length = p.key_shingle if has_unspaced(text) else p.key_shingle_spaced
        return sketch(grams, p.bins, p.bits), opening, smallest(shingles(text, length, keyed), p.shingle_keys)

    return reading, sketching


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


def measured(checkout: Path, *, pure: bool) -> dict[str, float]:
    env = {**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{ROOT / 'benchmarks'}"}
    env.pop("NEARDUP_PURE", None)
    env.update({"NEARDUP_PURE": "1"} if pure else {})
    command = [sys.executable, __file__, "--one"]
    found: dict[str, float] = json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout, to be measured as well")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one_round()
        return
    from scrapy_neardup.hashing import compiled

    built = given.before and any((given.before / "scrapy_neardup" / "hashing").glob("_kernels.*.so"))
    ways = {"before": (given.before, not built)} if given.before else {}
    ways |= {"pure": (ROOT, True), "compiled": (ROOT, False)}
    rounds = [{way: measured(where, pure=pure) for way, (where, pure) in ways.items()} for _ in range(given.rounds)]
    first = next(iter(ways))
    print(f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores. {compiled.sentence()}")
    print(f"{'µs a page':38}" + "".join(f"{way:>10}" for way in ways) + f"{first + ' / compiled':>20}")
    rows = {name: [median(one[way][name] for one in rounds) for way in ways] for name in rounds[0][first]}
    rows["the first two"] = [sum(rows[name][way] for name in KERNELS) for way in range(len(ways))]
    for name, row in rows.items():
        print(f"{name:38}" + "".join(f"{one:10.1f}" for one in row) + f"{row[0] / row[-1]:20.1f}")


if __name__ == "__main__":
    main()
