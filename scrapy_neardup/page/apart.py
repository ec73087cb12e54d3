"""Pages are read in a process that can be ended: those that may take long, and with workers all of them.

No limit on its input bounds what a parser and an extractor do with a page that was written to hold them up, and nothing
within a process ends them: no signal, no thread, no exception. So such pages (see ``risk``) are read in a ``child``,
which has some seconds and some megabytes for each and is replaced when it takes more, or dies of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.child import CannotStart, Child, ChildError, Died, TookTooLong
from scrapy_neardup.page.deadlines import Deadlines
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.response import PageContent
from scrapy_neardup.page.worker import Message

#: Seconds that a page may take unless something else is said.
MAX_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Terms:
    """On which a child reads: ``extractor`` is an import path, empty for our own reader; the limits of a page.

    ``only_quick``: pages that may take long are not read, but given back (``MayTakeLong``).
    """

    max_html: int
    max_text: int = MAX_TEXT
    seconds: float = MAX_SECONDS
    extractor: str = ""
    only_quick: bool = False

    @property
    def can_be_sent(self) -> bool:
        """Whether the extractor can be imported by another process."""
        return not self.extractor.startswith("__main__.")

    def reader(self, deadlines: Deadlines) -> Apart:
        """What reads on these terms."""
        return Apart(self, deadlines)


class MayTakeLong(Exception):
    """A page was not read, as that may take long; ``html`` is what it would be read from."""

    def __init__(self, html: str) -> None:
        super().__init__("reading it may take long")
        self.html = html


class NoReader(ExtractionError):
    """The child cannot be started."""


#: What comes of a page.
Answer = Page | ExtractionError | MayTakeLong


class Apart:
    """Reads pages in a child, one at a time, as ``Child`` says."""

    def __init__(self, terms: Terms, deadlines: Deadlines | None = None) -> None:
        self._seconds = terms.seconds
        self.child = Child("scrapy_neardup.page.elsewhere", asdict(terms), terms.seconds, "page", deadlines)

    def read(self, raw: PageContent, begun: Callable[[], None] = lambda: None) -> Page:
        """The page; raises ExtractionError, with ``too_slow`` or ``too_large`` if it took more than it may.

        ``begun`` is called once there is a child to read it, in the thread that asks. Raises NoReader if there is none,
        and MayTakeLong as ``Terms`` say.
        """
        try:
            return page_of(self.child.ask(raw.message(), begun))
        except ChildError as error:
            raise as_extraction_error(error, self._seconds) from None

    def answer(self, raw: PageContent, begun: Callable[[], None] = lambda: None) -> Answer:
        """The same, with what is raised as an answer."""
        try:
            return self.read(raw, begun)
        except (ExtractionError, MayTakeLong) as error:
            return error

    @property
    def process_id(self) -> int:
        """That of the child; 0 if there is none."""
        return self.child.process_id

    def close(self) -> None:
        """End the child, also in the midst of a page; whoever waits for that is told that it was too slow."""
        self.child.close()


def page_of(answer: Message) -> Page:
    """The page that a child has read; raises ExtractionError or MayTakeLong if it has read none."""
    head, content = answer
    if "page" in head:
        page: dict[str, Any] = head["page"]
        return Page(**{**page, "keywords": tuple(page["keywords"]), "quotes": tuple(page["quotes"])})
    if "reason" in head:
        raise ExtractionError(head["reason"], head["message"])
    raise MayTakeLong(content.decode("utf-8", "surrogatepass"))


def as_extraction_error(error: ChildError, seconds: float) -> ExtractionError:
    """Why there is no answer about a page that may take so many seconds, as it is counted and told."""
    if isinstance(error, CannotStart):
        return NoReader("too_slow", f"no worker could be started to read it: {error}")
    if isinstance(error, Died):
        return ExtractionError("too_large", "the worker that read it died twice")
    if isinstance(error, TookTooLong):
        return ExtractionError("too_slow", f"reading it takes more than {seconds:g} s")
    return ExtractionError("too_slow", "the crawl is over")
