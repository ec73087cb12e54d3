"""A delivered article changes after a longer page with its text appeared: its updates pass under every policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import KeepPolicy
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.copying import repair
from scrapy_neardup.maintenance.export import ExportFile, OpenState, write_export
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Likeness, Page
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret
from tests.build import answer, kind, make_detector, page, story

#: The border between copy and original depends on the secret; under this one the new page is just no copy.
SECRET = Secret(bytes(32))
BODY = story(1, 20)
ARTICLE = page("paper", BODY, "渡船事故", site="paper.example")
#: All of the article and 80 % more: no copy of the article, and the article is one of this page.
LONGER = page("attacker", [*BODY, *story(2, 16)], "渡船事故", site="attacker.example")


def edited(version: int) -> Page:
    return replace(ARTICLE, text="".join([*BODY[:version], f"更正：第{version}版，无人受伤。", *BODY[version + 1 :]]))


def crawl(store: PageStore, policy: KeepPolicy = "first", *, excerpts: bool = False, drops: bool = True) -> Detector:
    also = frozenset({Likeness.EXCERPT} if excerpts else ())
    return make_detector(store, drops=drops, keep=Keep.EVIDENCE, policy=policy, also_copies=also)


@pytest.fixture
def store() -> PageStore:
    return memory_state({}, secret=SECRET)


@pytest.mark.parametrize("policy", ["first", "longest", "canonical", ("attacker.example",)], ids=str)
@pytest.mark.parametrize("excerpts", [False, True], ids=["tag", "drop"])
def test_updates_pass_after_a_longer_page_with_the_text(store: PageStore, policy: KeepPolicy, excerpts: bool) -> None:
    assert kind(crawl(store), ARTICLE) is Kind.UNIQUE
    assert kind(crawl(store, policy, excerpts=excerpts), LONGER) in (Kind.UNIQUE, Kind.BETTER)
    for version in range(1, 6):
        assert kind(crawl(store, policy, excerpts=excerpts), edited(version)) is Kind.UPDATED, version
    assert kind(crawl(store, policy, excerpts=excerpts), edited(5)) is Kind.UNCHANGED
    assert not check(store).counts.keys() - {"left over"}


def test_a_page_elsewhere_that_takes_over_each_version_drops_no_later_one(store: PageStore) -> None:
    """The later page is as long as the article, and is edited after each of its updates."""
    kind(crawl(store), ARTICLE)
    mirror = replace(LONGER, text=ARTICLE.text + "".join(story(3, 18)))
    for version in range(1, 5):
        kind(crawl(store), replace(mirror, text=edited(version).text + "".join(story(3 + version, 18))))
        assert kind(crawl(store), edited(version)) is Kind.UPDATED


def test_an_old_page_that_takes_over_the_article_is_newer_than_it(store: PageStore) -> None:
    old = replace(LONGER, text="".join(story(9, 20)))
    for one in (old, ARTICLE, LONGER):
        assert kind(crawl(store), one) in (Kind.UNIQUE, Kind.UPDATED)
    assert kind(crawl(store), edited(1)) is Kind.UPDATED


def test_a_page_that_becomes_a_copy_of_an_older_one_is_a_duplicate(store: PageStore) -> None:
    older, newer = LONGER, page("newer", [*BODY, *story(4, 16)], "渡船事故", site="newer.example")
    other = replace(ARTICLE, text="".join(story(5, 20)))
    assert [kind(crawl(store), one) for one in (older, other)] == [Kind.UNIQUE, Kind.UNIQUE]
    assert answer(crawl(store), newer).kind is Kind.UNIQUE
    found = answer(crawl(store), ARTICLE)
    assert (found.kind, found.as_tag()["original"]) == (Kind.DUPLICATE, older.url)


def test_a_copy_that_the_policy_lets_pass_stays_one_when_its_original_is_updated(store: PageStore) -> None:
    mirror = page("mirror", BODY, "渡船事故", site="mirror.example")
    tags = crawl(store, drops=False)
    assert [kind(tags, one) for one in (ARTICLE, mirror, edited(1))] == [Kind.UNIQUE, Kind.DUPLICATE, Kind.UPDATED]
    assert kind(crawl(store, drops=False), replace(mirror, text=edited(1).text + "转载。")) is Kind.DUPLICATE


def test_the_first_delivery_outlives_export_import_merge_and_repair(tmp_path: Path) -> None:
    """One update came after the longer page; the next one passes in each of these states."""
    recipe = make_method("cascade", {}).recipe()

    def opened(name: str) -> PageStore:
        return open_at(SQLite, str(tmp_path / name), recipe, secret=SECRET)

    store = opened("state")
    for one in (ARTICLE, LONGER, edited(1)):
        kind(crawl(store), one)
    with (tmp_path / "state.gz").open("wb") as stream:
        write_export(store, stream)
    imported, merged = opened("imported"), opened("merged")
    merge(ExportFile(tmp_path / "state.gz"), imported)
    merge(OpenState(store), merged, make_method("cascade", {}))
    store.close()
    repair((SQLite, str(tmp_path / "state")), (SQLite, str(tmp_path / "mended")))
    for found in (imported, merged, opened("mended"), opened("state")):
        assert kind(crawl(found), edited(2)) is Kind.UPDATED, found.location
        found.close()


def test_a_merge_takes_over_the_earlier_first_delivery(store: PageStore) -> None:
    early, method = memory_state({}, secret=SECRET), make_method("cascade", {})
    kind(crawl(early), ARTICLE)
    for one in (LONGER, replace(ARTICLE, text="".join(story(7, 20)))):
        kind(crawl(store), one)
    merge(OpenState(early), store, method)
    size = store.pages
    assert kind(crawl(store), edited(1)) is Kind.UPDATED
    assert merge(OpenState(early), store, method).known == 1
    assert store.pages == size
