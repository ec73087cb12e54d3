"""What the default method can be told, and the weights by which it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from scrapy_neardup.methods.parameters import Parameters, decides, names, number, option, whole

#: What decides on two pages of a catalogue: they are copies if they are nearly the same all over (0.92, which is
#: ``base`` and ``by_site``), and no word of either title is gone. Products of a family share their description, and
#: numbers in it, and differ in a name.
CATALOGUE: Mapping[str, float] = {"certain_on_site": 1.0, "by_site": 0.4, "by_gone": 0.5, "by_reworded": 0.0}
_FAMILIES = "title", "keywords", "description", "sentences", "shingles"


@dataclass(frozen=True, slots=True)
class CascadeParameters(Parameters):
    """The parameters of ``cascade``; lengths are in letters and digits, shares and similarities in [0, 1].

    From ``certain`` on, similarity alone makes a duplicate of a page of another site, or from ``certain_apart`` on if
    of either title a word is gone (see ``TitleWords``); where they may be of one site from ``certain_on_site`` on.
    Below that a score decides: similarity, less ``by_site`` where it may be one site, less ``by_gone`` if a word of one
    title is gone, plus ``by_title`` under one title, plus ``by_reworded`` where one site tells the same numbers in
    other words, less ``by_numbers`` times the share of numbers that differ. It must reach ``base``, and the texts with
    their boilerplate must be alike for ``least``; from ``certain`` on for ``certain_least``, or the one hold most of
    the other (``excerpt``).
    """

    method: ClassVar[str] = "cascade"

    #: What makes keys: some of title, keywords, description, sentences, shingles.
    keys: str = names(",".join(_FAMILIES), *_FAMILIES)
    #: Core words of the title that make a key; as many of keywords and description together make another.
    core_words: int = whole(4, 1, 4096)
    #: Longest sentences of the body that are keys, and the length from which a piece is a sentence.
    sentence_keys: int = whole(2, 1, 64)
    min_sentence: int = whole(12, 1, 4096)
    #: Shingles of the body that are keys, and their length: so long that few phrases are common. Where words have
    #: spaces between them they are longer, as ten letters are two words.
    shingle_keys: int = whole(4, 1, 128)
    key_shingle: int = whole(10, 1, 4096)
    key_shingle_spaced: int = whole(24, 1, 4096)
    #: The length from which a line is counted, and left out where it stands on many pages.
    min_counted: int = whole(6, 1, 4096)
    #: Shingles that are compared, and the sketch that holds them.
    shingle: int = whole(5, 1, 4096)
    bins: int = option(512, 64, 128, 256, 512, 1024, 2048, 4096)
    bits: int = option(2, 1, 2, 4, 8)
    #: Sentences, numbers and title words of which the sketch holds a hash.
    max_sentences: int = whole(3, 1, 255)
    max_numbers: int = whole(12, 1, 255)
    max_title_words: int = whole(16, 1, 255)
    #: What decides; benchmarks/fields.py holds the weights against fits.
    certain: float = decides(number(0.76))
    certain_apart: float = decides(number(0.8))
    certain_on_site: float = decides(number(0.95))
    base: float = decides(number(0.52))
    by_site: float = decides(number(0.18))
    by_gone: float = decides(number(0.1))
    by_title: float = decides(number(0.15))
    by_reworded: float = decides(number(0.18))
    by_numbers: float = decides(number(0.3))
    least: float = decides(number(0.5))
    certain_least: float = decides(number(0.35))
    #: The share of a site's pages that look like another one of it under another title, from which on the site is a
    #: catalogue (``CATALOGUE``); of articles it is a hundredth, of forms and adverts up to 0.19. 1 for never.
    catalogue: float = decides(number(0.2))
    #: Texts with fewer different shingles than ``short`` are copies if every sentence of one stands in the other, they
    #: hold the same numbers and are alike for ``short_least``: of one sentence, one word makes another notice.
    short: int = whole(120, 1, 4096)
    short_least: float = decides(number(0.6))
    #: Containment that makes an excerpt of a page that is no copy, and title similarity below which a copy is retitled.
    excerpt: float = decides(number(0.8))
    retitled: float = decides(number(0.5))

    def on_catalogue(self) -> CascadeParameters:
        """Those that decide on two pages of one catalogue: these, or ``CATALOGUE`` where that asks for more."""
        asked: dict[str, Any] = {name: max(getattr(self, name), value) for name, value in CATALOGUE.items()}
        asked["by_reworded"] = CATALOGUE["by_reworded"]  # it speaks for a copy: the less it says, the more is asked for
        return replace(self, **asked)

    @property
    def families(self) -> list[str]:
        """What makes keys, by name."""
        return _split(self.keys)


@cache
def _split(names: str) -> list[str]:
    return names.split(",")
