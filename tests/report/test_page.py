"""The report as HTML: complete, self-contained, and with strings of pages as text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from lxml import html as parser

from scrapy_neardup.errors import REASONS
from scrapy_neardup.maintenance.scan import COPIES
from scrapy_neardup.maintenance.tables import CRAWLS, Crawl
from scrapy_neardup.report.data import PageLine, Report
from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.page import render_report
from scrapy_neardup.report.words import LANGUAGES, Words, catalogue
from scrapy_neardup.state.record import Evidence
from scrapy_neardup.untrusted import link
from tests.report.states import BEGIN, SECOND, SENTENCES, TITLES, State, hostile, large

#: The elements of the page.
ELEMENTS = """
    html head meta title style body header main nav section article div p span h1 h2 h3 h4 a bdi mark time code strong
    ul li dl dt dd table thead tbody tr th td details summary button label input select option noscript script
"""


def passing() -> Report:
    state = State()
    first = state.add("https://a.example/")
    state.add("https://b.example/", evidence=Evidence("excerpt", first, 0.3, 0.9, 10, "An excerpt", ("All swam",)))
    return gather(state.store)


def lost() -> Report:
    """A copy whose original is gone, and neither has a site."""
    state = State()
    gone = state.add("number 1")
    state.copy("number 2", gone, title="What is left")
    state.store.forget([gone])
    return gather(state.store)


REPORTS: dict[str, Callable[[], Report]] = {
    "hostile": lambda: gather(hostile(120)),
    "large": lambda: gather(large()),
    "passing": passing,
    "lost": lost,
    "empty": lambda: gather(State().store),
    "nothing": lambda: Report("", ""),
}
_MADE: dict[str, tuple[Report, str]] = {}


@pytest.fixture(params=REPORTS)
def made(request: pytest.FixtureRequest) -> tuple[Report, str]:
    """A report and its page; made once."""
    return of(request.param)


def of(name: str) -> tuple[Report, str]:
    if name not in _MADE:
        report = REPORTS[name]()
        _MADE[name] = report, render_report(report)
    return _MADE[name]


def tree(html: str) -> parser.HtmlElement:
    return parser.document_fromstring(html)


def elements(html: str) -> Iterator[parser.HtmlElement]:
    return (one for one in tree(html).iter() if isinstance(one.tag, str))


def said(one: parser.HtmlElement) -> str:
    return " ".join(one.text_content().split())


def cells(html: str, table: str) -> list[list[str]]:
    """The texts of the cells of a table."""
    return [[said(cell) for cell in row] for row in tree(html).xpath(f"{table}/tbody/tr")]


def data_of(html: str) -> dict[str, Any]:
    (data,) = tree(html).xpath("//script[@id='data']")
    found: dict[str, Any] = json.loads(data.text)
    return found


# Complete HTML


def test_elements_are_closed_headings_and_tables_complete_and_ids_unique(made: tuple[Report, str]) -> None:
    root = tree(made[1])
    markup = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", made[1])
    for name in {str(one.tag) for one in elements(made[1])} - {"script", "style", "meta", "input"}:
        assert len(re.findall(rf"<{name}[ >]", markup)) == len(re.findall(rf"</{name}>", markup)), name
    assert {str(one.tag) for one in elements(made[1])} <= set(ELEMENTS.split())
    headings = [one for one in elements(made[1]) if re.fullmatch("h[1-6]", str(one.tag))]
    levels = [int(str(one.tag)[1]) for one in headings]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after - before <= 1 for before, after in pairwise(levels))
    controls = [one for label in root.iter("label") for one in label.iter("input", "select")]
    assert list(root.iter("input", "select")) == controls
    assert all(said(one) for one in (*headings, *root.iter("label"), *root.iter("button")))
    assert all(one.get("aria-labelledby") or one.xpath("h4") for one in root.iter("section"))
    for table in root.iter("table"):
        (head,) = table.xpath("thead/tr")
        assert all(one.get("scope") == "col" for one in head)
        assert all(len(row) == len(head) and row[0].get("scope") == "row" for row in table.xpath("tbody/tr"))
    ids = [one.get("id") for one in elements(made[1]) if one.get("id") is not None]
    assert len(ids) == len(set(ids))
    named = [one.get(name) for one in elements(made[1]) for name in ("aria-labelledby", "for") if one.get(name)]
    named += [address[1:] for one in root.iter("a") if (address := one.get("href") or "").startswith("#")]
    assert set(named) <= set(ids)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_report_is_in_one_language(language: str) -> None:
    """No word of the other language is left in template or script."""
    html = render_report(of("large" if language == "en" else "passing")[0], language)
    root, words, data = tree(html), Words(language), data_of(html)
    assert (root.get("lang"), data["language"]) == (language, language)
    assert all(pattern == words.pattern(name) for name, pattern in data["words"].items())
    for script in root.xpath("//script | //style"):
        script.drop_tree()
    seen = " ".join(root.itertext()) + " ".join(root.xpath("//@aria-label | //@placeholder"))
    assert words("heading") in seen
    if language == "en":
        assert not re.search("[\u3400-\u9fff]", seen)
    else:
        latin = set(re.findall("[A-Za-z_]{4,}", re.sub(r"https?://\S+|memory:|[0-9a-f]{16}", "", seen)))
        names = {"scrapy", "neardup", "NEARDUP_KEEP", "texts", "feed", "cascade"}
        assert latin <= names | {"similar_id", "excerpt", "swam"}  # the last two are of the page


# Nothing is loaded or run


def test_nothing_is_loaded_and_only_its_own_script_runs(made: tuple[Report, str]) -> None:
    html = made[1]
    (script,) = re.findall("<script>(.*?)</script>", html, re.DOTALL)
    assert [one.get("type") for one in tree(html).iter("script")] == ["application/json", None]
    own = b64encode(sha256(script.encode()).digest()).decode()
    (policy,) = tree(html).xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert dict(part.split(" ", 1) for part in policy.split("; ")) == {
        "default-src": "'none'",
        "script-src": f"'sha256-{own}'",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not re.search("<(script|style|link|base|body)", html[: html.index("Content-Security-Policy")])
    assert tree(html).xpath("//meta[@name='referrer']/@content") == ["no-referrer"]
    naming = ("src", "srcset", "action", "formaction", "data", "poster", "background", "ping", "manifest", "cite")
    for one in elements(html):
        assert not [name for name in one.attrib if name in naming or name.lower().startswith("on")]
        address = one.get("href", "" if one.tag == "a" else "#")
        assert address.startswith("#") or re.match("https?://", address, re.I)
        assert address.startswith("#") or one.get("rel") == "noreferrer noopener"
        assert "url(" not in one.get("style", "")
    for style in tree(html).iter("style"):
        assert not re.search(r"url\(|@import|https?:", style.text or "")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch|XMLHttp|https?:", script)


# Strings of pages


def test_hostile_strings_are_harmless_text() -> None:
    html = of("hostile")[1]
    assert html == render_report(gather(hostile(120))), "the same state gives the same bytes"
    assert not re.search(r"<(img|script>alert|b>|i>)|&(?!(amp|lt|gt|quot|#34|#39);)", html.partition("<script>")[0])
    assert [one.tag for one in elements(html) if one.tag in ("img", "b", "i", "iframe")] == []
    shown = tree(html).text_content()
    assert all(f"{title} " in shown for title in TITLES[:4])
    assert not [title for title in TITLES if ("<" in title or '"' in title) and title in html]
    assert SENTENCES[0] in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", html)
    assert "right \ufffdto left" in html


def test_the_data_of_the_table_is_that_of_the_report(made: tuple[Report, str]) -> None:
    report, html = made

    def named(line: PageLine | None) -> list[object]:
        return [line.title, line.url, link(line.url) == line.url, line.site] if line else ["", "", False, ""]

    for row, one in zip(data_of(html)["rows"], report.copies, strict=True):
        assert row[:3] == [one.page.seen, one.page.kind, one.page.similarity]
        assert row[3:11] == [*named(one.page), *named(one.original)]
        place, group, containment, sides = row[11:]
        assert (containment, group in ("", one.similar_id)) == (one.containment, True)
        assert bool(sides) == (place < 0 and one.original is not None)
        if place >= 0:
            pair = report.pairs[place]
            assert (pair.copy, pair.page, pair.original) == (True, one.page, one.original)
        if sides and one.original:
            assert sides[:2] == [one.original.seen, None if one.shared is None else list(one.shared)]
            texts = ["".join(part if isinstance(part, str) else part[0] for part in text[3]) for text in sides[2:]]
            assert texts == ["".join(part.text for part in text.parts) for text in one.texts if text]
    (data,) = re.findall('<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert not set("<>&\n\u2028\u2029") & set(data)


# Content of the report


def test_the_numbers_are_those_of_the_report() -> None:
    report, html = of("large")
    totals = report.totals
    numbers = {said(one[0]): said(one[1]) for one in tree(html).xpath("//dl[@class='numbers']/div")}
    for name in ("pages", "originals", "copies"):
        assert numbers[name] == str(getattr(totals, name))
    assert numbers["of all pages are copies"] == f"{totals.copies / totals.pages:.1%}".replace("%", " %")
    assert said(tree(html).xpath("//title")[0]) == f"Near-duplicates: {totals.copies} copies among {totals.pages} pages"
    kinds = [[name.replace("_", " "), str(many)] for name, many in totals.kinds.items()]
    kinds += [[f"{name.replace('_', ' ')}, passed", str(many)] for name, many in totals.originals_like_others.items()]
    found = cells(html, "//table[@id='kinds-table']")
    assert [[row[0], row[2].partition(" ")[0]] for row in found] == kinds
    assert all(row[1] for row in found)
    flows = [[*row[:2], row[2].partition(" ")[0]] for row in cells(html, "//table[@id='flows-table']")]
    assert flows == [[on, of, str(many)] for on, of, many in report.flows]
    assert f"The 100 largest of {totals.groups} groups" in said(tree(html).xpath("//section[@id='groups']/p")[0])
    for group, details in zip(report.groups, tree(html).xpath("//div[@id='group-list']/details"), strict=True):
        assert said(details[0]) == f"{group.copies + 1} {group.title}"
        more = group.copies - len(group.pages)
        assert (f"and {more} more" in said(details)) is (more > 0)
        assert said(details.xpath("p/code")[0]) == group.similar_id


def test_crawls_and_reasons_are_listed() -> None:
    state = State()
    state.add("https://a.example/")
    for number in range(60):
        counts = {"pages": 1200, "unique": 1100, "unjudged/no_text": 70, "unjudged/<b>odd": 30, "time/store": 0.5}
        counts["unjudged/listing"] = 7
        who = "news<script>" if number else "old"
        CRAWLS.write(state.store, Crawl((BEGIN + number) * SECOND, who, BEGIN + 60 + number, counts))
    CRAWLS.write(state.store, Crawl((BEGIN + 90) * SECOND, "open"))
    report = gather(state.store)
    html = render_report(report)
    assert (report.remembered, len(report.crawls), report.crawls[0]["ended"]) == (61, 50, 0)
    found = cells(html, "//table[@id='crawls-table']")
    assert found[0][1:4] == ["runs, or was killed", "open", "–"]
    assert found[1][2:] == ["news<script>", "1,200", "1,100", "0", "0", "0", "0", "7", "100", "0"]
    assert "The last 50 of 61 crawls." in said(tree(html).get_element_by_id("crawls"))
    reasons = cells(html, "//table[@id='unjudged-table']")
    assert reasons == [["no_text", "No visible prose was found in the HTML.", "4,200"], ["<b>odd", "", "1,800"]]


def test_a_report_on_an_empty_state_has_a_hint() -> None:
    html = of("empty")[1]
    assert "The state holds no pages yet." in tree(html).text_content()
    assert [said(one) for one in elements(html) if one.tag == "h2"] == ["The state"]


@pytest.mark.slow
def test_with_many_pages_and_long_titles_it_stays_small() -> None:
    state = State()
    originals = []
    text = "头一班船载着二十三名乘客离岸，船票仍是两块钱。" * 500
    for number in range(3000):
        title = f"渡口恢复通航的第{number}天" * 30
        url = f"https://site{number % 70}.example/2025/06/17/article-about-the-ferry-{number}.html"
        if number % 4:
            originals.append(state.add(url, evidence=Evidence(title=title, text=text)))
        else:
            of = originals[number // 8] if originals else 1
            state.copy(url, of, title=title, shared=("头一班船载着乘客离岸" * 30,) * 20, text=text)
    report = gather(state.store)
    assert (len(report.copies), len(report.groups), len(report.pairs)) == (750, 100, 24)
    assert len(render_report(report).encode()) < 3_500_000


# Words


ROOT = Path(__file__).parents[2] / "scrapy_neardup"


def placeholders(pattern: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(pattern) if name is not None}


def test_all_languages_have_the_same_names_and_placeholders() -> None:
    assert [set(catalogue(language)) for language in LANGUAGES] == [set(catalogue("en"))] * len(LANGUAGES)
    assert len(catalogue("en")) > 120
    for name, pattern in catalogue("en").items():
        wanted = placeholders(pattern.split("|")[-1])
        for form in (form for language in LANGUAGES for form in catalogue(language)[name].split("|")):
            assert placeholders(form) | {"many"} == wanted | {"many"}, name
            assert form, name
            assert form.count("`") % 2 == 0, name
    both = catalogue("en"), catalogue("zh")
    same = {name for name in both[0] if both[0][name] == both[1][name]}
    assert same == {"csv"}


def test_every_name_kind_and_number_has_its_words() -> None:
    folders = ("report/*.py", "report/*.html", "report/*.js", "cli/*.py", "crawl/*.py")
    source = "".join(file.read_text(encoding="utf-8") for folder in folders for file in ROOT.glob(folder))
    names = set(catalogue("en"))
    assert set(re.findall(r'\b(?:say|words)\(\s*"([\w.]+)"\s*[,)]', source)) <= names
    built = re.findall(r"\w+", "kind meaning reason crawls verdict closing role reading fact")
    assert {name for name in names if name.partition(".")[0] not in built and f'"{name}"' not in source} <= {
        *("copies.similarity", "copies.copy_title", "copies.its_site", "copies.original_title", "copies.original_site")
    }
    assert {f"{what}.{kind}" for kind in COPIES for what in ("kind", "meaning")} <= set(catalogue("en"))
    assert {f"reason.{reason}" for reason in REASONS} == {
        name for name in catalogue("en") if name.startswith("reason.")
    }
    assert [Words("en")("groups", many) for many in (0, 1, 2000)] == ["0 groups", "1 group", "2,000 groups"]
    assert [Words("zh")("groups", many) for many in (1, 2)] == ["1 组", "2 组"]
