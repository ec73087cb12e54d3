"""``scrapy neardup batch``: its files, in processes of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from scrapy_neardup.errors import NearDupError, SettingsError
from tests.batch import write_records
from tests.build import article_text
from tests.cli import Invoke

RECORDS = [
    {"id": f"{family}-{version}", "title": f"题{family}", "text": article_text(family, version), "extra": version}
    for version in range(2)
    for family in range(3)
]


@pytest.mark.slow
def test_all_files_are_written(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for at in (0, 3):
        write_records(tmp_path / f"part{at}.jsonl", RECORDS[at : at + 3])
    done = invoke("batch", "part*.jsonl", "-o", "verdicts.parquet", "--kept", "kept.jsonl", "--json")
    assert json.loads(done.out)["verdicts"]["duplicate"] == 3
    rows = pq.read_table(tmp_path / "verdicts.parquet").to_pylist()
    assert [[*row.values()][:3] for row in rows[2:4]] == [["part0.jsonl", 2, "2-0"], ["part3.jsonl", 0, "0-1"]]
    assert [row["original"] for row in rows] == [None, None, None, "0-0", "1-0", "2-0"]
    assert rows[0]["similar_id"] == rows[3]["similar_id"]
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert kept == RECORDS[:3]
    assert "--text" in invoke("batch", "part0.jsonl", "-o", "none.parquet", "--text", "body").err


@pytest.mark.parametrize(
    ("options", "settings", "named"),
    [
        (["--memory", "much"], {}, "--memory"),
        (["--store", "redis://host/0?state=a"], {"NEARDUP_METHOD": "simhash"}, "--store"),
        ([], {"NEARDUP_KEEP_POLICY": "longest"}, "NEARDUP_KEEP_POLICY"),
        (["-o", "v.txt"], {}, "^-o is 'v.txt'.* FILE.parquet"),
    ],
)
def test_wrong_options_are_refused(
    invoke: Invoke, tmp_path: Path, options: list[str], settings: dict[str, str], named: str
) -> None:
    name = write_records(tmp_path / "pages.jsonl", RECORDS)
    with pytest.raises(SettingsError, match=named):
        invoke("batch", name, "-o", str(tmp_path / "verdicts.parquet"), *options, **settings)


@pytest.mark.parametrize("option", ["--kept", "--rejects"])
def test_an_output_that_is_an_input_is_refused(invoke: Invoke, tmp_path: Path, option: str) -> None:
    name = write_records(tmp_path / "pages.jsonl", RECORDS)
    with pytest.raises(NearDupError, match="is also an input"):
        invoke("batch", name, "-o", str(tmp_path / "verdicts.parquet"), option, name)
