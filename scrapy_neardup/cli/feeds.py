"""Feeds of documents that a command reads as a crawl would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from contextlib import closing, contextmanager, nullcontext

from scrapy_neardup.cli.output import warn
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import STDIN
from scrapy_neardup.lab.documents import FeedReader
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS, Config
from scrapy_neardup.untrusted import one_line


@contextmanager
def open_source(fields: Mapping[str, str], config: Config) -> Iterator[PageSource]:
    """Open what makes pages of records. Pages that may take long are read in another process, which ends with it."""
    risky_pool = config.make_risky_pool()
    with closing(risky_pool) if risky_pool else nullcontext():
        yield PageSource(
            fields,
            config.max_html,
            config.make_extractor(),
            max_text=config.max_text,
            read_risky=risky_pool.read if risky_pool else None,
        )


@contextmanager
def open_feed(config: Config) -> Iterator[FeedReader]:
    """Open a reader of feeds, which reads documents as a crawl with these settings would."""
    with open_source(config.fields, config) as source:
        yield FeedReader(config.fields, source, renamed=dict(config.fields) != DEFAULT_FIELDS)


def check_feed(command: str, feed: FeedReader, documents: Sized, name: str) -> None:
    """Warn about records that were left out; raises NearDupError if the feed has no document."""
    if feed.left_out:
        why = ", ".join(f"{count:,} {one_line(reason)}" for reason, count in feed.left_out.most_common())
        warn(f"{command}: left out of the feed: {why}.")
    if not len(documents):
        raise NearDupError(
            f"{'standard input' if name == STDIN else name} contains no document with a text. Check that it is the "
            "right file. If the text has another field, name it in NEARDUP_FIELDS."
        )
