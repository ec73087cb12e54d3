"""``scrapy neardup check``: what is said of states that are whole, damaged, unreadable, and of mended copies."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scrapy_neardup.errors import SettingsError, StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.state.layout import meta_key, pack_seen, url_key
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from tests.build import BREAD, HOSTILE, KINDS, PEAR, judge_pages, make_state, open_state, read_records, state_files
from tests.cli import is_harmless, mask, run, run_on, run_process
from tests.faults import engine_of

ADVICE = "scrapy neardup check --repair TO (see --help).\n"
SOUND = r"The state at STATE is sound: 8 pages, \d+ keys, 8 URLs, evidence of 8 pages, \d+ blocks of counts\.\n"


def break_off(state: str, many: int = 1) -> None:
    """A key that names no page, or several."""
    with open_state(state) as store:
        changes = Changes()
        store._rows.postings.file(range(many), 7, changes)
        store.kv.write(changes, sync=True)


@pytest.mark.slow
def test_a_sound_state(state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run_on("check", state=state)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(SOUND, mask(done.stdout, state))


def test_json(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "--store", state, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found.pop("keys") > 0, found.pop("blocks") > 0) == (True, True)
    assert found == {
        "store": str(Path(state.partition("://")[2])),
        "sound": True,
        "pages": 8,
        "urls": 8,
        "evidence": 8,
        "judged_by_hand": 0,
        "copies_without_original": 0,
        "urls_of_one_hash": 0,
        "problems": [],
        "counts": {},
    }
    break_off(state)
    assert run("check", "--store", state, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["sound"], found["counts"]) == (False, {"key without page": 1})
    assert found["problems"] == [
        {"kind": "key without page", "what": "a key names the page 0000000000000007, which is missing"}
    ]


@pytest.mark.slow
def test_problems_are_named_and_make_the_exit_code(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    break_off(state)
    done = run_on("check", state=state)
    assert (done.returncode, done.stderr) == (1, "")
    first, second, third = mask(done.stdout, state).splitlines(keepends=True)
    assert first.startswith("The state at STATE is not sound: 1 problem (8 pages, ")
    assert second == "  key without page: a key names the page ID, which is missing\n"
    assert third.endswith(ADVICE)


def test_many_problems_are_counted(sqlite: str, capsys: pytest.CaptureFixture[str]) -> None:
    break_off(sqlite, 1030)
    assert run("check", "--store", sqlite) == 1
    said = capsys.readouterr().out
    assert said.count("which is missing\n") == 20
    assert "  (and 1,010 more)\n\n| problem          |   times |\n" in said
    assert "| key without page |   1,030 |\n" in said


def test_copies_without_original_are_remarked_on(sqlite: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_state(sqlite) as store:
        store.forget([read_records(sqlite)[PEAR].id])
    assert run("check", "--store", sqlite) == 0
    assert "\nNo problem: 2 copies without an original (it was updated or forgotten).\n" in capsys.readouterr().out


def test_what_opening_refuses_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = make_state("leveldb", tmp_path)
    (tmp_path / "state.leveldb" / "db" / "CURRENT").unlink()
    before = state_files(tmp_path, tmp_path / "state.leveldb")
    done = run_on("check", state=state)
    assert (done.returncode, done.stderr) == (1, "")
    said = mask(done.stdout, state)
    assert (
        "  damaged: The state at STATE is damaged: these files have changed or are missing since it was closed: CUR"
        in said
    )
    assert said.endswith(ADVICE)
    assert state_files(tmp_path, tmp_path / "state.leveldb") == before


@pytest.mark.parametrize(("name", "value"), [("recipe", b"{"), ("recipe", b"7"), ("tally", b"many")])
def test_what_is_read_first_may_be_noise(
    sqlite: str, capsys: pytest.CaptureFixture[str], name: str, value: bytes
) -> None:
    store = open_at(SQLite, sqlite.partition("://")[2], None)
    if name == "tally":  # which a close would write once more
        engine_of(store).write(Changes({meta_key(name): value}), sync=True)
        store.kv.close()
    else:
        store.write(Changes({meta_key(name): value}))
        store.close()
    assert run("check", "--store", sqlite) == 1
    said = capsys.readouterr().out
    assert "  damaged: " in said
    assert said.endswith(ADVICE)


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = make_state("sqlite", tmp_path)
    (tmp_path / "state.sqlite").write_bytes(b"no database " * 999)
    assert run("check", "--store", state) == 1
    assert "its header is not that of a state" in capsys.readouterr().out


def test_a_state_that_cannot_be_closed_is_found(
    sqlite: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    close = PageStore.close

    def fail(self: PageStore) -> None:
        close(self)
        raise StoreError("There is no room.")

    monkeypatch.setattr(PageStore, "close", fail)
    assert run("check", "--store", sqlite) == 1
    assert "  unwritable: There is no room.\n" in capsys.readouterr().out


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


def test_hostile_strings_are_shown_as_text(sqlite: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"https://evil.example/{HOSTILE}"
    with open_state(sqlite) as store:
        judge_pages(store, [(url, "", "A text that is long enough to be judged by itself, and says nothing at all.")])
        store.kv.write(Changes(deletes={url_key(url, store.hashes)}), sync=True)
    for arguments in ([], ["--json"]):
        assert run("check", "--store", sqlite, *arguments) == 1
        said = capsys.readouterr().out
        assert is_harmless(said)
        assert "梨" in said
    with open_state(sqlite) as store:
        store.kv.write(Changes({url_key(BREAD, store.hashes): pack_seen(7, 7)}), sync=True)


# Mended copies

TOLD = """\
The state at STATE is unchanged. The repaired copy is at MENDED.
  saved: 8 pages, evidence of 8 pages, N blocks of counts
  lost: no known page; it had 8 after its last write
