"""A new store is its file and one line in the registry: nothing else in the package has to know of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.kv.base import SETTING, Changes, DamagedCopy, Engine, Row
from scrapy_neardup.kv.options import DEFAULT, Options
from scrapy_neardup.settings import Config
from scrapy_neardup.state.layout import record_key
from scrapy_neardup.state.urls import STORES, parse_url
from tests.build import PAGES, PEAR, judge_pages, open_state, read_records
from tests.cli import run


class Lines(Engine):
    """A row a line, in hexadecimal digits, all written at every change."""

    scheme = "lines"

    @classmethod
    def exists(cls, location: str) -> bool:
        return Path(location).is_file()

    @classmethod
    @contextmanager
    def damaged_copy(cls, location: str, folder: Path) -> Iterator[DamagedCopy]:
        yield DamagedLines(Path(location).read_text().splitlines())

    def __init__(self, location: str, named_by: str = SETTING, options: Options = DEFAULT) -> None:
        super().__init__(location, named_by, options)
        path = Path(location)
        try:
            self._rows = dict(map(row, path.read_text().splitlines() if path.exists() else ()))
        except ValueError as error:
            raise self.damaged(str(error)) from None

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        yield from sorted((one for one in self._rows.items() if one[0].startswith(prefix)), reverse=reverse)

    def write(self, changes: Changes, *, sync: bool) -> None:
        for key in changes.deletes:
            self._rows.pop(key, None)
        self._rows.update(changes.puts)
        Path(self.location).write_text("".join(f"{key.hex()} {value.hex()}\n" for key, value in self._rows.items()))

    def close(self, last: Changes | None = None) -> None:
        if last is not None:
            self.write(last, sync=True)

    def size(self) -> int:
        return Path(self.location).stat().st_size

    def compact(self) -> None:
        """There is no room to give back."""


class DamagedLines:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        for line in sorted(self._lines, reverse=reverse):
            try:
                key, value = row(line)
            except ValueError as error:
                raise StoreError(str(error)) from None
            if low <= key < high:
                yield key, value


def row(line: str) -> Row:
    key, value = map(bytes.fromhex, line.split(" "))
    return key, value


@pytest.fixture(autouse=True)
def _one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STORES.places, "lines", f"{__name__}:Lines")


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = Lines.url(str(tmp_path.resolve() / "state.lines"))
    with open_state(url) as store:
        judge_pages(store, PAGES)
    return url


def test_the_registry_knows_each_kind_by_its_scheme() -> None:
    assert list(STORES) == ["leveldb", "sqlite", "memory", "lines"]
    for scheme, kind in STORES.items():
        assert (kind.scheme, issubclass(kind, Engine)) == (scheme, True)


def test_its_urls_are_read_and_messages_name_its_form(tmp_path: Path) -> None:
    location = str(tmp_path.resolve() / "a state")
    assert parse_url(Lines.url(location)) == (Lines, location)
    with pytest.raises(
        SettingsError,
        match="Use leveldb:///path, sqlite:///path, memory: or lines:///path; or on a server: redis://host",
    ):
        parse_url("mongodb://a.example/")
    with pytest.raises(SettingsError, match=r"--to is .*three slashes: lines:///path"):
        parse_url("lines:state", "--to")
    with pytest.raises(StoreError, match="--store leveldb:///path, sqlite:///path or lines:///path"):
        run("stats", "--store", Lines.url(location))


def test_the_commands_on_a_state_work_with_it(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stats", "--store", url, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["backend"], found["pages"], found["copies"]) == ("lines", 8, 2)
    assert run("check", "--store", url) == 0
    assert run("export", "--store", url, "-o", tmp_path / "pages.jsonl.gz") == 0
    other = Lines.url(str(tmp_path / "other"))
    assert run("merge", url, "--store", other) == 0
    assert read_records(other) == read_records(url)


@pytest.mark.parametrize("to", ["lines", "sqlite"])
def test_what_can_be_read_is_saved(url: str, to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(parse_url(url)[1])
    key = record_key(read_records(url)[PEAR].id).hex()
    lines = path.read_text().splitlines()
    path.write_text("".join("noise\n" if line.startswith(key) else f"{line}\n" for line in lines))
    assert run("check", "--store", url) == 1
    mended = STORES[to].url(str(tmp_path / "mended"))
    assert run("check", "--store", url, "--repair", mended) == 0
    assert set(read_records(mended)) == {one[0] for one in PAGES} - {PEAR}


@pytest.mark.parametrize("scheme", ["leveldb", "sqlite"])
def test_a_new_state_in_the_root_of_the_disk_is_warned_of_and_the_relative_one_shown(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    url, meant = f"{scheme}:///seen-{tmp_path.name}.db", f"{scheme}://{tmp_path}/seen-{tmp_path.name}.db"
    Config.from_settings({"NEARDUP_STORE": url})
    parse_url(url)
    [warned] = [record.getMessage() for record in caplog.records]
    assert warned.startswith("NEARDUP_STORE: ")
    assert meant in warned
    with pytest.raises(StoreError) as refused:
        run("stats", "--store", url)
    assert meant in str(refused.value)
    caplog.clear()
    parse_url(meant)
    monkeypatch.setattr(STORES[scheme], "exists", lambda location: True)
    parse_url(url, "--state")
    assert caplog.records == []
