"""The first delivery of an article outlives export, import, merge and repair: its updates pass in all these states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.copying import export, repair
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.maintenance.source import OpenState
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret
from tests.build import kind, make_detector, page, story

SECRET = Secret(bytes(32))
BODY = story(1, 20)
ARTICLE = page("paper", BODY, "渡船事故", site="paper.example")
#: All of the article and 80 % more: no copy of the article, and the article is a copy of this page.
LONGER = page("attacker", [*BODY, *story(2, 16)], "渡船事故", site="attacker.example")


def edited(version: int) -> Page:
    return replace(ARTICLE, text="".join([*BODY[:version], f"更正：第{version}版，无人受伤。", *BODY[version + 1 :]]))


def test_in_copies_of_a_state(tmp_path: Path) -> None:
    recipe = make_method("cascade", {}).recipe()

    def opened(name: str) -> PageStore:
        return open_at(SQLite, str(tmp_path / name), recipe, secret=SECRET)

    store = opened("state")
    for one in (ARTICLE, LONGER, edited(1)):
        kind(make_detector(store), one)
    export(store, (SQLite, str(tmp_path / "exported")))
    merged = opened("merged")
    merge(OpenState(store), merged, make_method("cascade", {}))
    store.close()
    repair((SQLite, str(tmp_path / "state")), (SQLite, str(tmp_path / "mended")))
    for found in (opened("exported"), merged, opened("mended"), opened("state")):
        assert kind(make_detector(found), edited(2)) is Kind.UPDATED, found.location
        found.close()


def test_where_a_merge_adds_it_to_a_state() -> None:
    early, store, method = (*(memory_state({}, secret=SECRET) for _ in range(2)), make_method("cascade", {}))
    kind(make_detector(early), ARTICLE)
    for one in (LONGER, replace(ARTICLE, text="".join(story(7, 20)))):
        kind(make_detector(store), one)
    merge(OpenState(early), store, method)
    size = store.pages
    assert kind(make_detector(store), edited(1)) is Kind.UPDATED
    assert merge(OpenState(early), store, method).known == 1
    assert store.pages == size
