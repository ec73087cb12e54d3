"""One line in ADDONS switches everything on."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from scrapy_neardup.config import is_enabled
from scrapy_neardup.crawl.middleware import NearDupSpiderMiddleware, ResponsePipeline
from scrapy_neardup.crawl.pipeline import NearDupPipeline
from scrapy_neardup.errors import SettingsError


class Addon:
    """``ADDONS = {"scrapy_neardup.Addon": 500}``: the pipeline, and what hands it each item's response.

    A priority that the project gives the pipeline in ITEM_PIPELINES is kept; by default it is 300.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the three components, unless NEARDUP_ENABLED is false."""
        if not is_enabled(settings):
            return
        add = settings.setdefault_in_component_priority_dict
        add("SPIDER_MIDDLEWARES", NearDupSpiderMiddleware, -1_000_000)
        add("ITEM_PIPELINES", ResponsePipeline, -1_000_000)
        add("ITEM_PIPELINES", NearDupPipeline, 300)

    def open_spider(self) -> None:
        """Called of pipelines alone, and this is none: Scrapy would take it for one that has nothing to do."""
        raise SettingsError(
            "ITEM_PIPELINES names scrapy_neardup.Addon, which is no pipeline: it stands in "
            'ADDONS = {"scrapy_neardup.Addon": 500}, and brings its pipeline along.'
        )
