"""A state under another recipe: what becomes of its pages, and that none is lost or delivered twice without need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.cli import migrate
from scrapy_neardup.errors import SettingsError, StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.judge import recipes as judging_recipe
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.judge.recipes import decide, decisions_of, state_recipe
from scrapy_neardup.kv import exchange as replacement
from scrapy_neardup.maintenance import migrate as migration
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page, Verdict
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import parse_url
from tests.build import (
    BAKERY,
    BREAD,
    KINDS,
    PAGES,
    PEAR,
    PEARS,
    POWER,
    SAME,
    SHORT,
    join_text,
    make_state,
    state_files,
    state_url,
)
from tests.cli import run

#: Methods with nothing in common but their pages.
MINHASH: dict[str, Any] = {"NEARDUP_METHOD": "minhash"}
BINS: dict[str, Any] = {"NEARDUP_PARAMETERS": {"bins": 256}}


@contextmanager
def opened(url: str, **settings: Any) -> Iterator[PageStore]:
    """The state as a crawl with these settings opens it."""
    store = open_store(url, state_recipe(method_of(settings), None))
    try:
        yield store
    finally:
        close_store(store)


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


def told(url: str, **settings: Any) -> dict[str, Any]:
    """What does not depend on how pages are fingerprinted: ids, URLs, times, groups, evidence."""
    with opened(url, **settings) as store:
        return {
            "pages": {
                record.url: (record.id, record.original, round(record.similarity, 4), record.delivered)
                for record in store.records()
            },
            "seen": {record.url: store.last_seen(record.url) for record in store.records()},
            "evidence": {record.url: store.evidence(record.id) for record in store.records()},
            "secret": store.secret,
        }


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


def kept_of(url: str) -> str:
    found = {one.name.removesuffix(".witness") for one in place(url).parent.glob(f"{place(url).name}-before-*")}
    (name,) = {one for one in found if not one.endswith(".lock")}
    return state_url(url.partition(":")[0], place(url).with_name(name))


@pytest.fixture(params=KINDS)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return make_state(request.param, tmp_path)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return make_state("sqlite", tmp_path)


def test_all_that_is_no_fingerprint_survives(state: str) -> None:
    with opened(state) as store:
        bread = store.find(BREAD)
        assert bread is not None
        store.touch(bread, seen=1_700_000_000)
        decide(store, {"base": 0.6})
    before = told(state)
    assert run("migrate", "--store", state, **MINHASH) == 0
    assert told(state, **MINHASH) == before
    assert is_whole(state, **MINHASH)
    assert before["seen"][BREAD] == 1_700_000_000
    with opened(state, **MINHASH) as store:
        assert store.recipe["method"] == "minhash"
        assert decisions_of(store) == {"base": 0.6}
    kept = kept_of(state)
    assert told(kept) == before
    assert is_whole(kept)
    assert delivered(crawl(kept)) == [SHORT] * 0


def test_with_kept_texts_pages_are_fingerprinted_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = make_state("sqlite", tmp_path, keep=Keep.TEXTS)
    assert run("migrate", "--store", state, "--json", **MINHASH) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pages"] == {"feed": 0, "text": 6, "kept": 0, "url": 0, "copy": 1, "unjudged": 1}
    fresh = state_url("sqlite", tmp_path / "fresh.sqlite")
    crawl(fresh, [PAGES[0]], **MINHASH)
    with opened(state, **MINHASH) as ours, opened(fresh, **MINHASH) as theirs:
        mine, new = ours.find(PEAR), theirs.find(PEAR)
        assert mine is not None
        assert new is not None
        assert len(mine.keys) == len(new.keys) > 0
        assert len(mine.sketch) == len(new.sketch)
    another = ("https://copy.example/1", "秋月梨早熟", join_text(*PEARS))
    assert crawl(state, [another], **MINHASH)[0].headline == "duplicate (identical)"
    assert delivered(crawl(state, **MINHASH)) == []


def test_a_page_read_from_html_is_unchanged_by_its_kept_text(tmp_path: Path) -> None:
    """Its article, headline, site and words of its head are kept, too: the text alone makes another fingerprint."""
    whole = Page(
        PEAR,
        "秋月梨早熟 - 果园网",
        ("梨", "果园"),
        "今年的梨早熟了。",
        text="首页 生意 天气\n" + join_text(*PEARS).replace("。", "。\n") + "版权所有，未经许可不得转载\n",
        main=join_text(*PEARS).replace("。", "。\n"),
        headline="秋月梨早熟",
        reader="article",
        site="orchard.example",
    )
    state = state_url("sqlite", tmp_path / "state.sqlite")
    with opened(state) as store:
        detector = Detector(make_method("cascade", {}), store, who="morning", policy=Policy(keep=Keep.TEXTS))
        detector.judge_now(whole, sealed=True)
        detector.end()
    assert run("migrate", "--store", state, **BINS) == 0
    with opened(state, **BINS) as store:
        detector = Detector(method_of(BINS), store, who="evening")
        assert detector.judge_now(whole, sealed=True).headline == "unchanged"
        assert detector.judge_now(replace(whole, title="另一个题目"), sealed=True).headline == "updated"
        detector.end()


@pytest.mark.parametrize("settings", [MINHASH, BINS, {"NEARDUP_METHOD": "nshash"}], ids=["minhash", "bins", "nshash"])
def test_without_texts_pages_pass_once_as_updated(
    state: str, settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("migrate", "--store", state, "--json", **settings) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pages"] == {"feed": 0, "text": 0, "kept": 0, "url": 6, "copy": 1, "unjudged": 1}
    assert is_whole(state, **settings)
    verdicts = {verdict.url: verdict for verdict in crawl(state, **settings)}
    said = {url: verdict.headline for url, verdict in verdicts.items()}
    assert (said[PEAR], said[BREAD], said[POWER]) == ("updated", "updated", "updated")
    assert (said[SAME], said[SHORT]) == ("duplicate (identical)", "unchanged")
    match = verdicts[PEAR].match
    assert match is not None
    assert (match.url, match.similarity) == (PEAR, 0.0)
    assert is_whole(state, **settings)
    copy = ("https://copy.example/1", "秋月梨早熟", join_text(*PEARS))
    assert crawl(state, [copy], **settings)[0].headline == "duplicate (identical)"
    assert delivered(crawl(state, **settings)) == []


def test_a_copy_at_a_new_url_passes_before_its_original_comes_and_not_after(sqlite: str) -> None:
    run("migrate", "--store", sqlite, **MINHASH)
    copies = [(f"https://copy{n}.example/", "Sisters buy the bakery", join_text(*BAKERY)) for n in range(2)]
    before, original, after = crawl(sqlite, [copies[0], PAGES[1], copies[1]], **MINHASH)
    assert (before.headline, original.headline) == ("unique", "updated")
    assert after.headline == "duplicate (identical)"


def test_pages_of_a_feed_are_found_by_url(tmp_path: Path, sqlite: str, capsys: pytest.CaptureFixture[str]) -> None:
    feed = tmp_path / "feed.jsonl"
    rows = [{"url": url, "title": title, "text": body} for url, title, body in PAGES]
    rows += [
        {"url": PEAR, "title": "秋月梨早熟", "text": join_text(*PEARS)},
        {"url": "https://nobody.example/", "text": "x"},
    ]
    rows += [{"title": "no url", "text": join_text(*PEARS)}, {"url": BREAD}]
    feed.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert run("migrate", "--store", sqlite, "--from", feed, "--json", **MINHASH) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pages"] == {"feed": 6, "text": 0, "kept": 0, "url": 0, "copy": 1, "unjudged": 1}
    assert (found["records"], found["records_used"]) == (len(rows), 7)
    assert is_whole(sqlite, **MINHASH)
    copy = ("https://copy.example/1", "秋月梨早熟", join_text(*PEARS))
    assert crawl(sqlite, [copy], **MINHASH)[0].headline == "duplicate (identical)"
    assert delivered(crawl(sqlite, **MINHASH)) == []


def test_a_feed_of_html_and_one_that_comes_later(
    tmp_path: Path, sqlite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pages that were known by their URL are filled in by a second call."""
    assert run("migrate", "--store", sqlite, **MINHASH) == 0
    body = "".join(f"<p>{one}.</p>" for one in BAKERY)
    feed = tmp_path / "pages.csv"
    feed.write_text(f'link,page\n{BREAD},"<title>Sisters buy the bakery</title>{body}"\n', encoding="utf-8")
    capsys.readouterr()
    given = ("--from", feed, "--url", "link", "--html", "page")
    assert run("migrate", "--store", sqlite, *given, **MINHASH) == 0
    out = capsys.readouterr().out
    assert "records used  1\n" in out
    assert is_whole(sqlite, **MINHASH)
    said = {verdict.url: verdict.headline for verdict in crawl(sqlite, **MINHASH)}
    assert (said[BREAD], said[PEAR], said[SAME]) == ("unchanged", "updated", "duplicate (identical)")


