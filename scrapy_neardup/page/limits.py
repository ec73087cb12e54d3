"""Bounds on the text of a page: more takes too long to judge."""

from __future__ import annotations

from dataclasses import replace

from scrapy_neardup.model import Page

#: The default of the most characters of text. The worst text of this length takes half a second.
MAX_TEXT = 400_000
#: The most characters of a title and of a description.
_MAX_TITLE = 2_000
_MAX_DESCRIPTION = 20_000
_MAX_KEYWORDS = 1_000
_MAX_HEADLINES = 200
#: Characters that normalisation makes this long. All others become six characters at most.
_EXPANSIONS = {"\ufdfa": 18, "\ufdfb": 8}
_MAX_EXPANSION = max(_EXPANSIONS.values())


def limit_page(page: Page, max_text: int) -> Page:
    """Shorten the metadata of a page, and remove its text if that is too long."""
    if is_too_long(page.text, max_text):
        page = replace(page, text="", main="", headline="", quotes=(), unread="too_large")
    title, keywords = _cut(page.title, _MAX_TITLE), tuple(_cut(word, _MAX_TITLE) for word in _cut_words(page.keywords))
    description = _cut(page.description, _MAX_DESCRIPTION)
    headlines = page.headline.split("\n", _MAX_HEADLINES)[:_MAX_HEADLINES]
    headline = "\n".join(_cut(line, _MAX_TITLE) for line in headlines)
    if (title, keywords, description, headline) == (page.title, page.keywords, page.description, page.headline):
        return page  # the usual case
    return replace(page, title=title, keywords=keywords, description=description, headline=headline)


def is_too_long(text: str, max_text: int) -> bool:
    """Whether a text has more characters, before or after normalisation.

    >>> is_too_long("ferry", 5), is_too_long("ferries", 5), is_too_long("\\ufdfa", 5)
    (False, True, True)
    """
    if len(text) > max_text:
        return True
    if len(text) * _MAX_EXPANSION <= max_text:
        return False
    return len(text) + sum((size - 1) * text.count(char) for char, size in _EXPANSIONS.items()) > max_text


def _cut(text: str, limit: int) -> str:
    if not is_too_long(text, limit):
        return text
    text = text[:limit]
    return text if not is_too_long(text, limit) else text[: limit // _MAX_EXPANSION]


def _cut_words(words: tuple[str, ...]) -> tuple[str, ...]:
    left, kept = _MAX_DESCRIPTION, []
    for word in words[:_MAX_KEYWORDS]:
        left -= min(len(word), _MAX_TITLE)
        if left < 0:
            break
        kept.append(word)
    return tuple(kept)
