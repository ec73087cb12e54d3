"""What a child of ``preparer`` does: it makes the fingerprints of pages, as the state would that it does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.width import KeyWidth
from scrapy_neardup.judging.prepared import packed, packed_title, pages_of
from scrapy_neardup.judging.presumed import Boilerplate
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.worker import Message, answer_all


def main() -> None:
    """Answer every group of pages with their fingerprints."""
    answer_all(_begin)


def _begin(terms: dict[str, Any]) -> Callable[[Message], Message]:
    hashes = Keyed(bytes.fromhex(terms["secret"]), KeyWidth(terms["bits"]))
    method = make_method(terms["method"], terms["parameters"]).under(hashes)
    known = Boilerplate()
    # Load what the first page would: it is not to be counted for its time and memory.
    _prepared(method, Page("", "渡口重新开航", text="渡口今天早上重新开航，第一班船是空的。"), known)

    def answer(asked: Message) -> Message:
        nonlocal known
        if asked.head["are_all"]:
            known = Boilerplate()
        for site, sentence, is_common in asked.head["lessons"]:
            known.take((site, sentence, is_common))
        made, titles = zip(*(_prepared(method, page, known) for page in pages_of(asked)), strict=True)
        return Message({"made": made}, b"".join(titles))

    return answer


def _prepared(method: Method, page: Page, known: Boilerplate) -> tuple[list[Any] | None, bytes]:
    """The fingerprint of a page, and of its title what is told in bytes.

    None where there is no fingerprint: why, is told when it is tried again with the state.
    """
    presumed = known.of(page.site)
    try:
        made = method.for_state(page, presumed)
        title = b"" if made.title is None else packed_title(method.carried(made.title))
        return packed(made, title, presumed.asked), title
    except Exception:
        return None, b""
