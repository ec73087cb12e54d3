"""Boilerplate belongs to the site that carries it, everywhere to many publishers; forms are counted by site."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.state.boilerplate import Counts, Forms, publisher, read_counts
from scrapy_neardup.state.opening import close_store, open_store

LINES = np.array([7, 8, 9], np.uint32)


def noted(*sites: str, everywhere: bool = True, hashes: Keyed = OPEN) -> Counts:
    counts = Counts()
    for site in sites:
        counts.on_site(site, hashes).note(LINES, everywhere=everywhere)
    return counts


def common(counts: Counts, site: str, lines: npt.NDArray[np.uint32] = LINES) -> list[bool]:
    found: list[bool] = counts.on_site(site, OPEN).is_common(lines).tolist()
    return found


def own(counts: Counts, site: str) -> list[bool]:
    found: list[bool] = counts.on_site(site, OPEN).is_own(LINES).tolist()
    return found


def test_sixteen_pages_of_a_site_make_boilerplate_of_that_site_alone() -> None:
    few, many = noted(*["a.example"] * 15), noted(*["a.example"] * 16)
    assert own(few, "a.example") == common(few, "a.example") == [False] * 3
    assert own(many, "a.example") == common(many, "a.example") == [True] * 3
    for other in ("b.example", "www.a.example", ""):
        assert common(many, other) == [False] * 3
    assert common(noted(*[""] * 16), "") == [True] * 3
    assert noted(*[""] * 16).on_site("", OPEN).pages() == 0
    assert noted(*[""] * 16).on_site("", OPEN).pages_on_site(LINES).tolist() == [0] * 3
    copies = noted(*(f"n{number}.example" for number in range(120)), *["a.example"] * 16, everywhere=False)
    assert not copies.on_site("", OPEN).is_common_everywhere(LINES).any()
    assert own(copies, "a.example") == [True] * 3
    assert copies.on_site("a.example", OPEN).pages() == 16
    assert copies.everywhere.pages(LINES).tolist() == [0] * 3


def test_many_publishers_make_boilerplate_everywhere_and_hosts_of_one_do_not() -> None:
    for seed in range(5):
        hashes = Keyed(bytes([seed]))
        for count, expected in ((15, False), (120, True)):
            counts = noted(*(f"www.n{number}.example" for number in range(count)), hashes=hashes)
            assert counts.on_site("", OPEN).is_common_everywhere(LINES).tolist() == [expected] * 3, count
        one_owner = noted(*(f"n{number}.evil.example" for number in range(500)), hashes=hashes)
        assert not one_owner.on_site("", OPEN).is_common_everywhere(LINES).any(), seed


def test_what_is_known_of_a_site_is_counted_by_pages() -> None:
    counts = noted("a.example", "a.example", "b.example")
    counts.on_site("a.example", OPEN).note(LINES[:1], everywhere=True)
    here = counts.on_site("a.example", OPEN)
    assert (here.pages(), here.pages_on_site(LINES).tolist()) == (3, [3, 2, 2])
    assert counts.everywhere.pages(LINES).tolist() == [4, 3, 3]


@pytest.mark.parametrize("site", ["a.example", ""])
@pytest.mark.parametrize("pure", [False, True])
def test_a_page_that_counts_once_has_a_number(pure: bool, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if pure:
        monkeypatch.setattr(compiled, "kernels", None)
    counts = Counts()
    assert counts.on_site(site, OPEN).note(LINES[:2], everywhere=True, page=9)
    assert not counts.on_site(site, OPEN).note(LINES[:2], everywhere=True, page=9)
    assert not counts.on_site(site, OPEN).note(LINES[:0], everywhere=True, page=9)
    assert counts.on_site(site, OPEN).pages_here(LINES).tolist() == [1, 1, 1]
    assert counts.on_site(site, OPEN).note(LINES[:2], everywhere=False)
    assert counts.on_site("b.example", OPEN).note(LINES[:2], everywhere=True, page=9)  # known of another site alone
    assert counts.on_site(site, OPEN).pages_here(LINES).tolist() == [2, 2, 1]
    assert counts.everywhere.pages(LINES).tolist() == [2, 2, 2]


def test_both_tables_are_written_and_read_and_only_what_changed() -> None:
    counts = noted(*["a.example"] * 16, *(f"n{number}.example" for number in range(120)))
    assert counts.rows(changed=True) == counts.rows()
    counts.saved()
    assert counts.rows(changed=True) == {}
    again = read_counts(counts.rows().items())
    assert own(again, "a.example") == [True] * 3
    assert again.on_site("", OPEN).is_common_everywhere(LINES).all()
    with pytest.raises(ValueError, match="there is no block"):
        again.load(2**16 - 1, next(iter(counts.rows().values())))


def test_merged_counts_are_the_sum_and_hosts_have_an_owner() -> None:
    one, other = noted(*["a.example"] * 8), noted(*["a.example"] * 8, *["b.example"] * 3)
    one.merge(other)
    assert own(one, "a.example") == [False] * 3  # one less than the sum: pages that both have noted count once
    one.merge(noted("a.example", "a.example"))
    assert own(one, "a.example") == [True] * 3
    assert one.on_site("b.example", OPEN).pages() == 3
    for site, owner in [
        ("a.b.daybook.co.uk", "daybook.co.uk"),
        ("someone.blogspot.com", "blogspot.com"),
        ("2001:db8:1:2::3", "2001:db8:1"),
        ("10.0.0.7", "10.0.0.7"),
        ("", ""),
    ]:
        assert publisher(site) == owner


SITE, OTHER = 7, 8


def noted_forms(pages: int, forms: int, site: int = SITE, table: Forms | None = None) -> Forms:
    table = table or Forms()
    for number in range(pages):
        table.note(site, 1, int(number < forms))
    return table


def again(table: Forms) -> Forms:
    found = Forms()
    found.load(0, table.blocks()[0])
    return found


def test_a_site_is_what_its_last_pages_are_once_enough_are_known() -> None:
    few, enough = noted_forms(63, 63), noted_forms(64, 16)
    assert (few.share(SITE), enough.share(SITE), enough.share(OTHER)) == (0.0, 0.25, 0.0)
    table = noted_forms(5_000, 5_000)
    assert table.share(SITE) == 1.0
    noted_forms(1_200, 0, table=table)
    assert 0.1 < table.share(SITE) < 0.5
    noted_forms(4_000, 0, table=table)
    assert table.share(SITE) < 0.01


def test_of_too_many_sites_those_go_that_were_not_seen_for_longest() -> None:
    table = noted_forms(64, 64)
    noted_forms(64, 64, OTHER, table)
    for site in range(100, 100 + 4094):
        table.note(site, 1, 0)
    table.note(SITE, 1, 1)
    assert table.share(SITE) == table.share(OTHER) == 1.0
    table.note(99, 1, 0)
    assert (table.share(SITE), table.share(OTHER)) == (1.0, 0.0)
    assert again(table).blocks() == table.blocks()


def test_of_two_states_it_is_the_sum() -> None:
    table, other = noted_forms(100, 50), noted_forms(300, 0)
    noted_forms(64, 64, OTHER, other)
    table.merge(other)
    assert (table.share(SITE), table.share(OTHER)) == (0.125, 1.0)
    assert table.blocks(changed=True) != {}
    table.merge(noted_forms(1_000, 1_000))
    assert 0.7 < table.share(SITE) < 0.8


def test_what_cannot_stand_there_is_refused_and_nothing_is_taken() -> None:
    both = [(7, 5, 5), (7, 5, 5)]
    for row in [[(7, 0, 0)], [(7, 1024, 3)], [(7, 5, 6)], both, [(site, 5, 5) for site in range(4097)]]:
        table = noted_forms(64, 32)
        with pytest.raises(ValueError, match="cannot stand there"):
            table.load(0, zlib.compress(np.array(row, [("site", ">u4"), ("pages", ">u2"), ("forms", ">u2")]).tobytes()))
        for packed in (b"no zlib", zlib.compress(b"seven..")):
            with pytest.raises(ValueError, match="forms"):
                table.load(0, packed)
        assert table.share(SITE) == 0.5, row


def test_a_state_keeps_the_forms_of_each_site_and_of_pages_without_one(tmp_path: Path) -> None:
    for number in (100, 0):
        store = open_store(f"sqlite:///{tmp_path}/state.sqlite", {})
        for one in range(number):
            store.note_form("shop.example", in_form=one < 30)
            store.note_form("", in_form=True)
        shares = [store.on_site(site).template_share() for site in ("shop.example", "", "other.example")]
        assert shares == [0.3, 1.0, 0.0]
        close_store(store)
