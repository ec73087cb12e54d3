"""The charts: drawn in the colours of the page, with nothing of a page in them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from lxml import etree

from scrapy_neardup.report.charts import Chart, draw_kinds, draw_similarities, draw_times
from scrapy_neardup.report.data import Count, Report, Similarities, Threshold, TimeBucket, Times, Totals
from scrapy_neardup.report.formats import format_percent, format_short
from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.html import read_file
from scrapy_neardup.report.words import Words
from scrapy_neardup.state.evidence import Evidence
from tests.report.recount import BEGIN, State, filled, large_state

MARKER = "Zzyzx"


def all_of(report: Report, language: str = "en") -> list[str]:
    """Every SVG of a page."""
    words = Words(language)
    charts = draw_kinds(report, words), draw_times(report.times, words), draw_similarities(report.similarities, words)
    return [svg for chart in charts for svg in (chart.wide, chart.narrow)]


def texts(svg: str) -> list[str]:
    return ["".join(one.itertext()).strip() for one in etree.fromstring(svg).iter("text")]


def bins(**pages: int) -> tuple[int, ...]:
    """Counts in fiftieths, by the number of the bin behind a letter."""
    return tuple(pages.get(f"b{place}", 0) for place in range(50))


def heights(svg: str, colour: str, name: str = "height") -> list[float]:
    return [float(one.get(name) or 0) for one in etree.fromstring(svg).iterfind(f"rect[@class='{colour}']")]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_is_an_image_within_its_frame_in_classes_of_the_style(language: str) -> None:
    drawn = all_of(gather(filled(large_state(400, 20))), language)
    styled = set(re.findall(r"svg \.(\w+)", read_file("report.css")))
    for svg in drawn:
        root = etree.fromstring(svg)
        assert (root.tag, set(root.attrib), root.get("role")) == ("svg", {"viewBox", "role", "aria-label"}, "img")
        assert len(root.get("aria-label") or "") > 5
        width, height = map(int, (root.get("viewBox") or "").split()[2:])
        assert {one.get("class") for one in root if one.tag != "text"} <= styled
        for one in root:
            assert set(one.attrib) <= {*("class", "x", "y", "width", "height", "dy", "text-anchor"), *LINE}
            assert 0 <= float(one.get("x", one.get("x1", 0))) <= width
            assert 0 <= float(one.get("y", one.get("y1", 0))) <= height
            assert float(one.get("width", 0)) >= 0 <= float(one.get("height", 0))
    assert len({etree.fromstring(svg).get("viewBox") for svg in drawn}) == 6
    assert drawn == all_of(gather(filled(large_state(400, 20))), language)


LINE = ("x1", "x2", "y1", "y2")


def test_nothing_of_a_page_is_in_them() -> None:
    state = State({"method": MARKER, "parameters": {MARKER: 0.5, "certain": 0.9}})
    evidence = Evidence("near", 0, 0.7, 0.7, 9, f"<{MARKER}>", (MARKER,), MARKER)
    first = state.add(f"https://{MARKER}.example/", evidence=evidence)
    state.add(f"https://{MARKER}.example/1", first, 0.7, evidence)
    state.add(f"https://{MARKER}.example/2", first, 0.7, replace(evidence, likeness=MARKER))
    state.add(f"https://{MARKER}.example/3", evidence=replace(evidence, likeness="excerpt", like=first))
    made = all_of(gather(state.store))
    assert all(made)
    assert not [svg for svg in made if MARKER.lower() in svg.lower()]


def test_nothing_is_drawn_without_pages() -> None:
    assert draw_kinds(Report("", "", totals=Totals(pages=5, originals=5))) == Chart("", "")
    assert draw_times(Times()) == Chart("", "")
    assert draw_similarities(Similarities(bins(), bins(), (Threshold("base", 0.5, "…"),))) == Chart("", "")
    state = State()
    state.add("https://a.example/")
    assert [bool(svg) for svg in all_of(gather(state.store))] == [False, False, True, True, False, False]


def test_kinds_are_named_with_their_numbers_and_shares() -> None:
    kinds, passed = (Count("near", 1234), Count("same_title", 1)), (Count("excerpt", 617),)
    chart = draw_kinds(Report("", "", totals=Totals(pages=10_000), kinds=kinds, passed=passed))
    for svg in (chart.wide, chart.narrow):
        named = ["near", "1,234  (12.3 %)", "same title", "1  (< 0.1 %)", "excerpt, passed", "617  (6.2 %)"]
        assert texts(svg) == named
        assert 'aria-label="Bars: near 1,234, same title 1, excerpt, passed 617"' in svg
        long, half = (heights(svg, colour, "width")[0] for colour in ("copy", "other"))
        assert long == pytest.approx(2 * half, abs=0.2)


@pytest.mark.parametrize("many", [1, 2, 11, 60])
def test_some_of_the_bars_have_a_time_below(many: int) -> None:
    found = Times("day", tuple(TimeBucket(BEGIN // 86400 * 86400 + 86400 * day, 5, 2) for day in range(many)))
    chart = draw_times(found)
    for svg, most in ((chart.wide, 8), (chart.narrow, 3)):
        days = [text for text in texts(svg) if re.fullmatch(r"\d\d [A-Z][a-z]{2}", text)]
        assert days[0] == "15 Jun"
        assert 1 <= len(days) <= most
        assert texts(svg)[:4] == ["0", "2", "4", "6"]
        assert len(heights(svg, "copy")) == len(heights(svg, "other")) == many
        assert heights(svg, "other")[0] == pytest.approx(2.5 * heights(svg, "copy")[0], abs=0.2)


def test_thresholds_are_named_where_they_are() -> None:
    limits = (Threshold("certain", 0.76, ""), Threshold("least", 0.2, ""), Threshold("base", 0.54, ""))
    svg = draw_similarities(Similarities(bins(b40=3), bins(b20=1), limits)).narrow
    assert [text for text in texts(svg) if text[0].isalpha()] == ["least 0.2", "base 0.54", "certain 0.76"]
    places = [float(one.get("x1") or 0) for one in etree.fromstring(svg).iterfind("line[@class='threshold']")]
    assert (places[1] - places[0]) / (places[2] - places[0]) == pytest.approx(0.34 / 0.56, abs=0.01)


def test_a_bar_that_would_hide_the_others_is_cut_and_says_its_number() -> None:
    svg = draw_similarities(Similarities(bins(b40=3, b49=12_345), bins(b20=1))).wide
    assert "12,345 ↑" in texts(svg)
    assert max(heights(svg, "copy")) < 2 * min(heights(svg, "copy"))
    assert "↑" not in draw_similarities(Similarities(bins(b40=3, b49=12), bins())).wide


@pytest.mark.parametrize("place", [0, 24, 49])
def test_all_pages_can_be_equally_alike(place: int) -> None:
    chart = draw_similarities(Similarities(bins(**{f"b{place}": 7}), bins()))
    assert len(heights(chart.wide, "copy")) == len(heights(chart.narrow, "copy")) == 1


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((0, "0"), (9_999, "9,999"), (10_000, "10.0 k"), (10_500_000, "10.50 M"), (123_456_789, "123 M")),
        *((999_999_999, "1,000 M"), (10**9, "1.00 G"), (10**13, "10,000 G")),
    ],
)
def test_large_numbers_are_short_and_never_in_powers(value: int, written: str) -> None:
    assert format_short(value) == written


@pytest.mark.parametrize(("share", "written"), [(0, "0 %"), (1, "100 %"), (0.0005, "0.1 %"), (0.9996, "> 99.9 %")])
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, written: str) -> None:
    assert format_percent(share) == written
