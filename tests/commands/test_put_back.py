"""``dropped``, ``keep``, ``copy``, ``judgements``: dropped pages and manual verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.judge.lists import ManualKind, manual_verdicts
from scrapy_neardup.maintenance.tables import CRAWLS, Crawl
from tests.build import BREAD, EDITED, PAGES, PEAR, SAME, judge_pages, open_state
from tests.cli import Invoke, run

KEEP, COPY = ManualKind.KEEP, ManualKind.COPY


def verdicts(url: str) -> dict[str, tuple[ManualKind, str]]:
    with open_state(url) as store:
        return {one.url: (one.kind, one.other) for one in manual_verdicts(store)}


def crawled(url: str, who: str, generation: int = 0) -> None:
    """The last crawl of a state is remembered, as a session does; without a generation it is that of the drops."""
    with open_state(url) as store:
        drops = max(int.from_bytes(key[1:9], "big") for key, _ in store.rows(b"d"))
        CRAWLS.write(store, Crawl(generation or drops, who))


def test_the_last_crawl_is_named_if_it_dropped_nothing(sqlite: str, invoke: Invoke) -> None:
    last = "dropped", "--last", "--store", sqlite
    assert (
        invoke(*last).err == "The state remembers no crawl, so --last finds nothing. Use --since, such as --since 1h.\n"
    )
    crawled(sqlite, "morning")
    assert len(invoke(*last, "--json").rows) == 2
    crawled(sqlite, "evening", 2**62)
    done = invoke(*last)
    assert (done.out, done.err.startswith("The last crawl, evening, began 2116-")) == ("", True)
    assert done.err.endswith("The state remembers no such drop.\n")


def test_all_drops_of_the_last_crawl_are_kept_but_those_with_a_manual_verdict(sqlite: str) -> None:
    assert run("keep", "--last", "--store", sqlite) == 0, "no crawl is remembered"
    crawled(sqlite, "morning")
    for site in ("orchard.example", "mirror.example.evil.example"):
        assert run("keep", "--last", "--site", site, "--store", sqlite) == 0
    assert verdicts(sqlite) == {}
    assert run("copy", SAME, PEAR, "--store", sqlite) == 0
    with pytest.raises(NearDupError, match=f"keep --remove {SAME}"):
        run("copy", PEAR, SAME, "--store", sqlite)
    assert run("keep", "--last", "--site", "mirror.example", "--store", sqlite) == 0
    assert verdicts(sqlite) == {EDITED: (KEEP, PEAR), SAME: (COPY, PEAR)}


def test_forgotten_and_redelivered_pages_are_not_listed(sqlite: str, invoke: Invoke) -> None:
    assert run("keep", SAME, "--store", sqlite) == 0
    dropped = "dropped", "--store", sqlite
    assert [one["judged"] for one in invoke(*dropped, "--json").rows] == [None, "keep"]
    with open_state(sqlite) as store:
        again = [one for one in PAGES if one[0] in (SAME, EDITED)]
        assert judge_pages(store, again) == ["duplicate (retitled)", "unique"]
    done = invoke(*dropped, "--json")
    assert [(one["url"], one["judged"]) for one in done.rows] == [(EDITED, None), (EDITED, None)]
    with open_state(sqlite) as store:
        store.forget([record.id for record in store.records() if record.url == EDITED])
    assert invoke(*dropped, "--json").rows == []


def test_an_original_whose_new_text_was_dropped_is_listed_until_it_comes_again(sqlite: str, invoke: Invoke) -> None:
    taken_over = [(BREAD, title, text) for url, title, text in PAGES if url == PEAR]
    for verdict, listed in (("duplicate (identical)", 3), ("updated", 2)):
        with open_state(sqlite) as store:
            assert judge_pages(store, taken_over) == [verdict]
        assert run("keep", BREAD, "--store", sqlite) == 0
        found = invoke("dropped", "--store", sqlite, "--json").rows
        assert [one["judged"] for one in found if one["url"] == BREAD] == ["keep"] * (listed - 2)
        assert len(found) == listed


def test_pages_are_kept_by_url(sqlite: str, invoke: Invoke) -> None:
    out = invoke("keep", PEAR, SAME, "--store", sqlite).out
    assert verdicts(sqlite) == {SAME: (KEEP, PEAR), PEAR: (KEEP, "")}
    assert out.startswith("2 pages will pass when they come again.\n")
    assert f"  keep  {SAME}\n    no copy of {PEAR}\n" in out
    assert f"  keep  {PEAR}\n" in out


def test_manual_verdicts_are_labels_for_evaluate(sqlite: str, tmp_path: Path, invoke: Invoke) -> None:
    assert run("keep", SAME, PEAR, "--store", sqlite) == 0
    assert run("copy", BREAD, PEAR, "--store", sqlite) == 0
    done = invoke("judgements", "--json", "--store", sqlite)
    assert "1 more manual verdict without a known original" in done.err
    assert {(one["a"], one["b"], one["drop"]) for one in done.rows} == {(PEAR, SAME, "no"), (PEAR, BREAD, "yes")}
    labels, docs = tmp_path / "labels.jsonl", tmp_path / "docs.jsonl"
    labels.write_text(done.out)
    docs.write_text("".join(json.dumps({"id": url, "text": text * 3}) + "\n" for url, _, text in PAGES[:4]), "utf-8")
    found = invoke("evaluate", docs, "--pairs", labels, "--json").data
    assert (found["kept_wrongly"], found["dropped_wrongly"]) == (1, 1)
    assert {(one["b"], one["drop"]) for one in found["wrong"]} == {(SAME, "no"), (BREAD, "yes")}
