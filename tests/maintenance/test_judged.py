"""What was said of pages by hand travels with a state, and of two judgements the newer one stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict, manual_verdicts, write_manual_verdicts
from scrapy_neardup.maintenance.export import ExportFile, import_state, take_verdicts
from scrapy_neardup.maintenance.lines import verdict_to_data
from scrapy_neardup.maintenance.merge import Merged
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from tests.maintenance.exchange_states import exported, packed
from tests.maintenance.test_damaged_export import lines_of, written
from tests.maintenance.test_merge import FIRST, SECOND, crawl, merged, originals

ODD = ManualVerdict("http://例子.example/\ud800", ManualKind.KEEP, "", 5)


def by_url(store: PageStore) -> dict[str, ManualVerdict]:
    return {one.url: one for one in manual_verdicts(store)}


def test_an_export_holds_them_in_the_same_order_everywhere_and_an_import_has_them(tmp_path: Path) -> None:
    method = make_method("minhash", {})
    store = crawl(method, [FIRST])
    said = [ManualVerdict("http://b.example/", ManualKind.COPY, FIRST.url, 4), ODD]
    write_manual_verdicts(store, *said)
    source = exported(store, tmp_path / "file")
    assert source.verdicts == said
    target = memory_state(source.recipe, secret=source.secret)
    import_state(source, target)
    assert by_url(target) == {one.url: one for one in said}
    assert packed(target) == packed(store)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"judged": "burn"}, "its manual verdict must be keep or copy, not 'burn'"),
        ({"judged": []}, "its manual verdict must be keep or copy"),
        ({"url": 5}, "its manual verdict names no page"),
        ({"other": None}, "its manual verdict names no page"),
        ({"more": 1}, "its manual verdict names no page"),
        ({"when": -1}, "the time of its manual verdict is out of range"),
        ({"when": 2**32}, "the time of its manual verdict is out of range"),
        ({"when": True}, "the time of its manual verdict is out of range"),
    ],
)
def test_a_line_that_is_no_judgement_is_named(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    lines = lines_of()
    lines.insert(-1, {**verdict_to_data(ManualVerdict("http://a.example/", ManualKind.KEEP, "", 1)), **change})
    with pytest.raises(NearDupError, match=why):
        ExportFile(written(tmp_path / "file", json.loads(json.dumps(lines))))


def test_of_two_judgements_the_newer_one_stays_whichever_state_it_is_in() -> None:
    older, newer = (
        ManualVerdict("http://a.example/", ManualKind.KEEP, "", 4),
        ManualVerdict("http://a.example/", ManualKind.COPY, "x", 5),
    )
    for here, there, taken in ((older, newer, 1), (newer, older, 0)):
        store = memory_state({})
        write_manual_verdicts(store, here)
        assert take_verdicts([there, ODD], store) == (taken + 1, 1)
        assert by_url(store) == {newer.url: newer, ODD.url: ODD}
        assert take_verdicts([older, newer, ODD], store)[0] == 0, "the same once more changes nothing"


@pytest.fixture
def cascade() -> Method:
    return make_method("cascade", {})


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_page_that_is_kept_becomes_nobodys_copy_in_a_merge(cascade: Method, where: str) -> None:
    ours, theirs = crawl(cascade, [FIRST]), crawl(cascade, [SECOND])
    write_manual_verdicts(ours if where == "here" else theirs, ManualVerdict(SECOND.url, ManualKind.KEEP, FIRST.url, 4))
    assert merged(ours, theirs, cascade) == Merged(1, 0, 0, 0, int(where == "there"))
    assert originals(ours) == {"first": "first", "second": "second"}
    assert SECOND.url in by_url(ours)
