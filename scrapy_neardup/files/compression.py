"""Compressed files: .gz, .bz2, .xz, .zst."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from scrapy_neardup.errors import NearDupError


def _find_zstd() -> Any:
    """Return the module of the standard library (Python 3.14) or its backport; None without either."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    return None


zstd = _find_zstd()
NO_ZSTD = "Zstandard needs the package backports.zstd. Run: pip install 'scrapy-neardup[files]'"
#: Errors of a file that is broken or badly compressed.
FAILURES: tuple[type[Exception], ...] = (OSError, EOFError, lzma.LZMAError, zlib.error)
if zstd:
    FAILURES += (zstd.ZstdError,)


def open_zst(raw: BinaryIO, mode: str = "rb") -> Any:
    """Open a stream of Zstandard; it leaves ``raw`` open. Raises NearDupError without the library."""
    if not zstd:
        raise NearDupError(NO_ZSTD)
    if mode == "wb":
        file = zstd.ZstdFile(raw, "wb", options={zstd.CompressionParameter.checksum_flag: 1})
        file.flush(file.FLUSH_BLOCK)  # an empty file is also a frame
        return file
    # Allows files compressed with --long=31, which need 2 GB of memory.
    return zstd.ZstdFile(raw, "rb", options={zstd.DecompressionParameter.window_log_max: 31})


#: Suffixes of compressed files.
PACKINGS = (".gz", ".bz2", ".xz", ".zst")

_READ: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(mode="rb", fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": open_zst,
}
_WRITE: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".zst": partial(open_zst, mode="wb"),
}


def find_packing(name: str | PathLike[str]) -> str:
    """Return the compression suffix of a name; empty for none.

    >>> find_packing("feed.jsonl.GZ"), find_packing("feed.jsonl")
    ('.gz', '')
    """
    suffix = PurePath(name).suffix.lower()
    return suffix if suffix in PACKINGS else ""


def strip_packing(name: str) -> str:
    """Return a name without its compression suffix.

    >>> strip_packing("feed.jsonl.gz")
    'feed.jsonl'
    """
    return name[: len(name) - len(find_packing(name))]


@contextmanager
def open_packed(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file by the suffix of its name, for reading uncompressed bytes.

    Reading a broken file raises one of ``FAILURES``. Raises NearDupError without the library.
    """
    with Path(path).open("rb") as raw, _READ.get(find_packing(path), nullcontext)(raw) as file:
        yield file


@contextmanager
def open_packed_for_writing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file, compressed by the suffix of its name.

    The same bytes give the same file, as no name and time are written. The file is complete after the block.
    """
    with path.open("wb") as raw, _WRITE.get(find_packing(path), nullcontext)(raw) as file:
        yield file
