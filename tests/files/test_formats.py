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
from scrapy_neardup.files import FORMATS, Entry, Malformed, compression, entry, find_format, read_folder, read_input
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


# Pages as files: one, or a folder of them


def fill(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def test_every_page_below_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    names = ["b/2.htm", "b/10.XHTML", "a.html", "b.shtml", "b/c/d/桥.html", "B/x.html", "z.html.gz"]
    fill(tmp_path, {name: PACKERS[".gz" if name.endswith("gz") else ""](name.encode()) for name in names})
    fill(tmp_path, {"b/style.css": b"x", "html": b"x", "notes.txt": b"x", "docs.jsonl": b"{}", "c.html.bak": b"x"})
    found = [one for one in read(tmp_path) if isinstance(one, Entry)]
    paths = ["a.html", "b.shtml", "z.html.gz", "B/x.html", "b/10.XHTML", "b/2.htm", "b/c/d/桥.html"]
    assert [one.fields for one in found] == [{"path": path} for path in paths]
    assert [one.html for one in found] == [path.encode() for path in paths]
    assert [one.place for one in found] == [(tmp_path / path).as_posix() for path in paths]
    assert [one.number for one in found] == list(range(1, 8))


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_page_is_read_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    raw = "<meta charset=gbk>渡口".encode("gbk")
    fill(tmp_path, {f"pages/a.htm{suffix}": PACKERS[suffix](raw)})
    monkeypatch.chdir(tmp_path)
    name = f"pages/a.htm{suffix}"
    assert read(name) == [Entry(name, 1, "", {"path": name}, html=raw)]


def test_a_folder_without_pages_may_hold_texts(tmp_path: Path) -> None:
    fill(tmp_path, {"b/c.txt": "\ufeff桥".encode(), "a.TXT": b"A ferry", "cafe.txt": "caf\xe9".encode("latin-1")})
    first, third, second = read(tmp_path)
    assert fields([first, second]) == [{"path": "a.TXT", "text": "A ferry"}, {"path": "b/c.txt", "text": "桥"}]
    assert isinstance(third, Malformed)
    assert (third.place, third.raw) == ((tmp_path / "cafe.txt").as_posix(), b"caf\xe9")
    assert third.why == "not UTF-8: unexpected end of data at byte 4"
    assert fields(read(tmp_path / "a.TXT")) == [{"path": (tmp_path / "a.TXT").as_posix(), "text": "A ferry"}]
    fill(tmp_path, {"c/b.pdf": b"x"})
    with pytest.raises(NearDupError, match="no HTML or"):
        read(tmp_path / "c")


def test_pages_that_cannot_be_read_are_named_among_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "LARGEST", 50)
    fill(tmp_path, {"a.html": b"", "b.html": b"x" * 51, "c.html.gz": b"no gzip", "e.html": b"x" * 50})
    fill(tmp_path, {"f.html.xz": PACKERS[".xz"](b"word " * 9)[:-8]})
    (tmp_path / "d.html").symlink_to("gone.html")
    found = read(tmp_path)
    assert [one.number for one in found] == [1, 2, 3, 4, 5, 6]
    assert [(Path(one.place).name, one.why) for one in found if isinstance(one, Malformed)] == [
        ("a.html", "an empty file"),
        ("b.html", "larger than 50 bytes"),
        ("c.html.gz", "cannot be read: Not a gzipped file (b'no')"),
        ("d.html", "cannot be read: No such file or directory"),
        ("f.html.xz", "cannot be read: Compressed file ended before the end-of-stream marker was reached"),
    ]


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"a/1.html": b"x", "b/2.html": b"x", "c/3.html": b"x"})
    listed = os.scandir

    def refuse(folder: str) -> object:
        if Path(folder).name == "b":
            raise PermissionError(13, "Permission denied", folder)
        return listed(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    found = read(tmp_path)
    assert [Path(one.place).name for one in found] == ["1.html", "b", "3.html"]
    assert isinstance(found[1], Malformed)
    assert found[1].why == "cannot be read: Permission denied"


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    fill(tmp_path, {"elsewhere/x/1.html": b"x", "site/2.html": b"x", "site/sub/3.html": b"x"})
    (tmp_path / "site" / "linked").symlink_to("../elsewhere")
    (tmp_path / "site" / "sub" / "up").symlink_to("..")
    (tmp_path / "elsewhere" / "x" / "again").symlink_to("../../site")
    paths = [one.fields["path"] for one in read(tmp_path / "site") if isinstance(one, Entry)]
    assert paths == ["2.html", "linked/x/1.html", "sub/3.html"]


def test_pipes_in_a_folder_are_ignored(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes with names here")
    fill(tmp_path, {"a.html": b"x"})
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "link.html").symlink_to("pipe.html")
    found = read_folder(str(tmp_path))
    assert [Path(one.place).name for one in found] == ["a.html"]


def test_a_name_that_is_no_utf8_can_be_written_down(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.html")).write_bytes(b"x")
    except OSError:
        pytest.skip("such names cannot be here")
    (found,) = read(tmp_path)
    assert isinstance(found, Entry)
    assert (found.fields, found.html) == ({"path": "caf\\xe9.html"}, b"x")
    found.place.encode()
