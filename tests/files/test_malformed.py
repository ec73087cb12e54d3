"""Malformed records are named by their place, and reading goes on if it can."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, Malformed, entry, read_input
from tests.files.samples import PACKERS, RECORDS, fields, packed, read, read_until_error, summaries

A, B = {"text": "渡船来了。"}, {"text": "The boat is here."}
LINE_A, LINE_B = '{"text": "渡船来了。"}'.encode(), b'{"text": "The boat is here."}'
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"text": "cut', "not JSON: Unterminated string starting at at character 10"),
        (b"a,b,c", "not JSON: Expecting value at character 1"),
        (b'{"a": 1} {"b": 2}', "not JSON: Extra data at character 10"),
        (b'{"text": "\xd0\xcf"}', "not UTF-8: invalid continuation byte at byte 11"),
        (b'\xef\xbb\xbf{"text": "t"}', "not JSON: Unexpected UTF-8 BOM (decode using utf-8-sig) at character 1"),
        (b"[1, 2]", "not an object but a list"),
        (b"null", "not an object but null"),
        (b'"text"', "not an object but a string"),
        (b"1.5", "not an object but a number"),
        (b"true", "not an object but true or false"),
        (b'{"a": ' + DEEP + b"}", "JSON with lists or objects nested too deeply"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_malformed_line_is_passed_on_unchanged(tmp_path: Path, line: bytes, why: str) -> None:
    file = tmp_path / "feed.jsonl"
    file.write_bytes(LINE_A + b"\n" + line + b"\r\n" + LINE_B)
    assert summaries(read(file)) == [(1, A), (2, "malformed", why, line), (3, B)]


def test_line_numbers_count_blank_lines_and_lines_stay_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "feed.jl"
    file.write_bytes(b'\xef\xbb\xbf  {"text": "t"} \r\n\r\n  \n\t{"id":  7}\n{}')
    found = [one for one in read(file) if isinstance(one, Entry)]
    assert [(one.number, one.line, one.fields) for one in found] == [
        (1, b'  {"text": "t"} ', {"text": "t"}),
        (4, b'\t{"id":  7}', {"id": 7}),
        (5, b"{}", {}),
    ]


def test_a_line_that_is_not_wanted_is_not_parsed(tmp_path: Path) -> None:
    file = tmp_path / "feed.jsonl"
    file.write_bytes(b"{broken\n\n" + LINE_A + b"\n{broken too")
    found = [*read_input(str(file), is_wanted={1}.__contains__)]
    assert summaries(found) == [(1, "skipped", "not wanted"), (3, A), (4, "skipped", "not wanted")]


def test_a_line_without_end_is_not_taken_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "LARGEST", 30)
    file = tmp_path / "feed.jsonl"
    just = b'{"text": "' + b"x" * 17 + b'"}\n'
    file.write_bytes(just + b'{"text": "' + b"x" * 100_000 + b'"}\n' + just.strip())
    why = "too long: 100,013 bytes with the line end; the first 30 bytes are kept"
    record = {"text": "x" * 17}
    assert summaries(read(file)) == [(1, record), (2, "malformed", why, b'{"text": "' + b"x" * 20), (3, record)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbf \n [ ] \n", []),
        (b"[%s, %s]" % (LINE_A, LINE_B), [(1, A), (2, B)]),
        (b"[null, %s]" % LINE_A, [(1, "malformed", "not an object but null", b"null"), (2, A)]),
        (b'[{"a": "]}, [{ \\" \\\\"}, %s]' % LINE_A, [(1, {"a": ']}, [{ " \\'}), (2, A)]),
        (
            b'[{"a": 123456789012345678901234567890, "b": 1e3}]',
            [(1, {"a": 123456789012345678901234567890, "b": 1000.0})],
        ),
        (b'[{"half": "\\ud83d"}]', [(1, {"half": "\ud83d"})]),
        (b'{\n  "a": {"b": []}\n}', [(1, {"a": {"b": []}})]),
        (b'[\n{},\n{\n"a": 1\n}\n]', [(1, {}), (2, {"a": 1})]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_json_files_of_every_shape(tmp_path: Path, content: bytes, expected: list[Any]) -> None:
    file = tmp_path / "feed.json"
    file.write_bytes(content)
    found = read(file)
    assert summaries(found) == expected
    assert {one.unit for one in found} <= {"item"}


def test_a_list_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "LARGEST", 50)
    file = tmp_path / "feed.json"
    for content in (b"[%s]", b"[\n [%s]\n]"):
        file.write_bytes(content % (LINE_A + b" " * (200 - len(content % LINE_A))))
        assert len(read(file)) == 1
        file.write_bytes(file.read_bytes() + b"\n" * 9)
        with pytest.raises(NearDupError, match=r"more than 200 bytes.*jq"):
            read(file)


@pytest.mark.skipif(sys.platform == "win32", reason="it runs grep and sed")
def test_a_refused_feed_says_how_to_read_it(tmp_path: Path) -> None:
    """Two crawls wrote it; the second one was killed."""
    file = tmp_path / "feed.json"
    file.write_bytes(b'[\n%s,\n%s\n][\n%s,\n{"url": "ht' % (LINE_A, LINE_B, LINE_A))
    with pytest.raises(NearDupError) as refused:
        read(file)
    command = re.findall("grep .*?jsonl", str(refused.value))[0].replace("FILE", str(file))
    subprocess.run(["sh", "-c", command], check=True)
    found = read(tmp_path / "feed.json.jsonl")
    assert [one.line for one in found if isinstance(one, Entry)] == [LINE_A, LINE_B, LINE_A]
    assert len(found) == 4


def test_json_lines_under_the_name_of_json_are_read_as_lines(tmp_path: Path) -> None:
    file = tmp_path / "feed.json"
    file.write_bytes(b"\xef\xbb\xbf\n" + LINE_A + b"\n{broken\n" + LINE_B)
    found = read(file)
    assert [one.place for one in found] == [f"{file}, line {number}" for number in (2, 3, 4)]
    assert [one.line if isinstance(one, Entry) else one.why[:8] for one in found] == [LINE_A, "not JSON", LINE_B]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("feed.json", b"[%s, %s" % (LINE_A, LINE_B), "no JSON in UTF-8 .Expecting ',' delimiter"),
        ("feed.json", b"[\n%s\n][\n%s\n]" % (LINE_A, LINE_B), "no JSON in UTF-8 .Extra data.*jq"),
        ("feed.json", b"[%s] and more" % LINE_A, "no JSON in UTF-8 .Extra data"),
        ("feed.json", b'[%s, {"a": %s}]' % (LINE_A, DEEP), "no JSON in UTF-8 .maximum recursion depth"),
        ("feed.json", b'[{"text": "\xd0\xcf"}]', "no JSON in UTF-8 .not UTF-8"),
        ("feed.json", b"url,text", "no JSON in UTF-8.* suffix of its format"),
        ("feed.json", "[]".encode("utf-16"), "no JSON in UTF-8 .not UTF-8"),
        ("feed.csv", b"a,a\n1,2\n", "several columns named 'a'"),
        ("feed.csv", b",,a\n1,2,3\n", "several columns without a name"),
        ("feed.csv", "标题,正文\n".encode("gb18030"), "not UTF-8.*iconv"),
        ("feed.csv", b'url,"text\n1,2\n', "first row opens a quotation mark"),
        ("table.parquet", b"PAR1 and no more", "from its start: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_broken_from_its_start_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NearDupError, match=f"{re.escape(str(tmp_path / name))}.*{said}"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbf\r\nurl,text\r\n\r\n1,\r\n", [(4, {"url": "1", "text": ""})]),
        (b"url;text\n1;a,b\n", [(2, {"url": "1", "text": "a,b"})]),
        (b"url\ttext\n1\ta,b\n", [(2, {"url": "1", "text": "a,b"})]),
        (b"url\r1\r2", [(2, {"url": "1"}), (3, {"url": "2"})]),
        (
            b",text,,\n0,a,,\n1,b,,c\n2,c\n",
            [
                (2, {"": "0", "text": "a"}),
                (3, "malformed", "a value after column 2, the last column with a name", b"1,b,,c"),
                (4, "malformed", "2 cells instead of 4", b"2,c"),
            ],
        ),
        (
            b'a,b\n1\n"1\n\n2",3,4\n5,6',
            [
                (2, "malformed", "1 cells instead of 2", b"1"),
                (3, "malformed", "3 cells instead of 2", b'"1\n\n2",3,4'),
                (6, {"a": "5", "b": "6"}),
            ],
        ),
        (b"a,b\n1,\xd0\xcf\r\n3,4\n", [(2, "malformed", "not UTF-8", b"1,\xd0\xcf"), (3, {"a": "3", "b": "4"})]),
        (
            b'a,b\n1,2\n3,"4\n5,6\n',
            [
                (2, {"a": "1", "b": "2"}),
                (3, "malformed", "a quotation mark is never closed, so the rest of the file is one cell", b'3,"4\n5,6'),
            ],
        ),
        (b'a,b\n1,"2" x\n', [(2, {"a": "1", "b": "2 x"})]),
    ],
)
def test_tables_of_every_shape(tmp_path: Path, content: bytes, expected: list[Any]) -> None:
    file = tmp_path / "feed.csv"
    file.write_bytes(content)
    assert summaries(read(file)) == expected


def test_after_a_cell_that_is_too_large_the_next_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "LARGEST", 100)
    file = tmp_path / "feed.csv"
    file.write_bytes(b'a,b\n1,"' + b"word\n" * 30 + b'"\n')
    found = read(file)
    assert summaries(found)[0][:3] == (2, "malformed", "not CSV: field larger than field limit (100)")
    # The rest of the cell is rows of its own now, none of which is lost.
    assert b"\n".join(one.raw for one in found if isinstance(one, Malformed)) == file.read_bytes()[4:].rstrip()
    file.write_bytes(b"a,b\n1,2\n1," + b"x" * 100)
    with pytest.raises(NearDupError, match="line 3 is longer than 100 characters"):
        read(file)


def test_values_of_parquet(tmp_path: Path) -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
    values: dict[str, tuple[Any, Any]] = {
        "ns": (pa.array([1714564800123456789], pa.timestamp("ns")), "2024-05-01T12:00:00.123456"),
        "zone": (pa.array([noon], pa.timestamp("us", "UTC")), "2024-05-01T12:00:00+00:00"),
        "day": ([date(2024, 5, 1)], "2024-05-01"),
        "price": ([Decimal("1.50")], 1.5),
        "bytes": (["渡口".encode()], "渡口"),
        "gbk": (["渡口".encode("gbk")], "渡口".encode("gbk")),
        "deep": ([{"on": date(2024, 5, 2), "n": None, "tags": ["a"]}], {"on": "2024-05-02", "n": None, "tags": ["a"]}),
    }
    pq.write_table(pa.table({name: column for name, (column, _) in values.items()}), tmp_path / "t.parquet")
    assert fields(read(tmp_path / "t.parquet")) == [{name: value for name, (_, value) in values.items()}]


def test_a_table_of_parquet_with_two_columns_of_one_name_is_refused_and_a_broken_one_read_until_there(
    tmp_path: Path,
) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), file)
    with pytest.raises(NearDupError, match=r"t\.parquet has several columns named 'a'"):
        read(file)
    words = [{"text": f"{number} {number * 7919 % 104729}"} for number in range(4000)]
    pq.write_table(pa.Table.from_pylist(words), file, row_group_size=2000, compression="gzip")
    raw = bytearray(file.read_bytes())
    middle = len(raw) // 2 + 5000
    raw[middle : middle + 200] = bytes(200)
    file.write_bytes(raw)
    found, error = read_until_error(file)
    assert len(found) >= 2000
    assert f"t.parquet cannot be read after row {len(found)}:" in error


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("name", ["feed.jsonl", "feed.json", "feed.csv"])
def test_a_packed_file_that_breaks_off_is_named(tmp_path: Path, name: str, suffix: str) -> None:
    file = tmp_path / f"{name}{suffix}"
    format = name.partition(".")[2]
    file.write_bytes(PACKERS[suffix](packed(format, RECORDS * 20))[:-12])
    with pytest.raises(NearDupError, match=f"{re.escape(str(file))} cannot be read "):
        read(file)
    file.write_bytes(packed(format))
    with pytest.raises(NearDupError, match=f"{re.escape(str(file))} cannot be read "):
        read(file)


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "feed.jsonl").write_bytes(LINE_A)
    monkeypatch.setattr(Path, "open", Mock(side_effect=PermissionError(13, "Permission denied")))
    with pytest.raises(NearDupError, match="permissions"):
        read(tmp_path / "feed.jsonl")
