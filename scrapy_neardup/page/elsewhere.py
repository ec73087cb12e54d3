"""What a child of ``apart`` does: it reads pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import Any

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, extract, is_too_large
from scrapy_neardup.page.html import is_risky
from scrapy_neardup.page.limits import limit_page
from scrapy_neardup.page.response import PageContent
from scrapy_neardup.page.worker import MEMORY, Message, answer_all


def main() -> None:
    """Answer every page with what was read of it."""
    answer_all(_begin)


def _begin(terms: dict[str, Any]) -> Callable[[Message], Message]:
    read = reader(terms)

    def answer(asked: Message) -> Message:
        found = read(asked)
        return found if isinstance(found, Message) else told(found)

    return answer


def reader(terms: dict[str, Any]) -> Callable[[Message], Page | Message]:
    """What reads a page on these terms, or answers why there is none."""
    extractor = _extractor(terms["extractor"])
    # Load what the first page would: it is not to be counted for its time and memory.
    extract("<p>The ferry sails again&#x300; after seven long months.</p>" * 3, "http://a.example/", max_html=1_000)
    return partial(_read, extractor, terms)


def told(page: Page) -> Message:
    """The page as it is sent."""
    return Message({"page": asdict(page)})


def _read(extractor: Extractor | None, terms: dict[str, Any], asked: Message) -> Page | Message:
    """The page; or what is answered: why there is none, or the HTML of one that may take long and was not asked for."""
    try:
        raw = PageContent.of_message(asked)
        html = raw.html()
        if terms["only_quick"] and not is_too_large(html, terms["max_html"]) and is_risky(html):
            return Message({}, html.encode("utf-8", "surrogatepass"))
        page = extract(html, raw.url, max_html=terms["max_html"], extractor=extractor)
        return limit_page(page, terms["max_text"])
    except ExtractionError as error:
        if not isinstance(error.__cause__, MemoryError):
            return Message({"reason": error.reason, "message": str(error)})
    except MemoryError:
        pass
    # It may have asked for so much that little is left for the next page.
    large = f"reading it takes more than {MEMORY // 10**6} MB"
    return Message({"reason": "too_large", "message": large, "full": True})


def _extractor(path: str) -> Extractor | None:
    if not path:
        return None
    module, _, name = path.rpartition(".")
    found: Extractor = getattr(import_module(module), name)
    return found
