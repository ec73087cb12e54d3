"""Documents that a command reads from files or a feed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scrapy_neardup.cli.output import progress, warn
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import STDIN
from scrapy_neardup.inspect.sources import open_feed
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.settings import Config
from scrapy_neardup.untrusted import one_line


def read_documents(command: str, config: Config, *names: str | Path) -> Iterator[Document]:
    """Yield the documents of files, read as a crawl with these settings would.

    Records without a document are a warning at the end. Raises NearDupError if there is no document.
    """
    count = 0
    with open_feed(config) as feed:
        for document in progress(feed.read(*names), what="documents read"):
            count += 1
            yield document
    if feed.left_out:
        why = ", ".join(f"{number:,} {one_line(reason)}" for reason, number in feed.left_out.most_common())
        warn(f"{command}: left out: {why}.")
    if not count:
        where = ", ".join("standard input" if str(name) == STDIN else str(name) for name in names)
        raise NearDupError(
            f"{where} contains no document with a text. Check that it is the right file. If the text has another "
            "field, name it in NEARDUP_FIELDS."
        )
