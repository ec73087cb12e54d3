"""The pages of a part as arrays: what they ask earlier parts in any case, and which of them need the detector."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.counts import ExactCounts, Hashes, number_of_form_pages, numbers_of_forms, numbers_on_sites
from scrapy_neardup.batch.rows import Questions, Topic, answers_on, is_among, numbers, sorted_set
from scrapy_neardup.batch.runs import PAGES, ArchivePart, BatchOptions, decode, new_record
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.state.boilerplate import ALL_PAGES, COMMON_BITS, COMMON_HERE, count_bits, number_of_site, site_bit
from scrapy_neardup.state.layout import kept_url
from scrapy_neardup.state.record import Record

_ONE = np.uint32(1)  # faster than 1


class PartPages:
    """The pages of a part as arrays, and the questions that they ask in any case."""

    _COLUMNS = ("rank", "url", "site", "canonical", "keys", "sketch", "sentences", "own")

    def __init__(self, options: BatchOptions, part: ArchivePart) -> None:
        self._hashes = hashes = options.make_method().hashes
        table = pa.Table.from_batches(part.batches(self._COLUMNS), pa.schema(map(PAGES.field, self._COLUMNS)))
        columns = {name: table[name].combine_chunks() for name in self._COLUMNS}
        self.ranks: list[int] = numbers(columns["rank"]).tolist()
        has_canonical = pc.not_equal(columns["canonical"], b"")
        canonicals = map(_url, columns["canonical"].filter(has_canonical).to_pylist())
        self._urls = [*map(_url, columns["url"].to_numpy(zero_copy_only=False))]
        self.urls = np.array(hashes.every(self._urls), np.uint64)
        self._sketches, self._own = columns["sketch"], columns["own"]
        least = options.config.min_letters
        #: Whether the stored fingerprint of each page may be used.
        self.is_judged = numbers(columns["own"].fill_null(least)) >= least
        self.is_judged &= columns["sketch"].is_valid().to_numpy(zero_copy_only=False)
        self.is_alone = self.is_judged & ~has_canonical.to_numpy(zero_copy_only=False)
        # Members of lists, and where the list of each page begins. A sentence that stands twice counts once.
        self.keys, self._key_starts = _lists(columns["keys"])
        pages = np.arange(len(table))
        #: By topic: hashes of keys and URLs in order, each with the first page that has it; the same for each page.
        self._firsts = dict[Topic, tuple[Hashes, npt.NDArray[np.intp]]]()
        self._first = dict[Topic, npt.NDArray[np.intp]]()
        self._page_of_key = np.repeat(pages, np.diff(self._key_starts))
        for topic, found, of in (Topic.KEY, self.keys, self._page_of_key), (Topic.URL, self.urls, pages):
            known, at, places = np.unique(found, return_index=True, return_inverse=True)
            self._firsts[topic] = known, of[at]
            self._first[topic] = of[at][places]
        sentences, starts = _lists(columns["sentences"])
        begins = pages.astype(np.uint64) << np.uint64(32)
        of_pages = sorted_set(np.repeat(begins, np.diff(starts)) | sentences)
        self._sentences = of_pages.astype(np.uint32)
        self._starts = np.append(np.searchsorted(of_pages, begins), len(of_pages))
        self.lengths = np.diff(self._starts)
        different = columns["site"].dictionary_encode()
        sites, site = [decode(one) for one in different.dictionary.to_pylist()], numbers(different.indices)
        self._bits = np.array([1 << site_bit(one, hashes) for one in sites], np.uint32)[site]
        self._form_pages = {one: number_of_form_pages(one, hashes) for one in sites}
        self._form_page = [[*self._form_pages.values()][one] for one in site.tolist()]
        # The numbers of sentences on their sites, and one for all pages of each site.
        of_sites = np.array([number_of_site(one, hashes) for one in sites], np.uint64)
        here = numbers_on_sites(self._sentences, np.repeat(of_sites[site], self.lengths), hashes)
        all_pages = numbers_on_sites(np.repeat(ALL_PAGES, len(sites)), of_sites, hashes)
        self.numbers, places = np.unique(np.concatenate((here, all_pages)), return_inverse=True)
        self._here, self._all_pages = places[: len(here)].astype(np.uint32), places[len(here) :][site]
        self.sentences, places = np.unique(self._sentences.astype(np.uint64), return_inverse=True)
        self._bit_places = places.astype(np.uint32)
        asked_urls = np.array([*self.urls, *hashes.every([*canonicals])], np.uint64)
        self.questions: Questions = {
            Topic.KEY: self._firsts[Topic.KEY][0],
            Topic.URL: sorted_set(asked_urls),
            Topic.COUNT: self.numbers,
            Topic.BITS: self.sentences,
            Topic.FORM: np.sort(np.array([*self._form_pages.values()], np.uint64)),
        }

    def questions_of_forms(self, answers: pa.Table) -> Questions:
        """Return what the pages ask about forms, once it is known how many pages of their sites were counted so."""
        known = dict(zip(*(one.tolist() for one in answers_on(Topic.FORM, answers)), strict=True))
        counted = [(site, known[number]) for site, number in self._form_pages.items() if number in known]
        numbers = {one for site, pages in counted for one in numbers_of_forms(site, pages, self._hashes)}
        return {Topic.FORM: np.sort(np.array([*numbers], np.uint64))}

    def find_doubtful(self, filed: Hashes, newest: Hashes, counts: ExactCounts) -> npt.NDArray[np.bool_]:
        """Return the pages that may be more than a new original.

        Others have a stored fingerprint, no known canonical address, a URL and keys that no earlier page has, and no
        sentence that is boilerplate, even if all pages of the part count. ``filed``, ``newest``: hashes of the keys and
        URLs of earlier parts, in order.
        """
        count = len(self.ranks)
        bits = count_bits(counts.bits.counts) + np.bincount(self._bit_places, minlength=len(counts.bits.counts))
        here = counts.numbers.counts + np.bincount(self._here, minlength=len(counts.numbers.counts))
        page_of_sentence = np.repeat(np.arange(count), self.lengths)
        is_key_known = (self._first[Topic.KEY] < self._page_of_key) | is_among(self.keys, filed)
        is_common = (here >= COMMON_HERE)[self._here] | (bits >= COMMON_BITS)[self._bit_places]
        has_key = np.bincount(self._page_of_key[is_key_known], minlength=count) > 0
        self.may_be_common = np.bincount(page_of_sentence[is_common], minlength=count) > 0
        is_url_known = (self._first[Topic.URL] < np.arange(count)) | is_among(self.urls, newest)
        doubtful: npt.NDArray[np.bool_] = ~self.is_alone | is_url_known | has_key | self.may_be_common
        return doubtful

    def fingerprint(self, page: int, counts: ExactCounts) -> Fingerprint | None:
        """Return the fingerprint of a page without boilerplate; None if it has none, or some boilerplate by now."""
        members = slice(self._starts[page], self._starts[page + 1])
        if not self.is_judged[page] or (self.may_be_common[page] and self._has_common(members, counts)):
            return None
        sketch, own = self._sketches[page].as_py(), self._own[page].as_py()
        return Fingerprint(self.keys_of(page), sketch, self._sentences[members], own=own)

    def _has_common(self, members: slice, counts: ExactCounts) -> bool:
        here, bits = counts.numbers.now[self._here[members]], counts.bits.now[self._bit_places[members]]
        return bool((here >= COMMON_HERE).any() or (count_bits(bits) >= COMMON_BITS).any())

    def keys_of(self, page: int) -> tuple[int, ...]:
        return tuple(self.keys[self._key_starts[page] : self._key_starts[page + 1]].tolist())

    def first_with(self, topic: Topic, hash: int) -> int:
        """Return the first page that has this hash, or a number above all pages."""
        known, pages = self._firsts[topic]
        place = int(known.searchsorted(np.uint64(hash)))
        return int(pages[place]) if place < len(known) and known[place] == hash else len(self.ranks)

    def first_with_keys_of(self, page: int) -> list[int]:
        """Return the first page that has each of the keys of a page."""
        found: list[int] = self._first[Topic.KEY][self._key_starts[page] : self._key_starts[page + 1]].tolist()
        return found

    def filed(self, is_new: npt.NDArray[np.bool_]) -> dict[Topic, tuple[Hashes, npt.NDArray[np.int64]]]:
        """Return the keys and URLs of new pages as hashes in order, each with the rank of its page."""
        ranks, found = np.array(self.ranks, np.int64), dict[Topic, tuple[Hashes, npt.NDArray[np.int64]]]()
        for topic, (known, pages) in self._firsts.items():
            is_filed = is_new[pages]
            found[topic] = known[is_filed], ranks[pages[is_filed]]
        return found

    def record(self, page: int) -> Record:
        return new_record(self.ranks[page], self._urls[page], self.keys_of(page), self._sketches[page].as_py())

    def count_pages(self, pages: slice, counts: ExactCounts) -> None:
        """Count new originals among the pages of their sites."""
        for number in self._form_page[pages]:
            counts.forms[number] += 1

    def count_sentences(self, pages: slice, counts: ExactCounts, *, everywhere: bool) -> None:
        members, lengths = slice(self._starts[pages.start], self._starts[pages.stop]), self.lengths[pages]
        np.add.at(counts.numbers.counts, self._all_pages[pages][lengths > 0], _ONE)
        np.add.at(counts.numbers.counts, self._here[members], _ONE)
        if everywhere:
            np.bitwise_or.at(counts.bits.counts, self._bit_places[members], np.repeat(self._bits[pages], lengths))


def _url(packed: bytes) -> str:
    return kept_url(decode(packed))


def _lists(column: pa.ListArray) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Return the members of all lists, and where each list starts; at last where the last one ends."""
    starts = numbers(column.offsets)
    return numbers(column.flatten()), starts - starts[0]
