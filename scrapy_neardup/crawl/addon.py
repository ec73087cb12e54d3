"""One line in ADDONS switches everything on."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from scrapy_neardup.crawl.middleware import NearDupSpiderMiddleware, ResponsePipeline
from scrapy_neardup.crawl.pipeline import NearDupPipeline
from scrapy_neardup.crawl.tagging import TaggedCsvExporter
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.settings import is_enabled

#: Scrapy's exporter for CSV, unless a project names another one.
_CSV = "scrapy.exporters.CsvItemExporter"


class Addon:
    """The add-on, for ``ADDONS = {"scrapy_neardup.Addon": 500}``. It adds the pipeline and its spider middleware.

    The pipeline has the priority 300, unless the project sets another one in ITEM_PIPELINES.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the three components, and the columns of tags in CSV, unless NEARDUP_ENABLED is false."""
        if not is_enabled(settings):
            return
        add = settings.setdefault_in_component_priority_dict
        add("SPIDER_MIDDLEWARES", NearDupSpiderMiddleware, -1_000_000)
        add("ITEM_PIPELINES", ResponsePipeline, -1_000_000)
        add("ITEM_PIPELINES", NearDupPipeline, 300)
        exporters = settings["FEED_EXPORTERS_BASE"]
        if exporters.get("csv") == _CSV:
            exporters["csv"] = TaggedCsvExporter

    def open_spider(self) -> None:
        """Raise SettingsError: Scrapy calls this only if ITEM_PIPELINES names the add-on."""
        raise SettingsError(
            "ITEM_PIPELINES names scrapy_neardup.Addon, which is no pipeline. Move it to "
            'ADDONS = {"scrapy_neardup.Addon": 500}; it adds its pipeline itself.'
        )
