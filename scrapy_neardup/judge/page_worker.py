"""The main function of a worker that reads and fingerprints pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy_neardup.judge.fingerprint_worker import Maker
from scrapy_neardup.page import elsewhere
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.worker import Message, answer_all


def main() -> None:
    """Answer every page with what was read of it, and its fingerprint."""
    answer_all(_begin)


def _begin(terms: dict[str, Any]) -> Callable[[Message], Message]:
    read, maker, max_text = elsewhere.reader(terms["page"]), Maker(terms["text"]), terms["page"]["max_text"]

    def answer(asked: Message) -> Message:
        maker.learn(asked)
        page = read(asked)
        if isinstance(page, Message):
            return page
        made, title = maker.made(ItemMetadata.from_json(asked.head["metadata"]).apply_to(page, page.url, max_text))
        return Message({**elsewhere.told(page).head, "made": made}, title)

    return answer
