"""Every format that is written can be read again, and nothing that it cannot hold is lost or run."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files.entry import BOM
from scrapy_neardup.files.writers import WRITERS, as_json, find_output_format, open_output
from tests.files.samples import RECORDS, fields, read

TAG = {"verdict": "duplicate", "original": "https://a.example/0", "similarity": 0.91, "shared": ["a, b", "渡口"]}
FLAT = {"neardup.verdict": "duplicate", "neardup.original": TAG["original"]}
TABLES = ("csv", "parquet")
FORMATS = pytest.mark.parametrize("format", WRITERS)


def write(folder: Path, format: str, *records: Mapping[str, Any], tag: Any = None, **options: Any) -> Path:
    path = folder / f"out.{format}"
    with open_output(str(path), find_output_format(str(path)), "neardup", **options) as out:
        for record in records:
            out.write(record, tag)
    return path


@FORMATS
@pytest.mark.parametrize("suffix", ["", ".zst"])
def test_records_come_back_with_their_verdict(tmp_path: Path, format: str, suffix: str) -> None:
    plain = write(tmp_path, format, *RECORDS, tag=TAG)
    path = str(plain) + suffix
    with open_output(path, find_output_format(path), "neardup") as out:
        for record in RECORDS:
            out.write(record, TAG)
    found = fields(read(path))
    assert found == fields(read(plain))
    for record, one in zip(RECORDS, found, strict=True):
        assert {name: one[name] or "" for name in record} == record
        if format == "csv":
            assert {name: one[name] for name in FLAT} == FLAT
        else:
            assert {name: str(value) for name, value in one["neardup"].items()} == {
                name: str(value) for name, value in TAG.items()
            }


def test_a_line_of_json_keeps_its_bytes_before_the_tag() -> None:
    file = io.BytesIO()
    writer = WRITERS["jsonl"](file, "neardup")
    line = b'{"id":  7.10, "half": "\\ud83d"}'
    writer.write({"id": 7.1, "half": "\ud83d"}, None, line)
    writer.write({"id": 7.1, "half": "\ud83d"}, {"verdict": "unique"}, line)
    writer.write({"neardup": "old"}, {"verdict": "unique"}, b'{"neardup":  "old"}')
    writer.write({}, {"verdict": "unique"}, b"{}")
    assert file.getvalue().splitlines() == [
        line,
        line[:-1] + b', "neardup": {"verdict": "unique"}}',
        b'{"neardup": {"verdict": "unique"}}',
        b'{"neardup": {"verdict": "unique"}}',
    ]
    assert as_json({"half": "\ud83d桥"}) == b'{"half": "\\ud83d\\u6865"}'
    assert as_json("桥") == '"桥"'.encode()


@pytest.mark.parametrize("format", TABLES)
def test_a_table_that_would_lose_a_field_is_not_written(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, format, {"a": 1, "b": "x"}, {"a": 2})
    assert [record["b"] or "" for record in fields(read(path))] == ["x", ""]
    before = path.read_bytes()
    with pytest.raises(NearDupError, match="lacks: c, d"):
        write(tmp_path, format, *[{"a": 1}] * 1000, {"d": 1, "a": 2, "c": 3})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


CELLS = ["=1+1", "@sum", "+x", "＝1", "\t=1", "-1.5", "-x", "渡口", "'"]


def test_formulas_are_counted_and_written_as_text_where_that_is_asked_for(tmp_path: Path) -> None:
    record = {"=name": "x", **{f"c{place}": cell for place, cell in enumerate(CELLS)}}
    for for_spreadsheet in (False, True):
        with open_output(str(tmp_path / "a.csv"), "csv", "tag", for_spreadsheet=for_spreadsheet) as out:
            out.write(record, None)
        written = (tmp_path / "a.csv").read_bytes()
        assert written.startswith(BOM) == for_spreadsheet  # or Excel shows other characters
        rows = list(csv.reader(io.StringIO(written.decode("utf-8-sig"))))
        assert out.formulas == 7
        mark = "'" if for_spreadsheet else ""
        assert rows[0][0] == f"{mark}=name"
        assert rows[1][1:] == [f"{mark}{cell}" for cell in CELLS[:5]] + ["-1.5", f"{mark}-x", "渡口", "'"]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([{"a": 1}, {"a": [2]}], "do not form a table"),
        ([{"a": 1}, {"a": "x"}], "does not fit the columns"),
        ([{"a": 1}] * 1000 + [{"a": "x"}], "does not fit the columns"),
    ],
)
def test_columns_of_parquet_have_one_type(tmp_path: Path, records: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(NearDupError, match=said):
        write(tmp_path, "parquet", *records)
    assert list(tmp_path.iterdir()) == []


@FORMATS
def test_a_file_appears_when_it_is_complete_and_an_empty_one_is_one(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"out.{format}"
    with suppress(KeyError), open_output(str(path), format, "neardup") as out:
        out.write({"a": 1}, None)
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    if format != "parquet":  # it has no columns then
        assert fields(read(write(tmp_path, format))) == []


def test_formats_are_known_by_suffix_and_standard_output_is_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"a.JL": "jsonl", "a.ndjson.gz": "jsonl", "-": "jsonl", "c.csv.zst": "csv"}
    assert {name: find_output_format(name) for name in names} == names
    with pytest.raises(NearDupError, match="names no output format"):
        find_output_format("a.doc")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer := io.BytesIO()))
    with open_output("-", "jsonl", "neardup") as out:
        out.write({"a": 1}, None)
    assert buffer.getvalue() == b'{"a": 1}\n'
