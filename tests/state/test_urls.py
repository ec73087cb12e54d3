"""URLs of states: the engine and location that they name, the default, and the state that a wrong one may mean."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from scrapy_neardup.cli.opening import find_state
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store, open_temporary
from scrapy_neardup.state.urls import STORES, default_url, parse_url, states_near


@pytest.mark.parametrize("scheme", ["leveldb", "sqlite"])
def test_a_url_names_a_store_and_an_absolute_path_without_control_characters(scheme: str, tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    for prefix in (f"{scheme}://", f"{scheme}:", f"{scheme.upper()}://"):
        assert parse_url(f"{prefix}{folder}/state/../state/") == (STORES[scheme], str(folder / "state"))
    assert parse_url(f"{scheme}://{folder}/state%20%E7%8A%B6") == (STORES[scheme], str(folder / "state 状"))
    for character in ("%00", "%0A", "%1b[31m", "%7F", "%C2%9B", "\0", "\x1b"):
        with pytest.raises(SettingsError, match=r"NEARDUP_STORE is .*control character"):
            parse_url(f"{scheme}:///var/lib/sta{character}te")


@pytest.mark.parametrize("kind", ["leveldb", "sqlite"])
def test_a_name_that_is_too_long_for_the_system_is_an_error_in_a_sentence(kind: str, tmp_path: Path) -> None:
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    url = STORES[kind].url(str(tmp_path / ("a" * 300)))
    assert not STORES[kind].exists(parse_url(url)[1])
    with pytest.raises(StoreError, match="too long"):
        open_store(url, {})


def test_a_url_that_names_no_store_or_no_absolute_path_is_refused_with_the_forms_that_do() -> None:
    for url in [
        *("", "memory", "sqlite:///var/lib/sta\nte", "/var/lib/state", "state.sqlite", "file:///var/lib/state"),
        *("leveldb:", "leveldb://", "leveldb:///", "leveldb://state", "leveldb://var/lib/state", "leveldb:state"),
        *("sqlite:", "sqlite:///", "sqlite://state.sqlite", "sqlite:state.sqlite", "sqlite:./state.sqlite"),
        "sqlite://[half/state.sqlite",
    ]:
        with pytest.raises(SettingsError, match="NEARDUP_STORE") as refused:
            parse_url(url)
        assert "///path" in str(refused.value), url
        assert repr(url) in str(refused.value)


@pytest.mark.parametrize("name", ["plain", "with space", "百分%20号", "a#b?c", "x%2Fy"])
def test_the_default_url_leads_back_to_its_directory(name: str, tmp_path: Path) -> None:
    directory = tmp_path.resolve() / name
    kind, location = parse_url(default_url(directory))
    assert Path(location).parent == directory
    assert kind.scheme in Path(location).name


@pytest.mark.parametrize(("installed", "scheme"), [(object(), "leveldb"), (None, "sqlite")])
def test_the_default_is_the_state_that_is_there_else_leveldb_where_it_is_installed_else_sqlite(
    installed: object, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_neardup.state.urls.find_spec", lambda name: installed)
    folder = tmp_path.resolve()
    assert parse_url(default_url(folder))[0] is STORES[scheme]
    if scheme == "sqlite" or find_spec("plyvel"):
        store = open_temporary(folder / "temporary", {}, None)
        assert store.scheme == scheme
        close_store(store)
    for one in ("sqlite", "leveldb"):  # the second, if there are two
        (folder / f"state.{one}").touch()
        assert parse_url(default_url(folder)) == (STORES[one], str(folder / f"state.{one}"))


def made(folder: Path) -> str:
    url = f"sqlite://{folder}/state.sqlite"
    close_store(open_store(url, {}))
    return url


@pytest.mark.parametrize("named", ["state.sqlite", ".", ""])
def test_a_path_gives_the_url_of_its_state(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
