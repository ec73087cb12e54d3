"""The item pipeline: has each item's page judged, and drops or tags the item."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem, NotConfigured

from scrapy_neardup.config import DROP, PASS, TAG, Config, is_enabled
from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.session import Session, opened_session
from scrapy_neardup.crawl.state import state_url, tell_of_scope
from scrapy_neardup.crawl.tickets import ticket_here
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.stores import parse_url


class _Dropped(DropItem):
    """Scrapy prints the whole item with its line about a drop; ours names the pages and is enough."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.sentence(), log_level="NOTSET")
        self.verdict = verdict


class DuplicatePage(_Dropped):
    """The page is a copy of another one; ``verdict`` says of which, and why."""


class UnchangedPage(_Dropped):
    """The page is the same as when its URL was last seen."""


class NearDupPipeline:
    """Put it into ITEM_PIPELINES: behind pipelines that clean items, before those that store them."""

    #: There from ``open_spider`` on, before which Scrapy sends no item.
    _session: Session

    def __init__(self, crawler: Crawler, config: Config, store_url: str) -> None:
        self._crawler = crawler
        self._config = config
        self._store_url = store_url

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupPipeline:
        """Read the settings; raises SettingsError, which keeps the crawl from starting."""
        if not is_enabled(crawler.settings):
            raise NotConfigured("NEARDUP_ENABLED is False: no page is judged.")
        config = Config.from_settings(crawler.settings)
        url = state_url(config, crawler.spider)
        tell_of_scope(config, url)
        return cls(crawler, config, url)

    def update_settings(self, settings: object) -> None:
        """Called of add-ons alone, and this is none: Scrapy would take it for one that has nothing to do."""
        raise SettingsError(
            "ADDONS names scrapy_neardup.NearDupPipeline, which is a pipeline and would not be called there. The "
            'add-on is ADDONS = {"scrapy_neardup.Addon": 500}; the pipeline alone, for items that bring their text, is '
            'ITEM_PIPELINES = {"scrapy_neardup.NearDupPipeline": 300}.'
        )

    def open_spider(self) -> Coroutine[Any, Any, None] | None:
        """Open the state; raises StoreError, which keeps the crawl from starting."""
        if self._config.on_store_error == "wait" and parse_url(self._store_url)[0].is_shared:
            return self._open_when_it_answers()
        self._session = Session(self._crawler, self._config, self._store_url)
        return None

    async def _open_when_it_answers(self) -> None:
        self._session = await opened_session(self._crawler, self._config, self._store_url)

    async def process_item(self, item: Any) -> Any:
        """Drop the item, or pass it on, tagged if that is asked for."""
        ticket, session = ticket_here(), self._session
        if ticket.visit.opted_out:
            session.notes.count(stats.OPTED_OUT)
            return item
        case = await session.judge.case(item, ticket.visit)
        action = self._config.action(case.verdict)
        if action == DROP and case.account is None:
            if not self._config.dry_run:
                raise (DuplicatePage if case.verdict.kind is Kind.DUPLICATE else UnchangedPage)(case.verdict)
            session.notes.count(stats.DRY_DROPPED)
        elif (
            action == DROP
        ):  # when the copy was filed the safety brake was on: it is on its way, and must not be dropped
            action = TAG
            session.notes.count(stats.BRAKE_PASSED)
        if case.account is not None:
            case.account.enter()
            ticket.account = case.account
        if self._config.dry_run:
            if action == TAG:
                session.notes.count(stats.DRY_TAGGED)
            action = TAG if self._config.tags_all else PASS
        if action == TAG:
            session.tagger.tag(item, case.verdict)
        return item
