"""A file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scrapy_neardup.errors import NearDupError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name to write to; what is written there takes the place of ``path`` at the end, and is on disk then.

    After an error it is gone, and ``path`` is as it was; a link stays one. What is no file, such as a device or a pipe,
    is written to as it is. Raises NearDupError where nothing can be written.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".part.{target.name}")  # hidden, and packed as the name says
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
    except BrokenPipeError:  # not of this file
        raise
    except OSError as error:
        cure = "make room" if target.parent.is_dir() else f"make the folder {target.parent}"
        raise NearDupError(
            f"{path} cannot be written: {error.strerror or error}. Name another place, or {cure}."
        ) from None


def private(path: str, flags: int) -> int:
    """Open a file, which only this user may read if it is new: for ``open``, where a secret is written."""
    return os.open(path, flags, 0o600)


def sync_directory(directory: Path) -> None:
    """Make names in it survive a power cut, where a directory can be synced."""
    with suppress(OSError):
        held = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(held)
        finally:
            os.close(held)
