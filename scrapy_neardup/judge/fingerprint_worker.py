"""The main function of a worker that makes fingerprints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.fingerprint_tasks import packed, packed_title, pages_of
from scrapy_neardup.judge.speculation import Boilerplate, learned
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.worker import Message, answer_all


def main() -> None:
    """Answer every group of pages with their fingerprints."""
    answer_all(_begin)


def _begin(terms: dict[str, Any]) -> Callable[[Message], Message]:
    maker = Maker(terms)

    def answer(asked: Message) -> Message:
        maker.learn(asked)
        made, titles = zip(*map(maker.made, pages_of(asked)), strict=True)
        return Message({"made": made}, b"".join(titles))

    return answer


class Maker:
    """Makes fingerprints on the terms of ``TextTerms``."""

    def __init__(self, terms: dict[str, Any]) -> None:
        hashes = Keyed(bytes.fromhex(terms["secret"]))
        self._method = make_method(terms["method"], terms["parameters"]).under(hashes)
        self._known = Boilerplate()
        # Load what the first page would: it is not to be counted for its time and memory.
        self.made(Page("", "渡口重新开航", text="渡口今天早上重新开航，第一班船是空的。"))

    def learn(self, asked: Message) -> None:
        """Presume from now on what is said beside a question."""
        self._known = learned(asked.head, self._known)

    def made(self, page: Page) -> tuple[list[Any] | None, bytes]:
        """The fingerprint of a page, and of its title what is told in bytes.

        None where there is no fingerprint: why, is told when it is tried again with the state.
        """
        presumed = self._known.of(page.site)
        try:
            made = self._method.for_state(page, presumed)
            title = b"" if made.title is None else packed_title(self._method.carried(made.title))
            return packed(made, title, presumed.asked), title
        except Exception:
            return None, b""
