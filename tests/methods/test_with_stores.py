"""Every method with every store: found again, also after reopening, and refused by a state of another."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest

from scrapy_neardup.deduplicator import Deduplicator
from scrapy_neardup.errors import LexiconNeeded, SettingsError, StoreMismatch
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import METHODS
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.urls import STORES
from tests.methods.test_contract import PAGES, made

ON_DISK = [scheme for scheme in STORES if scheme != "memory" and (scheme != "leveldb" or find_spec("plyvel"))]
LASTING = [name for name, method in METHODS.items() if not method.memory_only]


def url(scheme: str, directory: Path) -> str:
    return "memory:" if scheme == "memory" else (directory / "state").as_uri().replace("file", scheme, 1)


def judged(name: str, store: PageStore, page: Page) -> Kind:
    detector = Detector(made(name), store, who="test")
    return detector.judge_now(page, sealed=True).kind


def copy(page: Page) -> Page:
    return Page(page.url.replace("river", "mirror"), f"{page.title}（转载）", text=f"{page.text}\n")


@pytest.mark.parametrize(("name", "scheme"), [*product(LASTING, ON_DISK), *product(METHODS, ["memory"])])
def test_originals_pass_and_copies_are_found_also_after_reopening(name: str, scheme: str, tmp_path: Path) -> None:
    place, recipe = url(scheme, tmp_path), made(name).recipe()
    store = open_store(place, recipe)
    try:
        assert {judged(name, store, page) for page in PAGES.values()} == {Kind.UNIQUE}
        assert {judged(name, store, page) for page in PAGES.values()} == {Kind.UNCHANGED}
        if scheme != "memory":
            close_store(store)
            store = open_store(place, recipe)
        assert {judged(name, store, copy(page)) for page in PAGES.values()} == {Kind.DUPLICATE}
    finally:
        close_store(store)


@pytest.mark.parametrize("scheme", ON_DISK)
def test_a_state_refuses_another_method_and_other_parameters(scheme: str, tmp_path: Path) -> None:
    place = url(scheme, tmp_path)
    close_store(open_store(place, made("simhash").recipe()))
    for other, said in (
        (made("nshash"), "method is 'simhash' in the state"),
        (made("simhash", distance=2), "distance is 3"),
    ):
        with pytest.raises(StoreMismatch, match=said):
            open_store(place, other.recipe())


@pytest.mark.parametrize("scheme", ON_DISK)
def test_cosine_refuses_a_state_in_files_and_makes_none(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cosine .* works only in memory\. Set store = 'memory:'"):
        Deduplicator(url(scheme, tmp_path), method="cosine")
    assert not list(tmp_path.iterdir())


def test_methods_that_need_one_ask_for_a_lexicon_by_the_command() -> None:
    for name in ("imatch", "idf_terms"):
        method = METHODS[name]()
        assert method.fingerprint(PAGES["ferry"]).keys
        with pytest.raises(LexiconNeeded, match=r"scrapy neardup lexicon PAGES\.jsonl -o lexicon\.tsv"):
            method.fingerprint(PAGES["lighthouse"])
