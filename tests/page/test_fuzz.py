"""Random and hostile pages get a verdict or a reason; no other error is raised.

A coverage-guided fuzzer drives the same function (``benchmarks/fuzz.py``). Its findings are cases here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_neardup.errors import PageError
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.limits import is_risky
from scrapy_neardup.page.source import PageResponse, PageSource
from scrapy_neardup.state.opening import memory_state
from tests.page.pages import PARAGRAPHS
from tests.page.test_limits import FIELDS, URL

REASONS = ("no_text", "too_short", "too_large", "boilerplate", "quotes")
VERDICTS = {"unique", "no text", "not_html", "no_content", *(f"unjudged ({reason})" for reason in REASONS)}
SOURCE = PageSource(FIELDS, HtmlReader(100_000))


def one(data: bytes) -> str:
    """Return the verdict on a page of any bytes, or why there is none; the first byte names their form."""
    kind, body = data[:1], data[1:]
    detector = Detector(make_method("cascade", {}), memory_state({}), who="fuzz", policy=Policy(min_letters=5))
    try:
        if kind < b"\x60":
            page = SOURCE.page({}, PageResponse(URL, body), URL)
        elif kind < b"\xc0":
            html = body.decode("utf-8", "surrogatepass" if kind < b"\x80" else "replace")
            is_risky(html)
            page = SOURCE.page({"html": html}, None, URL)
        else:
            parts = body.decode("utf-16-le", "surrogatepass").split("\n\n")
            page = SOURCE.page(dict(zip(FIELDS, ["", *parts[:5]], strict=False)), None, URL)
        return detector.judge_now(page, sealed=False).headline
    except PageError as error:
        return error.reason
    except UnicodeDecodeError:  # a fuzzer may choose bytes without a text
        return "no text"


# fmt: off
NAMES = st.sampled_from((
    "p", "div", "span", "b", "i", "a", "table", "tr", "td", "th", "ul", "li", "dl", "dt", "dd", "h1", "h2", "br", "hr",
    "pre", "code", "blockquote", "article", "section", "main", "aside", "nav", "footer", "form", "input", "select",
    "option", "textarea", "button", "script", "style", "noscript", "template", "iframe", "svg", "math", "title", "meta",
    "link", "base", "html", "head", "body", "frameset", "plaintext", "ruby", "rt", "img", "figure", "lb", "hi", "x-y",
))
# fmt: on
TEXTS = st.one_of(
    st.sampled_from(PARAGRAPHS),
    st.text(max_size=20),
    st.text(st.characters(categories=["Mn", "Cf", "Cs", "Zs", "Lo"]), max_size=80),
    st.sampled_from(
        ("&amp;", "&#x300;&#x316;", "&#xfdfa;", "&#xd800;", "&#0;", "&nosuch", "\0", "<!--", "-->", "]]>", "<")
    ),
)
ATTRIBUTES = st.lists(
    st.tuples(
        st.sampled_from(
            ("class", "id", "href", "style", "hidden", "role", "colspan", "rowspan", "name", "content", "rel")
        ),
        st.one_of(
            st.sampled_from(("navigation", "display:none", "1000", "keywords", "canonical", "/x")), st.text(max_size=9)
        ),
    ),
    max_size=3,
)


@st.composite
def elements(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    name = draw(NAMES)
    attributes = "".join(f' {key}="{value}"' for key, value in draw(ATTRIBUTES))
    closing = draw(st.sampled_from((f"</{name}>", f"</{name}>", "", "</p>", "</body>")))
    return f"<{name}{attributes}>{draw(inner)}{closing}"


PAGES = st.recursive(
    TEXTS, lambda inner: st.one_of(elements(inner), st.lists(inner, max_size=4).map("".join)), max_leaves=25
)
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.slow
@FEW
@given(PAGES)
def test_a_page_of_any_elements_is_judged(html: str) -> None:
    assert one(b"\x00" + html.encode("utf-8", "replace")) in VERDICTS
    assert one(b"\x70" + html.encode("utf-8", "surrogatepass")) in VERDICTS


@FEW
@given(st.binary(max_size=300))
def test_bytes_are_judged(body: bytes) -> None:
    for kind in (b"\x00", b"\x70", b"\x90", b"\xff"):
        assert one(kind + body) in VERDICTS


def test_known_cases_are_judged() -> None:
    for body in [
        b"\x00<?xml version='1.0' encoding='x'?>",
        b"\x00<html",
        b"\x00<meta charset=utf-7>+AGE-",
        b"\x70<p>" + "\ud800".encode("utf-8", "surrogatepass"),
    ]:
        assert one(body) in VERDICTS


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        import hostile_pages
    finally:
        del sys.path[0]
    return hostile_pages


@pytest.mark.slow
def test_every_kind_is_judged_or_has_a_reason(pages: ModuleType) -> None:
    source, answers = PageSource(FIELDS, HtmlReader(5_000_000)), {}
    for name in pages.kinds():
        room = pages.Room(12_000, 250)
        detector = Detector(make_method("cascade", {}), memory_state({}), who="test")
        item, served = {}, None
        if name in pages.KINDS:
            made = pages.KINDS[name](room)
            served = PageResponse(URL, made if isinstance(made, bytes) else made.encode("utf-8", "replace"))
        else:
            item = pages.ITEMS[name](room)
        try:
            answers[name] = detector.judge_now(source.page(item, served, URL), sealed=False).headline
        except PageError as error:
            answers[name] = error.reason
    assert len(answers) > 200
    others = {"not_html", "unjudged (no_text)", "unjudged (too_short)"}
    assert set(answers.values()) <= {"unique", *others}
    judged = [name for name, answer in answers.items() if answer == "unique"]
    assert len(judged) > 0.9 * len(answers), "they stand beside prose, which is judged"
