"""Every number of a report, and the bounds of its lists."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.scan import Statistics
from scrapy_neardup.report.data import GONE, PageLine, Report
from scrapy_neardup.report.gather import FLOWS, GROUPS, PAGES_OF_GROUP, gather
from scrapy_neardup.state import layout
from scrapy_neardup.state.record import Evidence, Record, listing_source
from scrapy_neardup.untrusted import REPORT_URL, SITE, TITLE
from tests.report.states import BEGIN, SECOND, State, large


def test_every_number_of_a_small_state() -> None:
    state = State()
    first = state.add("https://a.example/1", evidence=Evidence(title="First", letters=50))
    near = state.copy("https://b.example/1", first, "near", 0.8, letters=30, containment=0.9, title="Near")
    state.copy("https://www.a.example/2", first, "identical", 1.0, letters=50)
    state.add("item 7", first, 0.5)
    gone = state.add("https://gone.example/")
    state.copy("https://b.example/2", gone, "unheard-of", 0.75)
    state.store.forget([gone])
    state.add("https://c.example/", evidence=Evidence("excerpt", first, 0.3), seen=BEGIN + 10**8)
    state.add("https://c.example/unjudged", similarity=0.0)
    better = state.store.new_id()
    state.store.add(Record(better, "https://d.example/", first, 0.9, (first,)))
    row = state.store.new_id()
    state.store.add(Record(row, "https://a.example/#row", row, 0.0, (), listing_source(7)))
    before = dict(state.store.rows(b""))
    report = gather(state.store)
    assert dict(state.store.rows(b"")) == before
    totals = asdict(report.totals)
    assert totals.pop("bytes") == state.store.kv.size()
    sites = [("a.example", 3, 1), ("b.example", 2, 2), ("c.example", 2, 0), ("", 1, 1), ("d.example", 1, 1)]
    assert [tuple(one.values()) for one in totals.pop("top_sites")] == sites
    assert totals == {
        "pages": 9,
        "originals": 2,
        "copies": 5,
        "rows": 1,
        "unjudged": 1,
        "variants": 0,
        "better": 1,
        "sites": 4,
        "kinds": {"identical": 1, "near": 1, "unknown": 3},
        "originals_like_others": {"excerpt": 1},
        "copies_without_original": 1,
        "groups": 2,
        "largest_group": 5,
        "judged_by_hand": {},
        "dropped_sites": (),
        "first_seen": first / SECOND,
        "last_seen": BEGIN + 10**8,
    }
    a, b, none = "a.example", "b.example", "(no site)"
    flows = ((none, a, 1), (a, a, 1), (b, GONE, 1), (b, a, 1), ("d.example", a, 1))
    assert (report.all_flows, report.flows) == (5, flows)
    groups = [(one.similar_id, one.copies, one.original and one.original.url) for one in report.groups]
    assert groups == [(f"{first:016x}", 4, "https://d.example/"), (f"{gone:016x}", 1, None)]
    members = ["https://a.example/1", "https://b.example/1", "https://www.a.example/2", "item 7"]
    assert [page.url for page in report.groups[0].pages] == members
    newest = ["https://d.example/", "https://b.example/2", *reversed(members[1:])]
    assert [one.page.url for one in report.copies] == newest
    found = report.copies[-1]
    assert found.page == PageLine("https://b.example/1", b, near // SECOND, "near", round(0.8, 4), 30, "Near")
    assert (found.kind, found.copy, found.similarity, found.containment) == ("near", True, 0.8, 0.9)


def test_sites_with_most_copies_come_first_and_better_pages_are_beside_the_first_one() -> None:
    state = State()
    first = state.add("https://a.example/")
    for n, site in enumerate("bccddd"):
        state.copy(f"https://{site}.example/{n}", first)
    for site in "ef":
        state.store.add(Record(state.store.new_id(), f"https://{site}.example/", first, 0.9, (first,)))
    report = gather(state.store)
    assert [(on, many) for on, _, many in report.flows] == [
        (f"{site}.example", many) for site, many in zip("dcbef", (3, 2, 1, 1, 1), strict=True)
    ]
    assert [one.original and one.original.url for one in report.copies[:2]] == ["https://a.example/"] * 2


def test_lists_are_bounded() -> None:
    report = gather(large(), rows=7)
    assert (len(report.groups), report.totals.groups) == (GROUPS, 121)
    assert (len(report.flows), report.all_flows) == (FLOWS, 150)
    assert (report.groups[0].copies, len(report.groups[0].pages)) == (30, PAGES_OF_GROUP)
    assert [one.page.url for one in report.copies] == [f"https://mirror{n}.example/" for n in range(29, 22, -1)]


def test_a_report_on_an_empty_state_has_no_numbers() -> None:
    store = State().store
    assert gather(store) == Report("memory:", "cascade", Statistics(bytes=store.kv.size()))


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
    groups = gather(state.store).groups
    assert {group.similar_id: (group.title, group.original is None) for group in groups} == {
        f"{by_copy:016x}": ("The title", False),
        f"{named:016x}": ("渡口开航", False),
        f"{by_url:016x}": ("https://a.example/3", False),
        f"{gone:016x}": ("What is left", True),
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
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', json.dumps(asdict(report), ensure_ascii=False))
    assert not [one for one in strings if set(one) & set(nasty) or r"\u00" in one]
    assert max(map(len, strings)) <= 4000
    assert len(report.copies[0].page.site) <= SITE + 1
    assert len(report.copies[0].page.title) <= TITLE + 1
    assert len(report.copies[0].page.url) <= REPORT_URL + 1


def test_a_report_refuses_a_damaged_state() -> None:
    for key in [layout.record_key, layout.evidence_key]:
        state = State()
        first = state.add("https://a.example/", evidence=Evidence(title="A"))
        state.store.kv.write(Changes({key(first): b"scribble"}), sync=False)
        with pytest.raises(StoreDamaged, match="check"):
            gather(state.store)
