"""One line in ADDONS switches everything on."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from scrapy_neardup.config import is_enabled
from scrapy_neardup.crawl.middleware import NearDupSpiderMiddleware, ResponsePipeline
from scrapy_neardup.crawl.pipeline import NearDupPipeline


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
