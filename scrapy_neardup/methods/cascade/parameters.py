"""Parameters of cascade, its weights, and profiles for special fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from scrapy_neardup.methods.base import Parameters, decides, names, number, option, whole

#: Weights for two pages of a catalogue. They are copies if they are nearly equal (0.92 = ``base`` + ``by_site``) and
#: each has the words of the other's title. Products of a family share their description, and differ by a name and a few
#: numbers.
CATALOGUE_WEIGHTS: Mapping[str, float] = {"certain_on_site": 1.0, "by_site": 0.4, "by_gone": 0.5, "by_reworded": 0.0}
_FAMILIES = "title", "keywords", "description", "sentences", "shingles"


@dataclass(frozen=True, slots=True)
class CascadeParameters(Parameters):
    """The parameters of ``cascade``; lengths are in letters and digits, shares and similarities in [0, 1].

    From ``certain`` on, similarity alone makes a copy of a page of another site; from ``certain_apart`` on if each
    title has a word that the other page lacks; from ``certain_on_site`` on if the site may be the same. Below that the
    score decides: it must reach ``base``. The texts with their boilerplate must also have the similarity ``least``;
    from ``certain`` on ``certain_least``, or one must contain the other (``excerpt``).
    """

    method: ClassVar[str] = "cascade"

    #: What makes keys: some of ``title``, ``keywords``, ``description``, ``sentences``, ``shingles``.
    keys: str = names(",".join(_FAMILIES), *_FAMILIES)
    #: The number of core words of the title that make a key. As many core words of keywords and description make
    #: another key.
    core_words: int = whole(4, 1, 4096)
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
    #: The fewest letters of a line that is counted. A line that many pages share is left out.
    min_counted: int = whole(6, 1, 4096)
    #: The length of a shingle that is compared.
    shingle: int = whole(5, 1, 4096)
    #: The number of bins of the sketch of shingles.
    bins: int = option(512, 64, 128, 256, 512, 1024, 2048, 4096)
    #: The number of bits of each bin.
    bits: int = option(2, 1, 2, 4, 8)
    #: The number of sentences in the sketch.
    max_sentences: int = whole(3, 1, 255)
    #: The number of numbers in the sketch.
    max_numbers: int = whole(12, 1, 255)
    #: The number of title words in the sketch.
    max_title_words: int = whole(16, 1, 255)
    #: Pages of different sites are copies from this similarity on, whatever else differs.
    certain: float = decides(number(0.76))
    #: The same if each title has a word that the other lacks.
    certain_apart: float = decides(number(0.8))
    #: The same for pages that may be of one site.
    certain_on_site: float = decides(number(0.95))
    #: The score that makes a copy where similarity alone does not decide. The score is the similarity plus and minus
    #: the weights below.
    base: float = decides(number(0.52))
    #: Subtracted from the score of pages that may be of one site.
    by_site: float = decides(number(0.18))
    #: Subtracted if a word of one title is missing in the other.
    by_gone: float = decides(number(0.1))
    #: Added under equal titles.
    by_title: float = decides(number(0.15))
    #: Added if two pages of one site give the same numbers in other words.
    by_reworded: float = decides(number(0.18))
    #: Multiplied by the share of numbers that differ, and subtracted.
    by_numbers: float = decides(number(0.3))
    #: The least similarity of two copies, boilerplate included.
    least: float = decides(number(0.5))
    #: The same for pages that are copies by similarity alone (``certain``), unless one contains most of the other
    #: (``excerpt``).
    certain_least: float = decides(number(0.35))
    #: A site is a catalogue if this share of its pages resembles another page of the site under another title. Of
    #: articles one page in a hundred does, of forms and adverts up to 0.19. 1 means never.
    catalogue: float = decides(number(0.2))
    #: Texts with fewer different shingles are short. Short texts are copies if one contains every sentence of the other
    #: and both give the same numbers.
    short: int = whole(120, 1, 4096)
    #: The least similarity of short copies: in one sentence one word makes another notice.
    short_least: float = decides(number(0.6))
    #: The containment from which a page that is no copy is an excerpt.
    excerpt: float = decides(number(0.8))
    #: The similarity of titles below which a copy is ``retitled``.
    retitled: float = decides(number(0.5))

    def on_catalogue(self) -> CascadeParameters:
        """Return the parameters for two pages of one catalogue, at least as strict as ``CATALOGUE_WEIGHTS``."""
        strict: dict[str, Any] = {name: max(getattr(self, name), value) for name, value in CATALOGUE_WEIGHTS.items()}
        strict["by_reworded"] = CATALOGUE_WEIGHTS["by_reworded"]  # the only weight that speaks for a copy
        return replace(self, **strict)

    @property
    def families(self) -> list[str]:
        """The kinds of keys."""
        return _split(self.keys)


@cache
def _split(names: str) -> list[str]:
    return names.split(",")


#: The method of these profiles.
METHOD = "cascade"
ARTICLE, CATALOGUE = "article", "catalogue"

#: The values of NEARDUP_PROFILE. A profile sets only deciding parameters, so it may change between crawls of one state;
#: the user's own parameters take precedence. Each has a reason and a measured corpus
#: (docs/en/guides/kinds-of-sites.md). Mails and forums need none, as quotes are left out of every page.
PROFILES: Mapping[str, Mapping[str, Any]] = {
    ARTICLE: {},
    # From the first page on, and also for unknown sites.
    CATALOGUE: CATALOGUE_WEIGHTS,
}
