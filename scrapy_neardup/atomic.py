"""Write files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from scrapy_neardup.errors import NearDupError


@contextmanager
def replace_file(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """Yield a name to write to; at the end that file replaces ``path``, synced to disk.

    ``shared``: others may write the file at once, and the last one wins. After an error the draft is gone and ``path``
    unchanged. A link stays a link; a device or a pipe is written directly. Raises NearDupError if the file cannot be
    written.
    """
    target = Path(os.path.realpath(path))
    writer = f"{token_hex(4)}." if shared else ""
    draft = target.with_name(f".part.{writer}{target.name}")  # hidden; the suffix still selects the compression
    try:
        if target.exists() and not target.is_file():
            yield path
            return
        try:
            yield draft
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except BrokenPipeError:  # the pipe is the caller's
        raise
    except OSError as error:
        cure = "make room" if target.parent.is_dir() else f"make the folder {target.parent}"
        raise NearDupError(
            f"{path} cannot be written: {error.strerror or error}. Name another place, or {cure}."
        ) from None


def open_private(path: str, flags: int) -> int:
    """Opener for ``open``: a new file is readable by this user only, for secrets."""
    return os.open(path, flags, 0o600)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut, if the system can sync it."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
