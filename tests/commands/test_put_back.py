"""``dropped``, ``keep``, ``copy``, ``judgements``: dropped pages and manual verdicts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, read_input
from scrapy_neardup.judge.manual_verdicts import ManualKind
from scrapy_neardup.judge.manual_verdicts import manual_verdicts as all_judgements
from scrapy_neardup.maintenance.tables import CRAWLS, Crawl
from tests.build import BREAD, EDITED, PAGES, PEAR, SAME, judge_pages, open_state
from tests.cli import Invoke, run

Capture = pytest.CaptureFixture[str]


def lines(capsys: Capture, *arguments: str | Path) -> list[Any]:
    capsys.readouterr()
    assert run("dropped", *arguments, "--json") == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def said(url: str) -> dict[str, tuple[ManualKind, str]]:
    with open_state(url) as store:
        return {one.url: (one.kind, one.other) for one in all_judgements(store)}


def crawled(url: str, who: str, *, ended: int = 0, counts: dict[str, float] | None = None) -> None:
    """The last crawl of a state is remembered, as a session does."""
    with open_state(url) as store:
        generation = max((int.from_bytes(key[1:9], "big") for key, _ in store.rows(b"d")), default=5)
        CRAWLS.write(store, Crawl(generation, who, ended, counts or {}))


def test_the_last_crawl_is_named_if_it_dropped_nothing(sqlite: str, invoke: Invoke) -> None:
    def last() -> tuple[str, str]:
        return invoke("dropped", "--last", "--store", sqlite)[1:]

    assert last()[1] == "The state remembers no crawl, so --last finds nothing.\n"
    crawled(sqlite, "morning")
    assert len(invoke("dropped", "--last", "--store", sqlite, "--json").rows) == 2
    for counts, said in (({}, "It dropped nothing."), ({"duplicate": 3}, "its 3 copies passed, or NEARDUP_KEEP was")):
        with open_state(sqlite) as store:
            CRAWLS.write(store, Crawl(2**62, "evening", 1_700_000_000, counts))
        out, err = last()
        assert (out, said in err) == ("", True)
        assert err.startswith("The last crawl, evening, began 2116-")
        assert "ended 2023-11-14T22:13:20+00:00.\n" in err


def test_a_site_and_a_time_choose(sqlite: str, capsys: Capture) -> None:
    assert [one["url"] for one in lines(capsys, "--site", "www.mirror.example", "--store", sqlite)] == [EDITED, SAME]
    assert lines(capsys, "--site", "orchard.example", "--store", sqlite) == []
    assert len(lines(capsys, "--since", "1h", "--store", sqlite)) == 2


def test_all_drops_of_the_last_crawl_are_kept_but_those_with_a_manual_verdict(sqlite: str, invoke: Invoke) -> None:
    assert run("keep", "--last", "--store", sqlite) == 0, "no crawl is remembered"
    crawled(sqlite, "morning")
    for site in ("orchard.example", "mirror.example.evil.example"):
        assert run("keep", "--last", "--site", site, "--store", sqlite) == 0
    assert said(sqlite) == {}
    assert run("copy", SAME, PEAR, "--store", sqlite) == 0
    with pytest.raises(NearDupError, match=f"copy --remove {SAME}"):
        run("copy", PEAR, SAME, "--store", sqlite)
    assert run("keep", "--last", "--site", "mirror.example", "--store", sqlite) == 0
    assert said(sqlite) == {EDITED: (ManualKind.KEEP, PEAR), SAME: (ManualKind.COPY, PEAR)}


def test_dropped_pages_that_were_forgotten_since_are_counted(sqlite: str, invoke: Invoke) -> None:
    with open_state(sqlite) as store:
        store.forget([record.id for record in store.records() if record.url == SAME])
    _, out, err = invoke("dropped", "--store", sqlite)
    assert SAME not in out
    assert err == "1 more dropped page forgotten since.\n"


@pytest.mark.parametrize("ending", ["csv", "jsonl.gz"])
def test_keep_reads_the_list_in_any_format(sqlite: str, tmp_path: Path, capsys: Capture, ending: str) -> None:
    file = tmp_path / f"dropped.{ending}"
    assert run("dropped", "-o", file, "--store", sqlite) == 0
    assert f"2 dropped pages written to {file}.\n" in capsys.readouterr().err
    assert [one.fields["original"] for one in read_input(str(file)) if isinstance(one, Entry)] == [PEAR, PEAR]
    assert run("keep", "--from", file, "--store", sqlite) == 0
    assert said(sqlite) == {EDITED: (ManualKind.KEEP, PEAR), SAME: (ManualKind.KEEP, PEAR)}
    assert "2 pages will pass when they come again.\n" in capsys.readouterr().out


def test_pages_are_kept_by_url_and_lines(sqlite: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{EDITED}\n\n {SAME}\n{SAME}\n"))
    assert run("keep", "-", PEAR, "--store", sqlite) == 0
    assert said(sqlite) == {EDITED: (ManualKind.KEEP, PEAR), SAME: (ManualKind.KEEP, PEAR), PEAR: (ManualKind.KEEP, "")}
    printed = capsys.readouterr().out
    assert f"  {SAME}\n    no copy of {PEAR}\n" in printed
    assert f"  {PEAR}\n    no known page was the reason of its drop\n" in printed
    assert [one["judged"] for one in lines(capsys, "--store", sqlite)] == ["keep", "keep"]


def test_a_kept_page_leaves_the_list_once_it_came(sqlite: str, capsys: Capture) -> None:
    assert run("keep", SAME, "--store", sqlite) == 0
    assert [one["judged"] for one in lines(capsys, "--store", sqlite)] == [None, "keep"]
    with open_state(sqlite) as store:
        again = [one for one in PAGES if one[0] in (SAME, EDITED)]
        assert judge_pages(store, again) == ["duplicate (retitled)", "unique"]
    listed = [(one["url"], one["judged"]) for one in lines(capsys, "--store", sqlite)]
    assert listed == [(EDITED, None), (EDITED, None)]
    run("dropped", "--store", sqlite)
    assert "1 more dropped page kept by hand" in capsys.readouterr().err


def test_a_list_that_names_no_page_is_refused_and_nothing_is_done(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    with pytest.raises(NearDupError, match="No page is named"):
        run("keep", "-", "--store", sqlite)
    for second, why in (('{"title": "x"}', "has no url"), ('{"url": ', "cannot be read: .* Nothing is changed")):
        (tmp_path / "list.jsonl").write_text(f'{{"url": "{SAME}"}}\n{second}\n')
        with pytest.raises(NearDupError, match=f"line 2 {why}"):
            run("keep", "--from", tmp_path / "list.jsonl", "--store", sqlite)
    assert said(sqlite) == {}


def test_manual_verdicts_are_labels_for_evaluate(sqlite: str, tmp_path: Path, invoke: Invoke) -> None:
    assert run("keep", SAME, PEAR, "--store", sqlite) == 0
    assert run("copy", BREAD, PEAR, "--store", sqlite) == 0
    assert (
        "1 more manual verdict without a known original"
        in invoke("judgements", "-o", tmp_path / "labels.jsonl", "--store", sqlite).err
    )
    labels = {line["b"]: line for line in map(json.loads, (tmp_path / "labels.jsonl").read_text().splitlines())}
    assert labels[SAME] == {"a": PEAR, "b": SAME, "drop": "no"}
    assert labels[BREAD]["drop"] == "yes"
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(json.dumps({"id": url, "text": text * 3}) + "\n" for url, _, text in PAGES[:4]), "utf-8")
    agreement = invoke("evaluate", docs, "--pairs", tmp_path / "labels.jsonl", "--json").data["agreement"]
    assert (agreement["kept_wrongly"], agreement["dropped_wrongly"]) == (1, 1)
