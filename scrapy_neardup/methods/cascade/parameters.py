"""Parameters of cascade, its weights, and profiles for special fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from scrapy_neardup.methods.base import Parameters, choice, decides, number, whole

#: Weights for two pages of a catalogue. They are copies if they are nearly equal (0.92 = ``base`` + ``by_site``) and
#: each has the words of the other's title. Products of a family share their description, and differ by a name and a few
#: numbers.
CATALOGUE_WEIGHTS: Mapping[str, float] = {"by_site": 0.4, "by_gone": 0.5, "by_reworded": 0.0}


@dataclass(frozen=True, slots=True)
class CascadeParameters(Parameters):
    """The parameters of ``cascade``; lengths are in letters and digits, shares and similarities in [0, 1].

    The score decides: it must reach ``base``. The texts with their boilerplate must also have the similarity ``least``;
    from a similarity of ``certain`` on it is enough if one contains the other (``excerpt``).
    """

    method: ClassVar[str] = "cascade"

    #: The number of longest sentences of the body that are keys.
    sentence_keys: int = whole(2, 1, 64)
    #: The fewest letters of a sentence.
    min_sentence: int = whole(12, 1, 4096)
    #: The number of shingles of the body that are keys.
    shingle_keys: int = whole(4, 1, 128)
    #: The length of a shingle that is a key: so long that few phrases are common.
    key_shingle: int = whole(10, 1, 4096)
    #: The same for languages with spaces between words, where ten letters are only two words.
    key_shingle_spaced: int = whole(24, 1, 4096)
    #: The length of a shingle that is compared.
    shingle: int = whole(5, 1, 4096)
    #: The number of bins of the sketch of shingles.
    bins: int = choice(512, 64, 128, 256, 512, 1024, 2048, 4096)
    #: The number of bits of each bin.
    bits: int = choice(2, 1, 2, 4, 8)
    #: From this similarity on, a copy of a copy is a copy of the original, and boilerplate matters less (``least``).
    certain: float = decides(number(0.76))
    #: The score that makes a copy. The score is the similarity plus and minus the weights below.
    base: float = decides(number(0.52))
    #: Subtracted from the score of pages that may be of one site.
    by_site: float = decides(number(0.18))
    #: Subtracted if a word of one title is missing in the other page. If both are, the pages are no copies.
    by_gone: float = decides(number(0.1))
    #: Added under equal titles.
    by_title: float = decides(number(0.15))
    #: Added if two pages of one site give the same numbers in other words.
    by_reworded: float = decides(number(0.18))
    #: The least similarity of two copies, boilerplate included, unless they are ``certain`` and one contains most of
    #: the other (``excerpt``).
    least: float = decides(number(0.48))
    #: A site is a catalogue if this share of its pages resembles another page of the site under another title. Of
    #: articles up to 0.04 do, of job advertisements 0.06 to 0.15, of packages 0.2 to 0.4. 1 means never. Texts
    #: of unknown sites are one from 0.2 on.
    catalogue: float = decides(number(0.06))
    #: Texts with fewer different shingles are short. They are copies if both give the same numbers and one contains
    #: every sentence of the other. Between sites it is enough if no title word is gone.
    short: int = whole(120, 1, 4096)
    #: Short texts that may be of one site are also copies above this similarity, if no title word is gone and both give
    #: the same numbers. 1 means never: then each sentence of one must be in the other.
    short_certain: float = decides(number(1.0))
    #: The containment from which a page that is no copy is an excerpt.
    excerpt: float = decides(number(0.8))
    #: The similarity of titles below which a copy is ``retitled``.
    retitled: float = decides(number(0.5))

    def on_catalogue(self) -> CascadeParameters:
        """Return the parameters for two pages of one catalogue, at least as strict as ``CATALOGUE_WEIGHTS``."""
        strict: dict[str, Any] = {name: max(getattr(self, name), value) for name, value in CATALOGUE_WEIGHTS.items()}
        strict["by_reworded"] = CATALOGUE_WEIGHTS["by_reworded"]  # the only weight that speaks for a copy
        return replace(self, **strict)


class FixedThresholds(NamedTuple):
    """Every threshold that decides and is no parameter; docs/en/how-it-works/cascade.md has the rules.

    Each comment gives the unit, then what it bounds. Each group names the corpora that chose it. ``python
    benchmarks/ablation.py CORPORA`` prints what each threshold and each weight gains.
    """

    # -- Texts: pairs that a reader judged, of WeChat articles, Chinese and English news, Japanese columns, package
    # descriptions, laws, job advertisements and Vietnamese teasers.
    #: Similarity: below it one text is over six times as long, and containment is within the sketch's error.
    for_containment: float = 0.12
    #: Share of the earlier sketch that must not be boilerplate by now: with less the estimate is too uncertain.
    enough_left: float = 0.5
    #: Similarity: two articles less alike are no copies, however similar the text around them is.
    articles_apart: float = 0.3
    #: Different shingles from which the letters of an article are enough evidence.
    least_article: int = 40
    #: Shares of a page that an earlier one of another site must contain: if the titles may be of one article or the
    #: text is short (then a source line weighs much), and otherwise. Nobody can have an article dropped with less, and
    #: a site's disclaimer, published elsewhere, makes no copies of that site's pages (tests/crawl/test_attacks.py).
    contained: float = 0.6
    contained_retitled: float = 0.8
    #: Ratio of lengths: a text that contains the earlier one and is so much longer has grown.
    grown: float = 1.2
    #: Similarity from which two pages of a site look alike: as copies, or by a template.
    alike: float = 0.5
    #: Share of the smaller text from which the larger one contains it: one is cut, or text was added to it.
    cut: float = 0.8
    #: Similarity of the titles below which two equal short texts of one site are two notices.
    other_notice: float = 0.25
    #: Similarity from which pages of one site are one advert, although their titles name other things.
    one_advert: float = 0.94
    #: Different shingles from which a text repeats what its title names: a teaser goes on where the title ends.
    names_again: int = 200
    #: The least ``catalogue`` for unknown sites: agency texts of many outlets reach 0.19.
    unknown_catalogue: float = 0.2
    #: Similarity below which title words are not compared, as the pages are no copies.
    compared: float = 0.3
    #: Different numbers in sentences that the earlier page lacks: more than a date has, as pages of a day share dates.
    reworded: int = 4
    #: Different numbers of two longer texts: with fewer they are the same by chance.
    few_numbers: int = 5
    #: Share of numbers, of the text with fewer, that the other one lacks: from it on a page is another notice.
    other_numbers: float = 0.6
    #: A text with at most so many different shingles may be a bulletin, or a form: a site gives other numbers under one
    #: title, or the same text under titles with other numbers.
    bulletin: int = 1000
    #: Two lists of links are the same if they have this share of the shorter one in common.
    same_links: float = 0.5

    # -- A page and its delivered version: edited teasers, pages at two dates, and pairs of other notices, each read as
    # two versions of one URL.
    #: Least similarity of a minor update, and most letters (different shingles) that it adds, and that it removes. Its
    #: length, which is exact, differs by half as many, because the estimate of the letters errs by a third. Languages
    #: without spaces say more with a letter.
    minor: float = 0.7
    minor_letters: int = 24
    minor_letters_unspaced: int = 12
    #: Most of the first and last sentences that it changes.
    minor_sentences: int = 2

    # -- Two pages of one site, read from HTML: 4,354 pages of 421 sites and 1,026 pages of 586 sites, in four orders.
    #: Noted pages of the site with a line that is a page's own: the earlier page is one.
    own_line: int = 1
    #: The same for headlines: changed versions of an article, each filed, share theirs.
    own_headline: int = 2
    #: Noted pages of the site, with fewer its template is unknown.
    few_pages: int = 8
    #: Similarity of title words from which two titles with the same numbers are one in two spellings.
    titles_alike: float = 0.6
    #: Common letters: the least evidence without a common headline; much text; more than a template has, under the same
    #: or a similar headline, and where the articles are equal letter by letter.
    least_shared: int = 40
    much_shared: int = 400
    no_template: int = 600
    same_article: int = 200
    #: Largest share of different letters (of the own letters of the page with more of them): under the same headline
    #: with much or little text, under a similar one or none, on a site with few pages.
    different_same: float = 0.55
    different_same_short: float = 0.2
    different: float = 0.4
    different_early: float = 0.05
    #: If the texts are more similar than their lines by this much, lines were edited and not replaced.
    edited: float = 0.3
    #: Under the same headline a page contains the other (a print version, a page for phones) if the smaller has at most
    #: this share of its own, besides so many common letters, and the larger at most that share.
    within: float = 0.05
    within_shared: int = 100
    within_most: float = 0.5


FIXED = FixedThresholds()


#: The method of these profiles.
METHOD = "cascade"
ARTICLE, CATALOGUE, POSTS = "article", "catalogue", "posts"

#: The values of NEARDUP_PROFILE. A profile sets only deciding parameters, so it may change between crawls of one state;
#: the user's own parameters take precedence. Each has a reason and a measured corpus
#: (docs/en/guides/kinds-of-sites.md). Mails and forums need none, as quotes are left out of every page.
PROFILES: Mapping[str, Mapping[str, Any]] = {
    ARTICLE: {},
    # From the first page on, and also for unknown sites.
    CATALOGUE: CATALOGUE_WEIGHTS,
    # Posts of channels, and headlines with a teaser: who tells one in other words says nothing new.
    POSTS: {"short_certain": 0.62},
}
