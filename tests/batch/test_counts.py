"""Exact counts: equal to a naive dictionary, and the same verdicts as counts of fixed size."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.batch.counts import ExactCounts
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Outcome
from scrapy_neardup.state.boilerplate import COMMON_HERE, Counts, Sentences, count_bits
from scrapy_neardup.state.opening import memory_state
from tests.build import make_detector, page, story

SITES = ("a.example", "www.a.example", "b.example", "")
SENTENCES = np.arange(1, 12, dtype=np.uint32)

noted_page = st.tuples(st.sampled_from(SITES), st.lists(st.integers(1, 11), max_size=6), st.booleans())


def array(*sentences: int) -> Sentences:
    return np.array(sentences, np.uint32)


@settings(deadline=None)  # the list of public suffixes is loaded once
@given(st.lists(noted_page, max_size=60))
def test_every_sentence_of_every_site_is_counted(noted: list[tuple[str, list[int], bool]]) -> None:
    counts, here, everywhere, total = ExactCounts(), Counter[tuple[str, int]](), defaultdict[int, set[str]](set), 0
    for number, (site, sentences, is_original) in enumerate(noted):
        counts.on_site(site, OPEN).note(array(*sentences), everywhere=is_original, page=number)
        here.update((site, one) for one in set(sentences))
        total += site == SITES[0]
        for one in sentences if is_original else ():
            everywhere[one].add("a.example" if site.endswith("a.example") else site)
    for site in SITES:
        assert counts.on_site(site, OPEN).pages_here(SENTENCES).tolist() == [
            min(COMMON_HERE, here[site, one]) for one in SENTENCES.tolist()
        ]
    bits = count_bits(counts.bits.get(SENTENCES.astype(np.uint64)))
    assert bits.tolist() == [len(everywhere[one]) for one in SENTENCES.tolist()]
    assert counts.on_site(SITES[0], OPEN).pages() == min(COMMON_HERE, total)


def test_a_version_that_is_replaced_stays_in_the_state() -> None:
    store = memory_state({})
    store.use_exact_counts(ExactCounts().on_site)
    detector = make_detector(store)
    stories = {"first": (51, 1), "copy": (51, 2), "other": (52, 3), "copy ": (52, 4)}
    made = [page(url.strip(), [*story(a, 12), *story(b, 1)], "题") for url, (a, b) in stories.items()]
    first, copy, other, again = [detector.judge_now(one, sealed=True) for one in made]
    assert [one.match and one.match.id for one in (copy, again)] == [first.id, other.id]
    assert store.record(copy.id) is not None


def test_a_sentence_is_boilerplate_everywhere_after_some_36_sites() -> None:
    counts = ExactCounts()
    for number in range(15):
        counts.on_site(f"{number}.example", OPEN).note(array(1), everywhere=True)
        counts.on_site("one.example", OPEN).note(array(2), everywhere=True)
    assert not counts.on_site("new.example", OPEN).is_common(array(1, 2)).any()
    for number in range(200):
        counts.on_site(f"{number}.example", OPEN).note(array(1), everywhere=True)
    assert counts.on_site("new.example", OPEN).is_common(array(1, 2)).tolist() == [True, False]
    assert counts.on_site("new.example", OPEN).is_own(array(1, 2)).tolist() == [False, False]


def share(pages: int, forms: range, counts: Counts | ExactCounts) -> float:
    for number in range(pages):
        counts.on_site(SITES[0], OPEN).note_form(in_form=number in forms)
    return counts.on_site(SITES[0], OPEN).template_share()


def test_the_share_of_forms_is_that_of_the_last_pages() -> None:
    for counts in (ExactCounts, Counts):
        assert share(63, range(63), counts()) == 0.0
        assert share(64, range(16), counts()) == 0.25
        assert share(1_000, range(500), counts()) == 0.5
    assert share(1_024, range(512), ExactCounts()) == 0.0
    assert share(10_000, range(9_900, 10_000), ExactCounts()) == 100 / (10_000 - 18 * 512)


def test_verdicts_are_those_of_counts_of_fixed_size() -> None:
    footer, verdicts = story(999, 6), []
    numbers = [number if number % 5 else number // 2 for number in range(120)]
    made = [page(f"p{at}", [*story(one, 5), *footer], site=SITES[one % 3]) for at, one in enumerate(numbers)]
    for exact in (False, True):
        detector = make_detector(memory_state({}))
        if exact:
            detector.store.use_exact_counts(ExactCounts().on_site)
        judged = [detector.judge_now(one, sealed=True) for one in made]
        verdicts.append([(one.outcome, one.match and (one.match.url, one.match.similarity)) for one in judged])
    assert verdicts[0] == verdicts[1]
    assert {outcome for outcome, _ in verdicts[0]} == {Outcome.UNIQUE, Outcome.DUPLICATE}
