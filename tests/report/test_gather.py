"""Every number of a report against a plain count of the state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, TypeVar

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.scan import Statistics
from scrapy_neardup.maintenance.source import PageEntry
from scrapy_neardup.report.data import PageLine, PagePair, Report
from scrapy_neardup.report.gather import FLOWS, GROUPS, PAGES_OF_GROUP, gather
from scrapy_neardup.state import layout
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import FORMAT
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.untrusted import REPORT_URL, SITE, TITLE, clean_line
from tests.report import recount
from tests.report.recount import GONE, State, filled, large_state

T = TypeVar("T")
#: By which a recipe names the secret that all tests draw.
SECRET = Secret(bytes(range(32))).name


def check(report: Report, pages: list[PageEntry], size: int) -> None:
    """All of its numbers, and what its lists hold."""
    totals = asdict(report.totals)
    top = totals.pop("top_sites")
    assert totals == {**recount.totals(pages), "bytes": size}
    assert [(one["pages"], one["copies"]) for one in top] == recount.largest_sites(pages, 10)
    assert report.all_flows == len(recount.flows(pages))
    assert list(report.flows) == recount.flows(pages)[:FLOWS]
    check_groups(report, pages)
    check_copies(report, pages, 2000)


def check_groups(report: Report, pages: list[PageEntry]) -> None:
    records = {one.record.id: one.record for one in pages}
    expected = recount.groups(pages)[:GROUPS]
    assert [one.similar_id for one in report.groups] == [f"{id:016x}" for id, _ in expected]
    for group, (id, copies) in zip(report.groups, expected, strict=True):
        assert group.copies == len(copies)
        assert (group.original.url if group.original else None) == (records[id].url if id in records else None)
        assert [one.url for one in group.pages] == [records[one].url for one in copies[:PAGES_OF_GROUP]]


def check_copies(report: Report, pages: list[PageEntry], rows: int) -> None:
    lines = {one.record.id: line(one) for one in pages}
    newest = sorted(recount.copies(pages), key=lambda one: -one.record.id)[:rows]
    bare = tuple(replace(one, shared=(), texts=(None, None)) for one in report.copies)
    assert bare == tuple(
        PagePair(
            kind=lines[one.record.id].kind,
            copy=True,
            page=lines[one.record.id],
            original=lines.get(one.record.original),
            similar_id=f"{one.record.original:016x}",
            similarity=lines[one.record.id].similarity,
            containment=one.evidence.containment if one.evidence and one.record.original in lines else 0.0,
        )
        for one in newest
    )


def line(one: PageEntry) -> PageLine:
    """The line of a page in a list."""
    record, evidence = one.record, one.evidence or Evidence()
    return PageLine(
        record.url,
        recount.site(record.url),
        int(record.id / 1e9),
        recount.kind(one.evidence) if record.original != record.id else "original",
        round(round(record.similarity * 65535) / 65535, 4),
        evidence.letters,
        clean_line(evidence.title, TITLE),
    )


@pytest.mark.parametrize(("many", "sites"), [(1, 1), (7, 2), (40, 3), (300, 3), (1500, 40)])
def test_a_report_is_right(many: int, sites: int) -> None:
    pages = large_state(many, sites, many)
    store = filled(pages)
    before = dict(store.rows(b""))
    report = gather(store)
    check(report, pages, store.size())
    assert dict(store.rows(b"")) == before
    check_copies(gather(store, rows=7), pages, 7)
    if many == 1500:  # more than is shown one by one
        assert (len(report.groups), len(report.flows)) == (GROUPS, FLOWS)
        assert report.totals.groups > GROUPS
        assert any(len(one.pages) == PAGES_OF_GROUP < one.copies for one in report.groups)
        assert report.all_flows > FLOWS
        assert GONE in {of for _, of, _ in report.flows}
        assert min(report.totals.rows, report.totals.unjudged, *report.totals.originals_like_others.values()) > 0


def test_a_report_on_an_empty_state_has_no_numbers() -> None:
    store = State().store
    report = gather(store)
    assert report == Report(
        "memory:",
        "cascade",
        (("format", str(FORMAT)), ("secret", SECRET), ("version", "1")),
        Statistics(bytes=store.size()),
    )


def test_a_group_is_named_by_the_title_of_its_original_else_by_copies_that_have_it_too() -> None:
    state = State()
    named = state.add("https://a.example/1", evidence=Evidence(title="渡口开航"))
    state.copy("https://b.example/1", named, title="别的题目")
    by_copy = state.add("https://a.example/2")
    state.copy("https://b.example/2", by_copy, "retitled", title="This is another title")
    state.copy("https://b.example/3", by_copy, "excerpt", title="So is this")
    state.copy("https://b.example/4", by_copy, "near", title="The title")
    by_url = state.add("https://a.example/3")
    state.copy("https://b.example/5", by_url, "retitled", title="Another")
    gone = state.add("https://a.example/4", evidence=Evidence(title="Gone"))
    state.copy("https://b.example/6", gone, "retitled", title="What is left")
    state.store.forget([gone])
    gone_too = state.add("https://a.example/5")
    state.add("https://b.example/7", gone_too, 0.5)
    state.store.forget([gone_too])
    groups = gather(state.store).groups
    assert {group.similar_id: (group.title, group.original is None) for group in groups} == {
        f"{by_copy:016x}": ("The title", False),
        f"{named:016x}": ("渡口开航", False),
        f"{by_url:016x}": ("https://a.example/3", False),
        f"{gone:016x}": ("What is left", True),
        f"{gone_too:016x}": ("https://b.example/7", True),
    }


@pytest.mark.slow
def test_strings_of_pages_are_clean_and_bounded_wherever_they_are_shown() -> None:
    state = State()
    state.store.recipe = {"method": "m\ud800\x1b", "\ud800": "\udc80", "parameters": {"a": "\x00" * 5000}}
    nasty = "\ud83d\x1b\u202e\x00" * 1500
    evidence = Evidence("near", 0, 0.5, 0.5, 9, nasty, (nasty,) * 50, nasty)
    first = state.add(f"http://{nasty[:40]}.example/{nasty}", evidence=evidence)
    state.add(f"http://{nasty[:400]}.example/{nasty}", first, 0.5, evidence)
    report = gather(state.store)
    strings = list(_strings(asdict(report)))
    assert not [one for one in strings if set(one) & set(nasty)]
    assert max(map(len, strings)) <= 4000
    assert len(report.copies[0].page.site) <= SITE + 1
    assert len(report.copies[0].page.title) <= TITLE + 1
    assert len(report.copies[0].page.url) <= REPORT_URL + 1


def _strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from _strings(value)
    elif isinstance(data, (list, tuple)):
        for value in data:
            yield from _strings(value)


def test_a_report_refuses_a_damaged_state() -> None:
    for key in [layout.record_key, layout.evidence_key]:
        state = State()
        first = state.add("https://a.example/", evidence=Evidence(title="A"))
        state.store.kv.write(Changes({key(first): b"scribble"}), sync=False)
        with pytest.raises(StoreDamaged, match="check"):
            gather(state.store)
