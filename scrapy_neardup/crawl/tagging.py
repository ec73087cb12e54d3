"""The verdict in a field of the item, and in columns of a feed in CSV."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exporters import CsvItemExporter

from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.files.writers import as_cells
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.settings import Config
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: The parts of a tag, in their order.
_PARTS = tuple(Verdict(Kind.UNIQUE, "").as_tag())


class Tagger:
    """Tags items. An item without the field passes untagged, and the log says once what to do."""

    def __init__(self, field: str, notes: Notes, close_crawl: Callable[[str], None] | None) -> None:
        """``close_crawl`` gets the reason. It is given where tags are all that the crawl is for."""
        self._field = field
        self._notes = notes
        self._close_crawl = close_crawl

    def tag(self, item: Any, verdict: Verdict) -> None:
        """Put the verdict into its field."""
        try:
            ItemAdapter(item)[self._field] = verdict.as_tag()
        except Exception as error:  # each class of items has its own way to refuse a field
            if not self._notes.mark_logged("tag"):
                return
            logger.log(
                logging.ERROR if self._close_crawl else logging.WARNING,
                "Items of class %s cannot be tagged, because they have no field %r (%s). Add that field to the class "
                "(a scrapy.Item: %s = scrapy.Field()), or name another field in NEARDUP_TAG_FIELD. %s",
                type(item).__name__,
                self._field,
                error,
                self._field,
                "The crawl is closed." if self._close_crawl else "These items pass untagged.",
            )
            if self._close_crawl:
                self._close_crawl("neardup_no_tag_field")


class TaggedCsvExporter(CsvItemExporter):
    """Scrapy's CSV with a column for each part of a tag, as ``dedup`` writes it."""

    _tag_field = Config().tag_field

    @classmethod
    def from_crawler(cls, crawler: Crawler, *arguments: Any, **options: Any) -> TaggedCsvExporter:
        """An exporter that knows NEARDUP_TAG_FIELD, also among the columns that the project names."""
        exporter = cls(*arguments, **options)
        exporter._tag_field = name = crawler.settings.get("NEARDUP_TAG_FIELD") or cls._tag_field
        if isinstance(columns := exporter.fields_to_export, Mapping):
            named = [(one, columns[one]) for one in columns]
            exporter.fields_to_export = {
                f"{one}{part}": f"{column}{part}" for one, column in named for part in _parts(one == name)
            }
        elif columns:
            exporter.fields_to_export = [f"{one}{part}" for one in columns for part in _parts(one == name)]
        return exporter

    def export_item(self, item: Any) -> None:
        """Write a row; an item without the tag field is written as it is."""
        adapter, name = ItemAdapter(item), self._tag_field
        fields = list(adapter.field_names())
        tag = adapter.get(name)
        if name not in fields or not (tag is None or isinstance(tag, Mapping)):
            super().export_item(item)
            return
        row: dict[str, Any] = {}
        for field in fields:
            if field == name:
                row |= {f"{name}{part}": "" for part in _parts(True)} | as_cells({}, tag, name)
            else:
                value = adapter.get(field, "")
                row[field] = self.serialize_field(adapter.get_field_meta(field), field, value)
        super().export_item(row)


def _parts(is_tag: bool) -> tuple[str, ...]:
    """The suffixes of a field's columns."""
    return tuple(f".{part}" for part in _PARTS) if is_tag else ("",)
