"""What is different where nobody holds a state alone: leases, writes that others come before, servers that say no."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrapy_neardup.errors import StoreDamaged, StoreError, StoreMismatch
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.sources import sealed_pages
from scrapy_neardup.maintenance.verify import check as check_state
from scrapy_neardup.server.asynchronous import AsyncLink
from scrapy_neardup.server.claims import pack, pending_page
from scrapy_neardup.server.connection import Link
from scrapy_neardup.server.engine import Redis
from scrapy_neardup.server.layout import GIVEN_UP, STREAM, level_of, pending_name
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.store import RedisStore, SharedJournal
from scrapy_neardup.server.transaction import Note, pack_notes, unpack_notes
from scrapy_neardup.state import layout
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.journal import UnsealedPages
from scrapy_neardup.state.opening import close_store, open_at, open_store
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import parse_url
from tests.build import PAGES, judge_pages, open_state, put, read_records
from tests.cli import run
from tests.server.redis_cluster import free_ports
from tests.server.redis_server import IS_KVROCKS, Server, as_redis_does, certified, client_of, end_leases, running
from tests.state.clock import HOUR, Clock

RECIPE = {"method": "any", "seed": 7}
URL = "https://ferry.example/1"

Open = Callable[..., RedisStore]


@pytest.fixture
def opening(redis_server: Server) -> Iterator[Open]:
    """Opens one more store on the state of the test, as another crawler would."""
    state = redis_server.new_state()
    with ExitStack() as stack:

        def open_one() -> RedisStore:
            kind, location = parse_url(redis_server.url(state))
            store = open_at(kind, location, RECIPE)
            assert isinstance(store, RedisStore)
            stack.callback(store.close)
            return store

        yield open_one


def at_once(*works: Callable[[], object]) -> None:
    """Run each in a thread of its own."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# Leases


def test_what_another_crawler_is_at_work_on_is_not_rolled_back(opening: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "lease", 1.0)
    one = opening()
    crawl = one.journal.begin("one")
    page = put(one, URL, 5, generation=crawl)
    time.sleep(1.5)  # it is renewed
    other = opening()
    assert other.rolled_back == UnsealedPages(0, ())
    assert other.is_held
    assert other.find(URL) == page
    assert (other.pending().pages, other.pending().crawls, other.journal.is_unsealed(page.id)) == (1, ("one",), True)
    one.journal.seal(crawl, [page.id])
    assert one.journal.end(crawl) == 0
    assert not opening().is_held


def test_what_a_crawler_that_is_no_more_had_not_sealed_is_rolled_back_once_its_lease_has_ended(opening: Open) -> None:
    one = opening()
    crawl = one.journal.begin("one")
    sealed, lost = put(one, URL, generation=crawl), put(one, f"{URL}?lost", 5, generation=crawl)
    one.journal.seal(crawl, [sealed.id])
    one.leases.stop_renewing()
    assert opening().rolled_back == UnsealedPages(0, ())
    end_leases(one)
    other = opening()
    assert other.rolled_back == UnsealedPages(1, ("one",))
    assert [record.url for record in other.records()] == [URL]
    assert other.postings(5, 9) == []
    assert opening().rolled_back == UnsealedPages(0, ())
    for write in (
        lambda: one.journal.seal(crawl, [lost.id]),
        lambda: put(one, f"{URL}?late", generation=crawl),
        lambda: one.journal.roll_back(crawl, lost.id),
    ):
        with pytest.raises(StoreError, match="others rolled back"):
            write()
    assert other.pages == 1


