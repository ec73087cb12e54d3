"""The report as it is in a browser: clicked through, over pages that would like to be more than text."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.files import writers
from scrapy_neardup.files.writers import is_formula
from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.page import render_report as html
from scrapy_neardup.state.record import Evidence
from tests.report.browser import Seen, shown
from tests.report.states import SENTENCES, State, hostile


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
    found: list[list[str]] = page.eval_on_selector_all(
        "#table tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return found


def test_strings_of_pages_are_text(opened: Any) -> None:
    acting = "img, iframe, object, link, b, i, body :is([onerror], [onmouseover])"
    assert opened.eval_on_selector_all("script", "all => all.length") == 2  # the data, and the one that runs
    assert opened.eval_on_selector_all(acting, "all => all.length") == 0
    links = opened.eval_on_selector_all("a[href]", "all => all.map(one => [one.href, one.rel])")
    assert all(href.startswith(("http://", "https://", "file:")) for href, _ in links)
    assert all("noreferrer" in rel for href, rel in links if href.startswith("http"))
    everything = opened.evaluate("document.body.textContent")
    assert "<script>alert('title')</script>" in everything
    assert "{{ 7 * 7 }}" in everything
    assert "\u202e" not in everything


def test_the_policy_stops_an_injected_script_and_image(chromium: Any, report: Path, tmp_path: Path) -> None:
    whole, broken = report.read_text(encoding="utf-8"), tmp_path / "broken.html"
    added = "<script>document.title = 'taken'</script><img src='https://a.example/'><main"
    broken.write_text(whole.replace("<main", added, 1), encoding="utf-8")
    with shown(chromium, broken) as (page, seen):
        assert page.title().startswith("Near-duplicates")
        assert len([one for one in seen.said if "Content Security Policy" in one]) == 2


def test_the_search_narrows_the_rows(opened: Any) -> None:
    assert len(rows(opened)) == 50
    assert opened.inner_text("#found") == "130 of 130"
    opened.click("#forth")
    opened.click("#forth")
    assert (len(rows(opened)), opened.inner_text("#where"), opened.is_disabled("#forth")) == (30, "page 3 of 3", True)
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


def test_each_column_orders_the_rows_both_ways(opened: Any) -> None:
    for column in (0, 2, 3, 6):
        head = f"#table th:nth-child({column + 1})"
        orders = {}
        for _ in range(2):
            opened.click(f"{head} button")
            assert opened.eval_on_selector_all("#table th[aria-sort]", "all => all.length") == 1
            orders[opened.get_attribute(head, "aria-sort")] = [row[column] for row in rows(opened)]
        assert set(orders) == {"ascending", "descending"}, column
        assert orders["ascending"][0] != orders["descending"][0], column
        if column < 3:
            assert all(cells == sorted(cells, reverse=way == "descending") for way, cells in orders.items()), column


def test_groups_are_shown_and_unfolded(opened: Any) -> None:
    last = opened.eval_on_selector_all("details.group", "all => all[all.length - 1].id")
    assert opened.locator("details.group:visible").count() == 10
    opened.evaluate(f"location.hash = '#{last}'")
    opened.wait_for_selector(f"#{last}[open] li")
    assert opened.is_visible(f"#{last} li")
    if opened.is_visible("#more-groups"):
        opened.click("#more-groups")
    assert opened.locator("details.group:visible").count() == 100
    group = opened.locator("details.group").first
    assert not group.locator("li").first.is_visible()
    group.locator("summary").click()
    assert group.locator("li:visible").count() == 2


def test_pairs_are_switched_and_common_sentences_marked(opened: Any) -> None:
    pairs = opened.locator("article.pair")
    for at in range(24):
        assert (opened.locator("article.pair:visible").count(), pairs.nth(at).is_visible()) == (1, True)
        assert opened.eval_on_selector("#pair", "select => select.selectedIndex") == at
        marked = "".join(pairs.nth(at).locator("mark").all_inner_texts())
        assert (SENTENCES[1] in marked, "all my own" in marked) == (True, False)
        if at < 23:
            opened.click("#next")
    assert (pairs.count(), opened.is_disabled("#next")) == (24, True)
    opened.select_option("#pair", index=3)
    opened.click("#previous")
    assert pairs.nth(2).is_visible()


def test_filters_by_kind_site_and_date(opened: Any) -> None:
    opened.select_option("#of-kind", "retitled")
    assert opened.inner_text("#found") == "32 of 130"
    assert {row[1] for row in rows(opened)} == {"retitled"}
    opened.select_option("#of-site", "site3.example")
    found = rows(opened)
    assert 0 < len(found) < 32
    assert all("site3.example" in (row[4], row[6]) for row in found)
    opened.click("#clear")
    opened.fill("#from", "2025-06-16")
    opened.fill("#to", "2025-06-16")
    assert {row[0][:10] for row in rows(opened)} == {"2025-06-16"}
    assert opened.inner_text("#found") == "72 of 130"
    opened.fill("#from", "2025-06-15")
    assert opened.inner_text("#found") == "99 of 130"
    opened.click("#clear")
    assert opened.inner_text("#found") == "130 of 130"


def test_each_copy_leads_to_its_pair_with_both_texts_where_they_are_known(opened: Any) -> None:
    links = "#table tbody tr td:last-child a"
    with_texts, lines, places = 0, rows(opened), range(0, 50, 7)
    for at in places:
        opened.locator(links).nth(at).click()
        pair = opened.locator("article.pair:visible")
        assert pair.count() == 1
        assert lines[at][3].splitlines()[0] in pair.inner_text()
        assert lines[at][2] in pair.locator("h3").inner_text()
        assert SENTENCES[1] in "".join(pair.locator("mark").all_inner_texts())
        has_texts = pair.locator("div.text").count() == 2
        assert has_texts or pair.locator("ul.shared li").count() == 3
        with_texts += has_texts
    assert 0 < with_texts < len(places)
    assert opened.locator("article.pair").count() == 25  # the last one from the table is in the place of the one before


def test_tables_are_saved_without_formulas(chromium: Any, tmp_path: Path) -> None:
    state = State()
    first = state.add("https://a.example/", evidence=Evidence(title="=HYPERLINK(A1)"))
    state.copy("https://b.example/?a,b", first, title='@sum "quoted"')
    state.copy("https://b.example/2", first, title="-12.5")
    file = tmp_path / "report.html"
    file.write_text(html(gather(state.store)), encoding="utf-8")
    with shown(chromium, file) as (page, seen):
        saved = {}
        for button in page.locator("button.csv").all():
            with page.expect_download() as coming:
                button.click()
            saved[coming.value.suggested_filename] = coming.value.path().read_bytes()
        assert seen.said == []
        assert not [url for url in seen.asked if not url.startswith(("file:", "blob:"))]
    tables = {name: list(csv.reader(io.StringIO(packed.decode("utf-8-sig")))) for name, packed in saved.items()}
    assert set(tables) == {f"neardup-{name}.csv" for name in ("kinds", "flows", "groups", "copies")}
    assert all(packed.startswith(codecs.BOM_UTF8) for packed in saved.values())
    assert tables["neardup-flows.csv"] == [["copies on", "of originals on", "copies"], ["b.example", "a.example", "2"]]
    copies = tables["neardup-copies.csv"]
    assert copies[0][3:6] == ["title of the copy", "copy", "its site"]
    original = ["'=HYPERLINK(A1)", "https://a.example/", "a.example"]
    assert [row[1:] for row in copies[1:]] == [
        ["near", "0.8", "-12.5", "https://b.example/2", "b.example", *original],
        ["near", "0.8", '\'@sum "quoted"', "https://b.example/?a,b", "b.example", *original],
    ]
    groups = tables["neardup-groups.csv"]
    assert [row[1] for row in groups] == ["kind", "original", "near", "near"]
    assert groups[1][4:] == ["'=HYPERLINK(A1)", "https://a.example/"]
    guarded = [cell for table in tables.values() for row in table for cell in row]
    assert not [cell for cell in guarded if is_formula(cell)]


def test_script_and_package_agree_on_formulas() -> None:
    script = (Path(writers.__file__).parents[1] / "report" / "report.js").read_text(encoding="utf-8")
    begin, number = re.findall(r"(?:= |!)/\^(\S+)/\.test\(text\)", script)
    begins = re.compile(begin)  # the two languages write it the same
    assert {char for char in map(chr, range(0x10000)) if begins.match(char)} == {*"=+-@\t\r\n＝＋－＠"}
    assert all(is_formula(char) for char in "=+-@\t\r\n＝＋－＠")
    assert number.removesuffix("$") == writers._NUMBER.pattern


def test_on_paper_nothing_is_cut_off(chromium: Any, report: Path) -> None:
    with shown(chromium, report, width=720) as (page, _):
        page.emulate_media(media="print")
        wide = page.locator("table.copies").evaluate("one => one.scrollWidth - one.parentNode.clientWidth")
        assert wide <= 0
        assert not page.locator("button.csv:visible").count()


def test_in_chinese(chromium: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html(gather(hostile(260)), "zh"), encoding="utf-8")
    with shown(chromium, file) as (page, seen):
        assert page.inner_text("#found") == "130 / 130"
        assert page.inner_text("#where") == "第 1 页，共 3 页"
        page.fill("#search", "改题")
        assert {row[1] for row in rows(page)} == {"改题"}
        page.fill("#search", "retitled")
        assert {row[1] for row in rows(page)} == {"改题"}
        page.locator("#table tbody td:last-child a").nth(9).click()
        assert page.locator("article.pair:visible h4").first.inner_text().startswith("先见到")
        check_quiet(seen, file)


@pytest.mark.parametrize("width", [320, 820])
def test_on_a_narrow_screen_nothing_sticks_out(chromium: Any, report: Path, width: int) -> None:
    with shown(chromium, report, width=width) as (page, seen):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.click("#more-groups")
        assert page.locator("#flow-list tr:visible").count() == 8
        page.click("#more-flows")
        page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        check_quiet(seen, report)
