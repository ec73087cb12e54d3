"""Records of a feed that are no documents."""

from __future__ import annotations

from pathlib import Path

from scrapy_neardup.cli.output import warn
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import STDIN
from scrapy_neardup.lab.documents import DocumentReader
from scrapy_neardup.untrusted import one_line


def check_feed(command: str, feed: DocumentReader, count: int, *names: str | Path) -> None:
    """Warn about records that were left out. Raises NearDupError if ``count`` of the documents is 0."""
    if feed.left_out:
        why = ", ".join(f"{number:,} {one_line(reason)}" for reason, number in feed.left_out.most_common())
        warn(f"{command}: left out: {why}.")
    if not count:
        where = ", ".join("standard input" if str(name) == STDIN else str(name) for name in names)
        raise NearDupError(
            f"{where} contains no document with a text. Check that it is the right file. If the text has another "
            "field, name it in NEARDUP_FIELDS."
        )
