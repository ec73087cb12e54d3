"""States with long keys and with short ones: pages are found again in both, whichever way they come in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from itertools import product
from pathlib import Path

import pytest

from scrapy_neardup import Deduplicator
from scrapy_neardup.commands import check as mending
from scrapy_neardup.commands import dedup, export, import_, merge, migrate
from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.hashing.keyed import NARROW, WIDE, Keyed, KeyWidth
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.fingerprint_tasks import Prepared, Preparer, Texts, TextTerms
from scrapy_neardup.judge.in_flight import Blocked, Ruled
from scrapy_neardup.judge.policy import Policy, make_preference
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.methods.published import PublishedMethod, signature_of, unpack_hashes
from scrapy_neardup.model import Fingerprint, Kind, Page
from scrapy_neardup.state.layout import FORMAT
from scrapy_neardup.state.opening import STORES, parse_url
from scrapy_neardup.state.pages import PageStore, leader
from tests.judge.test_detector import story
from tests.judge.test_shared import Opening
from tests.maintenance.states import run
from tests.server.redis_server import Server

WIDTHS = {2: WIDE, 3: WIDE, 4: NARROW, 5: NARROW}
Made = Callable[[str, int], str]


def page(family: int, host: str, *more: str, keep: int = 30) -> Page:
    """Pages of one family are copies of each other; with few sentences kept and others added they differ much."""
    body = "".join([*story(family, 30)[:keep], *more])
    return Page(f"http://{host}.example/{family}", f"标题{family}", text=body, site=f"{host}.example")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Made:
    """Has new states of a kind be of a format; gives the URL of one."""

    def of(kind: str, format: int) -> str:
        if kind == "leveldb":
            pytest.importorskip("plyvel")
        if kind == "unix":
            server: Server = request.getfixturevalue("redis_server")
            url = server.url(server.new_state())
        else:
            url = "memory:" if kind == "memory" else f"{kind}://{tmp_path}/{format}.{kind}"
        monkeypatch.setattr(parse_url(url)[0], "new_format", format)
        return url

    return of


@pytest.fixture(
    params=[*product(("leveldb", "sqlite", "memory"), (3, FORMAT)), ("unix", 2), ("unix", FORMAT)],
    ids=str,
)
def state(request: pytest.FixtureRequest, made: Made) -> tuple[str, int]:
    """The URL and the format of a state that is to be made."""
    kind, format = request.param
    return made(kind, format), format


def opened(url: str, method: str = "cascade") -> PageStore:
    kind, location = parse_url(url)
    return kind(location, make_method(method, {}).recipe())


def looked_at(url: str) -> PageStore:
    kind, location = parse_url(url)
    return kind(location, None)


def crawl(store: PageStore, method: str = "cascade") -> Detector:
    return Detector(
        make_method(method, {}), store, who="test", policy=Policy(preference=make_preference(("better.example",)))
    )


def widths(store: PageStore) -> set[int]:
    """The bits of the longest key of each record, in whole bytes, without ids of groups."""
    own = ({*record.keys} - {record.original} for record in store.records())
    return {-(-max(keys).bit_length() // 8) * 8 for keys in own if keys}


@pytest.fixture
def of_now(state: tuple[str, int], made: Made, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on new states are those of this release."""
    return lambda: monkeypatch.setattr(parse_url(state[0])[0], "new_format", FORMAT)


