"""Every error that this package raises on purpose, below one root.

Each message says in a sentence what is wrong and what to do.
"""

from __future__ import annotations

from typing import Literal, get_args

from scrapy_neardup.untrusted import MESSAGE, one_line

#: Why a page cannot be judged: the name in stats, logs, tags and reports.
Reason = Literal[
    "no_text",
    "too_short",
    "boilerplate",
    "quotes",
    "not_html",
    "too_large",
    "too_slow",
    "http_error",
    "other_page",
    "listing",
    "no_content",
    "extractor_failed",
    "in_flight",
    "no_lexicon",
    "store_failed",
    "method_failed",
]
#: Empty for a page that can be judged.
AnyReason = Reason | Literal[""]
#: All reasons; READMEs and catalogues explain each.
REASONS: tuple[Reason, ...] = get_args(Reason)


class NearDupError(Exception):
    """Root of all errors of this package; its message is one line."""

    def __str__(self) -> str:
        return one_line(super().__str__(), MESSAGE)


class SettingsError(NearDupError, ValueError):
    """A setting or a parameter has a wrong name or value."""


class UsageError(NearDupError, TypeError):
    """A script passed a wrong argument, or called a method at a wrong time."""


class StoreError(NearDupError):
    """The state could not be read or written."""


class StoreLocked(StoreError):
    """Another process holds the state."""


class StoreMismatch(StoreError):
    """The state was written with another recipe, so its fingerprints cannot be compared."""


class StoreDamaged(StoreError):
    """The state on disk has changed since it was written; it was not touched."""


class PageError(NearDupError):
    """A page that cannot be judged; ``reason`` names the count."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ExtractionError(PageError):
    """The HTML could not be read as a page."""


class NoWorker(ExtractionError):
    """No worker process could be started to read a page."""


class LexiconNeeded(PageError):
    """The lexicon does not know the language of a text."""
