"""The files of a LevelDB database as they are at one moment, while another process may be writing to it.

A database is what its manifest names: tables, and logs from a certain one on. Tables never change, so a second name
will do. A log and the manifest only grow, so that a copy of either is one of an earlier moment. A log goes once the
manifest names the table that it became. So if the manifest is the same before and after all was linked or copied, the
copy is the database as it was at one write or another in between; a write that was under way when the end of the log
was copied is left out by LevelDB, as after a kill.

No table gets a second name that the manifest does not name: it may be one that is being written, and as LevelDB,
opening the copy, gives its own tables the next numbers, it would write into that very file.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from scrapy_neardup.stores.manifest import read_manifest

_CURRENT = "CURRENT"
_TABLES = (".ldb", ".sst")


class Moving(Exception):
    """The files changed while they were looked at; try once more."""


def checkpoint(files: Path, copy: Path) -> None:
    """Make the folder ``copy``, with the database in it.

    Raises Moving, ValueError for a manifest that cannot be read, OSError.
    """
    copy.mkdir()
    try:
        current = (files / _CURRENT).read_bytes()
        name = Path(current.decode("ascii", "replace").strip()).name  # of a damaged one it may be anything
        packed = (files / name).read_bytes()
        (copy / _CURRENT).write_bytes(current)
        (copy / name).write_bytes(packed)
        manifest = read_manifest(packed)
        for file in sorted(files.iterdir()):
            number = int(file.stem) if file.stem.isdigit() else -1
            if file.suffix == ".log" and number >= manifest.log:
                _copy(file, copy / file.name)
            elif file.suffix in _TABLES and number in manifest.tables:
                (_link if number < manifest.next else _copy)(file, copy / file.name)
        if (files / _CURRENT).read_bytes() != current or (files / name).stat().st_size != len(packed):
            raise Moving
    except (FileNotFoundError, IsADirectoryError):
        raise Moving from None


def _link(file: Path, other: Path) -> None:
    try:
        os.link(file, other)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, a file of somebody else's, a file system that knows no second names
        _copy(file, other)


def _copy(file: Path, other: Path) -> None:
    shutil.copyfile(file, other)
