"""A page as cascade reads it: sentences without quotes and boilerplate, the words of its title, its number."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Set
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.sketch import FIRST, IN_TEXT, LAST, MAX_WORDS, NUMBER, Sketch
from scrapy_neardup.model import Page
from scrapy_neardup.text.characters import has_unspaced
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.quotes import split_lines, split_quotes
from scrapy_neardup.text.sentences import SegmentedText, digits, segment
from scrapy_neardup.text.titles import longest_part, main_part, title_parts
from scrapy_neardup.text.tokens import spaced_words, words_and_core

_NONE: frozenset[int] = frozenset()
#: Distinguishes a part of a title from the same line in a text.
_TITLE_PART = "title "
#: Readers that find quotes by markup. Without markup only the text shows them.
_HTML_READERS = ("article", "prose")
#: Lines counted at each end of a page, where boilerplate stands. A list of 100,000 lines must not flood the counts.
_ENDS = 128
#: The fewest letters of a line that is counted. A line that many pages share is left out.
_MIN_COUNTED = 6
#: Core words of the title that make a key. As many core words of keywords and description make another key.
CORE_WORDS = 4
#: Largest share of the letters for an article to be compared apart from the whole text.
_PART = 0.95


class View(NamedTuple):
    """A text without quotes: ``own`` without boilerplate, ``whole`` with it, ``site_free`` without its site's only."""

    own: SegmentedText
    whole: SegmentedText
    site_free: SegmentedText


class Views(NamedTuple):
    """The readings of a page."""

    #: 32-bit fingerprints of the letters of the title, of the site, and of the URL's number, 0 without one.
    title_hash: int
    site_hash: int
    number_hash: int
    #: Words of the title's own parts, core words of the longest of them, and headlines: parts of the title, and h1.
    title: list[str]
    title_core: list[str]
    headlines: list[str]
    #: Links beside the text.
    links: list[str]
    #: All text; and the article of a page read from HTML, or all text without one.
    all: View
    core: View
    #: 32-bit fingerprints of the sentences of title and headline, if the text contains these.
    headings: frozenset[int]
    #: 32-bit fingerprints of the sentences to count, and of those left out.
    counted: npt.NDArray[np.uint32]
    boilerplate: frozenset[int]
    #: Letters and digits of the quoted text.
    quotes: str

    @property
    def is_article_partial(self) -> bool:
        """Whether there is an article, clearly smaller than the whole text."""
        return self.core is not self.all and self.core.own.size <= _PART * self.all.own.size


def read(page: Page, is_common: IsCommon, is_own: IsCommon, p: CascadeParameters, hashes: Keyed) -> Views:
    """Leave out text that many pages share: lines of the text, the name of the site in the title.

    ``is_own`` finds sentences that many pages of the page's own site share.
    """
    own, quotes = _split_page(page)
    of_title = title_parts(page.title)
    spelt = {part: _normalize(part, p) for part in of_title}
    lines = {part: letters(one) for part, one in spelt.items()}
    parts = {_TITLE_PART + line: part for part, line in lines.items()}
    titles = [*parts]
    headlines = [letters(_normalize(line, p)) for line in page.headline.split("\n") if line] if page.headline else []
    titles += [_TITLE_PART + line for line in headlines]
    main = main_part(of_title, [lines[part] for part in of_title], headlines)
    title = lines[main] if of_title else ""
    left_out: frozenset[str] = frozenset()
    if title and headlines and (agreeing := {line for line in headlines if line and (line in title or title in line)}):
        # Beside a headline that agrees with the title, others name the site or its parts.
        left_out = frozenset(_TITLE_PART + line for line in headlines if line not in agreeing) - parts.keys()
    title = title and _TITLE_PART + title
    number = url_number(page.address or page.url) if page.site else ""
    whole = segment(own, hashes, (*titles, title, page.site, number), simplified=p.simplified)
    *of_titles, title_hash, site_hash, number_hash = [one & 0xFFFFFFFF for one in whole.others]
    # Pages read from HTML need every line and headline, to tell template from article.
    counted = _countable(of_titles, whole.line_hashes(0 if page.reader else _MIN_COUNTED))
    common = counted[is_common(counted)]
    boilerplate = of_site = _NONE
    own_titles, own_parts = titles, [*parts.values()]
    if len(common):
        boilerplate = frozenset(common.tolist()) & {*of_titles, *whole.line_hashes(_MIN_COUNTED).tolist()}
        of_site = boilerplate.intersection(common[is_own(common)].tolist())
        own_titles = [line for line, one in zip(titles, of_titles, strict=True) if one not in boilerplate]
        own_parts = [parts[line] for line in dict.fromkeys(own_titles) if line in parts] or own_parts
    main = main if main in own_parts else longest_part(own_parts)
    title_words, title_core = words_and_core(spelt[main], CORE_WORDS) if own_parts else ([], [])
    if not page.reader and len(own_parts) > 1:
        # Another part of an item's title may name a product. In HTML it is the name of the site.
        title_words, _ = words_and_core(" ".join(spelt[part] for part in own_parts), CORE_WORDS)
    all = core = _view(whole, boilerplate, of_site)
    if page.main and page.reader:
        core = _view(segment(page.main, hashes, simplified=p.simplified), boilerplate, of_site)
    return Views(
        title_hash=title_hash if title else 0,
        site_hash=site_hash if page.site else 0,
        number_hash=number_hash if number else 0,
        title=title_words,
        title_core=title_core,
        # A headline without letters would be equal on all pages with one.
        headlines=[line for line in own_titles if line not in left_out and line != _TITLE_PART],
        links=[letters(_normalize(line, p)) for line in page.links.split("\n")] if page.links else [],
        headings=_headings(page, of_title, p, hashes),
        all=all,
        core=core,
        counted=counted,
        boilerplate=boilerplate,
        quotes=letters(_normalize(quotes, p)) if quotes else "",
    )


