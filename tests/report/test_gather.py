"""Every number of a report, the bounds of its lists, and its pairs of pages with what is marked in them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.scan import Statistics
from scrapy_neardup.report.data import GONE, MarkedText, PageLine, PagePair, Report
from scrapy_neardup.report.gather import FLOWS, GROUPS, PAGES_OF_GROUP, gather
from scrapy_neardup.report.pairs import PAIRS, SHOWN
from scrapy_neardup.state import layout
from scrapy_neardup.state.record import Evidence, Record, listing_source
from scrapy_neardup.text.marking import Mark, own_letters, sentence_letters
from scrapy_neardup.untrusted import REPORT_URL, SITE, TITLE, clean_text
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
    sites = [("a.example", 3, 1), ("b.example", 2, 2), ("c.example", 2, 0), ("d.example", 1, 1)]
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


# Pairs


FERRY = "渡口今天清晨恢复通航。头一班船载着二十三名乘客离岸。船票仍是两块钱。"


def pair(old: str, new: str, **kept: Any) -> PagePair:
    """The pair of an original and its copy, with the texts that were kept of them."""
    state = State()
    first = state.add("https://a.example/", evidence=Evidence(title="A", text=old))
    state.copy("https://b.example/", first, **{"title": "B", "text": new, **kept})
    (found,) = gather(state.store).pairs
    return found


def marks(text: MarkedText | None) -> list[str]:
    assert text is not None
    return [part.text for part in text.parts if part.mark is Mark.SHARED]


def whole(text: MarkedText | None) -> str:
    assert text is not None
    return "".join(part.text for part in text.parts)


# Which.


def state_of(kinds: dict[str, int]) -> State:
    """A state with so many pairs of each kind; of those in capitals the page passed."""
    state = State()
    first = state.add("https://old.example/")
    for kind, many in kinds.items():
        for number in range(many):
            url, similarity = f"https://site{number}.example/{kind}", 0.9 - number / 100
            if kind.isupper():
                state.add(url, evidence=Evidence(kind.lower(), first, similarity))
            elif kind == "unknown":
                state.add(url, first, similarity)
            else:
                state.copy(url, first, kind, similarity)
    return state


def kinds_of(pairs: Collection[PagePair]) -> dict[str, int]:
    """Count the pairs of each kind, in their order; pairs of a kind stand together."""
    found: dict[str, int] = {}
    last = ""
    for one in pairs:
        name = one.kind if one.copy else one.kind.upper()
        assert name == last or name not in found
        found[name], last = found.get(name, 0) + 1, name
    return found


ALL = ["retitled", "near", "excerpt", "EXCERPT", "same_title", "SAME_TITLE", "unknown", "identical"]


@pytest.mark.parametrize(
    ("there", "shown"),
    [
        (dict.fromkeys(reversed(ALL), 30), dict.fromkeys(ALL, 3)),
        ({"identical": 30, "retitled": 30}, {"retitled": 12, "identical": 12}),
        ({"identical": 30, "near": 3}, {"near": 3, "identical": 21}),
        ({"near": 30, "retitled": 30, "SAME_TITLE": 30, "excerpt": 2, "unknown": 1}, None),
        ({"near": 5}, {"near": 5}),
        ({}, {}),
    ],
)
def test_each_kind_has_its_share_doubtful_first(there: dict[str, int], shown: dict[str, int] | None) -> None:
    found = kinds_of(gather(state_of(there).store).pairs)
    if shown is None:
        shown = {"retitled": 7, "near": 7, "excerpt": 2, "SAME_TITLE": 7, "unknown": 1}
    assert list(found.items()) == list(shown.items())
    assert sum(found.values()) == min(PAIRS, sum(there.values()))


def test_pairs_with_both_texts_come_first_and_forgotten_pages_are_left_out() -> None:
    state = State()
    first = state.add("https://a.example/0", evidence=Evidence(text=FERRY))
    bare, gone = state.add("https://a.example/1"), state.add("https://a.example/2")
    for number in range(25):
        state.copy(f"https://b.example/{number}", bare, "near", 0.2)
        if number < 20:
            state.copy(f"https://b.example/{number}", first, "near", 0.3, text=FERRY)
    state.copy("https://c.example/", gone, "near", 0.1)
    state.add("https://d.example/", evidence=Evidence("excerpt", gone, 0.1))
    state.store.forget([gone])
    found = gather(state.store).pairs
    assert sum(one.has_texts for one in found) == 20
    assert [one.similarity for one in found] == [0.2] * 4 + [0.3] * 20


def test_a_page_that_passed_is_beside_the_one_that_it_is_like() -> None:
    state = State()
    first = state.add("https://a.example/", evidence=Evidence(text=FERRY))
    state.add("https://b.example/", evidence=Evidence("excerpt", first, 0.31, 0.99, text="船票仍是两块钱。"))
    (found,) = gather(state.store).pairs
    assert found.original is not None
    kinds = found.kind, found.copy, found.page.kind
    assert (*kinds, found.original.url) == ("excerpt", False, "original", "https://a.example/")
    assert (found.similarity, found.containment) == (0.31, 0.99)
    assert marks(found.texts[0]) == ["船票仍是两块钱"]


# Texts.


PIECES = ["渡口恢复通航", "The ferry sails, at last", "Ｔhe FERRY sails at last", "船票两块钱", "3.5", "…", "\u202e"]
ENDS = ["。", ". ", "!\n", "\r\n", "\u2028", "”\x07 "]


def test_sentences_of_both_texts_are_marked_and_nothing_is_lost() -> None:
    dice = random.Random(3)
    for _ in range(200):
        old, new = ("".join(dice.choice(PIECES) + dice.choice(ENDS) for _ in range(dice.randrange(9))) for _ in "ab")
        both = sentence_letters(old) & sentence_letters(new)
        for text, written in zip(pair(old, new).texts, (old, new), strict=True):
            assert (text is None) == (written == "")
            if text is not None:
                assert whole(text) == clean_text(written)
                assert (text.letters, text.is_cut, text.hidden) == (len(clean_text(written)), False, 0)
                if old and new:
                    assert {own_letters(one) for one in marks(text)} == both


def test_a_single_text_is_marked_by_the_evidence_of_the_state() -> None:
    found = pair("", FERRY, shared=("船票仍是两块钱", "候船室装了新的长椅"))
    assert found.texts[0] is None
    assert marks(found.texts[1]) == ["船票仍是两块钱"]
    found = pair(FERRY, "候船室装了新的长椅。", shared=("船票仍是两块钱",))  # both texts count
    assert (marks(found.texts[0]), marks(found.texts[1])) == ([], [])
    found = pair(FERRY, "", shared=("船票仍是两块钱", "头一班船载着\x07二十三名乘客离岸"))
    assert marks(found.texts[0]) == ["头一班船载着二十三名乘客离岸", "船票仍是两块钱"]


def test_traditional_and_simplified_characters_are_one_if_the_recipe_says_so() -> None:
    for simplified in [True, False]:
        pytest.importorskip("opencc")
        state = State({"method": "cascade", "parameters": {"simplified": simplified}})
        first = state.add("https://a.example/", evidence=Evidence(text="渡口今天恢复通航。船票两块钱。"))
        state.copy("https://b.example/", first, text="渡口今天恢復通航。船票兩塊錢。渡口今天恢复通航。")
        (found,) = gather(state.store).pairs
        assert marks(found.texts[0]) == ["渡口今天恢复通航", *["船票两块钱"] * simplified]
        assert marks(found.texts[1]) == [*["渡口今天恢復通航", "船票兩塊錢"] * simplified, "渡口今天恢复通航"]


# How much of them.


def test_a_text_is_cut_with_its_length() -> None:
    for length in (SHOWN - 1, SHOWN, SHOWN + 1, 100_001, 250_000):
        old = pair("渡" * length, FERRY).texts[0]
        assert old is not None
        assert (len(whole(old)), old.letters, old.is_cut) == (min(length, SHOWN), length, length > SHOWN)


def test_shared_sentences_behind_the_cut_are_counted() -> None:
    shared = [f"Sentence number {number} stands in both of the texts" for number in range(200)]
    old, new = "; ".join(shared), "x" * SHOWN + "; " + "; ".join(shared[::-1])
    found = pair(old, new).texts
    assert found[0] is not None
    assert found[1] is not None
    assert (len(marks(found[0])) + found[0].hidden, found[1].hidden, marks(found[1])) == (200, 200, [])
    assert old.startswith(whole(found[0]))
    assert len(whole(found[0])) == SHOWN
    assert shared[len(marks(found[0])) - 1].startswith(marks(found[0])[-1])  # the last one is cut with the text


def test_copies_are_compared_as_long_as_there_is_room_the_newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.report.pairs._LETTERS_OF_TEXTS", 70)
    monkeypatch.setattr("scrapy_neardup.report.pairs._LETTERS_OF_SENTENCES", 20)
    state = State()
    first = state.add("https://a.example/", evidence=Evidence(text="All swam to the bank."))
    bare = state.add("https://c.example/")
    for number in range(6):
        state.copy(f"https://b.example/{number}", first, text="All swam to the bank.", shared=("All swam to", "bank"))
    state.copy("https://d.example/", bare, shared=("Both",))
    gone = state.add("https://e.example/")
    state.copy("https://f.example/", gone)
    state.store.forget([gone])
    lost, without, *others = gather(state.store).copies
    assert (lost.original, lost.texts, lost.shared) == (None, (None, None), ())
    assert (without.texts, without.shared) == ((None, None), ("Both",))
    assert [one.texts[1] and whole(one.texts[1]) for one in others] == ["All swam to the bank."] * 2 + [None] * 4
    assert [one.shared for one in others] == [(), (), ("All swam to", "bank"), ("All swam to", "bank"), None, None]
