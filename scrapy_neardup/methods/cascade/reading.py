"""A page as cascade reads it: sentences without quotes and boilerplate."""

from __future__ import annotations

from array import array
from collections.abc import Set
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.model import Page
from scrapy_neardup.text.lexicon import words_and_core
from scrapy_neardup.text.normalize import letters, normalize, segment
from scrapy_neardup.text.quotes import split_lines, split_quotes
from scrapy_neardup.text.sentences import SegmentedText
from scrapy_neardup.text.titles import longest_part, title_parts

_NONE: frozenset[int] = frozenset()
#: Distinguishes a part of a title from the same line in a text.
_TITLE_PART = "title "
#: Readers that find quotes by markup; otherwise the text alone shows them.
_HTML_READERS = ("article", "prose")
#: Lines counted at each end of a page, where boilerplate stands. A list of 100,000 lines must not flood the counts.
_ENDS = 128
#: Largest share of the letters for an article to be compared apart from the whole text.
_PART = 0.95


class View(NamedTuple):
    """A text without quotes: ``own`` without boilerplate, ``whole`` with it, ``site_free`` without its site's only."""

    own: SegmentedText
    whole: SegmentedText
    site_free: SegmentedText


class Views(NamedTuple):
    """The readings of a page. ``article``: the article of a page read from HTML, if it was found."""

    #: 32-bit fingerprints of the letters of the title and of the site, 0 without one.
    title_hash: int
    site_hash: int
    #: Words of the title's own part, core words of that, and headlines: parts of the title, and h1.
    title: list[str]
    title_core: list[str]
    headlines: list[str]
    all: View
    article: View | None
    #: 32-bit fingerprints of the sentences of title and headline, if the text contains these.
    headings: frozenset[int]
    #: 32-bit fingerprints of the sentences to count, and of those left out.
    counted: npt.NDArray[np.uint32]
    boilerplate: frozenset[int]
    #: Letters and digits of the quoted text.
    quotes: str

    @property
    def core(self) -> View:
        """The article, or all text without one."""
        return self.article or self.all

    @property
    def is_article_partial(self) -> bool:
        """Whether the article is clearly smaller than the whole text."""
        return self.article is not None and self.article.own.size <= _PART * self.all.own.size


def read(page: Page, is_common: IsCommon, is_own: IsCommon, p: CascadeParameters, hashes: Keyed) -> Views:
    """Leave out text that many pages share: lines of the text, the name of the site in the title.

    ``is_own`` finds sentences that many pages of the page's own site share.
    """
    own, quotes = _split_page(page)
    whole = segment(own, hashes, simplified=p.simplified)
    of_title = title_parts(page.title)
    spelt = {part: _normalize(part, p) for part in of_title}
    title_letters = {part: letters(one) for part, one in spelt.items()}
    parts = {_TITLE_PART + title_letters[part]: part for part in of_title}
    lines = page.headline.split("\n") if page.headline else []
    headings = [_TITLE_PART + letters(_normalize(line, p)) for line in lines if line]
    titles = [*parts, *headings]
    title = title_letters.get(longest_part(of_title), "")
    *of_titles, title_hash, site_hash = hashes.shorts((*titles, title, page.site))
    # Pages read from HTML need every line and headline, to tell template from article.
    counted = _countable(of_titles, whole.line_hashes(0 if page.reader else p.min_counted))
    common = counted[is_common(counted)]
    boilerplate = of_site = _NONE
    own_titles, own_parts = titles, [*parts.values()]
    if len(common):
        boilerplate = frozenset(common.tolist()) & {*of_titles, *whole.line_hashes(p.min_counted).tolist()}
        of_site = boilerplate.intersection(common[is_own(common)].tolist())
        own_titles = [line for line, one in zip(titles, of_titles, strict=True) if one not in boilerplate]
        own_parts = [parts[line] for line in dict.fromkeys(own_titles) if line in parts] or own_parts
    title_words, title_core = words_and_core(spelt.get(longest_part(own_parts), ""), p.core_words)
    if page.site and not page.reader and len(own_parts) > 1:
        # On one site another part is no site's name, but may name a product.
        title_words, _ = words_and_core(" ".join(spelt[part] for part in own_parts), p.core_words)
    return Views(
        title_hash=title_hash if title else 0,
        site_hash=site_hash if page.site else 0,
        title=title_words,
        title_core=title_core,
        # A headline of marks alone would be equal on all pages with one.
        headlines=[line for line in own_titles if line != _TITLE_PART],
        headings=_headings(page, of_title, p, hashes),
        all=_view(whole, boilerplate, of_site),
        article=_article(page, p, hashes, boilerplate, of_site),
        counted=counted,
        boilerplate=boilerplate,
        quotes=letters(_normalize(quotes, p)) if quotes else "",
    )


def _countable(titles: list[int], lines: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the hashes of the titles, and those of the lines of both ends."""
    if len(lines) > 2 * _ENDS:
        lines = np.concatenate((lines[:_ENDS], lines[-_ENDS:]))
    return np.frombuffer(array("I", titles).tobytes() + lines.tobytes(), np.uint32)  # faster than arrays of numpy


def _headings(page: Page, of_title: list[str], p: CascadeParameters, hashes: Keyed) -> frozenset[int]:
    """Return ``Views.headings``; none if the text of an item does not begin with the title."""
    title = page.title.strip()
    if not (page.reader or (title and page.text.lstrip().startswith(title))):
        return _NONE
    about = "\n".join((title, *of_title, page.headline))
    return frozenset(segment(about, hashes, simplified=p.simplified).line_hashes().tolist())


def _split_page(page: Page) -> tuple[str, str]:
    if page.reader in _HTML_READERS:
        if not page.quotes:
            return page.text, ""
        return split_lines(page.text.split("\n"), frozenset(page.quotes))
    return split_quotes(page.text, page.title)


def _article(page: Page, p: CascadeParameters, hashes: Keyed, boilerplate: Set[int], of_site: Set[int]) -> View | None:
    if not (page.main and page.reader):
        return None
    return _view(segment(page.main, hashes, simplified=p.simplified), boilerplate, of_site)


def _view(whole: SegmentedText, boilerplate: Set[int], of_site: Set[int]) -> View:
    own = whole.without(boilerplate) if boilerplate else whole
    return View(own, whole, whole if own is whole else whole.without(of_site))


def _normalize(text: str, p: CascadeParameters) -> str:
    return normalize(text, simplified=p.simplified)
