"""A page with the very bytes of an earlier one, by its sketch: what is said is what comparing the two would say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade.rules import compare_on_site, compare_same_lines
from scrapy_neardup.methods.cascade.sketch import MAX_LINES, Lines
from scrapy_neardup.methods.literature.pieces import NSHash
from scrapy_neardup.model import Fingerprint, Likeness, Page, SiteCounts
from scrapy_neardup.state.opening import memory_state
from tests.build import story

Sentences = npt.NDArray[np.uint32]


@dataclass
class Known:
    """A site of which is known on how many pages each sentence stood: as many as its fingerprint ends in."""

    many: int

    def pages(self) -> int:
        return self.many

    def forms(self) -> float:
        return 0.0

    def stood_on(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        return (sentences % 5).astype(np.uint16)

    def is_own(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        return np.zeros(len(sentences), np.bool_)

    is_common = is_own


NUMBERS = st.integers(0, 2**32 - 1)
LINES = st.builds(
    Lines, st.frozensets(NUMBERS, max_size=3), st.dictionaries(NUMBERS, st.integers(1, 255), max_size=MAX_LINES)
)


@given(LINES, st.builds(Known, st.integers(0, 20)))
def test_equal_lines_on_one_site_are_compared_as_two_pages(lines: Lines, counts: Known) -> None:
    again, compared = compare_same_lines(lines, counts), compare_on_site(lines, lines, counts, similarity=1.0)
    assert again.ruling is compared.ruling
    assert (again.shared, again.new, again.old) == (compared.shared, 0, 0)


@pytest.mark.parametrize("site", ["a.example", "b.example"])
def test_the_sketch_is_the_one_that_the_page_would_have(site: str) -> None:
    store = memory_state({})
    method = make_method("cascade", {}).with_hashes(store.hashes)
    lines = "\n".join(story(1, 14))
    page = Page(
        "http://a.example/", "渡口", text=lines, main=lines, headline="渡口", reader="article", site="a.example"
    )
    again = method.compare_same_bytes(method.fingerprint(page).sketch, site, store.on_site(site))
    here = method.fingerprint_own(replace(page, site=site), store.on_site(site).is_common, store.on_site(site))
    assert again is not None
    assert again[1] == here.sketch
    assert again[0] == method.compare(here, method.fingerprint(page).sketch, frozenset())
    assert again[0].likeness is Likeness.IDENTICAL


def test_a_user_method_with_its_own_guard_reads_equal_pages() -> None:
    class Own(NSHash):
        def fingerprint_own(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
            return super().fingerprint_own(page, is_common, site)

    counts = memory_state({}).on_site("a.example")
    for method, is_known in ((make_method("nshash", {}), True), (Own(), False)):
        sketch = method.fingerprint(Page("http://a.example/", text="".join(story(1, 14)))).sketch
        assert (method.compare_same_bytes(sketch, "a.example", counts) is not None) is is_known
