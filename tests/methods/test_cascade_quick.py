"""Pages that a few bytes of their sketches refuse."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.sketch import HEAD
from scrapy_neardup.model import Page
from tests.methods.cascade_pages import BELL, FERRY, LIGHTHOUSE, MILL, NONE, SECOND_FERRY, page, unpacked

TEXTS = (FERRY, BELL, SECOND_FERRY, LIGHTHOUSE, MILL)
TITLES = ("", "新渡口清晨开航", "铜钟又响了", "The mill of 1874")
LENIENT = CascadeParameters(base=0.2, certain=0.3, least=0.1, excerpt=0.3, catalogue=0.0)
ARTICLE_LINES = st.sampled_from([line for text in TEXTS for line in text.split("\n")])


@st.composite
def drawn(draw: st.DrawFn) -> Page:
    """A page of lines of a few articles, so that two share some, none or all."""
    lines = draw(st.lists(ARTICLE_LINES, min_size=1, max_size=14))
    site = draw(st.sampled_from(["", "river.example", "hill.example"]))
    return replace(page("\n".join(lines), draw(st.sampled_from(TITLES))), site=site)


@given(drawn(), drawn(), st.sampled_from([CascadeParameters(), LENIENT]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_refused_pages_have_nothing_alike(new: Page, old: Page, parameters: CascadeParameters, has_whole: bool) -> None:
    method = Cascade(parameters)
    made, earlier = method.fingerprint(new), method.fingerprint(old)
    if has_whole:  # as if some of it were boilerplate: the sketch of all is that of the earlier page
        head = list(HEAD.unpack_from(made.sketch))
        head[4] = head[5] + unpacked(earlier.sketch).shingles
        packed = HEAD.pack(*head) + made.sketch[HEAD.size :]
        made = replace(made, sketch=packed, whole=unpacked(earlier.sketch).minwise)
    if not method.may_be_alike(made, earlier.sketch):
        found = method.compare(made, earlier.sketch, NONE)
        assert (found.duplicate, found.kind, found.in_form, found.identical) == (False, None, False, False)


def may_be_alike(new: Page, old: Page) -> bool:
    method = Cascade()
    return method.may_be_alike(method.fingerprint(new), method.fingerprint(old).sketch)


def test_other_articles_are_refused_unless_they_are_read_from_html_or_cut_short() -> None:
    for other in (BELL, SECOND_FERRY, LIGHTHOUSE, MILL, f"{BELL}\n{FERRY[:60]}"):
        assert not may_be_alike(page(FERRY, "渡口"), page(other)), other[:9]
    plain, read = page(FERRY), page(MILL, reader="trafilatura", main=MILL)
    assert may_be_alike(plain, read)
    assert may_be_alike(read, plain)
    made, old = Cascade().fingerprint(page(FERRY, "渡口")), Cascade().fingerprint(page(BELL)).sketch
    assert all(Cascade().may_be_alike(made, old[:size]) for size in range(len(old)))
