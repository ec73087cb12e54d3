"""Of how many pages of a site one looks like another is known, bounded, and survives the state's being closed."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.state.boilerplate import Counts, CountsOfSite, Forms
from scrapy_neardup.state.opening import close_store, open_store

SITE, OTHER = 7, 8


def noted(pages: int, forms: int, site: int = SITE, table: Forms | None = None) -> Forms:
    table = table or Forms()
    for number in range(pages):
        table.note(site, in_form=number < forms)
    return table


def again(table: Forms) -> Forms:
    found = Forms()
    found.load(0, table.blocks()[0])
    return found


def test_a_site_is_what_its_last_pages_are_once_enough_are_known() -> None:
    few, enough = noted(63, 63), noted(64, 16)
    assert (few.share(SITE), enough.share(SITE), enough.share(OTHER)) == (0.0, 0.25, 0.0)
    table = noted(5_000, 5_000)
    assert table.share(SITE) == 1.0
    noted(1_200, 0, table=table)
    assert 0.1 < table.share(SITE) < 0.5
    noted(4_000, 0, table=table)
    assert table.share(SITE) < 0.01


def test_of_too_many_sites_those_go_that_were_not_seen_for_longest() -> None:
    table = noted(64, 64)
    noted(64, 64, OTHER, table)
    for site in range(100, 100 + 4094):
        table.note(site, in_form=False)
    table.note(SITE, in_form=True)
    assert table.share(SITE) == table.share(OTHER) == 1.0
    table.note(99, in_form=False)
    assert (table.share(SITE), table.share(OTHER)) == (1.0, 0.0)
    assert again(table).blocks() == table.blocks()


def test_it_is_written_where_it_was_changed() -> None:
    table = Forms()
    assert table.blocks() == table.changed() == {}
    noted(64, 32, table=table)
    assert table.changed() == table.blocks() != {}
    table.saved()
    assert table.changed() == {}
    assert again(table).share(SITE) == 0.5
    assert again(table).changed() == {}


def test_of_two_states_it_is_the_sum() -> None:
    table, other = noted(100, 50), noted(300, 0)
    noted(64, 64, OTHER, other)
    table.merge(other)
    assert (table.share(SITE), table.share(OTHER)) == (0.125, 1.0)
    assert table.changed() != {}
    table.merge(noted(1_000, 1_000))
    assert 0.7 < table.share(SITE) < 0.8


def test_what_cannot_stand_there_is_refused_and_nothing_is_taken() -> None:
    for row in [
        [(7, 0, 0)],
        [(7, 1024, 3)],
        [(7, 5, 6)],
        [(7, 5, 5), (7, 5, 5)],
        [(site, 5, 5) for site in range(4097)],
    ]:
        table = noted(64, 32)
        with pytest.raises(ValueError, match="cannot stand there"):
            table.load(0, zlib.compress(np.array(row, [("site", ">u4"), ("pages", ">u2"), ("forms", ">u2")]).tobytes()))
        for packed in (b"no zlib", zlib.compress(b"seven..")):
            with pytest.raises(ValueError, match="forms"):
                table.load(0, packed)
        assert table.share(SITE) == 0.5, row


def test_pages_without_a_site_count_together() -> None:
    counts = Counts()
    for _ in range(64):
        counts.note_form("", OPEN, in_form=True)
    assert CountsOfSite(counts, "", OPEN).forms() == 1.0
    assert CountsOfSite(counts, "shop.example", OPEN).forms() == 0.0


def test_a_state_keeps_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.sqlite"
    store = open_store(url, {})
    for number in range(100):
        store.note_form("shop.example", in_form=number < 30)
    assert store.on_site("shop.example").forms() == 0.3
    close_store(store)
    store = open_store(url, {})
    assert store.on_site("shop.example").forms() == 0.3
    assert store.on_site("other.example").forms() == store.on_site("").forms() == 0.0
    close_store(store)