def _view(text: SegmentedText, boilerplate: Set[int], of_site: Set[int]) -> View:
    own = text.without(boilerplate) if boilerplate else text
    return View(own, text, text if own is text else text.without(of_site))


def _countable(titles: list[int], lines: memoryview) -> npt.NDArray[np.uint32]:
    """Return the hashes of the titles and of the lines of both ends."""
    if len(lines) > 2 * _ENDS:
        lines = memoryview(b"".join((lines[:_ENDS], lines[-_ENDS:])))
    return np.frombuffer(array("I", titles).tobytes() + lines, np.uint32)  # faster than arrays of numpy


def _headings(page: Page, of_title: list[str], p: CascadeParameters, hashes: Keyed) -> frozenset[int]:
    """Return ``Views.headings``; none if the text of an item does not begin with the title."""
    title = page.title.strip()
    if not (page.reader or (title and page.text.lstrip().startswith(title))):
        return _NONE
    about = "\n".join((title, *of_title, page.headline))
    return frozenset(segment(about, hashes, simplified=p.simplified).line_hashes().tolist())


def _split_page(page: Page) -> tuple[str, str]:
    """Return the text of a page without quotes, and the quotes."""
    if page.reader not in _HTML_READERS:
        return split_quotes(page.text, page.title)
    if not page.quotes:
        return page.text, ""
    return split_lines(page.text.split("\n"), frozenset(page.quotes))


def _normalize(text: str, p: CascadeParameters) -> str:
    return normalize(text, simplified=p.simplified)


#: The last part of a path: words, then a number. Six digits may be a day, a postal code or a share. A 0 begins a phone.
_NUMBERED = re.compile(r"[^a-z]*[a-z].*[-_.](?P<number>[1-9][0-9]{6,})(?:\.[a-z]{1,5})?", re.ASCII | re.IGNORECASE)
_MAY_BE_NUMBERED = re.compile(r"[0-9]{7}")
#: May hold a day or a minute, which many articles share: a year stands first, or behind month and day.
_DATE = re.compile(r"(?:\d{4})?(?:19|20)\d{2,12}", re.ASCII)


def url_number(url: str) -> str:
    """Return the folder of a URL and the number behind its words, by which a site knows an article; or nothing.

    The words may change when an editor changes the title, the number stays.

    >>> url_number("http://a.example/news/ferry-stays-ashore-4993434.html")
    '/news/4993434'
    >>> url_number("http://a.example/4993434"), url_number("http://a.example/ferry-12032024.html")
    ('', '')
    """
    if not _MAY_BE_NUMBERED.search(url):  # nearly all
        return ""
    address = urlsplit(url)
    folder, _, last = address.path.rstrip("/").rpartition("/")
    found = None if address.query else _NUMBERED.fullmatch(last)
    return f"{folder}/{found['number']}" if found and not _DATE.fullmatch(found["number"]) else ""


#: Lengths of words to look for in a text without spaces.
_LENGTHS = range(2, 9)
#: The hash bits of a title word.
_HASH = 0xFFFFFF & ~(NUMBER | IN_TEXT)


