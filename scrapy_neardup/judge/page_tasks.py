"""Pages read and fingerprinted in worker processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.judge.fingerprint_tasks import Prepared, TextTerms, unpacked_one
from scrapy_neardup.judge.speculation import BoilerplateUpdates
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import Answer, MayTakeLong, Terms, as_extraction_error, page_of
from scrapy_neardup.page.child import Child, ChildError
from scrapy_neardup.page.deadlines import Deadlines
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.page.response import PageContent
from scrapy_neardup.page.worker import Message


class ReadPage(NamedTuple):
    """A page as it was read, and its fingerprint, if that was made ahead, after ``ItemMetadata.apply_to``."""

    page: Page
    prepared: Prepared | None = None


@dataclass(frozen=True, slots=True)
class ReadingTerms:
    """On which a child reads pages, and makes fingerprints; both must be such that they can be sent."""

    pages: Terms
    texts: TextTerms

    def reader(self, deadlines: Deadlines) -> PageReader:
        """What reads on these terms."""
        return PageReader(self, deadlines)


class PageReader:
    """Has pages read in a child, one at a time."""

    def __init__(self, terms: ReadingTerms, deadlines: Deadlines | None = None) -> None:
        self._seconds = terms.pages.seconds
        told = {"seconds": self._seconds, "page": asdict(terms.pages), "text": terms.texts.told()}
        self.child = Child("scrapy_neardup.judge.page_worker", told, self._seconds, "page", deadlines)
        self._lessons = BoilerplateUpdates(terms.texts.known, self.child)

    def answer(self, raw: PageContent, begun: Callable[[], None] = lambda: None) -> ReadPage | Answer:
        """The page with its fingerprint, or why it was not read."""
        head, content = raw.message()
        try:
            with self._lessons.told() as lessons:
                answer = self.child.ask(Message({**head, **lessons}, content), begun)
            page, made = page_of(answer), answer.head["made"]
        except ChildError as error:
            return as_extraction_error(error, self._seconds)
        except (ExtractionError, MayTakeLong) as error:
            return error
        return ReadPage(page, made and unpacked_one(made, answer.content, self._lessons.known))


#: Reads pages, with or without their fingerprints.
Readers = Pool[PageContent, ReadPage | Page | MayTakeLong]
