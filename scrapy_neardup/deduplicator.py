"""The verdicts of a crawl for scripts and notebooks."""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any
from weakref import WeakSet

from scrapy_neardup.errors import NearDupError, SettingsError, StoreLocked, UsageError
from scrapy_neardup.files import Entry
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.recipes import need_lasting_method, state_recipe, take_over
from scrapy_neardup.judge.records import Batch, open_judge
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Verdict
from scrapy_neardup.page.item import TEXT_PREFIX
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.settings import DEFAULT_FIELDS, Config
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.urls import STORES, parse_url
from scrapy_neardup.untrusted import line_logger
from scrapy_neardup.workers.worker import MAX_SECONDS

logger = line_logger(__name__)

_SETTING = re.compile(r"\bNEARDUP_([A-Z_]+)")
#: Only one thread judges at a time: stores are not thread-safe, and two threads in lxml crash the process.
_LOCK = RLock()


def _renew_lock() -> None:
    """A thread of the parent process may hold the lock of a forked child, which would wait for ever."""
    global _LOCK  # noqa: PLW0603  # a lock cannot be renewed
    _LOCK = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Deduplicator:
    """Judge pages one by one against a state, and remember them there.

    ``store`` is the URL of a state, as in NEARDUP_STORE, or the path of a SQLite file. The other arguments are settings
    of a crawl. A crawl with the same settings can use the same state before or afterwards.

    One process may use a state at a time; any number may share a state on a server. Threads of one process may share a
    state and wait for each other. Close a Deduplicator, or use it in a ``with``.

    Raises SettingsError or StoreError, both NearDupErrors. The message says what to do.
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
        settings = {
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
        self._process = os.getpid()
        with _errors_by_parameter(), _LOCK, ExitStack() as opened:  # whatever fails, nothing stays open
            config = Config.from_settings(settings)
            chosen = config.make_method()
            recipe = state_recipe(chosen, config.make_extractor())
            url = _state_url(store)
            need_lasting_method(chosen, url)
            self._store = open_store(url, recipe, "store", config.secret)
            opened.callback(close_store, self._store)
            deciding = config.deciding(chosen)
            take_over(self._store, recipe, deciding, warn=logger.warning, inform=logger.info)
            if self._store.rolled_back.pages:
                logger.warning("%s", self._store.rolled_back.describe_rollback())
            self._detector = detector = Detector(chosen, self._store, who="a script", policy=config.make_policy())
            opened.callback(detector.end)
            judge = opened.enter_context(open_judge(detector, config.wait, sealed=True))
            source = config.open_source(DEFAULT_FIELDS, bodies=detector.bodies, hashes_items=False)
            self._records = Batch(detector, judge, opened.enter_context(source))
            self._opened = opened.pop_all()
        self._is_closed = False
        _OPEN.add(self)

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
        """Return the verdict on a page, judged by its text, or else by its HTML, as in a crawl.

        The state remembers the page under its URL, and later pages are compared with it. The same URL again is
        ``unchanged``, ``minor_update`` or ``updated``. Without a URL, a page is known by its text. With
        ``remember=False`` the state does not change.

        HTML given as bytes is decoded by ``content_type`` (the header of the response) and by its own declaration. A
        page with neither text nor HTML (None, or a missing value of a table) is ``unjudged``.

        Raises StoreError if the state fails, and UsageError for wrong arguments or after ``close``.
        """
        texts = {"url": url, "text": text, "title": title, "description": description, "content_type": content_type}
        fields: dict[str, Any] = {name: _string(name, value) for name, value in texts.items()}
        content_type = fields.pop("content_type")
        if isinstance(keywords, (list, tuple)):
            fields["keywords"] = [_string("keywords", word) for word in keywords]
        else:  # words in one string are split
            fields["keywords"] = _string("keywords", keywords)
        html = html if isinstance(html, bytes) else _string("html", html)
        own = f"{fields['text'] or html!s}{fields['title']}"
        url = fields["url"] = fields["url"].strip() or f"{TEXT_PREFIX}{OPEN.of(own):016x}"
        if isinstance(html, str):
            fields["html"], html = html, b""
        entry = Entry(url, 0, "", fields, html=html, content_type=content_type)
        with _LOCK:
            self._check_open()
            return self._records.judge(entry, remember=remember).verdict

    def close(self) -> None:
        """Release the state. A second call does nothing. Raises StoreError if the state fails."""
        if self._is_closed or os.getpid() != self._process:
            return
        self._is_closed = True
        with _LOCK:
            self._opened.close()

    def __enter__(self) -> Deduplicator:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{self._store.pages:,} pages"
        return f"<Deduplicator on {self._store.location}, {state}>"

    def _check_open(self) -> None:
        if os.getpid() != self._process:
            raise UsageError(
                "This Deduplicator was opened by another process, and only one process may use a state at a time. Send "
                "the pages to that process, or give each process its own state."
            )
        if self._is_closed:
            raise UsageError("This Deduplicator is closed. Make another one, or end the 'with' after the last check.")


#: Objects of this process that may be open.
_OPEN: WeakSet[Deduplicator] = WeakSet()


@atexit.register
def _close_all() -> None:
    """Close what a script left open. Later the thread that asks a server stands still, and a close waits for ever."""
    with ExitStack() as closing:  # if one cannot be closed, the others are
        for one in _OPEN:
            closing.callback(one.close)


def _state_url(store: str | os.PathLike[str]) -> str:
    if isinstance(store, str):
        try:
            parse_url(store, "store")
        except SettingsError as error:
            raise SettingsError(f"{error} Or give a path, such as pathlib.Path('seen.db').") from None
        return store
    if not isinstance(store, os.PathLike):
        raise UsageError(f"store is {store!r}. Give a path, or {STORES.forms()}.")
    path = str(Path(store).absolute())
    return STORES["leveldb" if STORES["leveldb"].exists(path) else "sqlite"].url(path)


def _string(name: str, value: Any) -> str:
    """Return a string; an empty one for None and for missing values of tables."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and value != value):  # not a number
        return ""
    cure = ": use .decode()" if isinstance(value, bytes) else ", or None if there is none"
    raise UsageError(f"{name} is {value!r}, a {type(value).__name__}. Give a string{cure}.")


@contextmanager
def _errors_by_parameter() -> Iterator[None]:
    """Translate errors about settings of a crawl into errors about parameters."""
    parameters = signature(Deduplicator).parameters

    def parameter(found: re.Match[str]) -> str:
        name = found[1].lower()
        return name if name in parameters else found[0]

    try:
        yield
    except StoreLocked as error:
        raise StoreLocked(
            f"{str(error).partition('. ')[0]}. Wait for it to end, close its Deduplicator (a notebook keeps one open "
            "until its kernel ends), or give this one another store."
        ) from None
    except NearDupError as error:
        raise type(error)(_SETTING.sub(parameter, str(error))) from None
