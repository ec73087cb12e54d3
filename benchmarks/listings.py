"""What the default method says of articles around one listing: of two writers, and of a copy.

python benchmarks/listings.py ARTICLES CODE [--seed N]

ARTICLES are articles as ``scrapy neardup evaluate`` reads them; CODE is a folder with files of source code. Pairs of
articles of 300 to 4,000 characters get the same title and the same listing, a stretch of code or a drawn table, log or
JSON, of 2 to 10 times the length of the first article; each has it at a place of its own. Of the first article two
copies are made as well: one with an eighth of its lines left out and an eighth changed, listing and all, and one under
a new opening of 120 or 250 characters. Prints how many of each are dropped, and how many are kept because what both
share is the listing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

from scrapy_neardup.lab.documents import read_documents
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.model import Page

PAIRS = 100
SUFFIXES = {".py", ".c", ".h", ".js", ".java", ".go", ".rs"}


def stripped(text: str) -> str:
    """Without indentation and empty lines, as extraction leaves code."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def table(dice: random.Random) -> str:
    """Dates and numbers, separated by commas."""
    rows = ([f"2024-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}", dice.randint(100, 10**6)] for _ in range(900))
    return "\n".join(
        f"{day},{count},{dice.random() * 100:.2f},{dice.choice(['north', 'south'])}" for day, count in rows
    )


def log(dice: random.Random) -> str:
    """Lines of a web server."""
    return "\n".join(
        f"10.{dice.randint(10, 99)}.{dice.randint(1, 255)}.1 - - [12/Nov/2024:10:{dice.randint(10, 59)}] "
        f'"GET /{dice.choice("abcdef")}/{dice.randint(1, 9999)}.html HTTP/1.1" 200 {dice.randint(100, 9999)}'
        for _ in range(600)
    )


def data(dice: random.Random) -> str:
    """JSON, a value a line."""
    drawn = {f"key_{i}": {"id": dice.randint(1, 10**6), "tags": [dice.randint(1, 99), "x"]} for i in range(400)}
    return stripped(json.dumps(drawn, indent=1))


def edited(text: str, dice: random.Random) -> str:
    """An eighth of the lines left out, an eighth changed in three letters."""
    lines = [line for line in text.splitlines() if dice.random() > 1 / 8]
    for number, line in enumerate(lines):
        if len(line) > 10 and dice.random() < 1 / 8:
            at = dice.randrange(len(line) - 5)
            lines[number] = f"{line[:at]}{dice.choice(['', 'xyz'])}{line[at + 3 :]}"
    return "\n".join(lines)


def around(article: str, listing: str, share: float) -> str:
    """The article with the listing behind that share of it."""
    at = int(share * len(article))
    return f"{article[:at]}\n{listing}\n{article[at:]}"


def pages(articles: list[str], listing: str, dice: random.Random) -> tuple[Page, dict[str, Page]]:
    """The earlier page, and by what they are the later ones."""
    first, second, third = articles
    share, title = dice.random(), "One program for all"
    mixed = around(first, listing, share)
    texts = {
        "two writers": around(second, listing, dice.random()),
        "edited copy": around(edited(first, dice), edited(listing, dice), share),
        "copy under another opening": f"{third[: dice.choice([120, 250])]}\n{mixed}",
    }
    later = {name: Page(name, title, text=text, site="two.example") for name, text in texts.items()}
    return Page("first", title, text=mixed, site="one.example"), later


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("articles", type=Path, metavar="ARTICLES")
    parser.add_argument("code", type=Path, metavar="CODE")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice, method = random.Random(arguments.seed), Cascade()
    articles = [one.text for one in read_documents(arguments.articles) if 300 < len(one.text) < 4000]
    files = sorted(path for path in arguments.code.rglob("*") if path.suffix in SUFFIXES)
    code = [stripped(path.read_text(errors="replace")) for path in files if 3000 < path.stat().st_size < 60_000]
    makers: list[Callable[[random.Random], str]] = [lambda dice: dice.choice(code), table, log, data]
    counts: Counter[tuple[str, str]] = Counter()
    for number in range(PAIRS):
        chosen = dice.sample(articles, 3)
        listing = makers[number % len(makers)](dice)
        length = len(chosen[0]) * dice.choice([2, 4, 6, 10])
        start = dice.randrange(max(1, len(listing) - length))
        old, later = pages(chosen, listing[start : start + length], dice)
        sketch = method.fingerprint(old).sketch
        for name, page in later.items():
            new = method.fingerprint(page)
            counts[name, "dropped"] += method.compare(new, sketch, frozenset()).duplicate
            counts[name, "listing"] += "two articles" in method.explain(new, sketch, frozenset()).decision
    command = " ".join(map(shlex.quote, ["python", *sys.argv]))
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores of {platform.machine()}; {command}\n")
    rows = [[name, PAIRS, counts[name, "dropped"], counts[name, "listing"]] for name in later]
    print(tabulate(rows, ["", "pairs", "dropped", "kept for the listing"], tablefmt="github"))


if __name__ == "__main__":
    main()
