"""Packed files are written and read, whatever pieces they are in."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from scrapy_neardup.files.compression import (
    FAILURES,
    PACKINGS,
    detect_packing,
    open_packed,
    open_packed_for_writing,
    open_zst,
    seekable,
    unpack,
    zstd,
)
from tests.files.samples import PACKERS

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
    with names[0].open("rb") as raw:
        assert detect_packing(raw) == suffix
        with unpack(raw, suffix) as read:
            assert read.readline() == TEXT[: TEXT.index(b"\n") + 1]
        assert not raw.closed


@pytest.mark.parametrize("suffix", ["", *PACKINGS])
def test_an_empty_file_is_written_whole(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a{suffix}"
    with open_packed_for_writing(file):
        pass
    assert bool(file.stat().st_size) == bool(suffix)
    with open_packed(file) as read:
        assert read.read() == b""


@pytest.mark.parametrize("suffix", PACKINGS)
def test_concatenated_files_are_read_as_one(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a{suffix}"
    file.write_bytes(PACKERS[suffix](b"one\n") + PACKERS[suffix](b"") + PACKERS[suffix](b"two"))
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


@pytest.mark.parametrize("suffix", ["", *PACKINGS])
def test_a_packed_file_is_copied_to_be_read_in_any_order(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a{suffix}"
    file.write_bytes(PACKERS[suffix](TEXT))
    with open_packed(file) as read, seekable(read) as anywhere:
        assert (anywhere is read) == (not suffix)
        anywhere.seek(-5, io.SEEK_END)
        assert anywhere.read() == TEXT[-5:]
        anywhere.seek(0)
        assert anywhere.read() == TEXT
