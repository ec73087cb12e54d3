"""Every kind of damage that can be planted in a state is found, and a sound one is found sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.verify import NAMED, Findings, check
from scrapy_neardup.state.expiry import FRONTIER
from scrapy_neardup.state.layout import evidence_key, meta_key, pack_seen, posting_key, record_key, url_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record
from tests.build import BREAD, EDITED, KINDS, PEAR, POWER, SAME, SHORT, make_state, open_state, state_url


def page(store: PageStore, url: str) -> Record:
    record = store.find(url)
    assert record is not None
    return record


def put(store: PageStore, key: bytes, value: bytes) -> None:
    store.kv.write(Changes({key: value}), sync=True)


def delete(store: PageStore, *keys: bytes) -> None:
    store.kv.write(Changes(deletes=set(keys)), sync=True)


def file(store: PageStore, key: int, id: int) -> None:
    changes = Changes()
    store._postings.file((key,), id, changes)
    store.kv.write(changes, sync=True)


def unfile(store: PageStore, key: int, id: int) -> None:
    changes = Changes()
    store._postings.remove((key,), id, changes)
    store.kv.write(changes, sync=True)


def out_of_reach(store: PageStore) -> None:
    """A posting that has a row of its own, which the row of its key does not speak of."""
    unfile(store, key := page(store, BREAD).keys[0], id := page(store, BREAD).id)
    put(store, posting_key(key, id), b"")


def repack(store: PageStore, record: Record) -> None:
    put(store, record_key(record.id), record.pack())


def change(store: PageStore, key: bytes, mutate: Callable[[bytes], bytes]) -> None:
    value = store.kv.get(key)
    assert value is not None
    put(store, key, mutate(value))


def block(store: PageStore) -> bytes:
    return next(store.kv.scan(b"b"))[0]


def chain(store: PageStore) -> None:
    repack(store, replace(page(store, SAME), original=page(store, EDITED).id))


def second_version(store: PageStore) -> None:
    """An earlier version that was not removed."""
    id = page(store, PEAR).id - 1
    repack(store, Record(id, PEAR, id))
    store.pages += 1


def another_key(store: PageStore) -> None:
    key, id = page(store, BREAD).keys[0], page(store, BREAD).id
    unfile(store, key, id)
    file(store, key ^ 1, id)


def exchanged_keys(store: PageStore) -> None:
    """All sums of keys and of ids stay."""
    one, other = page(store, BREAD), page(store, POWER)
    for wrong, right in ((one, other), (other, one)):
        unfile(store, right.keys[0], right.id)
        file(store, right.keys[0], wrong.id)


def unknown_rows(store: PageStore) -> None:
    for key in (b"a", b"zebra", b"\0", b"\xff\xff", b"R123"):
        put(store, key, b"")


def counted(store: PageStore, expected: dict[str, int]) -> dict[str, int]:
    return {kind: many or len(page(store, BREAD).keys) for kind, many in expected.items()}


Damage = Callable[[PageStore], object]
#: Rows that are put into a state, and the problems that they make.
ROWS: dict[tuple[bytes, bytes], dict[str, int]] = {
    (b"r" + bytes(9), b""): {"broken record": 1, "wrong count": 1},
    (b"u123", pack_seen(7, 7)): {"broken URL": 1},
    (b"k" + bytes(12), b""): {"broken key": 1},
    (evidence_key(7), Evidence("near").pack()): {"evidence without page": 1},
    (b"e12", Evidence().pack()): {"broken evidence": 1},
    (b"o" + bytes(15), b""): {"broken queue": 1},
    (FRONTIER, b"7"): {"broken frontier": 1},
    (meta_key("decisions"), b"[]"): {"broken decision": 1},
    (meta_key("surprise"), b"1"): {"unknown row": 1},
    (b"j" + bytes(16), b""): {"left over": 1},
    (b"g" + bytes(8), b"{}"): {"left over": 1},
}
#: What else is done to a state, and the problems that it makes.
DAMAGES: dict[str, tuple[Damage, dict[str, int]]] = {
    "a record is gone": (
        lambda store: delete(store, record_key(page(store, BREAD).id)),
        {"wrong count": 1, "wrong rows": 2, "evidence without page": 1},
    ),
    "a record is cut": (
        lambda store: change(store, record_key(page(store, SHORT).id), lambda packed: packed[:20]),
        {"broken record": 1},
    ),
    "a URL is no text": (
        lambda store: change(
            store, record_key(page(store, SHORT).id), lambda packed: packed.replace(b"town", b"to\xff\xff")
        ),
        {"broken record": 1},
    ),
    "a record has a flag that nothing writes": (
        lambda store: change(
            store, record_key(page(store, SHORT).id), lambda packed: bytes([packed[0] | 0x80]) + packed[1:]
        ),
        {"broken record": 1},
    ),
    "a URL is another one": (
        lambda store: repack(store, replace(page(store, SHORT), url="https://town.example/other")),
        {"wrong rows": 2},
    ),
    "the row of a URL is gone": (lambda store: delete(store, url_key(SHORT, store.hashes)), {"wrong rows": 1}),
    "the row of a URL names another page": (
        lambda store: put(store, url_key(SHORT, store.hashes), pack_seen(page(store, BREAD).id, 7)),
        {"wrong rows": 1},
    ),
    "the row of a URL is cut": (
        lambda store: change(store, url_key(SHORT, store.hashes), lambda seen: seen[:9]),
        {"broken URL": 1},
    ),
    "a URL has two pages": (second_version, {"two pages of a URL": 1}),
    "a posting is gone": (
        lambda store: unfile(store, page(store, BREAD).keys[0], page(store, BREAD).id),
        {"wrong rows": 1},
    ),
    "a posting too many": (lambda store: file(store, 12345, page(store, BREAD).id), {"wrong rows": 1}),
    "a posting of another key": (another_key, {"wrong rows": 1}),
    "two pages under each other's keys": (exchanged_keys, {"wrong rows": 1}),
    "a posting is out of reach": (out_of_reach, {"posting out of reach": 1}),
    "the row of a key is cut": (
        lambda store: change(store, b"k" + pack_key(page(store, BREAD).keys[0]), lambda ids: ids[:-1]),
        {"broken key": 1},
    ),
    "a copy of a copy": (chain, {"copy of a copy": 1}),
    "evidence is noise": (
        lambda store: put(store, evidence_key(page(store, SAME).id), b"noise"),
        {"broken evidence": 1},
    ),
    "counts are noise": (lambda store: put(store, block(store), b"noise"), {"broken counts": 1}),
    "counts of a block that is none": (
        lambda store: put(store, b"b\xff\xff", store.kv.get(block(store)) or b""),
        {"broken counts": 1},
    ),
    "unknown rows": (unknown_rows, {"unknown row": 5}),
    "a wrong count": (lambda store: setattr(store, "pages", 9), {"wrong count": 1}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_state_is_found_sound(kind: str, tmp_path: Path) -> None:
    with open_state(state_url(kind, tmp_path / "empty")) as store:
        assert check(store) == Findings()
    with open_state(make_state(kind, tmp_path)) as store:
        found = check(store)
        keys = sum(len(record.keys) for record in store.records())
        evidence = sum(store.evidence(record.id) is not None for record in store.records())
    assert found.sound
    assert (found.problems, dict(found.counts)) == ([], {})
    assert (found.pages, found.keys, found.urls, found.rows["evidence"]) == (8, keys, 8, evidence)
    assert found.rows["counts"] > 0
    assert (keys > 20, evidence) == (True, 8)


PLANTED = [*DAMAGES.values(), *((lambda store, row=row: put(store, *row), expected) for row, expected in ROWS.items())]


@pytest.mark.parametrize(("plant", "expected"), PLANTED)
def test_damage_is_found(plant: Damage, expected: dict[str, int], tmp_path: Path) -> None:
    with open_state(make_state("sqlite", tmp_path)) as store:
        plant(store)
        found = check(store)
        assert dict(found.counts) == expected
        assert {problem["kind"] for problem in found.problems} == set(expected)
        assert not found.sound
        assert check(store) == found  # and nothing was changed
        store.pages = 8


def test_many_problems_are_counted_and_the_first_are_named(state: str) -> None:
    with open_state(state) as store:
        for n in range(3 * NAMED):
            put(store, evidence_key(n), Evidence("near").pack())
        found = check(store)
    assert len(found.problems) == NAMED
    assert dict(found.counts) == {"evidence without page": 3 * NAMED}


def test_copies_whose_original_is_gone_are_no_problem(state: str) -> None:
    with open_state(state) as store:
        store.forget([page(store, PEAR).id])
        found = check(store)
    assert found.sound


def test_two_urls_of_one_hash_are_no_problem(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later one takes the row; the earlier page cannot be found by its URL, as a crawl takes it for new."""
    with open_state(state) as store:
        other = Record(store.new_id(), "https://collision.example/", 1)
        store.add(replace(other, original=other.id))
        assert check(store).sound
        delete(store, url_key(POWER, store.hashes))
        alike = {POWER: url_key(other.url, store.hashes)}
        with monkeypatch.context() as patched:
            for module in ("scrapy_neardup.state.verifier", "scrapy_neardup.state.layout"):
                patched.setattr(f"{module}.url_key", lambda url, hashes: alike.get(url) or url_key(url, hashes))
            found = check(store)
    assert found.sound


def test_what_cannot_be_read_is_found_and_the_rest_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = SQLite.scan

    def broken(self: SQLite, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> object:
        if prefix == b"r":
            raise self.damage_error("a page of the file is gone")
        return scan(self, prefix, start=start, reverse=reverse)

    with open_state(make_state("sqlite", tmp_path)) as store:
        put(store, b"zebra", b"")
        put(store, evidence_key(page(store, SAME).id), b"noise")
        monkeypatch.setattr(SQLite, "scan", broken)
        found = check(store)
    assert dict(found.counts) == {"unreadable": 1, "broken evidence": 1, "unknown row": 1}
