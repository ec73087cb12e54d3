"""The verdict in a field of the item."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from itemadapter import ItemAdapter

from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.model import Verdict
from scrapy_neardup.oneline import line_logger

logger = line_logger(__name__)


class Tagger:
    """Tags items; one that has no such field passes untagged, and the log says once what to do."""

    def __init__(self, field: str, notes: Notes, close_crawl: Callable[[str], None] | None) -> None:
        """``close_crawl`` takes the reason, and is called where tags are all that the crawl is to give."""
        self._field = field
        self._notes = notes
        self._close_crawl = close_crawl

    def tag(self, item: Any, verdict: Verdict) -> None:
        """Put the verdict into its field."""
        try:
            ItemAdapter(item)[self._field] = verdict.as_tag()
        except Exception as error:  # each kind of item has its own way to refuse a field
            self._refused(item, error)

    def _refused(self, item: Any, error: Exception) -> None:
        if not self._notes.is_new("tag"):
            return
        level, consequence = logging.WARNING, "Items that NEARDUP_POLICY or the safety brake tags pass untagged."
        if self._close_crawl:
            level, consequence = logging.ERROR, "The crawl is closed; items that are on their way pass untagged."
        logger.log(
            level,
            "Items of class %s cannot be tagged: they have no field %r (%s). Give the class that field (a "
            "scrapy.Item: %s = scrapy.Field()), or name one that it has in NEARDUP_TAG_FIELD. %s",
            type(item).__name__,
            self._field,
            error,
            self._field,
            consequence,
        )
        if self._close_crawl:
            self._close_crawl("neardup_no_tag_field")