The state at MENDED is sound: 8 pages, N keys, 8 URLs, evidence of 8 pages, N blocks of counts.
To use the copy, set NEARDUP_STORE = 'KIND://MENDED', or move it and its witness to the place of the damaged one.
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_mended_copy(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = make_state(kind, tmp_path)
    pages = read_records(state)
    if kind == "leveldb":
        (tmp_path / "state.leveldb" / "db" / "CURRENT").unlink()
    before = state_files(tmp_path, tmp_path / f"state.{kind}")
    done = run_on("check", "--repair", f"mended.{kind}", state=state)
    assert (done.returncode, done.stderr) == (0, "")
    said = mask(done.stdout, state).replace(str((tmp_path / f"mended.{kind}").resolve()), "MENDED")
    assert re.sub(r"\d+ (keys|blocks)", r"N \1", said) == TOLD.replace("KIND", kind)
    assert state_files(tmp_path, tmp_path / f"state.{kind}") == before
    assert read_records((tmp_path / f"mended.{kind}").as_uri().replace("file", kind, 1)) == pages


def test_json_of_a_mended_copy(sqlite: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = (tmp_path / "new" / "mended.sqlite").as_uri().replace("file", "sqlite", 1)
    with open_state(sqlite) as store:
        record = read_records(sqlite)[BREAD]
        store.kv.write(Changes({url_key("https://lost.example/", store.hashes): pack_seen(7, 7)}), sync=True)
    assert run("check", "--store", sqlite, "--repair", target, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    told = found.pop("check")
    assert (told["sound"], told["pages"], found.pop("blocks") > 0) == (True, 8, True)
    assert found == {
        "source": str(tmp_path / "state.sqlite"),
        "store": str(tmp_path / "new" / "mended.sqlite"),
        "pages": 8,
        "pages_before": 8,
        "known_lost": 1,
        "broken": 0,
        "unsealed": 0,
        "replaced": 0,
        "evidence": 8,
        "unreadable_ranges": 0,
        "recipe_assumed": False,
    }
    assert read_records(target)[BREAD] == record


def drop_recipe(state: str) -> None:
    with open_state(state) as store:
        store.kv.write(Changes(deletes={meta_key("recipe")}), sync=True)


def test_what_is_lost_or_left_out_is_told(sqlite: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with open_state(sqlite) as store:
        store.kv.write(Changes({url_key("https://lost.example/", store.hashes): pack_seen(7, 7)}), sync=True)
        judge_pages(
            store,
            [("https://evening.example/", "", "A text of the evening, long enough to be judged by itself.")],
            sealed=False,
        )
    drop_recipe_of_closed(sqlite)
    assert run("check", "--store", sqlite, "--repair", tmp_path / "new", "--assume-recipe") == 0
    said = capsys.readouterr().out
    assert "  lost: at least 1 page; it had 9 after its last write\n" in said
    assert "  left out: 1 page of a crawl that was killed, or whose feed was not stored\n" in said
    assert "  recipe: taken from the settings here, because that of the state is unreadable\n" in said


def drop_recipe_of_closed(state: str) -> None:
    """Without opening it, which would take pages back."""
    with closing(sqlite3.connect(state.partition("://")[2])) as db:
        db.execute("DELETE FROM kv WHERE k = ?", (meta_key("recipe"),))
        db.commit()


def test_an_assumed_recipe_is_that_of_the_settings(sqlite: str, tmp_path: Path) -> None:
    drop_recipe(sqlite)
    with pytest.raises(StoreError, match="--assume-recipe"):
        run("check", "--store", sqlite, "--repair", tmp_path / "new")
    settings = {"NEARDUP_METHOD": "shingle", "NEARDUP_PARAMETERS": {"n": 4}}
    assert run("check", "--store", sqlite, "--repair", tmp_path / "new", "--assume-recipe", **settings) == 0
    store = open_at(SQLite, str(tmp_path / "new"), None)
    store.close()
    assert (store.recipe["method"], store.recipe["parameters"]["n"]) == ("shingle", 4)


@pytest.mark.parametrize(
    ("target", "error", "said"),
    [
        (lambda folder: folder / "there", StoreError, "there already exists"),
        (lambda folder: folder / "state.leveldb" / "db" / "new", StoreError, "inside the damaged state"),
        (lambda folder: folder / "state.leveldb", StoreError, "inside the damaged state"),
        (lambda folder: "memory:/", StoreError, "in memory"),
        (lambda folder: "redis:///x", SettingsError, "--store is"),
        (lambda folder: folder / "there" / "new", StoreError, "cannot be made"),
    ],
)
def test_where_the_copy_cannot_be(
    tmp_path: Path, target: Callable[[Path], Path | str], error: type[Exception], said: str
) -> None:
    state = make_state("leveldb", tmp_path)
    (tmp_path / "there").write_text("mine")
    before = state_files(tmp_path, tmp_path / "state.leveldb")
    with pytest.raises(error, match=said):
        run("check", "--store", state, "--repair", target(tmp_path))
    assert state_files(tmp_path, tmp_path / "state.leveldb") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.leveldb", "there"]


def test_a_state_in_use_is_not_copied(sqlite: str, tmp_path: Path) -> None:
    with open_state(sqlite), pytest.raises(StoreLocked):
        run("check", "--store", sqlite, "--repair", tmp_path / "new")
