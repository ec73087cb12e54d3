"""Whoever names a path where a URL is wanted, or the wrong one, is told the URL of the state that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_neardup.cli.opening import find_state
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.urls import parse_url, states_near


def made(folder: Path) -> str:
    """The URL of a state under its usual name in a folder."""
    url = f"sqlite://{folder}/state.sqlite"
    close_store(open_store(url, {}))
    return url


@pytest.mark.parametrize("named", ["state.sqlite", ".", ""])
def test_a_path_is_answered_with_the_url_of_the_state_that_is_there(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = made(tmp_path)
    monkeypatch.chdir(tmp_path)
    path = named or str(tmp_path)
    with pytest.raises(SettingsError) as refused:
        parse_url(path, "--store")
    assert str(refused.value) == f"--store is {path!r}, which names no state. Use {url}."


def test_where_there_is_none_the_forms_are_shown(tmp_path: Path) -> None:
    for path in (str(tmp_path / "state.sqlite"), "", "a\0b", "x" * 5000):
        assert states_near(path) == []
        with pytest.raises(SettingsError, match="Use leveldb:///path, sqlite:///path or memory:"):
            parse_url(path)


@pytest.mark.parametrize("form", ["leveldb://{}/state.sqlite", "leveldb://{}", "sqlite://{}"])
def test_a_url_beside_it_is_answered_with_the_right_one(form: str, tmp_path: Path) -> None:
    url = made(tmp_path)
    with pytest.raises(StoreError, match=r"There is no state at .*--store sqlite://") as told:
        find_state(form.format(tmp_path), Config())
    assert str(told.value).endswith(url)