def test_a_crawler_whose_lease_has_ended_goes_on_if_nobody_took_it(opening: Open) -> None:
    one = opening()
    crawl = one.journal.begin("one")
    page = put(one, URL, generation=crawl)
    end_leases(one)
    one.journal.seal(crawl, [page.id])
    later = put(one, f"{URL}?later", generation=crawl)
    assert opening().rolled_back == UnsealedPages(0, ())
    one.journal.seal(crawl, [later.id])
    assert one.journal.end(crawl) == 0


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_roll_back_that_is_killed_or_fails_is_ended_by_another(
    opening: Open, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    one = opening()
    crawl = one.journal.begin("one")
    for number in range(3):
        put(one, f"{URL}?{number}", generation=crawl)
    killed = one
    end_leases(one)
    with monkeypatch.context() as patch:
        patch.setattr(SharedJournal, "batch", 1)
        batches: list[object] = []
        some = SharedJournal._roll_back_all

        def dies(journal: SharedJournal, journals: Any) -> None:
            batches.append(journals)
            if len(batches) == 3:
                if is_killed:
                    journal._redis.leases.stop_renewing()
                    journal._redis.leases.crawls.clear()  # nothing is given back
                raise MemoryError
            some(journal, journals)

        patch.setattr(SharedJournal, "_roll_back_all", dies)
        with pytest.raises(MemoryError):
            opening()
    if is_killed:
        end_leases(one)
    with pytest.raises(StoreError, match="others rolled back"):  # or it would seal what is left, and think it all
        killed.journal.seal(crawl, [record.id for record in killed.records()])
    assert opening().rolled_back == UnsealedPages(1, ("one",))
    assert not client_of(killed).exists(killed.kv.link.prefix + GIVEN_UP)


@pytest.mark.parametrize("bounds", [Bounds(max_pages=1), Bounds(ttl=0.01)])
def test_upkeep_forgets_no_page_that_another_crawler_has_not_sealed(opening: Open, bounds: Bounds) -> None:
    one = opening()
    crawl = one.journal.begin("one")
    pages = [put(one, f"{URL}?{number}", generation=crawl) for number in range(3)]
    other = opening()
    time.sleep(1.1)  # when a page was last seen is known by the second
    assert sum(other.expire(bounds) for _ in range(9)) == 0
    assert list(one.records()) == pages
    one.journal.seal(crawl, [page.id for page in pages])
    assert sum(opening().expire(bounds) for _ in range(9)) > 0


def test_pages_whose_removal_was_overtaken_are_looked_at_again(opening: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    one, other = clock.govern(opening()), opening()
    assert isinstance(one, RedisStore)
    pages = [put(one, f"{URL}?{number}") for number in range(3)]
    clock.now += HOUR - 60
    assert one.expire(Bounds(ttl=HOUR)) == 0, "the next round begins, and the one after that not soon"
    clock.now += 120
    commit, seen = RedisStore.apply, [pages[0]]

    def overtaken(store: RedisStore, changes: Changes, **how: Any) -> None:
        if store is one and seen:
            other.forget([seen.pop().id])
        commit(store, changes, **how)

    monkeypatch.setattr(RedisStore, "apply", overtaken)
    assert one.expire(Bounds(ttl=HOUR)) == 2
    assert list(one.records()) == []


def test_a_state_that_is_refused_was_not_touched_though_a_crawl_in_it_is_no_more(opening: Open) -> None:
    one = opening()
    crawl = one.journal.begin("one")
    program = one.kv.link.program()
    program.register(pending_page(Record(one.new_id(), URL, 7, 1.0, (5,), b"sketch"), crawl, one.url_key(URL)))
    one.kv.link.run(program)
    end_leases(one)
    one.write(Changes({layout.generation_key(crawl + 1): b"{"}))
    with pytest.raises(StoreDamaged):
        opening()
    assert not one.leases.is_held_by_others(crawl)
    client = client_of(one)
    assert client.hlen(one.kv.link.prefix + pending_name(pack(crawl))) == 1


def test_a_lease_is_renewed_again_after_an_error_that_nobody_foresaw(
    opening: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Redis, "lease", 1.0)
    store = opening()
    crawl = store.journal.begin("one")
    run, errors = store.kv.link.run, [RuntimeError("odd"), StoreError("gone")]

    def fails(program: Program) -> Any:
        if errors:
            raise errors.pop(0)
        return run(program)

    monkeypatch.setattr(store.kv.link, "run", fails)
    time.sleep(1.5)
    assert (errors, opening().leases.is_held_by_others(crawl)) == ([], True)
    assert caplog.text.count("RuntimeError: odd") == 1


def test_no_two_crawlers_give_the_same_id(opening: Open) -> None:
    stores = [opening() for _ in range(3)]
    ids = [store.new_id() for _ in range(500) for store in stores]
    assert len(set(ids)) == len(ids)
    assert len({store.leases.number for store in stores}) == 3


# Writes that others come before


def test_two_who_begin_a_state_at_once_have_one_secret(redis_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(bytes([number]) * 32 for number in range(1, 99))
    monkeypatch.setattr("scrapy_neardup.state.recipe.token_bytes", lambda size: next(drawn))
    kind, location = parse_url(redis_server.url(redis_server.new_state()))
    found: list[bytes] = []
    barrier = threading.Barrier(6)

    def begin() -> None:
        barrier.wait()
        store = open_at(kind, location, RECIPE)
        assert store.secret
        found.append(store.secret.value)
        store.close()

    at_once(*[begin] * 6)
    assert len(found) == 6
    assert len(set(found)) == 1


def test_who_sees_a_url_meanwhile_overtakes_no_write_that_depends_on_its_page(opening: Open) -> None:
    store = opening()
    row, ids = store.url_key(URL), (put(store).id, store.new_id())
    for id, found in zip(ids, ([1], [0, b"expect"]), strict=True):
        program = store.kv.link.program()
        program.expect(row, layout.pack_seen(id, 5.0))
        assert store.kv.link.run(program) == found


def test_no_record_is_written_if_a_condition_fails_though_it_was_named_later(opening: Open) -> None:
    store = opening()
    page = pending_page(
        Record(store.new_id(), URL, 7, 1.0, (5,), b"sketch"), store.journal.begin("one"), store.url_key(URL)
    )
    row, programs = layout.record_key(layout.last_id(page.id)), [store.kv.link.program() for _ in range(2)]
    programs[0].register(page)
    programs[1].put_record(page, row, page.packed)
    programs[1].expect(layout.meta_key("missing"), b"value")
    assert [store.kv.link.run(program)[0] for program in programs] == [1, 0]
    assert (store.kv.fetch(row), store.pages) == (None, 0)


def test_crawlers_that_write_at_once_leave_what_holds_together(opening: Open) -> None:
    """Each replaces the versions of the others at the same few URLs, and some are rolled back."""
    opening()
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            store = opening()
            crawl = store.journal.begin(f"crawl {number}")
            for turn in range(40):
                page = store.kv.run(partial(replace_newest, store, turn, crawl))
                if turn % 3 == 0:
                    store.journal.roll_back(crawl, page.id)
                elif turn % 3 == 1:
                    store.journal.seal(crawl, [page.id])
        except BaseException as error:
            errors.append(error)

    def replace_newest(store: RedisStore, turn: int, crawl: int) -> Record:
        url = f"{URL}?{turn % 4}"
        known = store.find(url)
        return put(store, url, turn % 3, generation=crawl, replaces=known.id if known else 0)

    at_once(*(partial(work, number) for number in range(3)))
    assert errors == []
    assert check_state(opening()).problems == []


def test_versions_of_a_dead_crawl_leave_a_later_one_of_another_crawl_in_their_place(opening: Open) -> None:
    one, dead = opening(), opening()
    first, crawl, gone = put(one), one.journal.begin("one"), dead.journal.begin("dead")
    second = put(dead, generation=gone, replaces=first.id)
    third = put(dead, generation=gone, replaces=second.id)
    last = put(one, generation=crawl, replaces=third.id)
    end_leases(dead)
    assert opening().rolled_back == UnsealedPages(2, ("dead",))
    one.journal.roll_back(crawl, last.id)
    assert (one.find(URL), list(one.records())) == (first, [first])


def test_a_sealed_version_removes_unsealed_ones_of_another_crawl_and_what_they_replace(opening: Open) -> None:
    one, other = opening(), opening()
    first, crawls = put(one), [store.journal.begin("x") for store in (one, other)]
    second = put(one, generation=crawls[0], replaces=first.id)
    third = put(other, generation=crawls[1], replaces=second.id)
    other.journal.seal(crawls[1], [third.id])
    one.journal.roll_back(crawls[0], second.id)
    assert list(one.records()) == [third]
    assert [one.journal.end(crawls[0]), other.journal.end(crawls[1])] == [0, 0]


def test_pages_that_were_filed_when_there_were_fewer_are_found(opening: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opening()
    early = put(store, URL, 7)
    assert level_of(10) != level_of(1_000_000) != level_of(100_000_000)
    for pages in (1_000_000, 100_000_000, 10):
        monkeypatch.setattr(store.kv, "known_pages", pages)
        monkeypatch.setattr(RedisStore, "pages", pages)
        put(store, f"{URL}?{pages}", 7)
    monkeypatch.undo()
    filed = [record.id for record in store.records()]
    assert store.postings(7, 9) == filed[::-1]
    assert len(list(client_of(store).scan_iter(match=store.kv.link.prefix + b"k*"))) == 3
    new = put(store, URL, 7, replaces=early.id)
    assert store.find(URL) == new
    assert [row[0][:1] for row in store.kv.scan(b"u")] == [b"u"] * 4
    assert store.forget(filed) == 3
    assert store.postings(7, 9) == [new.id]


def test_postings_of_keys_that_begin_alike_are_spread_and_so_packed(opening: Open) -> None:
    """As those of the default method do in older states, which are the smallest of a page's hashes."""
    store, chance = opening(), random.Random(3)
    keys = {put(store, f"{URL}?{n}", chance.getrandbits(32)).keys[0] for n in range(200)}
    assert all(len(store.postings(key, 9)) == 1 for key in keys)
    assert {int.from_bytes(row[1:6], "big") for row, _ in store.rows(b"k")} == keys
    client, prefix = client_of(store), store.kv.link.prefix
    names = list(client.scan_iter(match=prefix + b"k*", count=1000))
    assert len(names) > 150
    assert max(map(client.zcard, names)) < 9
    assert store.kv.size() > 100 * len(names), "the memory of all keys"


# Counts

SENTENCES = np.array([7, 70, 16_000], np.uint32)


def stood(store: RedisStore) -> list[int]:
    return [int(count) for count in store.on_site("river.example").pages_on_site(SENTENCES)]


def test_what_one_counts_all_know_and_each_page_counts_once(opening: Open) -> None:
    """Also what a crawler has counted that never closes."""
    one, other = opening(), opening()
    for number in range(8):
        (one, other)[number % 2].note(SENTENCES, "river.example")
    assert (stood(one), stood(other)) == ([4] * 3, [4] * 3)
    for store in (one, other, one):
        store.boilerplate._catch_up()
    assert (stood(one), stood(other)) == ([8] * 3, [8] * 3)
    late = opening()
    assert stood(late) == [8] * 3
    one.close()  # which writes the table
    assert stood(opening()) == [8] * 3
    late.note(SENTENCES[:1], "river.example")
    other.close()  # which has not seen that the first one wrote
    late.close()
    after = opening()
    assert stood(after) == [9, 8, 8]
    assert len(list(after.rows(b"b"))) > 3
    assert check_state(after).sound


def test_a_crawl_writes_no_counts_into_a_server_that_was_emptied(opening: Open) -> None:
    """Else nobody could begin the state again: it would have rows and no recipe."""
    one = opening()
    one.note(SENTENCES, "river.example")
    client = client_of(one)
    client.delete(*client.scan_iter(match=one.kv.link.prefix + b"*"))
    one.close()
    assert opening().pages == 0


def test_what_is_told_of_a_page_comes_back() -> None:
    def told(note: Note) -> tuple[object, ...]:
        return (note.sentences if note.sentences is None else note.sentences.tolist(), *note[1:])

    sites, parts = ("", "river.example", "例子.测试", "lone\udc80surrogate"), (None, SENTENCES, SENTENCES[:0])
    notes = [Note(one, site, bool(page), page) for site in sites for one in parts for page in (None, 77)]
    for some in (notes, []):
        entry = pack_notes(b"12345678", some)
        assert [told(one) for one in unpack_notes(entry)] == [told(one) for one in some]
        assert entry.startswith(b"12345678")


def test_what_is_told_and_cannot_be_read_is_damage(opening: Open) -> None:
    one = opening()
    client_of(one).xadd(one.kv.link.prefix + STREAM, {b"n": b"short"})
    with pytest.raises(StoreDamaged, match="counted sentences of a page"):
        opening()
    client_of(one).delete(one.kv.link.prefix + STREAM)


# Servers that say no


def test_a_server_that_forgets_is_refused_with_the_cure() -> None:
    for policy in ["allkeys-lru", "volatile-ttl"]:
        with running("--maxmemory-policy", policy) as server:
            with pytest.raises(StoreError, match=f"maxmemory-policy {policy}.*CONFIG SET maxmemory-policy noeviction"):
                open_store(server.url("a"), RECIPE)
            server.client.config_set("maxmemory-policy", "noeviction")
            close_store(open_store(server.url("a"), RECIPE))


def test_a_wrong_password_is_told_of_and_not_shown() -> None:
    with running() as server:
        server.client.config_set("requirepass", "right-one")
        url = server.url("a")
        for given in ("", ":wrong-one@", *(["crawler:wrong-one@"] if not IS_KVROCKS else [])):  # which knows no users
            with pytest.raises(StoreError, match="refuses this user or password") as refused:
                open_store(url.replace("unix://", f"unix://{given}"), RECIPE)
            assert "wrong-one" not in str(refused.value)
        store = open_store(url.replace("unix://", "unix://:right-one@"), RECIPE)
        assert "right-one" not in store.location
        assert store.pages == 0
        close_store(store)


def test_a_server_without_memory_takes_no_page_and_loses_none(opening: Open) -> None:
    with running("--maxmemory", "3mb") as server:
        store = open_store(server.url("a"), RECIPE)
        assert isinstance(store, RedisStore)
        filed = count()

        def fill() -> None:
            while (number := next(filed)) < 5000:
                id = store.new_id()
                store.add(Record(id, f"{URL}?{number}", id, 1.0, (number,), bytes(2000)))

        with pytest.raises(StoreError, match=r"maxmemory.*NEARDUP_MAX_PAGES"):
            fill()
        assert 100 < store.pages == next(filed) - 1 < 4999
        close_store(store)


@as_redis_does
@pytest.mark.parametrize("answers", ["yes", "no"])
def test_a_replica_is_refused_in_a_sentence(answers: str) -> None:
    with running() as server:
        server.client.replicaof("127.0.0.1", 1)
        server.client.config_set("replica-serve-stale-data", answers)
        with pytest.raises(StoreError, match=r"is a replica.*Name the master"):
            open_store(server.url("a"), RECIPE)


def test_a_server_that_is_gone_is_told_of_and_one_that_comes_back_is_used_again() -> None:
    with running("--appendonly", "yes") as server:
        store = open_store(server.url("a"), RECIPE)
        assert isinstance(store, RedisStore)
        page = put(store)
        server.stop()
        with pytest.raises(StoreError, match="does not answer"):
            put(store, f"{URL}?2")
        server.start()  # which knows no script any more
        assert put(store, f"{URL}?3").id > page.id
        assert sorted(record.url for record in store.records()) == [URL, f"{URL}?3"]
        close_store(store)
    with pytest.raises(StoreError, match="does not answer"):
        open_store(server.url("a"), RECIPE)


def test_keys_of_somebody_else_are_no_part_of_a_state(redis_server: Server) -> None:
    state = redis_server.new_state()
    redis_server.client.set("{neardup:" + state + "x}*m", "theirs")
    store = open_store(redis_server.url(state), RECIPE)
    assert [key[:1] for key, _ in store.rows(b"")] == [b"m", b"m"]
    close_store(store)
    with pytest.raises(StoreMismatch):
        open_store(redis_server.url(state), {**RECIPE, "seed": 8})


# Commands


@pytest.mark.parametrize("ends", ["runs", "rolled back", "sealed"])
def test_a_copy_leaves_out_pages_that_a_crawl_adds_meanwhile(
    opening: Open, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    one, other = opening(), opening()
    page, read = put(one), RedisStore.records

    def records(store: RedisStore) -> Iterator[Record]:
        crawl = one.journal.begin("one")
        added = put(one, f"{URL}?new", generation=crawl)
        for record in list(read(store)):
            if record == added and ends == "sealed":
                one.journal.seal(crawl, [added.id])
            elif record == added and ends == "rolled back":
                one.journal.roll_back(crawl, added.id)
            yield record

    monkeypatch.setattr(RedisStore, "records", records)
    copied = [entry.record.url for entry in sealed_pages(other)]
    assert copied == [page.url, f"{URL}?new"][: 1 + (ends == "sealed")]


def test_a_project_grows_from_a_file_onto_a_server_and_back(
    redis_server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = f"sqlite://{tmp_path.resolve()}/state", redis_server.url(redis_server.new_state())
    with open_state(here) as store:
        judge_pages(store, PAGES)
    assert run("merge", here, "--store", there) == 0
    assert read_records(there) == read_records(here)
    assert run("check", "--store", there) == 0
    capsys.readouterr()
    assert run("stats", "--store", there, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["backend"], found["pages"]) == ("unix", len(PAGES))
    assert run("dropped", "--store", there) == 0
    assert run("export", "--store", there, "-o", tmp_path / "pages.gz") == 0
    assert run("migrate", "--store", there, "--to", tmp_path / "migrated") == 0
    assert read_records(f"sqlite://{tmp_path.resolve()}/migrated") == read_records(here)
    again = redis_server.url(redis_server.new_state())
    assert run("merge", tmp_path / "pages.gz", "--store", again) == 0
    assert read_records(again) == read_records(here)


# Over a network


def test_a_port_and_tls_with_a_certificate(tmp_path: Path) -> None:
    """Both ways to the server: the one that waits, and that of a loop."""
    certificate, secured = certified(tmp_path)
    plain, tls = free_ports(2)
    listens = ["--port", str(plain), "--tls-port", str(tls), "--bind", "127.0.0.1"]
    with running(*listens, *secured) as server:
        trusted = f"rediss://127.0.0.1:{tls}/0?state=a&ssl_ca_certs={certificate}"
        for url in (f"redis://127.0.0.1:{plain}/0?state=a", trusted):
            store = open_store(url, RECIPE)
            assert isinstance(store, RedisStore)
            assert store.location == url.partition("&")[0]
            assert asyncio.run(pages_of(store.location, server)) == store.pages
            gc.collect()  # an open transport would say so
            put(store, f"{URL}?{url}")
            close_store(store)
        assert server.client.get(b"{neardup:a}~#") == b"2"
        with pytest.raises(StoreError, match="does not answer"):
            open_store(trusted.partition("&")[0], RECIPE)


async def pages_of(location: str, server: Server | None = None) -> int:
    """The number of pages. A ``server`` is busy when its connection is closed."""
    connection = Link(location)
    link, program = AsyncLink(connection), connection.program()
    program.count()
    try:
        return int((await link.run(program))[1] or 0)
    finally:
        if server:
            server.pause(0.3)
        await link.close()
        connection.close()
