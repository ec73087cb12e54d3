"""The add-on, and its pipeline, which judges each item, then drops it or adds a tag."""

from __future__ import annotations

import logging
from typing import Any

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem, NotConfigured
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import is_asyncio_available

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.delivery import leave_out_feeds
from scrapy_neardup.crawl.notes import log_refusal
from scrapy_neardup.crawl.session import Session
from scrapy_neardup.crawl.state_location import state_url
from scrapy_neardup.crawl.visits import NearDupSpiderMiddleware, ResponsePipeline, hold, use_ticket
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.model import Outcome, Verdict
from scrapy_neardup.settings import DROP, TAG, Config, read_setting
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)


class _Dropped(DropItem):
    """Without Scrapy's log line, which contains the whole item."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.sentence(), log_level="NOTSET")
        self.verdict = verdict


class DuplicatePage(_Dropped):
    """The item is dropped because its page is a copy. ``verdict`` names the original and the evidence."""


class UnchangedPage(_Dropped):
    """The item is dropped because its URL was delivered with the same text, or nearly the same (``minor_update``)."""


class NearDupPipeline:
    """The pipeline for ITEM_PIPELINES, after pipelines that clean items and before pipelines that store them."""

    #: None until the state is open.
    _session: Session | None = None

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupPipeline:
        """Read the settings. A SettingsError keeps the crawl from starting."""
        with log_refusal():
            if not read_setting(crawler.settings, "NEARDUP_ENABLED"):
                raise NotConfigured("NEARDUP_ENABLED is False, so no page is judged.")
            if not is_asyncio_available():
                raise SettingsError(
                    "NEARDUP_ENABLED needs Scrapy's asyncio reactor. Remove TWISTED_REACTOR from the settings, because "
                    "asyncio is the default."
                )
            return cls(crawler, Config.from_settings(crawler.settings))

    def update_settings(self, settings: object) -> None:
        """Raise SettingsError: Scrapy calls this only if ADDONS names the pipeline."""
        raise SettingsError(
            "ADDONS names scrapy_neardup.NearDupPipeline, which is a pipeline and does nothing there. Set "
            'ADDONS = {"scrapy_neardup.Addon": 500}; or, if items have their own text, only the pipeline: '
            'ITEM_PIPELINES = {"scrapy_neardup.NearDupPipeline": 300}.'
        )

    def open_spider(self) -> None:
        """Open the state. A SettingsError or StoreError keeps the crawl from starting.

        For ``scrapy shell``, ``fetch``, ``view``, ``parse`` and ``bench`` the state stays closed until an item comes.
        """
        if self._config.dry_run:
            leave_out_feeds(self._crawler)
        if not _is_crawl(self._crawler):
            return
        with log_refusal():
            self._open()

    def _open(self) -> Session:
        url = state_url(self._config, self._crawler.spider)
        self._session = Session(self._crawler, self._config, url)
        return self._session

    async def process_item(self, item: Any) -> Any:
        """Drop the item, or pass it on, with a tag if the settings ask for it."""
        session, config = self._session or self._open(), self._config
        ticket = use_ticket()
        if ticket.visit.opted_out:
            session.notes.count(stats.OPTED_OUT)
            return item
        with hold(item, self._crawler):
            page = await session.judge.judge(item, ticket.visit)
        action = config.action(page.verdict)
        if action == DROP:
            if not config.dry_run:
                raise (DuplicatePage if page.verdict.outcome is Outcome.DUPLICATE else UnchangedPage)(page.verdict)
            session.notes.count(stats.DRY_DROPPED)
        if page.reservation is not None:
            page.in_pipelines += 1
            ticket.page = page
        if action == TAG and not (config.drop and config.dry_run):
            self._tag(item, page.verdict, session)
        return item

    def _tag(self, item: Any, verdict: Verdict, session: Session) -> None:
        """Put the verdict into its field. An item without the field passes untagged, and the log names the cure.

        With ``DROP_DUPLICATES = False`` only tags count, so the crawl is closed.
        """
        field = self._config.tag_field
        try:
            ItemAdapter(item)[field] = verdict.as_tag()
        except Exception as error:  # each class of items has its own way to refuse a field
            if not session.notes.mark_logged("tag"):
                return
            closes = not self._config.drop
            logger.log(
                logging.ERROR if closes else logging.WARNING,
                "Items of class %s cannot be tagged, because they have no field %r (%s). Add that field to the class "
                "(a scrapy.Item: %s = scrapy.Field()), or name another field in NEARDUP_TAG_FIELD. %s",
                type(item).__name__,
                field,
                error,
                field,
                "The crawl is closed." if closes else "These items pass untagged.",
            )
            if closes:
                session.close_crawl("neardup_no_tag_field")


class Addon:
    """The add-on, for ``ADDONS = {"scrapy_neardup.Addon": 500}``. It adds the pipeline and its spider middleware.

    The pipeline has the priority 300, unless the project sets another one in ITEM_PIPELINES.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the three components, unless NEARDUP_ENABLED is false."""
        if not read_setting(settings, "NEARDUP_ENABLED"):
            return
        add = settings.setdefault_in_component_priority_dict
        add("SPIDER_MIDDLEWARES", NearDupSpiderMiddleware, -1_000_000)
        add("ITEM_PIPELINES", ResponsePipeline, -1_000_000)
        add("ITEM_PIPELINES", NearDupPipeline, 300)

    def open_spider(self) -> None:
        """Raise SettingsError: Scrapy calls this only if ITEM_PIPELINES names the add-on."""
        raise SettingsError(
            "ITEM_PIPELINES names scrapy_neardup.Addon, which is no pipeline. Move it to "
            'ADDONS = {"scrapy_neardup.Addon": 500}; it adds its pipeline itself.'
        )


def _is_crawl(crawler: Crawler) -> bool:
    """Whether this is a crawl and not one of Scrapy's tools for developers.

    ``scrapy shell`` drives the engine by hand. ``fetch``, ``view``, ``parse`` and ``bench`` give the spider another
    start. They must not wait for the lock of a crawl, and must not make a state.
    """
    start = getattr(crawler.spider, "start", None)
    return crawler.crawling and not getattr(start, "__module__", "").startswith("scrapy.commands.")
