"""The charts of a report: bars as long as their counts, with nothing of a page in them."""

from __future__ import annotations

from dataclasses import replace

import lxml.html
import pytest

from scrapy_neardup.report.data import Count, Report, Similarities, Threshold, TimeBucket, Times, Totals
from scrapy_neardup.report.page import render_report
from scrapy_neardup.report.words import format_percent, format_short
from tests.report.recount import BEGIN


def bins(**pages: int) -> tuple[int, ...]:
    """Counts in fiftieths, by the number of the bin behind a letter."""
    return tuple(pages.get(f"b{place}", 0) for place in range(50))


def draw(**data: object) -> lxml.html.HtmlElement:
    """The page of a report with these data."""
    times = Times("day", (TimeBucket(BEGIN, 9_000, 1_000),))
    report = Report("", "", totals=Totals(pages=10_000, originals=9_000, copies=1_000), times=times)
    page: lxml.html.HtmlElement = lxml.html.fromstring(render_report(replace(report, **data)))  # type: ignore[arg-type]
    return page


def similar(**data: object) -> lxml.html.HtmlElement:
    """The chart of these similarities."""
    found = Similarities(**data)  # type: ignore[arg-type]
    chart: lxml.html.HtmlElement
    [chart] = draw(similarities=found, kinds=(Count("near", 1),)).xpath("//div[contains(@class, 'similarities')]")
    return chart


def shares(chart: lxml.html.HtmlElement, colour: str) -> list[float]:
    """The lengths of the bars of a colour, as shares of the longest."""
    return [float(one.get("style").partition("--share:")[2]) for one in chart.xpath(f".//span[@class='part {colour}']")]


def test_kinds_have_numbers_shares_and_bars() -> None:
    kinds, passed = (Count("near", 1234), Count("same_title", 1)), (Count("excerpt", 617),)
    [table] = draw(kinds=kinds, passed=passed).xpath("//table[@id='kinds-table']")
    assert [" ".join(one.text_content().split()) for one in table.xpath("tbody/tr/td[2]")] == [
        "1,234 (12.3 %)",
        "1 (< 0.1 %)",
        "617 (6.2 %)",
    ]
    assert shares(table, "copy") == [1.0, pytest.approx(0.0008)]
    assert shares(table, "other") == [0.5]


def test_times_are_stacked_and_named() -> None:
    for many, days in [(1, ["15 Jun"]), (3, ["15 Jun", "16 Jun", "17 Jun"])]:
        found = Times("day", tuple(TimeBucket(BEGIN // 86400 * 86400 + 86400 * day, 5, 2) for day in range(many)))
        [section] = draw(times=found).xpath("//section[@id='times']")
        assert [one.text for one in section.xpath("p[@class='ends']/span")] == days
        assert section.xpath(".//small[@class='most']")[0].text == "7", many
        assert shares(section, "copy") == [pytest.approx(2 / 7, abs=1e-4)] * many
        assert shares(section, "other") == [pytest.approx(5 / 7, abs=1e-4)] * many
        assert section.xpath(".//div[@role='img']/span")[0].get("title") == "2025-06-15: 2 + 5 + 0", many


def test_thresholds_are_named_where_they_are() -> None:
    limits = (Threshold("certain", 0.76, ""), Threshold("least", 0.2, ""), Threshold("base", 0.54, ""))
    marks = similar(copies=bins(b40=3), passed=bins(b20=1), thresholds=limits).xpath("u")
    assert [one.text_content() for one in marks] == ["certain 0.76", "base 0.54", "least 0.2"]
    places = [float(one.get("style").partition(";")[0].partition(":")[2]) for one in marks]
    assert places == [pytest.approx((value - 0.18) / 0.82, abs=1e-3) for value in (0.76, 0.54, 0.2)]


def test_long_bars_are_cut_and_no_copies_have_no_chart() -> None:
    chart = similar(copies=bins(b40=3, b49=12_345), passed=bins(b20=1))
    assert "12,345 ↑" in chart.text_content()
    assert shares(chart, "copy") == [pytest.approx(3 / 5), 1.0]
    assert "↑" not in similar(copies=bins(b40=3, b49=12), passed=bins()).text_content()
    assert not draw(totals=Totals(pages=5, originals=5)).xpath("//table[@id='kinds-table']")
    assert not draw(kinds=(Count("near", 1),)).xpath("//div[contains(@class, 'similarities')]")


def test_large_numbers_and_shares_are_rounded_with_care() -> None:
    for value, written in [
        *((0, "0"), (9_999, "9,999"), (10_000, "10.0 k"), (10_500_000, "10.50 M"), (123_456_789, "123 M")),
        *((999_999_999, "1,000 M"), (10**9, "1.00 G"), (10**13, "10,000 G")),
    ]:
        assert format_short(value) == written
    for share, written in [(0, "0 %"), (1, "100 %"), (0.0005, "0.1 %"), (0.9996, "> 99.9 %")]:
        assert format_percent(share) == written
