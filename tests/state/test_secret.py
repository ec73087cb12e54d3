"""The secret of a state: drawn or given, kept, told apart, and never told."""

from __future__ import annotations

import json
from pathlib import Path
from secrets import token_bytes

import pytest

from scrapy_neardup.errors import SettingsError, StoreMismatch
from scrapy_neardup.settings import Config
from scrapy_neardup.state.layout import meta_key
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record

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