@pytest.fixture
def other_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of the extractor, which reads the test samples differently."""
    monkeypatch.setattr(judging_recipe, "extractor_name", lambda extractor: "visible prose and trafilatura 9.9 fast")
    monkeypatch.setattr(judging_recipe, "reader_sample", lambda: "0123456789abcdef")


@pytest.mark.usefixtures("other_reader")
def test_by_another_extractor_fingerprints_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert run("migrate", "--store", state, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pages"] == {"feed": 0, "text": 0, "kept": 6, "url": 0, "copy": 1, "unjudged": 1}
    assert is_whole(state)
    copy = ("https://copy.example/1", "秋月梨早熟", join_text(*PEARS))
    assert crawl(state, [copy])[0].headline == "duplicate (identical)"
    assert delivered(crawl(state)) == []


def test_a_state_of_now_is_left_as_it_is(sqlite: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = state_files(place(sqlite).parent, place(sqlite)).keys()
    assert run("migrate", "--store", sqlite) == 0
    assert capsys.readouterr().out.endswith("already has the current method, parameters and versions.\n")
    assert state_files(place(sqlite).parent, place(sqlite)).keys() == before


def test_to_another_place_and_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("plyvel")
    state, there = make_state("sqlite", tmp_path), state_url("leveldb", tmp_path / "deep" / "new.leveldb")
    before = told(state)
    assert run("migrate", "--store", state, "--to", there, **MINHASH) == 0
    assert told(there, **MINHASH) == before
    assert told(state) == before
    assert sorted(one.name for one in (tmp_path / "deep").iterdir()) == ["new.leveldb"]
    with pytest.raises(StoreError, match=r"new\.leveldb already exists"):
        run("migrate", "--store", state, "--to", there, **MINHASH)


def test_back_and_forth_keeps_what_is_known(sqlite: str) -> None:
    """Pages that did not come in between stay known by their URL."""
    run("migrate", "--store", sqlite, **MINHASH)
    assert crawl(sqlite, [PAGES[1]], **MINHASH)[0].headline == "updated"
    run("migrate", "--store", sqlite, **BINS)
    assert is_whole(sqlite, **BINS)
    assert {verdict.headline for verdict in crawl(sqlite, PAGES[:2], **BINS)} == {"updated"}
    assert delivered(crawl(sqlite, PAGES[:2], **BINS)) == []
    assert len(list(place(sqlite).parent.glob("*-before-*"))) == 4  # two states, each with its witness


@pytest.mark.parametrize("kind", KINDS)
def test_an_exchange_that_is_cut_short_is_ended_by_the_next_call(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it stops, no crawl begins anew in the place of the state, and nothing of either state is lost."""
    real, number = Path.rename, 0
    for stop in range(20):
        folder = tmp_path / str(stop)
        folder.mkdir()
        state = make_state(kind, folder)
        before = told(state)
        left = stop

        def rename(self: Path, target: Path) -> Path:
            nonlocal left
            if left == 0:
                raise OSError("the power went")
            left -= 1
            return real(self, target)

        with monkeypatch.context() as cut:
            cut.setattr(Path, "rename", rename)
            # A draft of LevelDB is renamed for its snapshot at times; what is renamed here are pieces alone.
            try:
                run("migrate", "--store", state, **MINHASH)
                break
            except (StoreError, OSError):
                pass
        if replacement.is_unfinished(str(place(state))):
            number += 1
            for settings in ({}, MINHASH):
                with pytest.raises(StoreError, match="stopped while it exchanged the files"):
                    crawl(state, **settings)
        assert run("migrate", "--store", state, **MINHASH) == 0
        assert told(state, **MINHASH) == before
        assert told(kept_of(state)) == before
        assert is_whole(state, **MINHASH)
        assert not [name for name in beside(state) if "-new" in name or "-exchange" in name]
    else:
        raise AssertionError("it was never let through")
    assert number == 4


