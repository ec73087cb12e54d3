"""``scrapy neardup compact``: less room for the same pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.build import KINDS, make_state, open_state, read_records
from tests.cli import run


@pytest.fixture(params=KINDS)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A state of which most was forgotten."""
    url = make_state(request.param, tmp_path)
    with open_state(url) as store:
        ids = [store.new_id() for _ in range(300)]
        for id in ids:
            store.add(Record(id, f"https://many.example/{id}", id, keys=(id, id + 1), sketch=str(id).encode() * 40))
    with open_state(url) as store:
        assert store.forget(ids) == 300
    return url


def test_json(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compact", "--store", state, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"store", "bytes_before", "bytes_after"}
    assert 0 < found["bytes_after"] < found["bytes_before"]
    assert run("compact", "--store", state, "--json") == 0
    assert json.loads(capsys.readouterr().out)["bytes_after"] == pytest.approx(found["bytes_after"], rel=0.2)


def failing(error: Exception) -> object:
    def fail(self: PageStore) -> None:
        raise error

    return fail


def test_without_room_the_error_says_how_much_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = make_state("sqlite", tmp_path)
    before = read_records(state)
    with monkeypatch.context() as patched:
        patched.setattr(SQLite, "compact", failing(StoreError("The disk is full.")))
        with pytest.raises(StoreError, match=r"The disk is full\. The state is not compacted, and no page .* kB free"):
            run("compact", "--store", state)
        patched.setattr(SQLite, "compact", failing(StoreDamaged("It is damaged.")))
        with pytest.raises(StoreDamaged, match=r"^It is damaged\.$"):
            run("compact", "--store", state)
    assert read_records(state) == before
