"""Pages that a few bytes of their sketches refuse."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.rules import Bound
from scrapy_neardup.methods.cascade.sketch import HEAD
from scrapy_neardup.model import Fingerprint, Page
from tests.methods.cascade_pages import BELL, DEFAULTS, FERRY, LIGHTHOUSE, MILL, NONE, SECOND_FERRY, page, unpacked

TEXTS = (FERRY, BELL, SECOND_FERRY, LIGHTHOUSE, MILL)
TITLES = ("", "新渡口清晨开航", "铜钟又响了", "The mill of 1874")
STRICT = CascadeParameters()
LENIENT = CascadeParameters(base=0.2, certain=0.3, least=0.1, excerpt=0.3, catalogue=0.0)
ARTICLE_LINES = st.sampled_from([line for text in TEXTS for line in text.split("\n")])


def is_nothing(method: Cascade, new: Fingerprint, old: bytes) -> bool:
    found = method.compare(new, old, NONE)
    return not (found.duplicate or found.likeness or found.in_form or found.identical)


@st.composite
def drawn(draw: st.DrawFn) -> Page:
    """A page of lines of a few articles, so that two share some, none or all."""
    lines = draw(st.lists(ARTICLE_LINES, min_size=1, max_size=14))
    site = draw(st.sampled_from(["", "river.example", "hill.example"]))
    return replace(page("\n".join(lines), draw(st.sampled_from(TITLES))), site=site)


@given(drawn(), drawn(), st.sampled_from([STRICT, LENIENT]), st.booleans())
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
        assert is_nothing(method, made, earlier.sketch)


def test_a_sketch_that_is_cut_short_is_compared() -> None:
    method = Cascade()
    made, old = method.fingerprint(page(FERRY, "渡口")), method.fingerprint(page(BELL)).sketch
    assert not method.may_be_alike(made, old)
    assert all(method.may_be_alike(made, old[:size]) for size in range(len(old)))


def may_be_alike(new: Page, old: Page) -> bool:
    method = Cascade()
    return method.may_be_alike(method.fingerprint(new), method.fingerprint(old).sketch)


def test_other_articles_are_refused_unless_they_are_read_from_html() -> None:
    for other in (BELL, SECOND_FERRY, LIGHTHOUSE, MILL, f"{BELL}\n{FERRY[:60]}"):
        assert not may_be_alike(page(FERRY, "渡口"), page(other)), other[:9]
    plain, read = page(FERRY), page(MILL, reader="trafilatura", main=MILL)
    assert may_be_alike(plain, read)
    assert may_be_alike(read, plain)
    assert may_be_alike(replace(plain, reader="trafilatura", main=FERRY), read)


def test_copies_excerpts_and_one_title_are_compared() -> None:
    for new, old in [
        (page(FERRY), page(FERRY)),
        (page(FERRY, "渡口"), page(BELL, "渡口")),
        (page(FERRY), page(f"{FERRY}\n{BELL}\n{MILL}\n{SECOND_FERRY}", "铜钟又响了")),
        (page(FERRY), page(FERRY.replace("渡船", "货轮"), "铜钟又响了")),
        (page(f"{FERRY}\n{BELL}\n{SECOND_FERRY}\n{MILL}"), page(BELL, "铜钟又响了")),
    ]:
        method = Cascade()
        assert not is_nothing(method, method.fingerprint(new), method.fingerprint(old).sketch)
        assert may_be_alike(new, old)


def test_boilerplate_of_the_new_page_is_taken_off_the_earlier_one() -> None:
    """Without boilerplate the excerpt is more alike; the plain overlap of both sketches would refuse it."""
    made = Cascade().fingerprint(page(FERRY[:150]))
    one, old = unpacked(made.sketch), Cascade().fingerprint(page(f"{FERRY[:150]}\n{BELL}\n{MILL}\n{LIGHTHOUSE}", ""))
    assert not Bound(DEFAULTS).may_be_alike(one, b"", old.sketch)
    one.whole = one.shingles + unpacked(old.sketch).shingles
    assert Bound(DEFAULTS).may_be_alike(one, unpacked(old.sketch).minwise, old.sketch)
