"""Where the time goes that a page takes to be read, part by part, against trafilatura on the same pages by itself.

    python benchmarks/reading.py                    # its own pages, of 100 kB each
    python benchmarks/reading.py --pages FOLDER     # files of HTML
    python benchmarks/reading.py --pages FOLDER --digest

Time of the processor, medians over the pages of the best of several rounds each. ``--digest`` prints a hash of all that
was read instead: it must be the same before and after a change that is to make reading quicker and nothing else.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any

import trafilatura
from workers import made_page

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.blocks import find_blocks
from scrapy_neardup.page.extraction import decode_body, extract, hash_html, main_text, parse_head
from scrapy_neardup.page.html import parse_page
from scrapy_neardup.page.limits import is_risky
from scrapy_neardup.page.reading import read_blocks

URL = "https://www.daybook.example/a/1.html"
PARTS = ("decoding", "risk", "head", "mark", "parsing", "blocks", "trafilatura, of the tree", "putting together")


def timed(call: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    begun = process_time()
    made = call(*given)
    return made, process_time() - begun


def parts(body: bytes) -> tuple[dict[str, float], float] | None:
    """Seconds of each part of reading a page, and of trafilatura by itself; None for a page that is read elsewhere."""
    try:
        html, decoding = timed(decode_body, body)
    except ExtractionError:
        return None
    risky, risk = timed(is_risky, html)
    if risky:
        return None
    spent = [decoding, risk]
    for call in (parse_head, lambda html, _: hash_html(html), lambda html, _: parse_page(html)):
        made, seconds = timed(call, html, URL)
        spent.append(seconds)
    blocks, seconds = timed(find_blocks, made)
    main, main_seconds = timed(main_text, made, URL)
    _, last = timed(read_blocks, blocks, main)
    spent += [seconds, main_seconds, last]
    _, alone = timed(_alone, html)
    return dict(zip(PARTS, spent, strict=True)), alone


def _alone(html: str) -> str | None:
    return trafilatura.extract(html, url=URL, fast=True, include_comments=False, deduplicate=False)


def digest(pages: Iterable[bytes]) -> str:
    """A hash of all that is read of these pages."""
    found = blake2b(digest_size=16)
    for body in pages:
        try:
            html = decode_body(body)
            page: object = "risky" if is_risky(html) else extract(html, URL, max_html=5_000_000)
        except ExtractionError as error:
            page = error.reason
        found.update(repr(page).encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def main(arguments: Iterable[str] | None = None) -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=100, help="pages, drawn at random; 0: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--digest", action="store_true")
    given = parser.parse_args(None if arguments is None else list(arguments))
    files = sorted(given.pages.iterdir()) if given.pages else []
    if given.count and files:
        files = random.Random(1).sample(files, min(given.count, len(files)))
    bodies = (one.read_bytes() for one in files) if files else map(made_page, range(given.count))
    if given.digest:
        print(digest(bodies))
        return
    pages = list(bodies)
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}, {platform.system()}")
    print(f"{len(pages)} pages of {sum(map(len, pages)) / len(pages) / 1000:.0f} kB, load {os.getloadavg()[0]:.1f}\n")
    best: dict[int, tuple[dict[str, float], float]] = {}
    for _ in range(given.rounds):
        for number, body in enumerate(pages):
            if (found := parts(body)) is not None:
                earlier = best.get(number, found)
                best[number] = (
                    {name: min(earlier[0][name], found[0][name]) for name in PARTS},
                    min(earlier[1], found[1]),
                )
    alone = sum(one for _, one in best.values())
    print("| part | ms a page, median | mean | of trafilatura by itself |\n|---|---|---|---|")
    for name in PARTS:
        took = [found[name] for found, _ in best.values()]
        print(f"| {name} | {1000 * median(took):.2f} | {1000 * mean(took):.2f} | {sum(took) / alone:.3f} |")
    whole = [sum(found.values()) for found, _ in best.values()]
    print(f"| all | {1000 * median(whole):.2f} | {1000 * mean(whole):.2f} | {sum(whole) / alone:.3f} |")
    by_itself = [one for _, one in best.values()]
    print(f"| trafilatura by itself | {1000 * median(by_itself):.2f} | {1000 * mean(by_itself):.2f} | 1 |")


if __name__ == "__main__":
    main()
