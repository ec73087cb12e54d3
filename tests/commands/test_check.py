"""``scrapy neardup check`` of whole, damaged and unreadable states, and its repaired copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scrapy_neardup.cli import states
from scrapy_neardup.errors import SettingsError, StoreError, StoreMismatch
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.state.layout import meta_key, record_key
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.build import HOSTILE, KINDS, judge_pages, make_state, open_state, read_records, state_files
from tests.cli import Invoke, is_clean, run, run_process
from tests.faults import engine_of

ADVICE = "scrapy neardup check --repair TO\n"


@pytest.mark.parametrize(("name", "value"), [("recipe", b"{"), ("recipe", b"7"), ("tally", b"many")])
def test_noise_in_the_recipe_or_tally_is_damage(sqlite: str, name: str, value: bytes, invoke: Invoke) -> None:
    store = open_at(SQLite, sqlite.partition("://")[2], None)
    if name == "tally":  # a close would write it once more
        engine_of(store).write_rows(Changes({meta_key(name): value}), sync=True)
        store.kv.close()
    else:
        store.write(Changes({meta_key(name): value}))
        store.close()
    done = invoke("check", "--store", sqlite)
    assert (done.code, "  damaged: " in done.out, done.out.endswith(ADVICE)) == (1, True, True)


def test_a_state_that_cannot_be_closed_is_found(sqlite: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    close = PageStore.close

    def close_and_fail(self: PageStore) -> None:
        close(self)
        raise StoreError("There is no room.")

    monkeypatch.setattr(PageStore, "close", close_and_fail)
    done = invoke("check", "--store", sqlite)
    assert (done.code, "  unwritable: There is no room.\n" in done.out) == (1, True)


def test_a_state_that_may_not_be_read_is_no_damage(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise StoreError("The state cannot be opened: Permission denied.") from PermissionError(13, "Permission denied")

    monkeypatch.setattr(states, "open_store", denied)
    with pytest.raises(StoreError, match="Permission denied"):
        run("check", "--store", sqlite)


@pytest.mark.slow
def test_states_that_cannot_be_judged_are_errors(sqlite: str, tmp_path: Path) -> None:
    with open_state(sqlite):
        done = run_process("check", "--store", sqlite, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "scrapy neardup check: Another process is using the state at" in done.stderr
    with open_state(sqlite) as store:
        store.kv.write(Changes({meta_key("recipe"): b'{"format": 99}'}), sync=True)
    with pytest.raises(StoreMismatch):
        run("check", "--store", sqlite)


def test_hostile_strings_are_shown_as_text(sqlite: str, invoke: Invoke) -> None:
    url = f"https://evil.example/{HOSTILE}"
    with open_state(sqlite) as store:
        judge_pages(store, [(url, "", "A text that is long enough to be judged by itself, and says nothing at all.")])
        store.write(Changes({record_key(1): Record(1, url, 1).pack()}), added=1)
    for arguments in ([], ["--json"]):
        done = invoke("check", "--store", sqlite, *arguments)
        assert (done.code, is_clean(done.out), "梨" in done.out) == (1, True, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_state_is_reported_and_repaired_into_a_copy(
    kind: str, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = make_state(kind, tmp_path)
    pages = read_records(state)
    if kind == "leveldb":
        (tmp_path / "state.leveldb" / "db" / "CURRENT").unlink()
    before = state_files(tmp_path, tmp_path / f"state.{kind}")
    if kind == "leveldb":
        done = invoke("check", "--store", state)
        assert (done.code, done.err, done.out.endswith(ADVICE)) == (1, "", True)
        assert "is damaged: its file CURRENT" in done.out
    done = invoke("check", "--repair", f"mended.{kind}", "--store", state)
    assert (done.code, done.err, "is sound (pages: 8, " in done.out) == (0, "", True)
    assert state_files(tmp_path, tmp_path / f"state.{kind}") == before
    assert read_records((tmp_path / f"mended.{kind}").as_uri().replace("file", kind, 1)) == pages


@pytest.mark.parametrize(
    ("target", "error", "said"),
    [
        (lambda folder: folder / "there", StoreError, "there already exists"),
        (lambda folder: folder / "state.leveldb" / "db" / "new", StoreError, "inside of it"),
        (lambda folder: folder / "state.leveldb", StoreError, "inside of it"),
        (lambda folder: "memory:/", StoreError, "in memory"),
        (lambda folder: "redis:///x", SettingsError, "--repair is"),
        (lambda folder: "redis://127.0.0.1:1/0?state=x", StoreError, "on a server, where this command makes no state"),
        (lambda folder: folder / "there" / "new", StoreError, "cannot be made"),
    ],
)
def test_a_copy_is_refused_where_it_cannot_be(
    tmp_path: Path, target: Callable[[Path], Path | str], error: type[Exception], said: str
) -> None:
    state = make_state("leveldb", tmp_path)
    (tmp_path / "there").write_text("mine")
    before = state_files(tmp_path, tmp_path / "state.leveldb")
    with pytest.raises(error, match=said):
        run("check", "--store", state, "--repair", target(tmp_path))
    assert state_files(tmp_path, tmp_path / "state.leveldb") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.leveldb", "there"]
