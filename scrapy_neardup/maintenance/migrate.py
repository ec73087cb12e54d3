"""Bring a state to another recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from scrapy_neardup.judge.copies import count_sentences
from scrapy_neardup.judge.matching import candidates, without_overused_keys
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.tally import KEY as TALLY_KEY
from scrapy_neardup.maintenance.export import OpenState
from scrapy_neardup.maintenance.scan import Watch, unwatched, with_evidence, write_rows
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Page
from scrapy_neardup.state.evidence import kept_page
from scrapy_neardup.state.layout import meta_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SAMPLES, fits
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.prose import why_unjudged

#: First letters of rows that are made anew: postings, records with evidence, URLs, counts, running crawls.
_MADE_ANEW = frozenset(b"kreubgjx")
_META = frozenset((meta_key("recipe"), meta_key("secret"), TALLY_KEY))
#: Parts of a recipe that name tools.
_TOOLS = frozenset((SAMPLES, "extractor", "segmenter", "script"))
#: Rows per batch, some ten for each page. Common keys are known from then on.
_ROWS = 2000


class Way(Enum):
    """How a page came over."""

    FEED = "new fingerprint, from the feed"
    TEXT = "new fingerprint, from the text in the state"
    KEPT = "fingerprint kept"
    URL = "known by its URL, judged when it comes again"
    COPY = "a copy, known by its URL and its original"
    UNJUDGED = "unjudged, known by its HTML or item"


@dataclass(slots=True)
class MigrationCounts:
    """Pages by way; rows of the feed, and how many belong to a page of the state."""

    pages: Counter[Way] = field(default_factory=Counter)
    rows: int = 0
    used: int = 0
    #: Ids of pages with a row in the feed.
    fed: set[int] = field(default_factory=set)


class Migration:
    """Copies one state into an empty one with another recipe and the same secret."""

    def __init__(self, old: PageStore, new: PageStore, method: Method, min_letters: int) -> None:
        self._old, self._new = old, new
        self._method = method.with_hashes(new.hashes)
        self._min_letters = min_letters
        recipes = [{name: value for name, value in one.recipe.items() if name not in _TOOLS} for one in (old, new)]
        #: Whether fingerprints of both can be compared, apart from tools.
        self.is_same_method = fits(*recipes)
        self.found = MigrationCounts()

    def take_all(self, watch: Watch = unwatched) -> None:
        """Bring everything over. Raises StoreError."""
        old, new = self._old, self._new
        if self.is_same_method:
            new.add_counts(OpenState(old).counts)
        write_rows(new, (row for row in old.rows(b"") if row[0][0] not in _MADE_ANEW and row[0] not in _META))
        changes = Changes()
        for record, evidence in with_evidence(old, watch):
            # Its bytes would recognise it as the former tools read it.
            way, placed = self._place(replace(record, body=0), kept_page(record.url, evidence))
            self.found.pages[way] += 1
            new.file(placed, changes, old.last_seen(record.url), evidence)
            if len(changes.puts) >= _ROWS:
                new.write(changes)
                changes = Changes()
        new.write(changes)

    def take_feed(self, pages: Iterable[Page | None]) -> None:
        """Fingerprint pages that are in a feed; ``None`` is a row without a page."""
        found, new = self.found, self._new
        for page in pages:
            known = new.find(page.url) if page else None
            found.rows += 1
            if page is None or known is None or not _lacks_fingerprint(known) or not self._is_enough(page):
                continue
            found.used += 1
            evidence = new.evidence(known.id)
            if known.id not in found.fed:
                found.fed.add(known.id)
                found.pages[self._way_before(known, kept_page(known.url, evidence))] -= 1
                found.pages[Way.FEED] += 1
            earlier = self._old.record(known.id)
            has_keys = known.is_original or (earlier is not None and bool(earlier.keys))
            record = self._fingerprint(known, page, has_keys=has_keys)
            new.add(record, evidence, replaces=known.id, seen=new.last_seen(known.url))

    def _place(self, record: Record, page: Page | None) -> tuple[Way, Record]:
        """Return the way of a page, and its new record."""
        if record.is_unjudged:
            return Way.UNJUDGED, record
        if record.is_light and not record.sketch and not record.former:
            return Way.COPY, record
        if page is not None and self._is_enough(page):
            return Way.TEXT, self._fingerprint(record, page, has_keys=record.is_original or bool(record.keys))
        if self.is_same_method and not record.former:
            return Way.KEPT, record
        return Way.URL, replace(record, keys=(), sketch=b"", former=True)

    def _fingerprint(self, record: Record, page: Page, *, has_keys: bool) -> Record:
        """Return the record with its fingerprint; an original or variant has keys."""
        made = self._method.for_state(page, self._new.on_site(page.site))
        keys: tuple[int, ...] = ()
        if has_keys:
            overused_keys = candidates(self._method, self._new, made.keys).overused_keys
            keys = without_overused_keys(made, overused_keys).keys
            if not self.is_same_method:
                count_sentences(self._new, record.url, page.site, made, everywhere=record.is_original)
        keys += (record.original,) if record.leads else ()
        return replace(record, keys=keys, sketch=made.sketch, former=False)

    def _is_enough(self, page: Page) -> bool:
        return not page.unread and not why_unjudged(page.text, self._min_letters)

    def _way_before(self, known: Record, page: Page | None) -> Way:
        """Return the way of a page before its row came."""
        if known.former:
            return Way.URL
        return Way.TEXT if page is not None and self._is_enough(page) else Way.KEPT


def _lacks_fingerprint(known: Record) -> bool:
    """Whether a judged page has a fingerprint that a text may replace, or none yet."""
    return not known.is_unjudged and (known.former or bool(known.sketch))
