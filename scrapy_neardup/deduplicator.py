"""The verdicts of a crawl for a script: a loop, a table, a notebook."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any

from scrapy_neardup.config import DEFAULT_FIELDS, Config, load_extractor
from scrapy_neardup.errors import NearDupError, PageError, SettingsError, StoreError, StoreLocked, UsageError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.glance import glance
from scrapy_neardup.judging.now import Now
from scrapy_neardup.judging.recipe import check_tools, state_recipe, take_over
from scrapy_neardup.judging.reservations import Blocked, Ruling
from scrapy_neardup.judging.shared_now import judging_now
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.apart import MAX_SECONDS
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.served import Served
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import Draft, PageSource
from scrapy_neardup.stores import STORES, Store, close_store, open_store, parse_url

logger = line_logger(__name__)

#: Whoever judges holds it: two may share a store, and two threads in lxml at once bring the process down.
_TURN = RLock()


class Deduplicator:
    """Judges pages one after the other, each against all that a state holds, and remembers them there.

    ``store`` is the URL of a state, as for NEARDUP_STORE, or a path, which is that of a SQLite file. What follows are
    settings of a crawl by their names; a crawl with the same ones can use the same state, before or afterwards. One
    process at a time holds a state (one on a server any number share); within it any number may, from any threads,
    which wait for each other. Close it, or use it in a ``with``: there is nothing that closes it later.

    Raises SettingsError or StoreError, each with what to do: both are NearDupErrors.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] = "memory:",
        *,
        method: str | type[Method] = "cascade",
        parameters: Mapping[str, Any] | None = None,
        extractor: str | Callable[[str, str], str | None] = "",
        policy: Mapping[str, str] | None = None,
        keep: str = "evidence",
        secret: str = "",
        min_letters: int = 40,
        max_html: int = 5_000_000,
        max_text: int = MAX_TEXT,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        given = {
            "NEARDUP_METHOD": method,
            "NEARDUP_PARAMETERS": parameters or {},
            "NEARDUP_EXTRACTOR": extractor,
            "NEARDUP_POLICY": policy or {},
            "NEARDUP_KEEP": keep,
            "NEARDUP_SECRET": secret,
            "NEARDUP_MIN_LETTERS": min_letters,
            "NEARDUP_MAX_HTML": max_html,
            "NEARDUP_MAX_TEXT": max_text,
            "NEARDUP_MAX_SECONDS": max_seconds,
        }
        self._told: set[str] = set()
        self._process = os.getpid()
        with _in_words_of_a_script(), _TURN:
            config = Config.from_settings(given)
            own = load_extractor(config.extractor) if config.extractor else None
            judging = config.make_method()
            recipe = state_recipe(judging, own)
            self._store = open_store(_url(store), recipe, "store", config.secret)
            try:
                check_tools(self._store, strict=False, say=logger.warning)
                if changed := take_over(self._store, recipe, config.deciding(judging)):
                    logger.info("The state at %s %s.", self._store.location, changed)
                _tell_taken_back(self._store)
                self._detector = _detector(judging, self._store, config)
                self._glancing = _detector(judging, glance(self._store), config)
                self._now: Now = judging_now(self._detector, config.wait)
            except BaseException:
                close_store(self._store)
                raise
        self._apart = config.make_apart()
        self._closed = False
        self._source = PageSource(
            DEFAULT_FIELDS,
            config.max_html,
            own,
            max_text=config.max_text,
            apart=self._apart.read if self._apart else None,
            is_unchanged=self._detector.is_unchanged,
            bodies=self._detector.bodies,
        )

    def check(
        self,
        *,
        url: str = "",
        text: str | None = None,
        html: str | bytes | None = None,
        title: str | None = None,
        keywords: str | Sequence[str] = (),
        description: str | None = None,
        content_type: str = "",
        remember: bool = True,
    ) -> Verdict:
        """The verdict on a page, by its text or else by its HTML, as in a crawl.

        The page counts from then on, for good, under its URL: a copy as a copy, any other as one that later pages are
        held against. The same URL again is ``unchanged`` or ``updated``. Without one a page is known by what it says.
        ``remember=False`` looks, and leaves no trace.

        HTML that comes as bytes is decoded by ``content_type``, the header that came with it, and by what it says
        itself. Where there is neither text nor HTML (None, or a missing value of a table) the page is ``unjudged``.

        Raises StoreError if the state fails, UsageError for what is no text, or after ``close``.
        """
        text, title, description = _string("text", text), _string("title", title), _string("description", description)
        html = html if isinstance(html, bytes) else _string("html", html)
        words = _words(keywords)
        url = _string("url", url).strip() or _name(text or html, title)
        item = {"url": url, "text": text, "title": title, "keywords": words, "description": description}
        served = None
        if isinstance(html, bytes):
            served = Served(url, html, content_type=_string("content_type", content_type) or None) if html else None
        else:
            item["html"] = html
        with _TURN:
            self._see_that_it_is_open()
            return self._checked(item, served, url, remember=remember)

    def close(self) -> None:
        """Let go of the state; a second call does nothing. Raises StoreError if the state fails."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        with _TURN:
            try:
                self._now.close()
                self._detector.end()
            finally:
                if self._apart is not None:
                    self._apart.close()
                close_store(self._store)

    def __enter__(self) -> Deduplicator:
        self._see_that_it_is_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self._store.pages:,} pages"
        return f"<Deduplicator on {self._store.url(self._store.location)}, {state}>"

    def _checked(self, item: Mapping[str, Any], served: Served | None, url: str, *, remember: bool) -> Verdict:
        """What becomes of whatever is wrong with a page is what becomes of it in a crawl: it is unjudged."""
        if not (item["text"] or item.get("html") or served):
            return Verdict(Kind.UNJUDGED, url, reason="no_content")
        try:
            page = self._source.draft(item, served, url)
            if isinstance(page, Draft):
                if (verdict := self._by_bytes(page, remember=remember)) is not None:
                    return verdict
                page = self._source.read(page)
            if url.startswith(_NAMELESS):  # it may be the third that says "see attachment": no page of its own
                page = replace(page, html=0)
            if remember:
                return self._now.judge(page, sealed=True)
            return self._seen(url, self._glancing.check(page))
        except PageError as error:
            self._tell(url, error.reason, str(error).partition(". ")[0])  # what follows is to be done in a crawl
            return Verdict(Kind.UNJUDGED, url, reason=error.reason)
        except StoreError:
            raise
        except Exception:  # a page that no one foresaw must not cost the others; the traceback says what to mend
            logger.exception("%s could not be judged.", url)
            return Verdict(Kind.UNJUDGED, url, reason="method_failed")

    def _by_bytes(self, draft: Draft, *, remember: bool) -> Verdict | None:
        """The verdict on a page that need not be read."""
        url = draft.raw.url
        if remember:
            return self._now.judge_bytes(url, site_of(url), draft.body, sealed=True)
        ruling = self._glancing.check_bytes(url, site_of(url), draft.body)
        return None if ruling is None else self._seen(url, ruling)

    def _seen(self, url: str, ruling: Ruling) -> Verdict:
        if isinstance(ruling, Blocked):
            return Verdict(Kind.UNJUDGED, url, reason="in_flight")
        if ruling.reservation is not None:
            self._glancing.release(ruling.reservation)
        verdict = ruling.verdict
        return verdict if self._store.record(verdict.id) else replace(verdict, id=0)

    def _tell(self, url: str, reason: str, why: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            logger.warning("unjudged (%s): %s: %s. (Further ones are not told.)", reason, url, why.rstrip("."))

    def _see_that_it_is_open(self) -> None:
        if os.getpid() != self._process:
            raise UsageError(
                "This Deduplicator was opened in another process, of which this one is a copy. One process at a time "
                "holds a state: have the others hand their pages to it, or give each a state of its own."
            )
        if self._closed:
            raise UsageError("This Deduplicator is closed; make another one, or end the 'with' after the last check.")


#: How the name of a page begins that has no URL.
_NAMELESS = "text:"


def _detector(method: Method, store: Store, config: Config) -> Detector:
    return Detector(
        method,
        store,
        min_letters=config.min_letters,
        who="a script",
        also_copies=config.also_copies,
        passes=config.passes,
        keep=config.keep,
    )


def _tell_taken_back(store: Store) -> None:
    if back := store.taken_back.pages:
        logger.warning(
            "%d pages were taken back from the state: the crawl that added them (%s) was killed, or its feed was not "
            "stored. They are judged anew when they come again.",
            back,
            ", ".join(store.taken_back.crawls) or "unknown",
        )


def _url(store: str | os.PathLike[str]) -> str:
    """The URL of the state that is asked for."""
    if isinstance(store, str):
        try:
            kind, location = parse_url(store, "store")
        except SettingsError as error:
            raise SettingsError(f"{error} A path such as pathlib.Path('seen.db') will do as well.") from None
        if kind.lasts and Path(location).parent == Path(location).parent.parent:
            logger.warning(
                "The state is %s, in the root directory: a URL names an absolute path. For a file in the working "
                "directory give a path: Deduplicator(pathlib.Path(%r)).",
                location,
                Path(location).name,
            )
        return store
    if not isinstance(store, os.PathLike):
        raise UsageError(f"store is {store!r}; it must be a path, or {STORES.forms()}.")
    path = str(Path(store).absolute())
    return STORES["leveldb" if STORES["leveldb"].exists(path) else "sqlite"].url(path)


def _string(name: str, value: Any) -> str:
    """A string, or an empty one for nothing: None, and what stands for it in tables."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and value != value):  # not a number
        return ""
    raise UsageError(
        f"{name} is {value!r}, a {type(value).__name__}; it must be a string"
        + (", which bytes become by .decode()." if isinstance(value, bytes) else ", or None where there is none.")
    )


def _words(keywords: Any) -> str | list[str]:
    if isinstance(keywords, (list, tuple)):
        return [_string("keywords", word) for word in keywords]
    return _string("keywords", keywords)


def _name(content: str | bytes, title: str) -> str:
    """What a page is known by that has no URL: the same text under another title is another page."""
    return f"{_NAMELESS}{OPEN.of(f'{content!s}{title}'):016x}"


@contextmanager
def _in_words_of_a_script() -> Iterator[None]:
    """What is said of a crawl and its settings, as it is to be said of our parameters."""
    try:
        yield
    except StoreLocked as error:
        raise StoreLocked(
            f"{str(error).partition('. ')[0]}. Wait until it has ended, close its Deduplicator (a notebook keeps one "
            "open until its kernel is shut down), or give this one a state of its own by another store."
        ) from None
    except NearDupError as error:
        raise type(error)(_SETTING.sub(_parameter, str(error))) from None


_SETTING = re.compile(r"\bNEARDUP_([A-Z_]+)")


def _parameter(found: re.Match[str]) -> str:
    """The parameter that stands for a setting; a setting that has none stays."""
    name = found[1].lower()
    return name if name in signature(Deduplicator).parameters else found[0]
