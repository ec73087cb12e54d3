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
        f"the item's URL is not that of its response ({served.url}), so that response cannot be its page. "
        f"{_cure(fields, item)}. To leave it out, set meta={{'neardup': False}} on its request",
    )


def text_cure(fields: ItemFields, item: Item) -> str:
    """What to set so that an item is judged by its own text."""
    texts = {name: len(joined(item[name])) for name in item if name not in fields.names.values()}
    longest = max(texts, key=lambda name: texts[name], default="")
    if texts.get(longest, 0) >= _LEAST_TEXT:
        return f"If the field {longest!r} is its text, set NEARDUP_FIELDS = {{'text': {longest!r}}}"
    return "If the item has its own text, name that field, for example NEARDUP_FIELDS = {'text': 'body'}"


def _cure(fields: ItemFields, item: Item) -> str:
    return (
        f"{text_cure(fields, item)}. If an earlier response is its page, set "
        "meta={'neardup_response': response} on its request"
    )
