"""Documents through a detector with an empty state, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from scrapy_neardup.errors import PageError, SettingsError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET

#: Stores that can be made empty for a replay.
STORES = ("memory:", "leveldb:", "sqlite:")
#: Letters that a text needs to be judged; the pipeline's default.
MIN_LETTERS = 40

#: Returns the verdict on a page. Raises PageError.
Judge = Callable[[Page], Verdict]


@contextmanager
def open_empty_store(method: Method, url: str = "memory:") -> Iterator[PageStore]:
    """Open an empty store, one of ``STORES``; its files are gone afterwards."""
    if url not in STORES:
        raise SettingsError(f"An evaluation cannot use the store {url!r}. Use one of: {', '.join(STORES)}.")
    with TemporaryDirectory(prefix="neardup-") as folder:
        path = (Path(folder) / "state").as_uri().removeprefix("file:")
        store = open_store(url if url == "memory:" else url + path, method.recipe(), secret=NO_SECRET)
        try:
            yield store
        finally:
            close_store(store)


def make_judge(method: Method, store: PageStore, min_letters: int = MIN_LETTERS) -> Judge:
    """Return a judge that compares each page with originals, as a crawl does."""
    detector = Detector(method, store, who="replay", policy=Policy(min_letters))
    return partial(detector.judge_now, sealed=True)


def replay(documents: Iterable[Document], judge: Judge) -> Iterator[tuple[Document, Verdict]]:
    """Yield each document with its verdict.

    A page that the method cannot judge is unjudged, as in a crawl. Raises the method's error at the end if these are
    more than half of the pages.
    """
    why: PageError | None = None
    pages = refused = 0
    for document in documents:
        pages += 1
        try:
            verdict = judge(document.page)
        except PageError as error:
            why, refused = error, refused + 1
            verdict = Verdict(Kind.UNJUDGED, document.id, reason=error.reason)
        yield document, verdict
    if why is not None and 2 * refused > pages:
        raise why
