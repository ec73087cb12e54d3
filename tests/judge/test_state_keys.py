"""Keys of a state are parts of hashes: pages are found by them, whichever way they come in."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import BITS, key_of
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy, make_preference
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.literature.base import PublishedMethod, signature_of, unpack_hashes
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore, newest_replacement
from scrapy_neardup.state.urls import parse_url
from scrapy_neardup.workers.pool import WorkerPool
from scrapy_neardup.workers.speculation import PreparedFingerprint
from scrapy_neardup.workers.tasks import FingerprintOptions, FingerprintTask, WorkerOptions
from tests.build import story
from tests.server.redis_server import Server


def page(family: int, host: str, *more: str, keep: int = 30) -> Page:
    """Pages of one family are copies of each other; with few sentences kept and others added they differ much."""
    body = "".join([*story(family, 30)[:keep], *more])
    return Page(f"http://{host}.example/{family}", f"标题{family}", text=body, site=f"{host}.example")


@pytest.fixture(params=["leveldb", "sqlite", "memory", "unix"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a state that is to be made."""
    kind: str = request.param
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    if kind == "unix":
        server: Server = request.getfixturevalue("redis_server")
        return server.url(server.new_state())
    return "memory:" if kind == "memory" else f"{kind}://{tmp_path}/state"


def opened(url: str, method: str = "cascade") -> PageStore:
    kind, location = parse_url(url)
    return open_at(kind, location, make_method(method, {}).recipe())


def crawl(store: PageStore, method: str = "cascade") -> Detector:
    return Detector(
        make_method(method, {}), store, who="test", policy=Policy(preference=make_preference(("better.example",)))
    )


def widths(store: PageStore) -> set[int]:
    """The bits of the longest key of each record, in whole bytes, without ids of groups."""
    own = ({*record.keys} - {record.original} for record in store.records())
    return {-(-max(keys).bit_length() // 8) * 8 for keys in own if keys}


def test_a_crawl_finds_originals_witnesses_and_those_that_lead_again(url: str) -> None:
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
    if store.is_persistent:
        store.close()
        store = opened(url)
    with closing(store):
        assert max(widths(store)) == BITS
        detector = crawl(store)
        assert detector.judge_now(page(2, "first"), sealed=True).kind is Kind.UNCHANGED
        found = detector.judge_now(page(3, "copy"), sealed=True)
        assert (found.kind, found.match and found.match.url) == (Kind.DUPLICATE, page(3, "first").url)
        found = detector.judge_now(page(1, "copy"), sealed=True)
        assert (found.kind, found.match and found.match.url) == (Kind.DUPLICATE, page(1, "better").url)
        first = store.find(page(1, "first").url)
        assert first is not None
        standing = newest_replacement(store, first.id)
        assert standing is not None
        assert standing.url == page(1, "better").url
        assert detector.judge_now(page(90, "first"), sealed=True).kind is Kind.UNIQUE
        assert detector.judge_now(page(90, "copy"), sealed=True).kind is Kind.DUPLICATE
        store.forget([standing.id])
        assert newest_replacement(store, first.id) is None
        detector.end()
        assert check(store).sound


@pytest.mark.parametrize("method", ["nshash", "segments", "punctuation"])
def test_a_hash_whose_key_is_common_is_no_evidence_whatever_of_it_is_a_key(method: str) -> None:
    """These methods hold hashes of their sketches, which are whole, against keys, which are parts of such."""
    judge = make_method(method, {}).with_hashes(Keyed(b"secret"))
    assert isinstance(judge, PublishedMethod)
    made = judge.for_state(page(1, "first"), None)
    signature = signature_of(made.sketch)
    common = {key_of(hash) for hash in unpack_hashes(signature) if hash}
    assert common
    assert {key.bit_length() <= BITS for key in common} == {True}
    assert judge.agreement(made, signature, signature, frozenset()).duplicate
    assert not judge.agreement(made, signature, signature, common).duplicate


def test_what_another_process_has_made_gets_the_keys_of_the_state() -> None:
    with closing(opened("memory:")) as store:
        method = make_method("cascade", {}).with_hashes(store.hashes)
        options = WorkerOptions(60.0, None, FingerprintOptions("cascade", {}, store.hashes))
        with closing(WorkerPool(options, 1)) as pool:
            [prepared] = pool.submit(FingerprintTask([page(1, "first")])).result()  # type: ignore[misc]
        assert isinstance(prepared, PreparedFingerprint)
        known = store.on_site("first.example")
        own = method.for_state(page(1, "first"), known)
        assert prepared.verified(page(1, "first"), known, method).keys == own.keys
        assert max(own.keys).bit_length() > BITS - 8
