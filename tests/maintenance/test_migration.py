"""A state under another recipe: what becomes of its pages, and that none is lost or delivered twice without need."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import SettingsError, StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.judge import recipes as judging_recipe
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.recipes import decide, decisions_of, state_recipe
from scrapy_neardup.kv.base import Row
from scrapy_neardup.kv.lock import lock
from scrapy_neardup.kv.tally import KEY
from scrapy_neardup.maintenance import copying
from scrapy_neardup.maintenance.sources import sealed_pages
from scrapy_neardup.maintenance.tables import CRAWLS, Crawl
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page, Verdict
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep, Record
from scrapy_neardup.state.urls import existing_states, parse_url
from tests.build import BREAD, PAGES, PEAR, PEARS, POWER, SAME, SHORT, join_text, make_state, open_state, state_url
from tests.cli import Invoke, run

#: Methods with nothing in common but their pages.
MINHASH: dict[str, Any] = {"NEARDUP_METHOD": "minhash"}
BINS: dict[str, Any] = {"NEARDUP_PARAMETERS": {"bins": 256}}
COPY = ("https://copy.example/1", "秋月梨早熟", join_text(*PEARS))


def opened(url: str, **settings: Any) -> AbstractContextManager[PageStore]:
    """The state as a crawl with these settings opens it."""
    return open_state(url, state_recipe(method_of(settings), None))


def method_of(settings: dict[str, Any]) -> Any:
    return make_method(settings.get("NEARDUP_METHOD", "cascade"), settings.get("NEARDUP_PARAMETERS", {}))


def page(url: str, title: str, body: str) -> Page:
    return Page(url, title, text=body, site=site_of(url), html=7)


def crawl(url: str, pages: Sequence[tuple[str, str, str]] = PAGES, **settings: Any) -> list[Verdict]:
    """The verdicts of one more crawl."""
    with opened(url, **settings) as store:
        detector = Detector(method_of(settings), store, who="evening", policy=Policy(keep=Keep.EVIDENCE))
        said = [detector.judge_now(page(*one), sealed=True) for one in pages]
        detector.end()
        return said


def delivered(verdicts: Sequence[Verdict]) -> list[str]:
    """The URLs of those pages whose items pass."""
    return [verdict.url for verdict in verdicts if not verdict.is_copy]


def told(url: str, **settings: Any) -> object:
    """What does not depend on how pages are fingerprinted: ids, URLs, times, groups, evidence, crawls."""
    with opened(url, **settings) as store:
        pages = [
            (replace(one.record, keys=(), sketch=b"", body=0, former=False), one.seen, one.evidence)
            for one in sealed_pages(store)
        ]
        return pages, list(CRAWLS.read(store)), store.secret


def is_whole(url: str, **settings: Any) -> bool:
    with opened(url, **settings) as store:
        found = check(store)
        assert not found.problems, found.problems
        return True


def place(url: str) -> Path:
    return Path(parse_url(url)[1])


def beside(url: str) -> list[str]:
    """What lies beside a state, without locks."""
    return sorted(one.name for one in place(url).parent.iterdir() if one.suffix != ".lock")


def all_rows(url: str) -> list[Row]:
    with contextlib.closing(open_at(*parse_url(url), None)) as store:
        return [row for row in store.rows(b"") if row[0] != KEY]


Migrate = Callable[..., tuple[dict[str, int], str]]


@pytest.fixture
def migrate(invoke: Invoke) -> Migrate:
    """Migrates a state, which stays as it is; returns the pages by way, and the URL of the new state."""

    def migrated(url: str, *arguments: str | Path, **settings: Any) -> tuple[dict[str, int], str]:
        before = all_rows(url)
        found = invoke("migrate", "--store", url, "--json", *arguments, **settings).data
        assert all_rows(url) == before
        assert found["from"] == str(place(url))
        new = state_url(url.partition(":")[0], Path(found["store"]))
        assert is_whole(new, **settings)
        return {way: many for way, many in found["pages"].items() if many}, new

    return migrated


def test_all_that_is_no_fingerprint_survives(state: str, migrate: Migrate) -> None:
    with opened(state) as store:
        bread = store.find(BREAD)
        assert bread is not None
        store.touch(bread, seen=1_700_000_000)
        CRAWLS.write(store, Crawl(7, "news"))
        decide(store, {"base": 0.6})
    before = told(state)
    _, new = migrate(state, **MINHASH)
    assert told(new, **MINHASH) == before == told(state)
    with opened(new, **MINHASH) as store:
        assert (store.recipe["method"], store.last_seen(BREAD)) == ("minhash", 1_700_000_000)
        assert decisions_of(store) == {"base": 0.6}
    assert place(new).name == f"state-2{place(state).suffix}"
    assert place(migrate(state, **MINHASH)[1]).name == f"state-3{place(state).suffix}"


def test_with_kept_texts_pages_are_fingerprinted_anew(tmp_path: Path, migrate: Migrate) -> None:
    pages, new = migrate(make_state("sqlite", tmp_path, keep=Keep.TEXTS), **MINHASH)
    assert pages == {"text": 6, "copy": 1, "unjudged": 1}
    fresh = state_url("sqlite", tmp_path / "fresh.sqlite")
    crawl(fresh, [PAGES[0]], **MINHASH)
    with opened(new, **MINHASH) as ours, opened(fresh, **MINHASH) as theirs:
        mine, expected = ours.find(PEAR), theirs.find(PEAR)
        assert mine is not None
        assert expected is not None
        assert len(mine.keys) == len(expected.keys) > 0
        assert len(mine.sketch) == len(expected.sketch)
    assert crawl(new, [COPY], **MINHASH)[0].headline == "duplicate (identical)"
    assert delivered(crawl(new, **MINHASH)) == []


def test_a_page_read_from_html_is_unchanged_by_its_kept_text(tmp_path: Path, migrate: Migrate) -> None:
    """Its article, headline, site and words of its head are kept, too: the text alone makes another fingerprint."""
    whole = Page(
        PEAR,
        "秋月梨早熟 - 果园网",
        ("梨", "果园"),
        "今年的梨早熟了。",
        text="首页 生意 天气\n" + join_text(*PEARS).replace("。", "。\n") + "版权所有，未经许可不得转载\n",
        main=join_text(*PEARS).replace("。", "。\n"),
        headline="秋月梨早熟",
        links="头版\n昨天的报纸",
        reader="article",
        site="orchard.example",
    )
    state = state_url("sqlite", tmp_path / "state.sqlite")
    with opened(state) as store:
        detector = Detector(make_method("cascade", {}), store, who="morning", policy=Policy(keep=Keep.TEXTS))
        detector.judge_now(whole, sealed=True)
        detector.end()
    with opened(migrate(state, **BINS)[1], **BINS) as store:
        detector = Detector(method_of(BINS), store, who="evening")
        assert detector.judge_now(whole, sealed=True).headline == "unchanged"
        for other in ({"links": "别的报纸"}, {"title": "另一个题目"}):
            assert detector.judge_now(replace(whole, **other), sealed=True).headline == "updated"  # type: ignore[arg-type]
        detector.end()


@pytest.mark.parametrize("settings", [MINHASH, BINS, {"NEARDUP_METHOD": "nshash"}], ids=["minhash", "bins", "nshash"])
def test_without_texts_pages_pass_once_as_updated(state: str, settings: dict[str, Any], migrate: Migrate) -> None:
    pages, new = migrate(state, **settings)
    assert pages == {"url": 6, "copy": 1, "unjudged": 1}
    verdicts = {verdict.url: verdict for verdict in crawl(new, **settings)}
    said = {url: verdict.headline for url, verdict in verdicts.items()}
    assert (said[PEAR], said[BREAD], said[POWER]) == ("updated", "updated", "updated")
    assert (said[SAME], said[SHORT]) == ("duplicate (identical)", "unchanged")
    match = verdicts[PEAR].match
    assert match is not None
    assert (match.url, match.similarity) == (PEAR, 0.0)
    assert is_whole(new, **settings)
    assert crawl(new, [COPY], **settings)[0].headline == "duplicate (identical)"
    assert delivered(crawl(new, **settings)) == []


@pytest.fixture
def other_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of the extractor, which reads the test samples differently."""
    monkeypatch.setattr(judging_recipe, "extractor_name", lambda extractor: "visible prose and trafilatura 9.9 fast")
    monkeypatch.setattr(judging_recipe, "reader_sample", lambda: "0123456789abcdef")


