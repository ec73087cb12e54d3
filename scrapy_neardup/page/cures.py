"""What is to be done about an item of which the response is not the page."""

from __future__ import annotations

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.item import Item, ItemFields, joined
from scrapy_neardup.page.served import Served

#: Characters from which a field of an item may be its text.
_LEAST_TEXT = 40


def with_cure(error: ExtractionError, fields: ItemFields, item: Item, served: Served | None) -> ExtractionError:
    """The error with a cure, if the response is to blame for it."""
    if served is None or error.reason not in ("not_html", "other_page"):
        return error
    if error.reason == "not_html":
        return ExtractionError(error.reason, f"{error}. {_cure(fields, item)}")
    return ExtractionError(
        error.reason,
        f"the item's URL is not that of its response, {served.url}, which says nothing of it, then. "
        f"{_cure(fields, item)}; if it is not to be judged, have its request opt out: meta={{'neardup': False}}",
    )


def _cure(fields: ItemFields, item: Item) -> str:
    texts = {name: len(joined(item[name])) for name in item if name not in fields.names.values()}
    longest = max(texts, key=lambda name: texts[name], default="")
    own = "If it brings its text, name that field in NEARDUP_FIELDS"
    if texts.get(longest, 0) >= _LEAST_TEXT:
        own = f"If its text is what it holds in {longest!r}, say so: NEARDUP_FIELDS = {{'text': {longest!r}}}"
    return (
        f"{own}; if its page was an earlier response, have the request hand that over: "
        "meta={'neardup_response': response}"
    )
