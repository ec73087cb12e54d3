"""``forget`` removes pages, and others are judged again. ``dropped``, ``keep`` and ``copy``: manual verdicts."""

from __future__ import annotations

import json
import random
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.cli.command import past_time
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.judge.lists import ManualKind, manual_verdicts
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.scan import select_unseen
from scrapy_neardup.maintenance.tables import CRAWLS, Crawl
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.layout import url_key
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.build import (
    BREAD,
    EDITED,
    EXCERPT,
    PAGES,
    PEAR,
    POWER,
    POWER_AGAIN,
    SAME,
    SHORT,
    judge_pages,
    open_state,
    read_records,
    set_last_seen,
)
from tests.cli import Invoke, run

ALL = {url for url, *_ in PAGES}
DAY = 86400
NOW = datetime.now(timezone.utc).timestamp()
WEIXIN = [f"https://mp.weixin.qq.com/s?__biz={biz}&mid={n}" for biz, n in (("MzA5==", 1), ("MzA5==", 2), ("Mzb7", 3))]
Forget = Callable[..., dict[str, Any]]


@pytest.fixture
def forget(invoke: Invoke) -> Forget:
    """Runs ``forget``; returns its JSON, with the exit code as ``code``."""

    def forget(*arguments: str, state: str) -> dict[str, Any]:
        done = invoke("forget", *arguments, "--store", state, "--json")
        return {**done.data, "code": done.code}

    return forget


def left(state: str) -> set[str]:
    """The URLs that are still there, in a state that holds together."""
    with open_state(state) as store:
        assert check(store).sound
    return set(read_records(state))


def test_a_forgotten_page_is_judged_anew(state: str) -> None:
    pages = {page[0]: page for page in PAGES}
    assert run("forget", PEAR, EXCERPT, "--store", state) == 0
    with open_state(state) as store:
        assert judge_pages(store, [pages[SAME], pages[PEAR], pages[EDITED], pages[BREAD]]) == [
            *("unique", "duplicate (identical)", "duplicate (retitled)", "unchanged")
        ]
    assert left(state) == ALL - {EXCERPT}
    assert read_records(state)[PEAR].original == read_records(state)[SAME].id


@pytest.mark.parametrize(
    ("arguments", "counts", "gone"),
    [
        ([PEAR, BREAD], (2, 2, 0, 0), {PEAR, EDITED, SAME, BREAD}),
        ([PEAR, EDITED], (1, 2, 0, 0), {PEAR, EDITED, SAME}),
        ([EDITED, SAME], (0, 0, 2, 0), {EDITED, SAME}),
        ([SHORT], (0, 0, 0, 1), {SHORT}),
        (["--before", "0d"], (5, 2, 0, 1), ALL),
    ],
)
def test_a_copy_goes_alone_and_a_dry_run_counts_the_same(
    sqlite: str, forget: Forget, arguments: list[str], counts: tuple[int, ...], gone: set[str]
) -> None:
    for dry in (True, False):
        found = forget(*arguments, *["--dry-run"] * dry, state=sqlite)
        assert tuple(found[name] for name in ("originals", "copies_of_them", "other_copies", "unjudged")) == counts
        assert (found["dry_run"], found["pages"], set(found["urls"])) == (dry, len(gone), gone)
        assert left(sqlite) == (ALL if dry else ALL - gone)


def test_a_url_that_is_not_there_is_named_and_the_others_go(sqlite: str, forget: Forget) -> None:
    found = forget(f"{BREAD}/", SHORT, state=sqlite)
    assert (found["urls"], found["missing"], found["code"]) == ([SHORT], [f"{BREAD}/"], 1)
    assert left(sqlite) == ALL - {SHORT}
    assert forget("nothing", state=sqlite)["code"] == 1


@pytest.mark.parametrize(
    ("host", "gone"),
    [
        ("orchard.example", {PEAR, EDITED, SAME, EXCERPT}),
        ("WWW.Orchard.example.", {PEAR, EDITED, SAME, EXCERPT}),
        ("news.orchard.example", {EXCERPT}),
        ("mirror.example", {EDITED, SAME}),
        ("town.example", {POWER, POWER_AGAIN, SHORT}),
        ("mp.weixin.qq.com", set(WEIXIN)),
        ("mp.weixin.qq.com MzA5==", set(WEIXIN[:2])),
        ("mp.weixin.qq.com MzA5", set()),
        ("梨.example", {"https://xn--30v.example/1"}),
        ("xn--30v.example", {"https://xn--30v.example/1"}),
        ("chard.example", set()),
        ("rchard.example MzA5", set()),
    ],
)
def test_all_pages_of_a_host(sqlite: str, forget: Forget, host: str, gone: set[str]) -> None:
    assert "梨".encode("idna") == b"xn--30v"
    more = {*WEIXIN, "https://xn--30v.example/1"}
    with open_state(sqlite) as store:
        for url in sorted(more):
            id = store.new_id()
            store.add(Record(id, url, id, keys=(id,), sketch=b"sketch"))
    found = forget("--host", host, state=sqlite)
    assert (found["pages"], set(found["urls"]), found["code"]) == (len(gone), gone, 0 if gone else 1)
    assert left(sqlite) == (ALL | more) - gone


