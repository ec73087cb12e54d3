"""A page as cascade sees it: sentences without quotes and boilerplate."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.model import Page
from scrapy_neardup.text import sentences
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.quotes import split_quotes
from scrapy_neardup.text.sentences import SegmentedText
from scrapy_neardup.text.titles import longest_part, title_parts
from scrapy_neardup.text.tokens import words

_NONE: frozenset[int] = frozenset()
#: Before the letters of a part of a title, so that it is counted apart from the same line in a text.
_TITLE_PART = "title "
#: The readers that tell quotes by the markup; of any other page its text alone is known.
_READ = ("article", "prose")
#: Lines that are counted from either end of a page: boilerplate stands there, and a list of a hundred thousand lines
#: must not push everything else out of the counts.
_ENDS = 128
#: The share of its letters up to which the article is a view of its own beside the whole text.
_PART = 0.95


class View(NamedTuple):
    """A text without quotes: without boilerplate, with it, and without that of its own site."""

    own: SegmentedText
    whole: SegmentedText
    unframed: SegmentedText


class Views(NamedTuple):
    """``article``: of a page read from HTML the article in it, where that could be told."""

    #: Letters and words of the title, and headlines: parts of the title, and h1.
    title_letters: str
    title: list[str]
    headlines: list[str]
    all: View
    article: View | None
    #: 32-bit fingerprints of the sentences of title and headline, of a page whose text holds these as well.
    headings: frozenset[int]
    #: 32-bit fingerprints of what is to be counted, and of what was left out.
    counted: npt.NDArray[np.uint32]
    boilerplate: frozenset[int]
    #: The letters and digits of what the page quotes.
    quotes: str

    @property
    def core(self) -> View:
        """The article, or all where that is not known."""
        return self.article or self.all

    @property
    def has_part(self) -> bool:
        """Whether the article is much less than all."""
        return self.article is not None and self.article.own.size <= _PART * self.all.own.size


def read(page: Page, is_common: IsCommon, is_own: IsCommon, p: CascadeParameters, hashes: Keyed) -> Views:
    """Leave out of a page what stands on many: lines of the text, the name of the site in the title.

    ``is_own`` tells what stands on many pages of the page's own site.
    """
    own, quotes = _parted(page)
    whole = sentences.read(own, hashes, simplified=p.simplified)
    of_title = title_parts(page.title)
    spelt = {part: _normalize(part, p) for part in of_title}
    parts = {_TITLE_PART + letters(spelt[part]): part for part in of_title}
    titles = [*parts]
    if page.headline:
        titles += [_TITLE_PART + letters(_normalize(part, p)) for part in page.headline.split("\n") if part]
    # Of pages of one site every line tells form from article, and the headlines that all of them have.
    counted = whole.countable_hashes(titles, 0 if page.reader else p.min_counted, _ENDS)
    common = counted[is_common(counted)]
    boilerplate = frame = _NONE
    told, own_parts = titles, [*parts.values()]
    if len(common):
        known = counted[: len(titles)].tolist()
        boilerplate = frozenset(common.tolist()) & {*known, *whole.line_hashes(p.min_counted).tolist()}
        frame = boilerplate.intersection(common[is_own(common)].tolist())
        told = [line for line, one in zip(titles, known, strict=True) if one not in boilerplate]
        own_parts = [parts[line] for line in dict.fromkeys(told) if line in parts] or own_parts
    return Views(
        title_letters=letters(spelt.get(longest_part(of_title), "")),
        title=words(spelt.get(longest_part(own_parts), "")),
        # One of marks alone says nothing; it would be the same headline on all pages that have such a one.
        headlines=[line for line in told if line != _TITLE_PART],
        headings=_headings(page, of_title, p, hashes),
        all=_view(whole, boilerplate, frame),
        article=_article(page, p, hashes, boilerplate, frame),
        counted=counted,
        boilerplate=boilerplate,
        quotes=letters(_normalize(quotes, p)) if quotes else "",
    )


def _headings(page: Page, of_title: list[str], p: CascadeParameters, hashes: Keyed) -> frozenset[int]:
    """See ``Views``; of a text that an item brings none if it does not begin with the title."""
    title = page.title.strip()
    if not (page.reader or (title and page.text.lstrip().startswith(title))):
        return _NONE
    told = "\n".join((title, *of_title, page.headline))
    return frozenset(sentences.read(told, hashes, simplified=p.simplified).line_hashes().tolist())


def _parted(page: Page) -> tuple[str, str]:
    """The page's own text, and what it quotes: of a page that was read from HTML its markup has told."""
    if page.reader in _READ:
        if not page.quotes:
            return page.text, ""
        quotes, lines = frozenset(page.quotes), page.text.split("\n")
        own = [line for number, line in enumerate(lines) if number not in quotes]
        return "\n".join(own), "\n".join(line for number, line in enumerate(lines) if number in quotes)
    return split_quotes(page.text, page.title)


def _article(page: Page, p: CascadeParameters, hashes: Keyed, boilerplate: Set[int], frame: Set[int]) -> View | None:
    if not (page.main and page.reader):
        return None
    return _view(sentences.read(page.main, hashes, simplified=p.simplified), boilerplate, frame)


def _view(whole: SegmentedText, boilerplate: Set[int], frame: Set[int]) -> View:
    own = whole.without(boilerplate) if boilerplate else whole
    return View(own, whole, whole if own is whole else whole.without(frame))


def _normalize(text: str, p: CascadeParameters) -> str:
    return normalize(text, simplified=p.simplified)
