"""The charts: the same for the same counts, drawn in the colours of the page, and with nothing of a page in them."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import pytest
from lxml import etree

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.report import charts
from scrapy_neardup.report.charts import Chart, percent, short
from scrapy_neardup.report.data import Count, Report, Similarities, Threshold, TimeBucket, Times, Totals
from scrapy_neardup.report.gather import gather
from scrapy_neardup.state.evidence import Evidence
from tests.report.recount import BEGIN, State, filled, large_state
from tests.report.states import hostile

MARKER = "Zzyzx"


@pytest.fixture(scope="module")
def report() -> Report:
    return gather(filled(large_state(400, 20)))


@pytest.fixture(scope="module")
def drawn(report: Report) -> list[str]:
    return all_of(report)


def all_of(report: Report) -> list[str]:
    """Every SVG of a page."""
    each = charts.kinds(report), charts.times(report.times), charts.similarities(report.similarities)
    return [svg for chart in each for svg in (chart.wide, chart.narrow)]


def texts(svg: str) -> list[str]:
    """What is written in it."""
    return ["".join(one.itertext()).strip() for one in etree.fromstring(svg).iter("text")]


def bins(**pages: int) -> tuple[int, ...]:
    """Counts in fiftieths, by the number of the bin behind a letter."""
    return tuple(pages.get(f"b{place}", 0) for place in range(50))


@pytest.mark.slow
def test_the_same_counts_give_the_same_bytes(report: Report, drawn: list[str]) -> None:
    assert all_of(replace(report)) == drawn
    assert all_of(gather(filled(large_state(400, 20)))) == drawn


@pytest.mark.slow
def test_other_counts_give_other_bytes(report: Report, drawn: list[str]) -> None:
    other = all_of(gather(filled(large_state(401, 20, seed=2))))
    assert not set(other) & set(drawn)


@pytest.mark.slow
def test_settings_of_the_user_change_nothing_and_are_left_alone(report: Report, drawn: list[str]) -> None:
    own: dict[Any, Any] = {  # the names that matplotlib takes are a type of its own in some versions
        "font.size": 40.0,
        "axes.grid": True,
        "svg.fonttype": "path",
        "font.family": ["serif"],
        "lines.dashed_pattern": [9, 9],
    }
    with mpl.rc_context(own):
        assert all_of(report) == drawn
        assert {name: mpl.rcParams[name] for name in own} == own


def test_pyplot_is_left_alone(report: Report) -> None:
    before = "matplotlib.pyplot" in sys.modules
    charts.times(report.times)
    assert ("matplotlib.pyplot" in sys.modules) is before


def test_nothing_of_a_page_is_in_them() -> None:
    state = State({"method": MARKER, "parameters": {MARKER: 0.5, "certain": 0.9}})
    told = Evidence("near", 0, 0.7, 0.7, 9, f"<{MARKER}>", (MARKER,), MARKER)
    first = state.add(f"https://{MARKER}.example/", told=told)
    state.add(f"https://{MARKER}.example/1", first, 0.7, told)
    state.add(f"https://{MARKER}.example/2", first, 0.7, replace(told, likeness=MARKER))
    state.add(f"https://{MARKER}.example/3", told=replace(told, likeness="excerpt", like=first))
    made = all_of(gather(state.store))
    assert all(made)
    assert not [svg for svg in made if MARKER.lower() in svg.lower()]


def test_each_is_an_image_with_proportions_and_a_label(drawn: list[str]) -> None:
    for svg in drawn:
        root = etree.fromstring(svg)
        assert (root.tag, set(root.attrib)) == ("svg", {"viewBox", "role", "aria-label"})
        assert root.get("role") == "img"
        assert len(root.get("aria-label") or "") > 20
        assert {one.tag for one in root.iter()} <= {
            "svg",
            "g",
            "defs",
            "style",
            "path",
            "use",
            "text",
            "clipPath",
            "rect",
        }
    assert len({etree.fromstring(svg).get("viewBox") for svg in drawn}) == 6


def test_ids_are_unique_and_all_that_is_named_is_there(drawn: list[str]) -> None:
    page = "".join(drawn)
    ids = re.findall(r'\bid="([^"]*)"', page)
    named = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)
    assert len(ids) == len(set(ids)) > 0
    assert {one or other for one, other in named} == set(ids)


def test_names_of_other_files_are_nowhere(drawn: list[str]) -> None:
    assert not re.findall(r"https?:|xmlns|<image|<script|<metadata|<!|@import|data:", "".join(drawn))


def test_colours_are_variables_of_the_page(drawn: list[str]) -> None:
    page = re.sub(r'href="#[^"]*"|url\(#[^)]*\)', "", "".join(drawn))
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl", page)
    colours = set(re.findall(r"(?:fill|stroke|color|stop-color): ?([^;\"}]+)", page))
    assert colours <= {"none", *(f"var(--{name})" for name in ("soft", "line", "accent", "neutral", "faint"))}
    assert {"var(--accent)", "var(--neutral)", "var(--faint)"} <= colours


def test_fonts_are_those_of_the_page(drawn: list[str]) -> None:
    page = "".join(drawn)
    assert "DejaVu" not in page
    assert "font-family" not in page
    assert "font-size: 12px" in page


@pytest.mark.parametrize(
    "chart",
    [
        charts.kinds(Report("", "", totals=Totals(pages=5, originals=5))),
        charts.times(Times()),
        charts.similarities(Similarities()),
        charts.similarities(Similarities(bins(), bins(), (Threshold("base", 0.5, "…"),))),
    ],
)
def test_of_nothing_nothing_is_drawn(chart: Chart) -> None:
    assert chart == Chart("", "")


def test_kinds_are_named_with_their_numbers_and_shares() -> None:
    kinds, passed = (Count("near", 1234), Count("same_title", 1)), (Count("excerpt", 16),)
    chart = charts.kinds(Report("", "", totals=Totals(pages=10_000), kinds=kinds, passed=passed))
    for svg in (chart.wide, chart.narrow):
        assert texts(svg) == [
            *("near", "same title", "excerpt, passed"),
            *("1,234  (12.3 %)", "1  (< 0.1 %)", "16  (0.2 %)"),
        ]
        assert 'aria-label="Bars: near 1,234, same title 1, excerpt, passed 16"' in svg


@pytest.mark.slow
@pytest.mark.parametrize("many", [1, 2, 11, 60])
def test_times_are_written_below_some_of_the_bars(many: int) -> None:
    found = Times("day", tuple(TimeBucket(BEGIN // 86400 * 86400 + 86400 * day, 5, 2) for day in range(many)))
    for svg, most in ((charts.times(found).wide, 8), (charts.times(found).narrow, 3)):
        days = [text for text in texts(svg) if re.fullmatch(r"\d\d [A-Z][a-z]{2}", text)]
        assert days[0] == "15 Jun"
        assert 1 <= len(days) <= most


def test_a_state_of_one_page_can_be_drawn() -> None:
    state = State()
    state.add("https://a.example/")
    report = gather(state.store)
    assert [bool(svg) for svg in all_of(report)] == [False, False, True, True, False, False]


def test_thresholds_are_named_where_they_are() -> None:
    limits = (Threshold("certain", 0.76, ""), Threshold("least", 0.2, ""), Threshold("base", 0.54, ""))
    svg = charts.similarities(Similarities(bins(b40=3), bins(b20=1), limits)).narrow
    assert [text for text in texts(svg) if text[0].isalpha()] == ["least 0.2", "base 0.54", "certain 0.76"]


def test_a_bar_that_would_hide_the_others_is_cut_and_says_its_number() -> None:
    svg = charts.similarities(Similarities(bins(b40=3, b49=12_345), bins(b20=1))).wide
    assert "12,345 ↑" in texts(svg)
    assert "↑" not in charts.similarities(Similarities(bins(b40=3, b49=12), bins())).wide


def test_all_pages_can_be_equally_alike() -> None:
    for place in (0, 24, 49):
        chart = charts.similarities(Similarities(bins(**{f"b{place}": 7}), bins()))
        assert chart.wide
        assert chart.narrow


def test_a_hostile_state_is_drawn_like_any_other() -> None:
    made = all_of(gather(hostile()))
    assert all(made)
    for svg in made:
        assert not re.search("script|onerror|alert|example|<img", svg)


def test_what_is_missing_to_draw_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    charts.check()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NearDupError, match=r"pip install 'scrapy-neardup\[report\]'"):
        charts.check()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((0, "0"), (9_999, "9,999"), (10_000, "10.0 k"), (10_500_000, "10.50 M"), (123_456_789, "123 M")),
        *((999_999_999, "1,000 M"), (10**9, "1.00 G"), (10**13, "10,000 G")),
    ],
)
def test_large_numbers_are_short_and_never_in_powers(value: int, written: str) -> None:
    assert short(value) == written


@pytest.mark.parametrize(("share", "written"), [(0, "0 %"), (1, "100 %"), (0.0005, "0.1 %"), (0.9996, "> 99.9 %")])
def test_shares_are_never_all_or_nothing_for_what_is_not(share: float, written: str) -> None:
    assert percent(share) == written
