"""Every format gives the same records back: by name, packed, from standard input, when reading stops early."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import FORMATS, Entry, compression, find_format, read_input
from scrapy_neardup.files.compression import FAILURES, PACKINGS, open_packed, open_packed_for_writing, open_zst, zstd
from scrapy_neardup.files.feeds import read_jsonl
from tests.files import samples
from tests.files.samples import PACKERS, RECORDS, fields, packed, read


@pytest.mark.parametrize("format", samples.FORMATS)
def test_the_records_come_back_plain_and_packed(tmp_path: Path, format: str) -> None:
    for suffix in PACKERS:
        file = tmp_path / f"{samples.FORMATS[format]}{suffix}"
        file.write_bytes(PACKERS[suffix](packed(format)))
        assert fields(read(file)) == RECORDS, suffix


@pytest.mark.parametrize(
    ("format", "first", "last"),
    [("jsonl", "line 1", "5"), ("json", "item 1", "5"), ("csv", "line 2", "10"), ("parquet", "row 1", "5")],
)
def test_an_editor_shows_the_place(tmp_path: Path, format: str, first: str, last: str) -> None:
    file = tmp_path / samples.FORMATS[format]
    file.write_bytes(packed(format))
    found = read(file)
    assert found[0].place == f"{file}, {first}"
    assert found[-1].place == f"{file}, {first.split()[0]} {last}"


def test_formats_are_known_by_suffix_in_any_case() -> None:
    known = {name: find_format(f"A{suffix.upper()}.Gz") for name, one in FORMATS.items() for suffix in one.suffixes}
    assert known == {name: name for name in FORMATS}
    assert set(FORMATS) == {*samples.FORMATS, "html", "text", "warc"}  # which have tests
    for name, cure in (("book.xlsx", "CSV UTF-8"), ("crawl.wacz", "unzip"), ("upload.part", r"\.jsonl.*\.warc.*\.gz")):
        with pytest.raises(SettingsError, match=rf"{name} .*{cure}"):
            find_format(name)


def test_standard_input_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, packed("jsonl"))  # as much as a pipe holds
    os.close(writing)
    with os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert fields(read("-")) == RECORDS
        assert not sys.stdin.buffer.closed


@pytest.mark.parametrize("format", [*samples.FORMATS, "warc"])
def test_nothing_stays_open_when_reading_stops_early(tmp_path: Path, format: str) -> None:
    for suffix in ["", ".gz", ".zst"]:
        file = tmp_path / f"{samples.FORMATS.get(format, 'pages.warc')}{suffix}"
        file.write_bytes(PACKERS[suffix](packed(format) if format != "warc" else samples.archive()))
        before = open_files()
        records = read_input(str(file))
        next(records)
        assert open_files() > before, suffix
        records.close()  # type: ignore[attr-defined]
        assert open_files() == before, suffix


def open_files() -> int:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("open files cannot be counted here")
    return len(os.listdir(folder))  # noqa: PTH208 - the count alone


def test_an_empty_file_holds_nothing_and_a_missing_one_is_named(tmp_path: Path) -> None:
    for name in ("feed.jsonl", "feed.json", "feed.csv"):
        (tmp_path / name).touch()
        assert read(tmp_path / name) == []
    for name in ("gone.jsonl", "gone.parquet", "gone", "gone.html", "gone.csv.zst"):
        with pytest.raises(NearDupError, match=rf"{name} does not exist"):
            read(tmp_path / name)


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module, extra in (
        ("pages.warc", "warcio.archiveiterator", "files"),
        ("table.parquet", "pyarrow.parquet", "parquet"),
    ):
        (tmp_path / name).write_bytes(b"any content")
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(NearDupError, match=rf"{module.split('.')[0]}.*pip install 'scrapy-neardup\[{extra}\]'"):
            read(tmp_path / name)
    (tmp_path / "feed.jsonl.zst").write_bytes(PACKERS[".zst"](packed("jsonl")))
    monkeypatch.setattr(compression, "zstd", None)
    with pytest.raises(NearDupError, match=r"pip install 'scrapy-neardup\[files\]'"):
        read(tmp_path / "feed.jsonl.zst")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=5), st.booleans())
def test_any_object_comes_back_from_json_lines_with_its_line(objects: list[dict[str, Any]], ascii: bool) -> None:
    written = [json.dumps(one, ensure_ascii=ascii).encode("utf-8", "replace") for one in objects]
    found = list(read_jsonl(io.BytesIO(b"\n".join(written)), "feed"))
    assert [one.line for one in found if isinstance(one, Entry)] == written
    assert [one.fields for one in found if isinstance(one, Entry)] == [json.loads(line) for line in written]


TEXT = "渡口 and ferry, line after line\n".encode() * 5000


@pytest.mark.parametrize("suffix", ["", *PACKINGS])
def test_packed_files_are_reproducible_and_readable(tmp_path: Path, suffix: str) -> None:
    names = tmp_path / f"a.txt{suffix}", tmp_path / f"b{suffix}"
    for file in names:
        with open_packed_for_writing(file) as written:
            for at in range(0, len(TEXT), 1000):
                written.write(TEXT[at : at + 1000])
    assert names[0].read_bytes() == names[1].read_bytes()
    if suffix == ".gz":
        assert names[0].read_bytes()[4:8] == bytes(4)  # its time
    assert (names[0].stat().st_size < len(TEXT) / 10) == bool(suffix)
    with open_packed(names[0]) as read:
        assert read.read() == TEXT


@pytest.mark.parametrize("suffix", PACKINGS)
def test_an_empty_file_is_written_whole_and_concatenated_files_are_read_as_one(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a{suffix}"
    with open_packed_for_writing(file):
        pass
    assert file.read_bytes()
    file.write_bytes(PACKERS[suffix](b"one\n") + file.read_bytes() + PACKERS[suffix](b"two"))
    with open_packed(file) as read:
        assert list(read) == [b"one\n", b"two"]


def test_zstandard_has_frames_of_metadata_and_long_windows_and_no_broken_frame_is_the_end() -> None:
    notes = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    long = {zstd.CompressionParameter.window_log: 28, zstd.CompressionParameter.enable_long_distance_matching: 1}
    packed = zstd.compress(b"one ") + notes + zstd.compress(b"two " * 50_000, options=long) + notes
    with open_zst(io.BytesIO(packed)) as read:
        assert read.read() == b"one " + b"two " * 50_000
    for end in (3, 12, len(packed) - 1, len(packed) - 12):
        with open_zst(io.BytesIO(packed[:end])) as read, pytest.raises(EOFError):
            read.read()
    with open_zst(io.BytesIO(packed + b"rubbish")) as read, pytest.raises(FAILURES):
        read.read()