@pytest.mark.usefixtures("other_reader")
def test_by_another_extractor_fingerprints_stay(tmp_path: Path, migrate: Migrate) -> None:
    with pytest.MonkeyPatch.context() as as_it_was:
        as_it_was.setattr(judging_recipe, "extractor_name", lambda extractor: "visible prose and trafilatura 9.8 fast")
        as_it_was.setattr(judging_recipe, "reader_sample", lambda: "fedcba9876543210")
        state = state_url("sqlite", tmp_path / "state.sqlite")
        crawl(state)
    refusal = (
        r"extractor is '.* 9\.8 fast' in the state and .* here, which reads the test samples differently\. .*migrate"
    )
    with pytest.raises(StoreMismatch, match=refusal):
        crawl(state)
    pages, new = migrate(state)
    assert pages == {"kept": 6, "copy": 1, "unjudged": 1}
    with opened(new) as store:
        assert [(key, value) for key, value in all_rows(state) if key[:1] == b"b"] == list(store.rows(b"b")) != []
    assert crawl(new, [COPY])[0].headline == "duplicate (identical)"
    assert delivered(crawl(new)) == []


def test_pages_that_did_not_come_between_two_migrations_stay_known_by_their_url(sqlite: str, migrate: Migrate) -> None:
    _, new = migrate(sqlite, **MINHASH)
    assert crawl(new, [PAGES[1]], **MINHASH)[0].headline == "updated"
    _, newer = migrate(new, **BINS)
    assert {verdict.headline for verdict in crawl(newer, PAGES[:2], **BINS)} == {"updated"}
    assert delivered(crawl(newer, PAGES[:2], **BINS)) == []


