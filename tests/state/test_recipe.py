"""Which recipes can be compared, and the secret of a state: drawn or given, kept, and never told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from secrets import token_bytes
from typing import Any

import pytest

from scrapy_neardup.errors import SettingsError, StoreDamaged, StoreMismatch
from scrapy_neardup.judge.recipes import DECISIONS_KEY, decide, decisions_of
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.settings import Config
from scrapy_neardup.state.layout import FORMAT, meta_key
from scrapy_neardup.state.opening import close_store, memory_state, open_at, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret, check_recipe, fits, renamed, updated
from scrapy_neardup.state.record import Record

OURS: dict[str, Any] = {
    "method": "m",
    "parameters": {"n": 5},
    "extractor": "reader 2",
    "segmenter": "cutter 1",
    "samples": {"extractor": "aa", "segmenter": "bb"},
}


def theirs(**changes: Any) -> dict[str, Any]:
    return {"format": FORMAT, "secret": "s", **OURS, **changes}


def without_samples(**changes: Any) -> dict[str, Any]:
    found = theirs(**changes)
    del found["samples"]
    return found


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (theirs(), ""),
        (theirs(extractor="reader 1"), ""),
        (theirs(extractor="reader 1", segmenter="blade 7"), ""),
        (without_samples(), ""),
        (theirs(parameters={"n": 5, "threshold": 0.5}), ""),
        (
            theirs(extractor="reader 1", samples={"extractor": "zz", "segmenter": "bb"}),
            "'reader 1' in the state and 'reader 2'",
        ),
        (
            theirs(samples={"extractor": "zz", "segmenter": "bb"}),
            "'reader 2' here, which reads the test samples differently",
        ),
        (without_samples(segmenter="cutter 2"), "segmenter is 'cutter 2' in the state and 'cutter 1' here."),
        (theirs(samples={"segmenter": "bb"}, extractor="shop.reader 3"), "extractor is 'shop.reader 3' in the state"),
        (theirs(parameters={"n": 6}), "parameters.n is 6 in the state and 5 here"),
        (theirs(parameters={}), "parameters.n is None in the state and 5 here"),
        (theirs(method="other"), "method is 'other' in the state and 'm' here"),
        (theirs(hash="x"), "hash is 'x' in the state and None here"),
    ],
)
def test_which_recipes_can_be_compared(written: dict[str, Any], said: str) -> None:
    packed = json.dumps(written).encode()
    assert fits(written, OURS) is not bool(said)
    if not said:
        assert check_recipe(packed, OURS, "there") == written
        return
    with pytest.raises(StoreMismatch) as refused:
        check_recipe(packed, OURS, "there", "--store")
    assert said in str(refused.value)
    assert "--store" in str(refused.value)


def test_own_extractors_and_other_formats_are_told_apart() -> None:
    own = {**OURS, "extractor": "shop.reader 3", "samples": {"segmenter": "bb"}}
    assert fits({"format": FORMAT, **own}, own)
    assert not fits({"format": FORMAT, **own, "extractor": "shop.reader 2"}, own)
    assert not fits({"format": FORMAT, **own, "extractor": "reader 2", "samples": OURS["samples"]}, own)
    for format in [1, 6, 8, None, "7", [7]]:
        with pytest.raises(StoreMismatch, match=f"format {re.escape(str(format))}, but this release uses format 7"):
            check_recipe(json.dumps(theirs(format=format)).encode(), OURS, "there")


def test_what_is_another_is_told_and_taken_on() -> None:
    old = theirs(extractor="reader 1", parameters={"n": 5, "threshold": 0.5})
    assert renamed(old, OURS) == {"extractor": ("reader 1", "reader 2")}
    assert updated(old, OURS) == {**old, "extractor": "reader 2"}
    assert updated(without_samples(), OURS) == theirs()


def test_a_state_names_the_tools_of_now_once_it_has_taken_them_on(tmp_path: Path) -> None:
    place = str(tmp_path / "state.sqlite")
    open_at(SQLite, place, {**OURS, "extractor": "reader 1"}).close()
    for _ in range(2):  # looking alone changes nothing
        looked = open_at(SQLite, place, OURS)
        assert looked.renamed == {"extractor": ("reader 1", "reader 2")}
        looked.close()
    store = open_at(SQLite, place, OURS)
    store.update_recipe(OURS)
    assert (store.renamed, store.recipe["extractor"]) == ({}, "reader 2")
    store.close()
    store = open_at(SQLite, place, None)
    assert (store.renamed, store.recipe["extractor"]) == ({}, "reader 2")
    store.close()


def test_decisions_are_remembered_and_what_changed_is_told(tmp_path: Path) -> None:
    place = str(tmp_path / "state.sqlite")
    store = open_at(SQLite, place, OURS)
    assert decisions_of(store) == {}
    assert decide(store, {"base": 0.5, "policy": ("drop", "tag")}) == {}
    assert decide(store, {"base": 0.5, "policy": ("drop", "tag")}) == {}
    store.close()
    store = open_at(SQLite, place, OURS)
    assert decide(store, {"base": 0.6, "policy": ("drop", "tag"), "more": 1}) == {"base": (0.5, 0.6)}
    assert decisions_of(store) == {"base": 0.6, "policy": ["drop", "tag"], "more": 1}
    store.close()


def test_rows_that_cannot_be_read_are_damage() -> None:
    store = memory_state(OURS)
    store.write(Changes({DECISIONS_KEY: b"7"}))
    with pytest.raises(StoreDamaged, match="cannot be read"):
        decisions_of(store)


# Secrets


RECIPE = {"method": "test"}
GIVEN, OTHER = Secret.shared("a secret for several"), Secret.shared("another for several")
STORES = ["sqlite", "leveldb"]


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a crawl: each is another one."""
    monkeypatch.setattr("scrapy_neardup.state.recipe.token_bytes", token_bytes)


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "leveldb":
        pytest.importorskip("plyvel")
    return f"{request.param}://{tmp_path}/state"