def test_a_crawl_finds_originals_witnesses_and_those_that_lead_again_and_the_format_stays(
    state: tuple[str, int], of_now: Callable[[], None]
) -> None:
    url, format = state
    store = opened(url)
    detector = crawl(store)
    for family in range(6):
        assert detector.judge_now(page(family, "first"), sealed=True).kind is Kind.UNIQUE
    witness = page(0, "witness", *story(50, 4), keep=28)
    assert detector.judge_now(witness, sealed=True).kind is Kind.DUPLICATE
    assert store.find(witness.url) is not None
    led = detector.judge_now(page(1, "better", "又及。"), sealed=True)
    assert led.kind is Kind.BETTER
    detector.end()
    of_now()
    if store.lasts:
        store.close()
        store = opened(url)
    with closing(store):
        assert (store.recipe["format"], store.width, store.hashes.width) == (format, WIDTHS[format], WIDTHS[format])
        assert max(widths(store)) == WIDTHS[format].bits
        detector = crawl(store)
        assert detector.judge_now(page(2, "first"), sealed=True).kind is Kind.UNCHANGED
        found = detector.judge_now(page(3, "copy"), sealed=True)
        assert (found.kind, found.match and found.match.url) == (Kind.DUPLICATE, page(3, "first").url)
        found = detector.judge_now(page(1, "copy"), sealed=True)
        assert (found.kind, found.match and found.match.url) == (Kind.DUPLICATE, page(1, "better").url)
        first = store.find(page(1, "first").url)
        assert first is not None
        standing = leader(store, first.id)
        assert standing is not None
        assert standing.url == page(1, "better").url
        assert detector.judge_now(page(90, "first"), sealed=True).kind is Kind.UNIQUE
        assert detector.judge_now(page(90, "copy"), sealed=True).kind is Kind.DUPLICATE
        store.forget([standing.id])
        assert leader(store, first.id) is None
        detector.end()
        assert check(store).sound
        assert store.recipe["format"] == format


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("imatch", "cosine")])
def test_every_method_finds_copies_under_short_keys_as_under_long_ones(
    method: str, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for format in (3, FORMAT):
        with closing(opened(made("memory", format), method)) as store:
            detector = crawl(store, method)
            pages = [page(family, host) for host in ("first", "copy") for family in range(12)]
            said.append([detector.judge_now(one, sealed=True).kind for one in pages])
            assert [width.bits for width in (store.width, detector._method.hashes.width)] == [WIDTHS[format].bits] * 2
            assert max(widths(store)) <= WIDTHS[format].bits
    assert said[0] == said[1]
    assert said[0].count(Kind.DUPLICATE) >= 12


@pytest.mark.parametrize("method", ["nshash", "segments", "punctuation"])
@pytest.mark.parametrize("width", [WIDE, NARROW], ids=str)
def test_a_hash_whose_key_is_common_is_no_evidence_whatever_of_it_is_a_key(method: str, width: KeyWidth) -> None:
    """These methods hold hashes of their sketches, which are whole, against keys, which may be parts of such."""
    judge = make_method(method, {}).under(Keyed(b"secret", width))
    assert isinstance(judge, PublishedMethod)
    made = judge.for_state(page(1, "first"), None)
    signature = signature_of(made.sketch)
    common = {width.key(hash) for hash in unpack_hashes(signature) if hash}
    assert common
    assert {key.bit_length() <= width.bits for key in common} == {True}
    assert judge.agreement(made, signature, signature, frozenset()).duplicate
    assert not judge.agreement(made, signature, signature, common).duplicate


def test_a_copy_waits_for_a_page_that_is_on_its_way(state: tuple[str, int]) -> None:
    with closing(opened(state[0])) as store:
        if store.is_shared:
            pytest.skip("crawlers of one server have another way to see each other's pages: see below")
        detector = crawl(store)
        ruling = detector.check(page(1, "first"))
        assert isinstance(ruling, Ruled)
        assert ruling.reservation is not None
        blocked = detector.check(page(1, "copy", "又及。"))
        assert isinstance(blocked, Blocked)
        assert blocked.by is ruling.reservation
        detector.commit(ruling.reservation, sealed=True)
        assert detector.judge_now(page(1, "copy", "又及。"), sealed=True).kind is Kind.DUPLICATE
        detector.end()


@pytest.mark.parametrize("format", [2, FORMAT])
def test_crawlers_of_one_server_see_each_others_pages(
    format: int, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = Opening(redis_server)
    monkeypatch.setattr(parse_url(opening.url)[0], "new_format", format)
    better = Policy(preference=make_preference(("better.example",)))

    async def scene() -> None:
        async with opening(policy=better) as one, opening(policy=better) as other:
            ruling = await one.judged(page(1, "first"))
            assert ruling.reservation is not None
            waiting = asyncio.ensure_future(other.kept(page(1, "copy", "又及。")))
            await asyncio.sleep(0.3)
            assert not waiting.done()
            one.crawl.commit(ruling.reservation, sealed=True)
            assert (await waiting).kind is Kind.DUPLICATE
            assert (await one.kept(page(1, "better", "再及。"))).kind is Kind.BETTER
            found = await other.kept(page(1, "late", "三及。"))
            assert (found.kind, found.match and found.match.url) == (Kind.DUPLICATE, page(1, "better").url)
            assert (await other.kept(page(2, "first"))).kind is Kind.UNIQUE

    monkeypatch.setattr("tests.judge.test_shared.METHOD", make_method("cascade", {}))
    asyncio.run(scene())
    with closing(opened(opening.url)) as store:
        assert (store.recipe["format"], max(widths(store))) == (format, WIDTHS[format].bits)
        assert check(store).sound


@pytest.mark.parametrize("format", [3, FORMAT])
@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.slow
def test_dedup_finds_pages_of_a_state_with_workers_and_without(
    format: int, workers: str, made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, feed = made("sqlite", format), tmp_path / "feed.jsonl"
    for host, kinds in (("first", {"unique"}), ("copy", {"duplicate"})):
        pages = [page(family, host, "又及。" * (host == "copy")) for family in range(120)]
        lines = [{"url": one.url, "title": one.title, "text": one.text} for one in pages]
        feed.write_text("\n".join(map(json.dumps, lines)), "utf-8")
        out = tmp_path / "out.jsonl"
        run(dedup, feed, "-o", out, "--tag", "--store", url, "--workers", workers)
        tags = [json.loads(line)["neardup"]["verdict"] for line in out.read_text("utf-8").splitlines()]
        assert (len(tags), {*tags}) == (120, kinds)
    with closing(looked_at(url)) as store:
        assert (store.recipe["format"], max(widths(store))) == (format, WIDTHS[format].bits)


def test_a_fingerprint_under_other_keys_is_the_same_in_all_else() -> None:
    values = {field.name: (field.name,) for field in fields(Fingerprint)}
    made = Fingerprint(**values)  # type: ignore[arg-type]
    found = made.with_keys((1, 2))
    assert {name: getattr(found, name) for name in values} == {**values, "keys": (1, 2)}


@pytest.mark.parametrize("format", [3, FORMAT])
def test_what_another_process_has_made_gets_the_keys_of_the_state(format: int, made: Made) -> None:
    with closing(opened(made("memory", format))) as store:
        method = make_method("cascade", {}).under(store.hashes)
        preparer = Preparer(TextTerms("cascade", {}, store.hashes, 60.0))
        try:
            [prepared] = preparer.answer(Texts([page(1, "first")]))  # type: ignore[misc]
        finally:
            preparer.child.close()
        assert isinstance(prepared, Prepared)
        known = store.on_site("first.example")
        own = method.for_state(page(1, "first"), known)
        assert prepared.under(page(1, "first"), known, method).keys == own.keys
        assert max(own.keys).bit_length() > WIDTHS[format].bits - 8


@pytest.mark.parametrize("format", [3, FORMAT])
def test_a_deduplicator_finds_pages_again(format: int, made: Made) -> None:
    url = made("sqlite", format)
    for host, kind in (("first", "unique"), ("first", "unchanged"), ("copy", "duplicate")):
        with Deduplicator(url) as judge:
            one = page(1, host)
            assert judge.check(text=one.text, url=one.url, title=one.title).kind == kind


def filled(url: str, host: str = "first", families: range = range(6)) -> None:
    with closing(opened(url)) as store:
        detector = crawl(store)
        for family in families:
            detector.judge_now(page(family, host), sealed=True)
        detector.judge_now(page(families[0], "better", "又及。"), sealed=True)
        detector.end()


def found_in(url: str, families: range) -> set[Kind]:
    with closing(opened(url)) as store:
        assert check(store).sound
        detector = crawl(store)
        said = {detector.judge_now(page(family, "copy"), sealed=True).kind for family in families}
        led = detector.judge_now(page(families[0], "late"), sealed=True).match
        assert led is not None
        assert led.url == page(families[0], "better").url
        detector.end()
        return said


def test_a_state_of_long_keys_is_merged_exported_and_mended_into_one_of_short_keys(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = made("sqlite", 3)
    filled(old)
    run(export, "--store", old, "-o", tmp_path / "old.gz")
    monkeypatch.setattr(STORES["sqlite"], "new_format", FORMAT)
    ways = {name: f"sqlite://{tmp_path}/{name}" for name in ("merged", "imported", "mended")}
    run(merge, old, "--store", ways["merged"])
    run(import_, tmp_path / "old.gz", "--store", ways["imported"])
    run(mending, "--store", old, "--repair", ways["mended"])
    for url in ways.values():
        with closing(opened(url)) as store:
            assert (store.recipe["format"], widths(store), store.pages) == (FORMAT, {40}, 7)
        assert found_in(url, range(6)) == {Kind.DUPLICATE}
    with closing(opened(old)) as store:
        assert (store.recipe["format"], widths(store)) == (3, {64})
    run(export, "--store", ways["merged"], "-o", tmp_path / "new.gz")
    run(import_, tmp_path / "new.gz", "--store", f"sqlite://{tmp_path}/again")
    assert found_in(f"sqlite://{tmp_path}/again", range(6)) == {Kind.DUPLICATE}


def test_copies_across_states_of_two_widths_are_found(made: Made, tmp_path: Path) -> None:
    old = made("sqlite", 3)
    filled(old, "other", range(3, 9))
    new = made("sqlite", FORMAT)
    filled(new)
    run(merge, old, "--store", new)
    with closing(opened(new)) as store:
        assert widths(store) == {40}
        urls = {record.id: record.url for record in store.records()}
        copies = {record.url: urls[record.original] for record in store.records() if record.original != record.id}
        assert {copies[page(n, "other").url] for n in (3, 4, 5)} == {page(n, "first").url for n in (3, 4, 5)}
    assert found_in(new, range(6)) == {Kind.DUPLICATE}


def test_short_keys_do_not_go_into_a_state_of_long_ones_and_nothing_is_written(made: Made, tmp_path: Path) -> None:
    old = made("sqlite", 3)
    filled(old)
    new = made("sqlite", FORMAT)
    filled(new, "other", range(10, 14))
    third = f"sqlite://{tmp_path}/third"
    before = Path(parse_url(old)[1]).read_bytes()
    with pytest.raises(StoreMismatch, match=r"keys of 40 bits, but the state at .* keys of 64 bits.*--store NEW"):
        run(merge, new, "--store", old)
    run(export, "--store", new, "-o", tmp_path / "new.gz")
    with pytest.raises(StoreMismatch, match="keys of 40 bits"):
        run(merge, tmp_path / "new.gz", "--store", old)
    with closing(opened(old)) as store:
        assert store.pages == 7
    assert len(before) == len(Path(parse_url(old)[1]).read_bytes())
    run(merge, old, new, "--store", third)  # as the message says
    assert found_in(third, range(6)) == {Kind.DUPLICATE}
    assert found_in(third, range(10, 14)) == {Kind.DUPLICATE}


def test_a_migration_makes_short_keys_of_long_ones(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = made("sqlite", 3)
    run_settings = {"NEARDUP_STORE": old}
    feed = tmp_path / "feed.jsonl"
    lines = [{"url": one.url, "title": one.title, "text": one.text} for one in (page(n, "first") for n in range(6))]
    feed.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    run(dedup, feed, "-o", tmp_path / "out.jsonl", "--store", old, **run_settings)
    monkeypatch.setattr(STORES["sqlite"], "new_format", FORMAT)
    new = f"sqlite://{tmp_path}/new"
    run(migrate, "--store", old, "--to", new, **run_settings)
    with closing(looked_at(new)) as store:
        assert (store.recipe["format"], widths(store)) == (FORMAT, {40})
        assert check(store).sound
    feed.write_text("\n".join(json.dumps({**one, "url": f"{one['url']}/again"}) for one in lines), "utf-8")
    run(dedup, feed, "-o", tmp_path / "out.jsonl", "--tag", "--store", new, **run_settings)
    tags = [json.loads(line)["neardup"]["verdict"] for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert tags == ["duplicate"] * 6
