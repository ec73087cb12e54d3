"""Reference pairs as they are written: what ``labels`` reads."""

from __future__ import annotations

from typing import Any

from scrapy_neardup.evaluation.documents import Document
from scrapy_neardup.evaluation.exact import Alike
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.titles import article_title


def pair_row(found: Alike, one: Document, other: Document) -> dict[str, Any]:
    """A pair as plain data; ``a`` is the document that came first.

    ``title``: how alike the titles are, None where one is missing. ``same_site``: None where a URL is missing.
    """
    first, second = _title(one), _title(other)
    sites = site_of(one.url), site_of(other.url)
    return {
        "a": one.id,
        "b": other.id,
        "jaccard": round(found.jaccard, 4),
        "containment": round(found.containment, 4),
        "title": titles_alike(first, second),
        "title_same": first == second,
        "same_site": sites[0] == sites[1] if all(sites) else None,
    }


def titles_alike(one: str, other: str) -> float | None:
    """The Jaccard similarity of the pairs of neighbouring letters; None where a title has none.

    >>> titles_alike("theferry", "theferryagain"), titles_alike("", "theferry")
    (0.5833, None)
    """
    pairs = [{title[at : at + 2] for at in range(max(1, len(title) - 1))} for title in (one, other)]
    return round(len(pairs[0] & pairs[1]) / len(pairs[0] | pairs[1]), 4) if one and other else None


def _title(document: Document) -> str:
    """The letters of a title, without the site's name."""
    return letters(normalize(article_title(document.title)))