class TitleWords:
    """Looks for the words of a new page's title in its text and in an earlier page.

    Two notices in one form differ by a name, a place, a product or a number in title and text. A copy under another
    title has the words of both titles in its text. So a word that the other page lacks tells forms from copies.
    """

    def __init__(self, title: list[str], own: SegmentedText) -> None:
        """Take the title's words and the page's own text without its headline, which has them anyway."""
        self._words = title
        self._own = own

    def encode(self, most: int = MAX_WORDS) -> bytes:
        """Pack the words for a sketch, three bytes each; of more than ``most`` those with the smallest hashes."""
        packed = self._own.pack_words(self._words, _HASH, NUMBER, IN_TEXT, _LENGTHS[-1], most)
        if packed is None:
            kept = list(self._title.items())[:most]
            packed = b"".join([(hashed | self._mark(word)).to_bytes(3, "big") for hashed, word in kept])
        return packed

    def _mark(self, word: str) -> int:
        """Return ``IN_TEXT`` if the text has the word."""
        if word not in self._unspaced:
            return IN_TEXT * (word in self._spaced_words)
        return IN_TEXT * (len(word) in _LENGTHS and word in self._lines)

    @cached_property
    def _unspaced(self) -> frozenset[str]:
        return frozenset(filter(has_unspaced, self._words))

    @cached_property
    def _title(self) -> dict[int, str]:
        """The words by their hashes, ascending; those without spaces around them are hashed as n-grams of a text."""
        hashes, spaced = self._own.hashes, [word for word in self._words if word not in self._unspaced]
        hashed = zip(spaced, hashes.every(spaced), strict=True)
        found = {one & _HASH | NUMBER * word.isdigit(): word for word, one in hashed}
        unspaced = [word for word in self._unspaced if len(word) >= _LENGTHS[0]]
        # Of two words with one hash the longer one counts, then one in the text.
        for word in sorted(unspaced, key=lambda word: (len(word), self._mark(word))):
            found[hashes.gram(word) & _HASH] = word
        return dict(sorted(found.items()))

    def differ(self, old: Sketch, *, names: bool) -> tuple[int, bool]:
        """Return for how many of the two pages (0 to 2) a title word in its text is gone: the other page lacks it.

        Words that a longer earlier title may have lost are not gone. The earlier text is known by the order of its
        sentences: it has a word if it has a sentence with the word.

        Also return, if ``names`` is asked, whether each title has a word that is nowhere in the other page: not in its
        title and not in its text. A word that is not in its own text counts too: then only the title names the thing.
        """
        lacking = self._lacking((old.words if names else old.words_in_text) - self._title.keys())
        ours = {hashed for hashed in self._title if hashed <= old.word_limit} - old.words
        is_new = any(self._sentences[one] and old.ends.isdisjoint(self._sentences[one]) for one in ours)
        gone = int(not lacking.isdisjoint(old.words_in_text)) + int(is_new)
        return gone, names and bool(lacking) and (is_new or not ours.isdisjoint(self._untold))

    def count_new_numbers(self, old: Sketch) -> int:
        """Count the different numbers in kept sentences that the earlier page lacks."""
        return len({one for hashed, _, line in self._end_sentences if hashed not in old.ends for one in digits(line)})

    @property
    def is_unspaced(self) -> bool:
        """Whether the text is in a language without spaces between words."""
        return has_unspaced(self._own.text)

    def lines_with_numbers(self, sentences: Set[int]) -> list[str]:
        """Return the letters of the kept sentences with these hashes that have numbers."""
        return [line for hashed, _, line in self._end_sentences if hashed in sentences and digits(line)]

    # Each of these is made once: a hostile page has a long title, a long text and many candidates.

    @cached_property
    def _untold(self) -> frozenset[int]:
        """The title words that the text lacks."""
        return frozenset([hashed for hashed, word in self._title.items() if not self._mark(word)])

    @cached_property
    def _sentences(self) -> Mapping[int, frozenset[int]]:
        """Of each title word the kept sentences that have it."""
        ends = [(hashed, {*spaced_words(one)}, line) for hashed, one, line in self._end_sentences]
        unspaced = self._unspaced
        return {
            hashed: frozenset([end for end, words, line in ends if word in (line if word in unspaced else words)])
            for hashed, word in self._title.items()
        }

    @cached_property
    def _end_sentences(self) -> list[tuple[int, str, str]]:
        """The first and last sentences, as a sketch keeps their order: hash, sentence and letters of each."""
        own = self._own
        hashes = [one & 0xFFFF for one in own.line_hashes().tolist()]
        sentences, lines = own.sentences, own.lines
        if len(hashes) > FIRST + LAST:
            hashes, sentences, lines = ([*some[:FIRST], *some[-LAST:]] for some in (hashes, sentences, lines))
        return list(zip(hashes, sentences, lines, strict=True))

    def _lacking(self, words: Set[int]) -> Set[int]:
        """Return which of these words, given by their hashes, the text lacks."""
        asked = [word & _HASH for word in words]
        left = self._own.missing_grams(asked, _LENGTHS[0], _LENGTHS[-1], _HASH) if asked else []
        return {word for word in words if word & _HASH in left and word & _HASH not in self._spaced_hashes}

    @cached_property
    def _lines(self) -> str:
        return "\n".join(self._own.lines)

    @cached_property
    def _spaced_words(self) -> frozenset[str]:
        return frozenset([word for one in self._own.sentences for word in spaced_words(one)])

    @cached_property
    def _spaced_hashes(self) -> frozenset[int]:
        return frozenset([hashed & _HASH for hashed in self._own.hashes.every(self._spaced_words)])