@pytest.mark.parametrize(
    ("seen", "time", "gone"),
    [
        ({}, "1d", set()),
        ({PEAR: 10, EDITED: 10, SAME: 10}, "4d", {PEAR, EDITED, SAME}),
        ({PEAR: 10, EDITED: 10}, "4d", {EDITED}),  # the other copy was seen since
        ({EDITED: 10, SHORT: 10, BREAD: 2}, "72h", {EDITED, SHORT}),
        ({BREAD: 6, POWER: 8}, "1w", {POWER}),
        ({BREAD: 20 * 365}, "2015-01-01", {BREAD}),
    ],
)
def test_pages_last_seen_before_a_time_go(
    state: str, forget: Forget, seen: dict[str, int], time: str, gone: set[str]
) -> None:
    with open_state(state) as store:
        set_last_seen(store, {url: NOW - days * DAY for url, days in seen.items()})
    found = forget("--before", time, state=state)
    assert (set(found["urls"]), found["code"]) == (gone, 0)
    assert left(state) == ALL - gone


def test_a_page_whose_original_or_url_row_is_gone_has_an_age_too(sqlite: str, forget: Forget) -> None:
    with open_state(sqlite) as store:
        set_last_seen(store, {EDITED: NOW - 10 * DAY})
        store.forget([record.id for record in store.records() if record.url == PEAR])
        old = Record(int(NOW - 20 * DAY) * 10**9, "https://old.example/", 1)
        store.add(replace(old, original=old.id))
        store.kv.write(Changes(deletes={url_key(old.url, store.hashes)}), sync=True)
    assert set(forget("--before", "5d", state=sqlite)["urls"]) == {EDITED, old.url}


@pytest.mark.parametrize("seed", range(10))
def test_a_page_stays_while_it_or_a_copy_of_it_was_seen_since(seed: int) -> None:
    chance, store = random.Random(seed), memory_state({})
    originals, seen = chance.sample(range(1, 40), 15), {id: chance.randrange(40, 60) for id in range(1, 40)}
    copied = {id: id if id in originals else chance.choice(originals) for id in seen}
    for id, second in seen.items():
        store.add(Record(id * 10**9, str(id), copied[id] * 10**9), seen=second)
    kept = {id for id, second in seen.items() if second >= 50}
    kept |= {copied[id] for id in kept}
    assert sorted(select_unseen(store, 50)[0]) == [id * 10**9 for id in seen if id not in kept]


def test_times_and_ages() -> None:
    for time, expected in [
        ("2025-03-01", "2025-03-01T00:00:00+00:00"),
        ("2025-03-01T08:30+08:00", "2025-03-01T00:30:00+00:00"),
        (" 2025-03-01 08:30:05 ", "2025-03-01T08:30:05+00:00"),
        ("0d", "2025-12-31T00:00:00+00:00"),
        ("2 w", "2025-12-17T00:00:00+00:00"),
        ("30min", "2025-12-30T23:30:00+00:00"),
        ("1.5D", "2025-12-29T12:00:00+00:00"),
        *((wrong, None) for wrong in ("", "90", "2025", "20250301", "90m", "yesterday", "-3d", "2025-13-01")),
        *((wrong, None) for wrong in ("2026-01-01", "9999999d", "1.5.d")),
    ]:
        now = datetime(2025, 12, 31, tzinfo=timezone.utc)
        if expected is None:
            with pytest.raises(ArgumentTypeError, match="no time in the past"):
                past_time(time, now)
        else:
            assert past_time(time, now) == datetime.fromisoformat(expected).timestamp()


