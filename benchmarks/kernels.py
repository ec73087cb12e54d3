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
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = 200
#: The stages of the compiled module.
KERNELS = "read: normal spelling, sentences, hashes", "sketch and keys"


def stages() -> dict[str, tuple[Callable[[Any], object], list[Any]]]:
    """What is measured, each with what it is given; of an older checkout only what it has too."""
    import numpy as np
    from synthetic import pages

    from scrapy_neardup.hashing.keyed import Keyed
    from scrapy_neardup.methods import make_method
    from scrapy_neardup.state.boilerplate import Counts, CountsOfSite

    documents = list(pages(PAGES))
    keyed = Keyed(bytes(range(32)))
    method = make_method("cascade", {}).with_hashes(keyed)
    counts = Counts()
    known = CountsOfSite(counts, "", keyed)
    prints = [np.array([keyed.short(line) for line in page.text.splitlines()], np.uint32) for page in documents]

    def count(found: Any) -> None:
        known.is_common(found)
        counts.note(found, "news.example", keyed, everywhere=True)

    found: dict[str, tuple[Callable[[Any], object], list[Any]]] = {
        "fingerprint, all of it": (lambda page: method.fingerprint_own(page, known.is_common, known), documents),
        "count sentences": (count, prints),
    }
    try:
        from scrapy_neardup.methods.cascade.sketch import sketch_form
        from scrapy_neardup.text.normalize import segment
    except ImportError:
        return found  # another checkout may lack the parts
    form, texts = sketch_form(method.parameters), [segment(page.text, keyed) for page in documents]
    parts: dict[str, tuple[Callable[[Any], object], list[Any]]] = {
        "read: normal spelling, sentences, hashes": (
            lambda text: segment(text, keyed),
            [page.text for page in documents],
        ),
        KERNELS[1]: (lambda text: text._make_sketch(form), texts),
    }
    return {**parts, **found}


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
    for name, row in rows.items():
        print(f"{name:38}" + "".join(f"{one:10.1f}" for one in row) + f"{row[0] / row[-1]:20.1f}")


if __name__ == "__main__":
    main()
