"""The report as it is in a browser: clicked through, over pages that would like to be more than text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.page import page as html
from tests.report.browser import Seen, browser, shown
from tests.report.states import SENTENCES, TITLES, hostile


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on a hostile state with 130 copies."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(html(gather(hostile(260))), encoding="utf-8")
    return file


@pytest.fixture
def opened(chromium: Any, report: Path) -> Iterator[Any]:
    """The report in the browser; at the end it must have been quiet, and have asked for nothing but itself."""
    with shown(chromium, report) as (page, seen):
        yield page
        check_quiet(seen, report)


def check_quiet(seen: Seen, report: Path) -> None:
    assert seen.said == []
    assert seen.asked == [report.as_uri()]


def rows(page: Any) -> list[list[str]]:
    """The cells of the table, as they are read."""
    found: list[list[str]] = page.eval_on_selector_all(
        "#table tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return found


def test_nothing_of_a_page_is_more_than_text(opened: Any) -> None:
    assert opened.eval_on_selector_all("script", "all => all.length") == 2  # the data, and the one that runs
    assert (
        opened.eval_on_selector_all(
            "img, iframe, object, link, b, i, body :is([onerror], [onmouseover])", "a => a.length"
        )
        == 0
    )
    assert opened.evaluate("[...document.links].every(one => /^(https?:|file:.*#)/i.test(one.href))")
    assert opened.evaluate(
        "[...document.links].filter(one => /^http/i.test(one.href)).every(one => one.rel.includes('noreferrer'))"
    )
    everything = opened.evaluate("document.body.textContent")
    assert "<script>alert('title')</script>" in everything
    assert "{{ 7 * 7 }}" in everything
    assert "\u202e" not in everything


def test_a_script_that_got_in_would_not_run(chromium: Any, report: Path, tmp_path: Path) -> None:
    """The policy is in force: the same file with a script put in says that it refused it."""
    broken = tmp_path / "broken.html"
    whole = report.read_text(encoding="utf-8")
    broken.write_text(
        whole.replace("<main>", "<main><script>document.title = 'taken'</script><img src='https://a.example/'>")
    )
    with shown(chromium, broken) as (page, seen):
        assert page.title().startswith("Near-duplicates")
        assert len([one for one in seen.said if "Content Security Policy" in one]) == 2


def test_the_search_narrows_the_rows(opened: Any) -> None:
    assert len(rows(opened)) == 50
    assert opened.inner_text("#found") == "130 of 130"
    opened.fill("#search", "retitled SITE3.example")
    narrowed = rows(opened)
    assert 0 < len(narrowed) < 50
    assert all(row[1] == "retitled" and "site3.example" in "".join(row) for row in narrowed)
    opened.fill("#search", "<script>alert('title')")
    assert 0 < len(rows(opened)) < 50
    opened.fill("#search", "渡口")
    assert len(rows(opened)) > 0
    opened.fill("#search", "nowhere to be found")
    assert (rows(opened), opened.inner_text("#found")) == ([], "0 of 130")
    opened.fill("#search", "")
    assert opened.inner_text("#found") == "130 of 130"


def test_the_pages_of_the_table_are_turned(opened: Any) -> None:
    first = rows(opened)
    assert opened.is_disabled("#back")
    opened.click("#forth")
    second = rows(opened)
    opened.click("#forth")
    third = rows(opened)
    assert (len(second), len(third)) == (50, 30)
    assert opened.inner_text("#where") == "page 3 of 3"
    assert opened.is_disabled("#forth")
    assert not {tuple(row) for row in first} & {tuple(row) for row in second}
    opened.click("#back")
    assert rows(opened) == second


@pytest.mark.parametrize("column", range(7))
def test_each_column_orders_the_rows_both_ways(opened: Any, column: int) -> None:
    button = f"#table th:nth-child({column + 1}) button"
    seen = []
    for _ in range(2):
        opened.click(button)
        way = opened.get_attribute(f"#table th:nth-child({column + 1})", "aria-sort")
        assert opened.eval_on_selector_all("#table th[aria-sort]", "all => all.length") == 1
        seen.append((way, [row[column] for row in rows(opened)]))
    assert {way for way, _ in seen} == {"ascending", "descending"}
    for way, cells in seen:
        if column in (0, 1, 2):
            assert cells == sorted(cells, reverse=way == "descending")
    assert seen[0][1][0] != seen[1][1][0]


def test_groups_are_unfolded_and_all_shown(opened: Any) -> None:
    assert opened.locator("details.group:visible").count() == 10
    opened.click("#more-groups")
    assert opened.locator("details.group:visible").count() == 100
    assert not opened.is_visible("#more-groups")
    group = opened.locator("details.group").first
    assert not group.locator("li").first.is_visible()
    group.locator("summary").click()
    assert group.locator("li").first.is_visible()
    assert group.locator("li").count() == 2


def test_pairs_are_switched_and_what_both_say_is_marked(opened: Any) -> None:
    pairs = opened.locator("article.pair")
    many = pairs.count()
    assert many == 24
    for at in range(many):
        assert opened.locator("article.pair:visible").count() == 1
        assert pairs.nth(at).is_visible()
        assert opened.eval_on_selector("#pair", "select => select.selectedIndex") == at
        marked = pairs.nth(at).locator("mark").all_inner_texts()
        assert SENTENCES[1] in "".join(marked)
        assert "all my own" not in "".join(marked)
        if at < many - 1:
            opened.click("#next")
    assert opened.is_disabled("#next")
    opened.select_option("#pair", index=3)
    assert pairs.nth(3).is_visible()
    opened.click("#previous")
    assert pairs.nth(2).is_visible()


def test_light_and_dark(chromium: Any, report: Path) -> None:
    grounds, bars = [], []
    for dark in (False, True):
        with shown(chromium, report, dark=dark) as (page, seen):
            for _ in range(2):
                grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
                fills = "all => all.map(one => getComputedStyle(one).fill)"
                bars.append(set(page.eval_on_selector_all("#kinds .wide path", fills)))
                page.click("#theme")
            check_quiet(seen, report)
    assert grounds == [grounds[0], grounds[1], grounds[1], grounds[0]]
    assert grounds[0] != grounds[1]
    assert "rgb(179, 64, 31)" in bars[0]
    assert "rgb(240, 138, 98)" in bars[1]
    assert bars == [bars[0], bars[1], bars[1], bars[0]]


@pytest.mark.parametrize("width", [320, 390, 820])
def test_on_a_narrow_screen_nothing_sticks_out(chromium: Any, report: Path, width: int) -> None:
    with shown(chromium, report, width=width) as (page, seen):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.click("#more-groups")
        page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        check_quiet(seen, report)


def test_it_can_be_used_by_keyboard_alone(opened: Any) -> None:
    reached = set()
    for _ in range(60):
        opened.keyboard.press("Tab")
        reached.add(opened.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"theme", "A", "SUMMARY", "more-groups"} <= reached
    opened.focus("#theme")
    opened.keyboard.press("Enter")
    assert opened.evaluate("document.documentElement.dataset.theme") == "dark"


def test_titles_are_there_as_they_were_written(opened: Any) -> None:
    opened.fill("#search", "👩‍👩‍👧")
    assert any(TITLES[5] in row[3] for row in rows(opened))
