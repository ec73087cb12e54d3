"""Milliseconds from HTML to the text that is judged, beside trafilatura as it comes, and for the same bytes again.

    python benchmarks/extraction.py [FOLDER] [--pages N]

FOLDER holds HTML files in UTF-8; without one, the pages of the example project are read. ``--pages N`` takes N of them,
evenly spaced in the order of their names, because neighbours are often of one site. All of it is measured page by page
in turn, so that what else the machine does falls on all alike; of two rounds the faster one counts for each page.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median

import lxml.html
import trafilatura

from scrapy_neardup import Deduplicator
from scrapy_neardup.model import Page
from scrapy_neardup.page.blocks import find_sections
from scrapy_neardup.page.extraction import analyse, read_head
from scrapy_neardup.page.html import decode, parse_page
from scrapy_neardup.page.reading import main_text, read_blocks, simplify, trafilatura_text

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 2
URL = "http://river.example/news/page.html"
#: Longer pages are not parsed in a crawl either.
LONGEST = 5_000_000

Times = dict[str, list[float]]


def works(html: str, known: Deduplicator) -> dict[str, Callable[[], object]]:
    """What is measured on a page; what one part needs of another is made beforehand."""
    known.check(url=URL, html=html)
    tree, article = parse(html), parse(html)
    blocks, sections = find_sections(article)
    main = main_text(article, blocks, sections)  # leaves the article alone in its tree
    return {
        "trafilatura as it comes": lambda: trafilatura.extract(html, url=URL),
        "ours, the whole": lambda: analyse(html, URL, max_html=LONGEST).page,
        "judged by the same bytes": lambda: known.check(url=URL, html=html),
        "  head": lambda: tree is not None and read_head(tree, URL),
        "  parsing": lambda: parse(html),
        "  visible blocks": lambda: find_sections(tree),
        "  trafilatura fast": lambda: article is not None and trafilatura_text(article, is_article=True),
        "  reading": lambda: read_blocks(Page(URL), blocks, main),
    }


def parse(html: str) -> lxml.html.HtmlElement | None:
    """The tree as its lines are found."""
    root = parse_page(html)
    if root is not None:
        simplify(root)
    return root


def measured(pages: Sequence[str]) -> Times:
    """CPU milliseconds of each work, page by page."""
    known = Deduplicator()
    for work in works(pages[0], known).values():  # what is loaded once
        work()
    found: Times = {name: [] for name in works("", known)}
    for number, html in enumerate(pages):
        turns = list(works(html, known).items())
        first = number % len(turns)  # none always comes when the caches are cold
        turns = turns[first:] + turns[:first]
        rounds = [{name: milliseconds(work) for name, work in turns} for _ in range(ROUNDS)]
        for name, own in found.items():
            own.append(min(one[name] for one in rounds))
    return found


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of this process."""
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1e3


def table(times: Times) -> str:
    """The figures, a line a work."""
    rows = [f"{'ms a page':24} {'median':>8} {'mean':>8}"]
    rows += [f"{name:24} {median(found):8.2f} {fmean(found):8.2f}" for name, found in times.items()]
    theirs, ours, *_ = times.values()
    ratios = [one / other for one, other in zip(ours, theirs, strict=True) if other]
    rows.append(f"{'ours / trafilatura':24} {median(ratios):8.2f} {sum(ours) / sum(theirs):8.2f}")
    return "\n".join(rows)


def example_pages() -> list[str]:
    """The pages of the example project, as they are served."""
    sys.path.insert(0, str(ROOT / "example_project"))
    from newsmirror.site import render_all

    return [decode(body, content_type) for body, content_type in render_all().values()]


def folder_pages(folder: Path, count: int | None) -> list[str]:
    """So many of the HTML files of a folder, evenly spaced in the order of their names."""
    files = sorted(folder.rglob("*.htm*"))
    count = min(count or len(files), len(files))
    return [files[n * len(files) // count].read_text("utf-8", "replace") for n in range(count)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--pages", type=int, help="how many at most")
    given = parser.parse_args(arguments)
    pages = folder_pages(given.folder, given.pages) if given.folder else example_pages()[: given.pages]
    if not pages:
        parser.error(f"{given.folder} holds no file whose name ends with .htm or .html")
    versions = ", ".join(f"{name} {version(name)}" for name in ("trafilatura", "lxml"))
    print(f"{platform.python_implementation()} {platform.python_version()}, {versions}, {os.cpu_count()} cores")
    lengths = [len(page) for page in pages]
    print(f"{len(pages)} pages; characters: median {median(lengths):,.0f}, mean {fmean(lengths):,.0f}")
    print(table(measured(pages)))


if __name__ == "__main__":
    main()
