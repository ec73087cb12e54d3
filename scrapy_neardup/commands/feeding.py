"""The documents of a feed for commands that look at whole corpora, read as a crawl with these settings would."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sized
from contextlib import closing, contextmanager, nullcontext

from scrapy_neardup.config import DEFAULT_FIELDS, Config
from scrapy_neardup.crawl.state import page_extractor
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.evaluation.feed import FeedReader
from scrapy_neardup.inputs import STDIN
from scrapy_neardup.oneline import one_line
from scrapy_neardup.page.source import PageSource


@contextmanager
def opened_feed(config: Config) -> Iterator[FeedReader]:
    """What reads feeds; pages that may take long are read in a process of their own, which ends with it."""
    apart = config.make_apart()
    with closing(apart) if apart else nullcontext():
        source = PageSource(
            config.fields,
            config.max_html,
            page_extractor(config),
            max_text=config.max_text,
            apart=apart.read if apart else None,
        )
        yield FeedReader(config.fields, source, renamed=dict(config.fields) != DEFAULT_FIELDS)


def check_read(command: str, feed: FeedReader, documents: Sized, name: str) -> None:
    """A line on standard error if records were left out; raises NearDupError if there is no document."""
    if feed.left_out:
        why = ", ".join(f"{count:,} {one_line(reason)}" for reason, count in feed.left_out.most_common())
        sys.stderr.write(f"{command}: left out of the feed: {why}.\n")
    if not len(documents):
        read = "standard input" if name == STDIN else name
        raise NearDupError(
            f"{read} contains no document with a text. Check that it is the right file. If the text has another "
            "field, name it in NEARDUP_FIELDS."
        )