def test_a_migration_that_fails_before_leaves_the_state_alone(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = told(state)
    real, left = Record.pack, 5

    def pack(self: Record) -> bytes:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        return real(self)

    with monkeypatch.context() as stopped:
        stopped.setattr(migration, "_ROWS", 3)
        stopped.setattr(Record, "pack", pack)
        with pytest.raises(KeyboardInterrupt):
            run("migrate", "--store", state, **MINHASH)
    assert told(state) == before
    assert run("migrate", "--store", state, **MINHASH) == 0
    assert told(state, **MINHASH) == before
    assert not [name for name in beside(state) if "-new" in name]


def test_nobody_may_use_the_state_in_the_meantime(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(state):
        pass

    def used(*where: Any) -> str:
        crawl(state, [("https://late.example/", "Late", join_text(*BAKERY[:3]))])
        return replacement.exchange(*where)

    with monkeypatch.context() as late:
        late.setattr(migrate, "exchange", used)
        with pytest.raises(StoreError, match=r"A crawl used the state at .* during the migration"):
            run("migrate", "--store", state, **MINHASH)
    assert run("migrate", "--store", state, **MINHASH) == 0
    assert "https://late.example/" in told(state, **MINHASH)["pages"]


def test_a_state_in_use_and_a_method_for_memory_are_refused(sqlite: str, tmp_path: Path) -> None:
    from scrapy_neardup.kv.lock import lock

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
