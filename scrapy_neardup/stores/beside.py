"""A folder for a copy of a state's files, on the same disk if we may write there: then tables need no room twice."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from glob import escape
from pathlib import Path
from tempfile import mkdtemp

from filelock import FileLock

from scrapy_neardup.stores.lock import is_held

#: Seconds after which a folder that nobody holds was left by a process that was killed, and not made a moment ago.
_LEFT = 3600


class Beside:
    """The folder, beside the state at ``place`` or else where temporary files lie; whoever makes it removes it."""

    def __init__(self, place: Path) -> None:
        prefix = f".{place.name[:100]}.look-"
        _sweep(place.parent, prefix)
        try:
            self.path = Path(mkdtemp(prefix=prefix, dir=place.parent))
        except OSError:
            self.path = Path(mkdtemp(prefix="neardup-look-"))
        self._lock = FileLock(self.path / "lock", timeout=0, thread_local=False)
        self._lock.acquire()

    def remove(self) -> None:
        """The folder goes, with all that is in it."""
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)


def _sweep(parent: Path, prefix: str) -> None:
    """Remove what killed processes have left."""
    for left in parent.glob(f"{escape(prefix)}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT and not is_held(left / "lock"):
                shutil.rmtree(left, ignore_errors=True)
