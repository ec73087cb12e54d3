"""A page before it is held against any other: its fingerprint, or why it cannot be judged."""

from __future__ import annotations

from scrapy_neardup.errors import AnyReason, Reason
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.stores import Store
from scrapy_neardup.text.prose import why_unjudged

_WHY_NOT: dict[Reason, str] = {
    "no_text": "has no text",
    "too_short": "has fewer than {} letters in lines long enough for prose",
    "boilerplate": "has fewer than {} letters besides boilerplate",
    "quotes": "has fewer than {} letters besides quotes and boilerplate",
}


def prejudge(method: Method, page: Page, min_letters: int, store: Store | None) -> tuple[Fingerprint | None, AnyReason]:
    """The page as a crawl has it before it looks for others, and the reason for which it cannot be judged, or nothing.

    ``store`` knows what is boilerplate. The fingerprint is None where the text is not enough for one. Raises
    LexiconNeeded if the method cannot read it.
    """
    if reason := why_unjudged(page.text, min_letters):
        return None, reason
    known = store.on_site(page.site) if store else None
    fingerprint = method.for_state(page, known)
    return fingerprint, fingerprint.why_unjudged(min_letters)


def why_not(reason: Reason, min_letters: int) -> str:
    """What is the matter with a page that cannot be judged, as the rest of a sentence that names it.

    >>> why_not("too_short", 40)
    'has fewer than 40 letters in lines long enough for prose'
    """
    return _WHY_NOT[reason].format(min_letters)
