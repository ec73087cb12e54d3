"""Whose state it is: one for each spider, one for the project, or as NEARDUP_STORE names it."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_neardup.cli.opening import find_state
from scrapy_neardup.crawl.state_location import data_directory, state_url, states_there
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.urls import STORES, parse_url
from tests.cli import add_spider, make_project, run_scrapy, start_scrapy
from tests.crawl.parts import Patch

DEFAULT = "state.leveldb" if find_spec("plyvel") else "state.sqlite"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: Patch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


def named(name: str, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(name=name, **more)


def config(**settings: Any) -> Config:
    return Config.from_settings(settings)


def begin(url: str) -> None:
    close_store(open_store(url, {}))


def place(url: str) -> Path:
    return Path(parse_url(url)[1])


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("leveldb:///data/%(name)s", "/data/news"),
        ("sqlite:///data/%(name)s-%(day)03d.sqlite", "/data/news-007.sqlite"),
        ("sqlite:///data/%(rate).1f/%(name)s", "/data/0.2/news"),
        ("sqlite:///with%20space/%(name)s", "/with space/news"),
        ("sqlite:///plain", "/plain"),
    ],
)
def test_a_placeholder_stands_for_an_attribute_of_the_spider(store: str, expected: str) -> None:
    assert parse_url(state_url(config(NEARDUP_STORE=store), named("news", day=7, rate=0.25)))[1] == expected


NAMES = ["a/b", "..", ".", "a\\b", "../../etc", "a\0b", "a\nb", "a b", "a%2Fb", "a%b", "C:", "新闻", "a?b#c", "x."]


def test_no_name_leads_out_of_its_directory_and_two_names_never_make_one_state() -> None:
    for settings, parent in [
        *((config(NEARDUP_STORE=f"sqlite:///data/{end}"), "/data") for end in ("%(name)s", "%(name)s.x", "%(name)s%%")),
        (config(NEARDUP_STORE="leveldb:///data/%(name)s"), "/data"),
        (config(), ""),
    ]:
        found = [place(state_url(settings, named(name))) for name in (*NAMES, "\ud800")]
        assert len(set(found)) == len(found)
        parents = {one.parent if parent else one.parent.parent for one in found}
        assert parents == {Path(parent) if parent else data_directory().absolute() / "spiders"}


@pytest.mark.parametrize(
    ("spider", "said"),
    [
        (None, "which needs the site of a spider. Name the spider with --spider NAME"),
        (named("news"), "the spider news has no site. Set that attribute"),
        (named("news", site=None), "the spider news has no site"),
        (named("news", site=""), "site is empty. Give it a value"),
        (named("news", site=print), "which cannot be part of a name. Use an attribute"),
        (named("news", site=["a"]), "which cannot be part of a name"),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_refused_with_the_cure(spider: Any, said: str) -> None:
    with pytest.raises(SettingsError, match="NEARDUP_STORE is 'sqlite:///data/") as refused:
        state_url(config(NEARDUP_STORE="sqlite:///data/%(site)s"), spider)
    assert said in str(refused.value)


def test_a_command_takes_the_only_state_there_is(folder: Path) -> None:
    with pytest.raises(StoreError, match=r"There is no state at .*neardup\. Name .* --spider NAME"):
        find_state(None, config())
    only = state_url(config(), named("one"))
    begin(only)
    assert find_state(None, config()) == only
    begin(state_url(config(), named("two/three")))
    with pytest.raises(SettingsError, match="with --spider NAME") as refused:
        find_state(None, config())
    assert str(refused.value).endswith(f"two%252Fthree/{DEFAULT}")
    assert f"spiders/one/{DEFAULT}, " in str(refused.value)


@pytest.mark.parametrize("scheme", [scheme for scheme, kind in STORES.items() if kind.is_persistent])
def test_a_command_lists_the_states_that_placeholders_have_made(scheme: str, folder: Path) -> None:
    if scheme == "leveldb":
        pytest.importorskip("plyvel")
    settings = config(NEARDUP_STORE=f"{scheme}://{folder}/%5Bx%5D/%(name)s.d/%(day)s")
    with pytest.raises((StoreError, SettingsError)):
        find_state(None, settings)
    for name, day in (("one", 1), ("two", 2), ("three", 3)):
        begin(url := state_url(settings, named(name, day=day)))
        if name == "one":
            assert find_state(None, settings) == url
    with pytest.raises(SettingsError, match=r"name of a spider.*States that exist") as refused:
        find_state(None, settings)
    assert all(f"{name}.d/{day}" in str(refused.value) for name, day in (("one", 1), ("two", 2), ("three", 3)))
    assert len(states_there(settings)) == 3


SPIDERS = """
from scrapy import Spider

class First(Spider):
    name = "first"

class Second(Spider):
    name = "second"
    site = "the site"
    custom_settings = {"NEARDUP_STORE": "sqlite://FOLDER/%(site)s.sqlite"}

    async def start(self):
        for number in range(2):
            yield {"url": f"http://{self.site}.example/{number}", "text": "渡船停航，第%d号通知。" % number * 9}
"""


@pytest.mark.slow
def test_commands_find_the_state_of_a_spider_of_a_project(folder: Path) -> None:
    """With its own settings: the second one has another store by them."""
    add_spider(make_project(folder), "")
    code = SPIDERS.replace("FOLDER", str(folder))
    (folder / "shop" / "spiders.py").write_text(code, encoding="utf-8")
    done = start_scrapy("crawl", "second", cwd=folder)
    assert "State: 2 pages" in done.stderr, done.stderr
    assert (folder / "the site.sqlite").is_file()
    for name in ("first", "third"):
        begin(state_url(config(), named(name)))
    done = run_scrapy("stats", "--json", "--spider", "second", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pages"] == 2
    for wrong, said in ((["--spider", "secnod"], "the spiders here are first, second"), ([], "spiders/third/")):
        done = run_scrapy("stats", *wrong, cwd=folder)
        assert (done.returncode, said in done.stderr) == (2, True)
