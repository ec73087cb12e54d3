"""A page as the default method sees it: cut into sentences, without what it quotes and what stands on many pages.

A quote is no part of any view, also not of ``whole`` and ``unframed``, nor of what is counted: as the sketch of an
earlier page is without it, what both quote could not be seen to be in both, and a copy of a reply that quotes much
would be none. Two things still tell replies apart that say the same to different messages: they are not the same letter
by letter, and of short ones the quote counts as a sentence (see ``cascade``).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import compress
from typing import NamedTuple

from scrapy_neardup.hashing.keyed import Remembering
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.model import Page
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.quotes import parted
from scrapy_neardup.text.sentences import cut
from scrapy_neardup.text.sentences import read as read_text
from scrapy_neardup.text.titles import longest_part, title_parts
from scrapy_neardup.text.tokens import words

_NONE: frozenset[str] = frozenset()
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
    """A text without quotes; all but ``whole`` and ``unframed`` is without boilerplate."""

    #: Its letters and digits; those of the text with boilerplate; those of it without its own site's.
    own: str
    whole: str
    unframed: str
    #: Its sentences and lines, normalised, but for those without letters; and the letters of each.
    sentences: list[str]
    lines: list[str]

    @property
    def text(self) -> str:
        """Normalised, a sentence a line."""
        return "\n".join(self.sentences)


class Views(NamedTuple):
    """``article``: of a page read from HTML the article in it, where that could be told."""

    #: Letters and words of the title, and headlines: parts of the title, and h1.
    title_letters: str
    title: list[str]
    headlines: list[str]
    all: View
    article: View | None
    #: 32-bit fingerprints of what is to be counted, and of what was left out.
    counted: tuple[int, ...]
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
        return self.article is not None and len(self.article.own) <= _PART * len(self.all.own)


def read(page: Page, is_common: IsCommon, is_own: IsCommon, p: CascadeParameters, keyed: Remembering) -> Views:
    """Leave out of a page what stands on many: lines of the text, the name of the site in the title.

    ``is_own`` tells what stands on many pages of the page's own site.
    """
    own, quotes = _parted(page)
    sentences, all_lines = _sentences(own, p, keyed)
    lines = _countable(all_lines, p.min_counted)
    of_title = title_parts(page.title)
    spelt = {part: _normalize(part, p) for part in of_title}
    parts = {_TITLE_PART + letters(spelt[part]): part for part in of_title}
    headlines = [_TITLE_PART + letters(_normalize(part, p)) for part in page.headline.split("\n") if part]
    # Of pages of one site every line tells form from article, and the headlines that all of them have.
    counted = (*parts, *headlines, *_ends(all_lines if page.reader else lines))
    hashes = keyed.shorts(counted)
    common = hashes[is_common(hashes)]
    boilerplate = frame = _NONE
    if len(common):
        known = dict(zip(hashes.tolist(), counted, strict=True))
        boilerplate = frozenset(known[one] for one in common.tolist()) & {*parts, *headlines, *lines}
        frame = boilerplate & {known[one] for one in common[is_own(common)].tolist()}
    own_parts = [part for line, part in parts.items() if line not in boilerplate]
    return Views(
        title_letters=letters(spelt.get(longest_part(of_title), "")),
        title=words(spelt.get(max(own_parts or parts.values(), key=len, default=""), "")),
        # One of marks alone says nothing; it would be the same headline on all pages that have such a one.
        headlines=[line for line in (*parts, *headlines) if line not in boilerplate and line != _TITLE_PART],
        all=_view(sentences, all_lines, boilerplate, frame),
        article=_view(*_sentences(page.main, p, keyed), boilerplate, frame) if page.main and page.reader else None,
        counted=tuple(dict.fromkeys(hashes.tolist())),
        boilerplate=frozenset(map(keyed.short, boilerplate)),
        quotes=letters(_normalize(quotes, p)) if quotes else "",
    )


def _parted(page: Page) -> tuple[str, str]:
    """The page's own text, and what it quotes: of a page that was read from HTML its markup has told."""
    if page.reader in _READ:
        if not page.quotes:
            return page.text, ""
        quotes, lines = frozenset(page.quotes), page.text.split("\n")
        own = [line for number, line in enumerate(lines) if number not in quotes]
        return "\n".join(own), "\n".join(line for number, line in enumerate(lines) if number in quotes)
    return parted(page.text, page.title)


def _view(sentences: list[str], lines: list[str], boilerplate: Set[str], frame: Set[str]) -> View:
    whole = "".join(lines)
    if not boilerplate or boilerplate.isdisjoint(lines):
        return View(own=whole, whole=whole, unframed=whole, sentences=sentences, lines=lines)
    unframed = "".join([line for line in lines if line not in frame])
    sentences, left = _where(sentences, lines, [line not in boilerplate for line in lines])
    return View(own="".join(left), whole=whole, unframed=unframed, sentences=sentences, lines=left)


def _sentences(text: str, p: CascadeParameters, keyed: Remembering) -> tuple[list[str], list[str]]:
    """The sentences of a text, normalised, and the letters of each; without those that have none."""
    sentences, lines = cut(_normalize(text, p)) if p.simplified else read_text(text, keyed)
    return _where(sentences, lines, lines) if "" in lines else (sentences, lines)


def _where(sentences: list[str], lines: list[str], stay: Sequence[object]) -> tuple[list[str], list[str]]:
    """Those sentences and lines that stay."""
    return list(compress(sentences, stay)), list(compress(lines, stay))


def _normalize(text: str, p: CascadeParameters) -> str:
    return normalize(text, simplified=p.simplified)


def _ends(lines: list[str]) -> list[str]:
    return lines if len(lines) <= 2 * _ENDS else lines[:_ENDS] + lines[-_ENDS:]


def _countable(lines: list[str], least: int) -> list[str]:
    """Lines of ``least`` letters and more, and shorter ones that stand beside another such: the entries of a menu.

    A short line by itself is a heading or a caption, which forms share too, and which says what the text is about.

    >>> _countable(["首页", "新闻", "渡口今天早上开航", "背景", "第一班船是空的"], 6)
    ['首页', '新闻', '渡口今天早上开航', '第一班船是空的']
    """
    if min(map(len, lines), default=least) >= least:
        return lines
    short = [False, *(len(line) < least for line in lines), False]
    return [
        line
        for line, before, own, after in zip(lines, short, short[1:], short[2:], strict=False)
        if not own or before or after
    ]