def test_a_migration_that_is_interrupted_leaves_nothing(
    state: str, monkeypatch: pytest.MonkeyPatch, migrate: Migrate
) -> None:
    before, files = told(state), beside(state)
    real, left = Record.pack, 5

    def pack(self: Record) -> bytes:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        return real(self)

    with monkeypatch.context() as stopped:
        stopped.setattr(copying, "_ROWS", 3)
        stopped.setattr(Record, "pack", pack)
        with pytest.raises(KeyboardInterrupt):
            run("migrate", "--store", state, **MINHASH)
    assert beside(state) == files
    assert told(migrate(state, **MINHASH)[1], **MINHASH) == before


def test_a_migration_that_misses_a_page_leaves_nothing(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = beside(sqlite)
    monkeypatch.setattr(copying, "sealed_pages", lambda store: islice(sealed_pages(store), 1, None))
    with pytest.raises(StoreError, match=r"Only 7 of 8 pages were converted"):
        run("migrate", "--store", sqlite, **MINHASH)
    assert beside(sqlite) == files


def test_a_state_that_a_crawl_began_meanwhile_is_not_replaced(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, real = state_url("sqlite", tmp_path / "new.sqlite"), copying.copy_state

    def copy_state(*arguments: Any) -> Any:
        crawl(there, PAGES[:1], **MINHASH)
        return real(*arguments)

    monkeypatch.setattr(copying, "copy_state", copy_state)
    with pytest.raises(StoreError, match=r"new\.sqlite already exists"):
        run("migrate", "--store", sqlite, "--to", there, **MINHASH)
    with opened(there, **MINHASH) as store:
        assert [one.url for one in store.records()] == [PAGES[0][0]]


def test_a_new_state_whose_log_is_not_in_its_file_is_not_used(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full when SQLite closes leaves the log beside the file, as a reader does here."""
    new, real, readers = tmp_path / "new.sqlite", copying.copy_state, []

    def copy_state(source: Any, pages: Any, store: PageStore, *arguments: Any) -> Any:
        readers.append(sqlite3.connect(store.location))
        readers[0].execute("BEGIN")
        readers[0].execute("SELECT * FROM kv").fetchone()
        return real(source, pages, store, *arguments)

    monkeypatch.setattr(copying, "copy_state", copy_state)
    with pytest.raises(StoreError, match=r"new\.sqlite cannot be made: .*new-wal.* make room"):
        run("migrate", "--store", sqlite, "--to", state_url("sqlite", new), **MINHASH)
    readers[0].close()
    assert not list(tmp_path.glob("*new*"))


def test_a_migration_that_was_killed_is_named_by_the_next_one(sqlite: str, migrate: Migrate) -> None:
    """Its folder is hidden, so no crawl and no command finds a state in it."""
    left = place(sqlite).with_name(".state-2.sqlite-unfinished-x7")
    left.mkdir()
    make_state("sqlite", left)
    with pytest.raises(StoreError, match=r"stopped, or is at work: it left .*unfinished-x7\. .*Remove it"):
        run("migrate", "--store", sqlite, **MINHASH)
    assert existing_states(f"sqlite://{place(sqlite).parent}/%(name)s") == [sqlite]
    shutil.rmtree(left)
    assert migrate(sqlite, **MINHASH)[0]["url"] == 6


def test_a_state_in_use_and_a_method_for_memory_are_refused(sqlite: str, tmp_path: Path) -> None:
    held = lock(place(sqlite).with_name(place(sqlite).name + ".lock"), "x")
    try:
        with pytest.raises(StoreLocked):
            run("migrate", "--store", sqlite, **MINHASH)
    finally:
        held.release()
    with pytest.raises(SettingsError, match="cosine works only in memory"):
        run("migrate", "--store", sqlite, NEARDUP_METHOD="cosine")
    with pytest.raises(StoreError, match="no state at"):
        run("migrate", "--store", state_url("sqlite", tmp_path / "none.sqlite"), **MINHASH)
