"""What a script hands over: where the state is, the parts of a page; and errors in words of its parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import NearDupError, SettingsError, StoreLocked, UsageError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.item import BY_TEXT
from scrapy_neardup.stores import STORES, parse_url

logger = line_logger(__name__)

_SETTING = re.compile(r"\bNEARDUP_([A-Z_]+)")


def state_url(store: str | os.PathLike[str]) -> str:
    """The URL of the state that is asked for."""
    if isinstance(store, str):
        try:
            kind, location = parse_url(store, "store")
        except SettingsError as error:
            raise SettingsError(f"{error} Or give a path, such as pathlib.Path('seen.db').") from None
        if kind.lasts and Path(location).parent == Path(location).parent.parent:
            logger.warning(
                "The state is %s, in the root directory, because a URL names an absolute path. For a file in the "
                "working directory, give a path: Deduplicator(pathlib.Path(%r)).",
                location,
                Path(location).name,
            )
        return store
    if not isinstance(store, os.PathLike):
        raise UsageError(f"store is {store!r}. Give a path, or {STORES.forms()}.")
    path = str(Path(store).absolute())
    return STORES["leveldb" if STORES["leveldb"].exists(path) else "sqlite"].url(path)


def string(name: str, value: Any) -> str:
    """A string, or an empty one for nothing: None, and what stands for it in tables."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and value != value):  # not a number
        return ""
    raise UsageError(
        f"{name} is {value!r}, a {type(value).__name__}. Give a string"
        + (": use .decode()." if isinstance(value, bytes) else ", or None if there is none.")
    )


def words_of(keywords: Any) -> str | list[str]:
    """Keywords in one string, or in several."""
    if isinstance(keywords, (list, tuple)):
        return [string("keywords", word) for word in keywords]
    return string("keywords", keywords)


def name_of(content: str | bytes, title: str) -> str:
    """What a page is known by that has no URL: the same text under another title is another page."""
    return f"{BY_TEXT}{OPEN.of(f'{content!s}{title}'):016x}"


@contextmanager
def in_words_of_a_script(made: Callable[..., Any]) -> Iterator[None]:
    """What is said of a crawl and its settings, as it is to be said of the parameters of what is ``made``."""
    parameters = signature(made).parameters

    def parameter(found: re.Match[str]) -> str:
        """That which stands for a setting; a setting that has none stays."""
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
