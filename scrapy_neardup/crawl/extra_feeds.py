"""Feeds beside those of a crawl: the feed of dropped items, and the feeds that a dry run leaves out.

Scrapy's feed exporter writes the dropped items, with a crawler of its own. Its signals reach nobody, or the crawl's own
feeds would count as stored when this one is closed. Its errors change nothing else: the crawl goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from itemadapter import ItemAdapter
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FeedExporter
from scrapy.settings import SETTINGS_PRIORITIES, Settings
from scrapy.signalmanager import SignalManager
from scrapy.utils.project import get_project_settings
from w3lib.url import file_uri_to_path

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.kv.base import without_password
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

_SETTING = "NEARDUP_DROPPED_FEED"
#: Settings of the project for its own feeds that would be wrong here.
_DEFAULTS: Mapping[str, Any] = {"fields": None, "batch_item_count": 0}


class DroppedFeed:
    """Writes items of any class that are dropped as copies, as dicts with the verdict in a field."""

    def __init__(self, crawler: Crawler, feeds: Mapping[str, Mapping[str, Any]], field: str, notes: Notes) -> None:
        """``feeds``: as FEEDS. Raises SettingsError for one that Scrapy cannot write, or that is a feed already."""
        others = {place_of(str(uri)) for uri in crawler.settings.getdict("FEEDS")}
        if same := [uri for uri in feeds if place_of(uri) in others]:
            raise SettingsError(f"{_SETTING} is {same[0]!r}, which is already a feed of this crawl. Name another one.")
        try:
            self._exporter = FeedExporter(_IsolatedCrawler(crawler, feeds, self._failed))  # type: ignore[arg-type]
        except NotConfigured:
            raise SettingsError(
                f"Scrapy cannot write {_SETTING} ({', '.join(map(repr, feeds))}); its error above says why. Give a URI "
                "with a format as suffix (dropped.jsonl), or a dict like FEEDS."
            ) from None
        self._field = field
        self._notes = notes
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._item_dropped, signals.item_dropped)
        crawler.signals.connect(self._close, signals.spider_closed)

    def _open(self, spider: Spider) -> None:
        with self._report_errors():
            self._exporter.open_spider(spider)

    def _item_dropped(self, item: Any, exception: BaseException, spider: Spider) -> None:
        verdict = getattr(exception, "verdict", None)
        if not isinstance(verdict, Verdict) or verdict.kind is not Kind.DUPLICATE or not self._exporter.slots:
            return
        with self._report_errors():
            self._exporter.item_scraped({**ItemAdapter(item).asdict(), self._field: verdict.as_tag()}, spider)
            self._notes.count(stats.DROPPED_FEED)

    async def _close(self, spider: Spider) -> None:
        with self._report_errors():
            await self._exporter.close_spider(spider)

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # from a storage, an exporter, or a placeholder in a name
            self._failed(f"{type(error).__name__}: {error}")

    def _failed(self, why: str) -> None:
        self._notes.count(stats.DROPPED_FEED_FAILED)
        if self._notes.mark_logged("dropped feed"):
            logger.error(
                "The feed of %s cannot be written (%s). The crawl goes on without it. List the dropped pages with: "
                "scrapy neardup dropped --last. (Further errors are only counted.)",
                _SETTING,
                why,
            )


class _IsolatedCrawler:
    """The crawler as an exporter sees it, with this one feed."""

    def __init__(self, crawler: Crawler, feeds: Mapping[str, Mapping[str, Any]], failed: Callable[[str], None]) -> None:
        self._crawler = crawler
        self.signals = _NoSignals(crawler.signals)
        self.stats = _Stats(crawler.stats, failed)
        self.settings = Settings()
        self.settings.attributes = {**crawler.settings.attributes}
        for name, value in (("FEEDS", {uri: {**_DEFAULTS, **of} for uri, of in feeds.items()}), ("FEED_URI", None)):
            self.settings.attributes.pop(name, None)  # or the setting of the crawl itself would change
            self.settings.set(name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._crawler, name)


class _NoSignals(SignalManager):
    """Sends to nobody. A storage that connects a handler connects it to the crawl."""

    def __init__(self, real: SignalManager) -> None:
        super().__init__(self)
        self.connect = real.connect  # type: ignore[method-assign]
        self.disconnect = real.disconnect  # type: ignore[method-assign]


class _Stats:
    """The stats of the crawl without those of its own feeds."""

    def __init__(self, real: Any, failed: Callable[[str], None]) -> None:
        self._real = real
        self._failed = failed

    def inc_value(self, key: str, *arguments: Any, **more: Any) -> None:
        if key.startswith("feedexport/failed_count/"):
            self._failed("see the error above")
        elif not key.startswith("feedexport/"):
            self._real.inc_value(key, *arguments, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def keep_feeds_of_command_line(crawler: Crawler) -> list[str]:
    """For a dry run: open only the feeds of the command line; returns the others, without passwords.

    With ``-o`` and ``-O`` Scrapy adds the feeds of the project to those of the command line.
    """
    exporter, settings = crawler.get_extension(FeedExporter), crawler.settings
    if exporter is None:
        return []
    left_out = list(exporter.feeds)
    if settings["FEEDS"].maxpriority() >= SETTINGS_PRIORITIES["cmdline"]:
        of_settings = (*get_project_settings().getdict("FEEDS"), settings["FEED_URI"] or "")
        names = {str(uri.absolute()) if isinstance(uri, Path) else str(uri) for uri in of_settings}
        left_out = [uri for uri in left_out if uri in names]
    for uri in left_out:
        del exporter.feeds[uri]
    return [without_password(uri) for uri in left_out]


def place_of(uri: str) -> str:
    """The real path of a file, or the URI of any other feed."""
    scheme = urlsplit(uri).scheme
    if scheme in ("", "file"):
        return os.path.realpath(file_uri_to_path(uri) if scheme else uri)
    return uri