def test_an_interrupted_run_is_ended_by_asking_again(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies go first: were the original gone, nothing would name them any more."""
    original_forget = PageStore.forget

    def interrupted(self: PageStore, ids: Any) -> int:
        original_forget(self, list(ids)[:1])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PageStore, "forget", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("forget", PEAR, "--store", sqlite)
    assert len(left(sqlite)) == len(ALL) - 1
    assert run("forget", PEAR, "--store", sqlite) == 0
    assert left(sqlite) == ALL - {PEAR, EDITED, SAME}


# Pages that were dropped


KEEP, COPY = ManualKind.KEEP, ManualKind.COPY


def verdicts(url: str) -> dict[str, tuple[ManualKind, str]]:
    with open_state(url) as store:
        return {one.url: (one.kind, one.other) for one in manual_verdicts(store)}


def crawled(url: str, who: str, generation: int = 0) -> None:
    """The last crawl of a state is remembered, as a session does; without a generation it is that of the drops."""
    with open_state(url) as store:
        drops = max(int.from_bytes(key[1:9], "big") for key, _ in store.rows(b"d"))
        CRAWLS.write(store, Crawl(generation or drops, who))


def test_the_last_crawl_is_named_if_it_dropped_nothing(sqlite: str, invoke: Invoke) -> None:
    last = "dropped", "--last", "--store", sqlite
    assert (
        invoke(*last).err == "The state remembers no crawl, so --last finds nothing. Use --since, such as --since 1h.\n"
    )
    crawled(sqlite, "morning")
    assert len(invoke(*last, "--json").rows) == 2
    crawled(sqlite, "evening", 2**62)
    done = invoke(*last)
    assert (done.out, done.err.startswith("The last crawl, evening, began 2116-")) == ("", True)
    assert done.err.endswith("The state remembers no such drop.\n")


def test_all_drops_of_the_last_crawl_are_kept_but_those_with_a_manual_verdict(sqlite: str) -> None:
    assert run("keep", "--last", "--store", sqlite) == 0, "no crawl is remembered"
    crawled(sqlite, "morning")
    for site in ("orchard.example", "mirror.example.evil.example"):
        assert run("keep", "--last", "--site", site, "--store", sqlite) == 0
    assert verdicts(sqlite) == {}
    assert run("copy", SAME, PEAR, "--store", sqlite) == 0
    with pytest.raises(NearDupError, match=f"keep --remove {SAME}"):
        run("copy", PEAR, SAME, "--store", sqlite)
    assert run("keep", "--last", "--site", "mirror.example", "--store", sqlite) == 0
    assert verdicts(sqlite) == {EDITED: (KEEP, PEAR), SAME: (COPY, PEAR)}


def test_forgotten_and_redelivered_pages_are_not_listed(sqlite: str, invoke: Invoke) -> None:
    assert run("keep", SAME, "--store", sqlite) == 0
    dropped = "dropped", "--store", sqlite
    assert [one["judged"] for one in invoke(*dropped, "--json").rows] == [None, "keep"]
    with open_state(sqlite) as store:
        again = [one for one in PAGES if one[0] in (SAME, EDITED)]
        assert judge_pages(store, again) == ["duplicate (retitled)", "unique"]
    done = invoke(*dropped, "--json")
    assert [(one["url"], one["judged"]) for one in done.rows] == [(EDITED, None), (EDITED, None)]
    with open_state(sqlite) as store:
        store.forget([record.id for record in store.records() if record.url == EDITED])
    assert invoke(*dropped, "--json").rows == []


def test_an_original_whose_new_text_was_dropped_is_listed_until_it_comes_again(sqlite: str, invoke: Invoke) -> None:
    taken_over = [(BREAD, title, text) for url, title, text in PAGES if url == PEAR]
    for verdict, listed in (("duplicate (identical)", 3), ("updated", 2)):
        with open_state(sqlite) as store:
            assert judge_pages(store, taken_over) == [verdict]
        assert run("keep", BREAD, "--store", sqlite) == 0
        found = invoke("dropped", "--store", sqlite, "--json").rows
        assert [one["judged"] for one in found if one["url"] == BREAD] == ["keep"] * (listed - 2)
        assert len(found) == listed


def test_pages_are_kept_by_url(sqlite: str, invoke: Invoke) -> None:
    out = invoke("keep", PEAR, SAME, "--store", sqlite).out
    assert verdicts(sqlite) == {SAME: (KEEP, PEAR), PEAR: (KEEP, "")}
    assert out.startswith("2 pages will pass when they come again.\n")
    assert f"  keep  {SAME}\n    no copy of {PEAR}\n" in out
    assert f"  keep  {PEAR}\n" in out


def test_manual_verdicts_are_labels_for_evaluate(sqlite: str, tmp_path: Path, invoke: Invoke) -> None:
    assert run("keep", SAME, PEAR, "--store", sqlite) == 0
    assert run("copy", BREAD, PEAR, "--store", sqlite) == 0
    done = invoke("judgements", "--json", "--store", sqlite)
    assert "1 more manual verdict without a known original" in done.err
    assert {(one["a"], one["b"], one["drop"]) for one in done.rows} == {(PEAR, SAME, "no"), (PEAR, BREAD, "yes")}
    labels, docs = tmp_path / "labels.jsonl", tmp_path / "docs.jsonl"
    labels.write_text(done.out)
    docs.write_text("".join(json.dumps({"id": url, "text": text * 3}) + "\n" for url, _, text in PAGES[:4]), "utf-8")
    found = invoke("evaluate", docs, "--pairs", labels, "--json").data
    assert (found["kept_wrongly"], found["dropped_wrongly"]) == (1, 1)
    assert {(one["b"], one["drop"]) for one in found["wrong"]} == {(SAME, "no"), (BREAD, "yes")}
