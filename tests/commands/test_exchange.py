"""``scrapy neardup export``, ``merge`` and ``check`` as they are run by a user."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from scrapy_neardup.errors import NearDupError, SettingsError, StoreError, StoreMismatch
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.state.layout import meta_key, record_key
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record
from tests.build import (
    HOSTILE,
    KINDS,
    judge_pages,
    make_state,
    open_state,
    page,
    read_records,
    state_files,
    state_url,
    story,
)
from tests.cli import Invoke, add_spider, is_clean, make_project, run, run_process, run_scrapy
from tests.faults import engine_of
from tests.maintenance.states import rows

CASCADE = make_method("cascade", {})
url = partial(state_url, "sqlite")


def crawled(path: Path, pages: Mapping[str, int], method: Method = CASCADE) -> Path:
    """A state with pages of these names, each with the story of a number."""
    store = open_at(SQLite, str(path), state_recipe(method, None))
    detector = Detector(method, store, who="test")
    for name, seed in pages.items():
        detector.judge_now(page(name, story(seed)), sealed=True)
    detector.end()
    store.close()
    return path


def content(path: Path) -> dict[bytes, bytes]:
    store = open_at(SQLite, str(path), None)
    found = rows(store)
    store.close()
    return found


@pytest.fixture
def east(tmp_path: Path) -> Path:
    return crawled(tmp_path / "east.sqlite", {"a": 1, "b": 2, "a-copy": 1})


@pytest.fixture
def west(tmp_path: Path) -> Path:
    return crawled(tmp_path / "west.sqlite", {"c": 3, "d": 2})


@pytest.mark.slow
def test_inside_of_a_project_the_state_is_the_projects(tmp_path: Path, east: Path, west: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    make_project(inside)
    done = run_scrapy("export", "-o", "inside/east", "--store", url(east), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = run_scrapy("merge", "east", "--spider", "news", cwd=inside)  # no spider has this name
    assert (done.returncode, done.stdout, "news" in done.stderr) == (2, "", True)
    assert not (inside / ".scrapy" / "neardup").exists()
    add_spider(inside, "news")
    states = inside / ".scrapy" / "neardup" / "spiders" / "news"
    for source, spider, pages, counts in (
        ("east", ["--spider", "news"], 3, {"added": 3, "copies": 0}),
        (url(west), [], 5, {"added": 2, "copies": 1}),
    ):
        done = run_scrapy("merge", source, "--json", *spider, cwd=inside)
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        assert (Path(found["store"]).parent, found["pages"]) == (states, pages)
        assert {**found["merged"][0], **counts} == found["merged"][0]


def test_an_export_replaces_nothing_and_is_for_its_user_alone(
    tmp_path: Path, east: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, before = tmp_path / "copy.sqlite", set(tmp_path.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(PageStore, "evidence", Mock(side_effect=StoreError("The disk is gone.")))
        with pytest.raises(StoreError, match="The disk is gone"):
            run("export", "-o", output, "--store", url(east))
    assert set(tmp_path.iterdir()) == before
    assert run("export", "-o", output, "--store", url(east)) == 0
    if os.name == "posix":
        assert output.stat().st_mode & 0o777 == 0o600, "it holds the secret of the state"
    with pytest.raises(StoreError, match="already exists"):
        run("export", "-o", output, "--store", url(east))


@pytest.mark.parametrize("made", [False, True])
def test_states_of_two_recipes_are_not_merged(tmp_path: Path, east: Path, west: Path, made: bool) -> None:
    other = crawled(tmp_path / "other.sqlite", {"e": 5}, make_method("cascade", {"bins": 256}))
    before = content(east), content(other)
    given = ("--store", url(tmp_path / "new.sqlite")) if made else ("--store", url(east))
    with pytest.raises(StoreMismatch) as raised:
        run("merge", url(west), url(other), *given)
    said = str(raised.value)
    assert f"The state at {other} has another recipe: parameters.bins is 256 in the state and 512 here. " in said
    assert "scrapy neardup migrate" in said
    assert "--store" in said
    assert (content(east), content(other)) == before
    assert not (tmp_path / "new.sqlite").exists()
    store = open_at(
        SQLite, str(tmp_path / "secret.sqlite"), state_recipe(CASCADE, None), secret=Secret(b"another secret")
    )
    store.close()
    for names in ([west], [west, tmp_path / "secret.sqlite"]):
        target = tmp_path / ("secret.sqlite" if len(names) == 1 else "new.sqlite")
        with pytest.raises(StoreMismatch, match=r"different secrets.* give them the same NEARDUP_SECRET"):
            run("merge", *names, "--store", url(target))
    assert not (tmp_path / "new.sqlite").exists()


def test_a_merge_goes_on_where_it_was_killed_while_it_made_the_new_state(tmp_path: Path, east: Path) -> None:
    engine = SQLite(new := str(tmp_path / "new.sqlite"))
    engine.hold()
    engine.close()  # it has no recipe yet
    assert run("merge", east, "--store", url(Path(new))) == 0
    assert {key for key in content(Path(new)) if key[:1] == b"r"} == {key for key in content(east) if key[:1] == b"r"}


def test_a_merge_only_reads_its_sources(tmp_path: Path, east: Path, invoke: Invoke) -> None:
    """So they may be backups in a folder without write access, or states that crawls are using."""
    pytest.importorskip("plyvel")
    folder = tmp_path / "leveldb"
    assert run("merge", east, "--store", f"leveldb://{folder}/state.leveldb") == 0
    store = open_at(SQLite, str(east), None)
    before, files = rows(store), state_files(tmp_path, east)
    new, names = tmp_path / "new.sqlite", (folder, folder / "state.leveldb", east, url(east))
    for name in names:
        done = invoke("merge", name, "--store", url(new), "--json")
        assert done.data["pages"] == 3
    assert "another process is using it" in done.err
    assert (rows(store), state_files(tmp_path, east)) == (before, files)
    store.close()
    assert not list(folder.glob("*.lock"))


@pytest.mark.parametrize(
    ("command", "option", "place", "said"),
    [
        ("export", "-o", "leveldb://x", r"^-o is .*three slashes"),
        ("export", "-o", "memory:", r"memory: is a state in memory.* with -o"),
        ("migrate", "--to", "sqlite:x", r"^--to is "),
        ("merge", "", "memory:", r"memory: is a state in memory.* with FROM"),
        ("merge", "", "none", r"^There is no state at .*none\. Name the state of a crawl with FROM leveldb:"),
    ],
)
def test_a_wrong_place_is_named_by_its_option(
    tmp_path: Path, east: Path, monkeypatch: pytest.MonkeyPatch, command: str, option: str, place: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NearDupError, match=said):
        run(command, *filter(None, (option, place)), "--store", url(east))


def test_a_damaged_state_or_another_file_is_not_merged(tmp_path: Path, east: Path, west: Path) -> None:
    new, before = tmp_path / "new.sqlite", content(west)
    (tmp_path / "text").write_text("no state")
    east.write_bytes(east.read_bytes()[:-5000])
    for source, said in ((east, "is damaged"), (tmp_path / "text", "no scrapy-neardup state"), (new, "There is no")):
        for target in (new, west):
            with pytest.raises(StoreError, match=said):
                run("merge", source, "--store", url(target))
    with pytest.raises(StoreError, match=r"memory: is a state in memory"):
        run("merge", west, "--store", "memory:")
    assert not new.exists()
    assert content(west) == before


def test_a_state_merged_into_itself_does_not_change(east: Path, invoke: Invoke) -> None:
    before = content(east)
    assert invoke("merge", url(east), "--store", east).out.startswith(f"{east}: known: 3\n")
    assert content(east) == before


# Check and repair


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
    assert ADVICE not in done.out


@pytest.mark.parametrize("why", [PermissionError("Permission denied"), sqlite3.OperationalError("disk I/O error")])
def test_a_state_that_may_not_be_read_or_finds_no_room_is_no_damage(
    why: Exception, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SQLite, "_connection", Mock(side_effect=SQLite(sqlite).translated(why)))
    with pytest.raises(StoreError, match=str(why)):
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