def made(place: str, secret: Secret | None = None) -> PageStore:
    return open_store(place, RECIPE, secret=secret)


def test_each_state_draws_its_own_and_has_it_when_it_is_opened_again(place: str) -> None:
    one, other = made(place), made(f"{place}2")
    drawn = one.secret
    assert drawn is not None
    assert other.secret is not None
    assert (drawn.is_own, len(drawn.value), drawn.value != other.secret.value) == (True, 32, True)
    one.add(Record(one.new_id(), "http://a.example/", 1))
    close_store(one)
    close_store(other)
    with pytest.raises(StoreMismatch, match=r"its own secret.*Remove"):
        made(place, GIVEN)
    again = open_store(place, None)
    assert again.secret == drawn
    assert again.find("http://a.example/") is not None
    close_store(again)


def test_a_given_one_is_not_in_the_state_and_must_be_given_again(place: str) -> None:
    first = made(place, GIVEN)
    assert (first.secret, first.kv.get(meta_key("secret"))) == (GIVEN, None)
    close_store(first)
    with pytest.raises(StoreMismatch, match="another NEARDUP_SECRET"):
        made(place, OTHER)
    looked_at = open_store(place, None)  # what needs no look-up works
    assert list(looked_at.records()) == []
    with pytest.raises(StoreMismatch, match=r"NEARDUP_SECRET.*Set"):
        looked_at.find("http://a.example/")
    close_store(looked_at)
    again = made(place, Secret.shared("a secret for several"))
    assert again.find("http://a.example/") is None
    close_store(again)


@pytest.mark.parametrize("secret", [None, GIVEN])
def test_the_recipe_names_it_and_tells_nothing_of_it(place: str, secret: Secret | None) -> None:
    store = made(place, secret)
    assert store.secret is not None
    told = json.dumps(store.recipe) + repr(store.secret)
    assert store.secret.name in told
    assert not any(secret in told for secret in (store.secret.value.hex(), str(store.secret.value)))
    close_store(store)


def test_the_setting_is_the_same_secret_for_all_who_have_it_and_cannot_be_guessed() -> None:
    config = Config.from_settings({"NEARDUP_SECRET": "a secret for several"})
    assert config.secret == GIVEN
    assert "several" not in repr(config)
    assert Config.from_settings({}).secret is Config.from_settings({"NEARDUP_SECRET": ""}).secret is None
    assert Config.from_settings({"NEARDUP_SECRET": "x" * 16}).secret == Secret.shared("x" * 16)
    with pytest.raises(SettingsError, match=r"at least 16 characters.*python -c"):
        Config.from_settings({"NEARDUP_SECRET": "x" * 15})
    with pytest.raises(SettingsError, match="NEARDUP_SECRET is 7"):
        Config.from_settings({"NEARDUP_SECRET": 7})
