"""The files of a database as they are before it is opened, to be put back if it is refused.

LevelDB changes files by opening them: it moves its log into tables, and deletes what a damaged manifest does not name.
It never writes into a file that is there already, so a second name for each keeps them all, at no cost.

    <location>/db.before     whole, or not there; what is in it counts, as the opening that made it was cut short
    <location>/db.draft      one that is being made
    <location>/db.after      one that is being removed
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

#: Files that hold no data.
NOISE = ("LOCK", "LOG", "LOG.old")


class Snapshot:
    """That of one directory; where the file system knows no second names there is none, and nothing is put back."""

    def __init__(self, files: Path) -> None:
        self._files = files
        self._kept, self._draft, self._gone = (
            files.with_name(files.name + ending) for ending in (".before", ".draft", ".after")
        )

    def take(self) -> None:
        """Keep the files as they are."""
        shutil.rmtree(self._draft, ignore_errors=True)
        try:
            self._draft.mkdir()
            for file in self._files.iterdir():
                if file.name not in NOISE:
                    os.link(file, self._draft / file.name)
        except OSError:
            shutil.rmtree(self._draft, ignore_errors=True)
        else:
            self._draft.rename(self._kept)

    def drop(self) -> None:
        """The opening went well. Raises OSError."""
        if self._kept.exists():
            self._kept.rename(self._gone)
        shutil.rmtree(self._gone, ignore_errors=True)

    def restore(self) -> None:
        """Put the files back, if some were kept. Raises OSError."""
        if self._kept.exists():
            shutil.rmtree(self._gone, ignore_errors=True)
            if self._files.exists():
                self._files.rename(self._gone)
            self._kept.rename(self._files)
        shutil.rmtree(self._gone, ignore_errors=True)
        shutil.rmtree(self._draft, ignore_errors=True)
