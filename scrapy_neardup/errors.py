"""Every error this package raises on purpose, below one root.

The message of each is a sentence that says what is wrong and what to do about it.
"""

from __future__ import annotations

from scrapy_neardup.oneline import MESSAGE, one_line


class NearDupError(Exception):
    """Root of all errors of this package; its message is one line, whatever the URLs in it hold."""

    def __str__(self) -> str:
        return one_line(super().__str__(), MESSAGE)


class SettingsError(NearDupError, ValueError):
    """A setting or a parameter has a name or a value that cannot be."""


class UsageError(NearDupError, TypeError):
    """A script called something with what cannot be, or when it cannot be."""


class StoreError(NearDupError):
    """The state could not be read or written."""


class StoreLocked(StoreError):
    """Another process holds the state."""


class StoreMismatch(StoreError):
    """The state was written by another recipe: its fingerprints cannot be compared with ours."""


class StoreDamaged(StoreError):
    """The state on disk is not what was left there; it has not been touched."""


class PageError(NearDupError):
    """A page that cannot be judged; ``reason`` is the name under which it is counted."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ExtractionError(PageError):
    """No page could be made of the HTML."""


class LexiconNeeded(PageError):
    """The lexicon does not know the language of a text."""
