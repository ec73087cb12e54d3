"""Every error that this package raises on purpose, below one root.

Each message says in a sentence what is wrong and what to do.
"""

from __future__ import annotations

from typing import Literal

from scrapy_neardup.untrusted import MESSAGE, one_line

#: Why a page cannot be judged, by its text, by its source, or by us: the name in stats, logs, tags and reports.
_OfText = Literal["no_text", "too_short", "boilerplate", "quotes", "no_lexicon"]
_OfSource = Literal["not_html", "too_large", "too_slow", "http_error", "other_page", "listing", "no_content"]
_OfOurs = Literal["extractor_failed", "in_flight", "store_failed", "method_failed"]
Reason = Literal[_OfText, _OfSource, _OfOurs]
#: Empty for a page that can be judged.
AnyReason = Reason | Literal[""]
#: What each reason means, with settings as code. Docs, catalogues and tests are checked against this table.
REASONS: dict[Reason, str] = {
    "no_text": "No visible prose was found in the HTML.",
    "too_short": "The prose has fewer letters and digits than `NEARDUP_MIN_LETTERS`.",
    "boilerplate": "Without text that many pages share, too little is left.",
    "quotes": "Without quoted text and signatures, too little is left.",
    "not_html": "The response is not HTML, and the item brings no text.",
    "too_large": "The page exceeds `NEARDUP_MAX_HTML` or `NEARDUP_MAX_TEXT`.",
    "too_slow": "Reading the page took longer than `NEARDUP_MAX_SECONDS`.",
    "http_error": "The response has an error status such as 404.",
    "other_page": "The item has the URL of another page than its response, and brings no text.",
    "listing": "One of several items without text: compared with no page, dropped if it comes again unchanged.",
    "no_content": "The item has neither text nor HTML, and its response is not there.",
    "extractor_failed": "The extractor of the user raised an error or returned something else than a string.",
    "in_flight": "A near-duplicate was still in flight after `NEARDUP_WAIT` seconds.",
    "no_lexicon": "The method needs a lexicon for the language of the page.",
    "store_failed": "The state failed; the log says why.",
    "method_failed": "The method raised an error, which the log shows once.",
}


def describe_reason(reason: Reason) -> str:
    """Return what a reason means, for logs and terminals."""
    return REASONS[reason].replace("`", "")


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
