"""Commands that judge against a state which other versions wrote: they warn and go on, or refuse it if asked to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_neardup.errors import NearDupError, StoreMismatch
from scrapy_neardup.state.history import decisions_of
from scrapy_neardup.state.opening import close_store, open_store
from tests.build import BAKERY, BREAD, EDITED, PEAR, join_text, make_state
from tests.cli import Invoke, run
from tests.crawl.test_recipe import by_version

OLD = "visible prose and trafilatura 1.9 fast"


@pytest.fixture
def state(tmp_path: Path) -> str:
    url = make_state("sqlite", tmp_path)
    by_version(url, OLD)
    return url


def reader_of(url: str) -> str:
    store = open_store(url, None)
    try:
        return str(store.recipe["extractor"])
    finally:
        close_store(store)


def test_compare_warns_and_leaves_the_state_as_it_is(state: str, invoke: Invoke) -> None:
    assert f"the extractor was {OLD} and is visible prose" in invoke("compare", PEAR, EDITED, "--store", state).err
    assert reader_of(state) == OLD
    for strict in (("--strict",), ()):
        with pytest.raises(StoreMismatch, match=r"NEARDUP_STRICT refuses it.* scrapy neardup migrate"):
            run("compare", PEAR, EDITED, "--store", state, *strict, **({} if strict else {"NEARDUP_STRICT": True}))


def test_extract_refuses_a_state_that_was_asked_for(state: str, tmp_path: Path, invoke: Invoke) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<title>Bakery</title><p>{join_text(*BAKERY)}</p>", encoding="utf-8")
    assert "Both read the test samples alike" in invoke("extract", str(page), "--store", state).err
    with pytest.raises(StoreMismatch, match="NEARDUP_STRICT"):
        run("extract", str(page), "--store", state, "--strict")


def test_dedup_continues_an_older_state_and_names_new_decisions(state: str, tmp_path: Path, invoke: Invoke) -> None:
    feed, out = tmp_path / "feed.jsonl", tmp_path / "out.jsonl"
    feed.write_text(json.dumps({"url": BREAD, "title": "Sisters buy the bakery", "text": join_text(*BAKERY)}) + "\n")
    given = (str(feed), "-o", out, "--store", state, "--id", "")
    with pytest.raises(StoreMismatch):
        run("dedup", *given, "--strict")
    assert "Both read the test samples alike" in invoke("dedup", *given).err
    assert reader_of(state) != OLD
    assert (
        "state.sqlite now decides by base = 0.7; before by 0.52."
        in invoke("dedup", *given, "--strict", NEARDUP_PARAMETERS={"base": 0.7}).err
    )
    store = open_store(state, None)
    assert decisions_of(store)["NEARDUP_MIN_LETTERS"] == 40
    close_store(store)


def test_a_page_that_is_known_by_its_url_cannot_be_compared(state: str) -> None:
    settings = {"NEARDUP_METHOD": "minhash"}
    assert run("migrate", "--store", state, **settings) == 0
    with pytest.raises(NearDupError, match="migrated"):
        run("compare", PEAR, BREAD, "--store", state, **settings)


def test_a_migration_needs_and_keeps_a_shared_secret(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/shared.sqlite"
    feed, out = tmp_path / "feed.jsonl", tmp_path / "out.jsonl"
    feed.write_text(json.dumps({"url": BREAD, "title": "Sisters buy the bakery", "text": join_text(*BAKERY)}) + "\n")
    given = (str(feed), "-o", out, "--store", url, "--id", "")
    secret = {"NEARDUP_SECRET": "a secret that several states share"}
    assert run("dedup", *given, **secret) == 0
    with pytest.raises(StoreMismatch, match="NEARDUP_SECRET"):
        run("migrate", "--store", url, NEARDUP_METHOD="nshash")
    assert run("migrate", "--store", url, NEARDUP_METHOD="nshash", **secret) == 0
    assert run("dedup", *given, NEARDUP_METHOD="nshash", **secret) == 0
    assert out.read_text() == ""
