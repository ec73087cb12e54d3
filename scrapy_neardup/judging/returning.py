"""Copies that were dropped, and come again with the same text: they stay what they are.

What a state counts goes on after a page was judged. On the first pages of a site, copies and excerpts that were filed
in the meantime hold the lines of an article, which are taken for the site's form then; a witness by which a copy was
found is forgotten. So the very page that was dropped would say less of its own when it comes again, and be delivered
after all. Therefore the record of a dropped copy tells what the page was: a hash of its title, its text, its kind, and
of all that its verdict depended on beside the state. Only where all of that is the same, and the original is there, the
page is what it was. A page that has become an article of its own has another text, however alike the two are, so it
cannot be held for the copy that it was: it is judged as if nothing were known of it. So is every page once another
threshold, method or policy decides.
"""

from __future__ import annotations

import json
from collections.abc import Set

from scrapy_neardup.methods import Method
from scrapy_neardup.model import Likeness, Page
from scrapy_neardup.stores import Record


class Returning:
    """What dropped copies were, by one method under the secret of a state, with one policy."""

    def __init__(self, method: Method, min_letters: int, also_copies: Set[Likeness]) -> None:
        said = (method.recipe(), method.decisions(), min_letters, sorted(also_copies))
        self._hashes = method.hashes
        self._rules = json.dumps(said, sort_keys=True)

    def mark(self, page: Page, likeness: Likeness | None) -> int:
        """What is to be known of a page that is dropped as a copy; never 0."""
        return self._mark(self._hashes.of(page.title), self._hashes.of(page.text), likeness)

    def kinds(self, page: Page, known: Record) -> list[Likeness | None]:
        """The one kind of which the copy was that was dropped at the URL of a page; none if the page is not that."""
        if not known.dropped:
            return []
        title, text = self._hashes.of(page.title), self._hashes.of(page.text)
        return [kind for kind in (None, *Likeness) if self._mark(title, text, kind) == known.dropped]

    def _mark(self, title: int, text: int, likeness: Likeness | None) -> int:
        return self._hashes.of(f"{title} {text} {likeness and likeness.value} {self._rules}") or 1
