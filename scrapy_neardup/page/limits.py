"""How much of a page is judged: what is beyond takes too long, whoever wrote it."""

from __future__ import annotations

from dataclasses import replace

from scrapy_neardup.model import Page

#: Characters of text that are judged unless something else is said: the worst of them takes half a second.
MAX_TEXT = 400_000
#: Characters of a title, and of a description.
_MAX_TITLE = 2_000
_MAX_DESCRIPTION = 20_000
_MAX_KEYWORDS = 1_000
_MAX_HEADLINES = 200
#: Characters that become so many by normalising; no other becomes more than six.
_SWELLING = {"\ufdfa": 18, "\ufdfb": 8}
_MOST_SWOLLEN = max(_SWELLING.values())


def limited(page: Page, max_text: int) -> Page:
    """The page as far as it is judged: its head cut to what no page needs, none of a text that is too much."""
    if is_too_much(page.text, max_text):
        page = replace(page, text="", main="", headline="", quotes=(), unread="too_large")
    title, keywords = _cut(page.title, _MAX_TITLE), tuple(_cut(word, _MAX_TITLE) for word in _cut_words(page.keywords))
    description = _cut(page.description, _MAX_DESCRIPTION)
    headlines = page.headline.split("\n", _MAX_HEADLINES)[:_MAX_HEADLINES]
    headline = "\n".join(_cut(line, _MAX_TITLE) for line in headlines)
    if (title, keywords, description, headline) == (page.title, page.keywords, page.description, page.headline):
        return page  # as nearly all are
    return replace(page, title=title, keywords=keywords, description=description, headline=headline)


def is_too_much(text: str, max_text: int) -> bool:
    """Whether a text has more characters, as it is or once it is normalised.

    >>> is_too_much("ferry", 5), is_too_much("ferries", 5), is_too_much("\\ufdfa", 5)
    (False, True, True)
    """
    if len(text) > max_text:
        return True
    if len(text) * _MOST_SWOLLEN <= max_text:
        return False
    return len(text) + sum((many - 1) * text.count(char) for char, many in _SWELLING.items()) > max_text


def _cut(text: str, limit: int) -> str:
    """As much of it as stays within the limit, where a character counts for all that it becomes."""
    if not is_too_much(text, limit):
        return text
    text = text[:limit]
    return text if not is_too_much(text, limit) else text[: limit // _MOST_SWOLLEN]


def _cut_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The first thousand of them, and no more characters than a description may have."""
    left, kept = _MAX_DESCRIPTION, []
    for word in words[:_MAX_KEYWORDS]:
        left -= min(len(word), _MAX_TITLE)
        if left < 0:
            break
        kept.append(word)
    return tuple(kept)
