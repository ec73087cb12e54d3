"""One process at a time: a lock file, taken before the state is opened. The file stays; the system frees the lock."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from glob import escape
from pathlib import Path
from tempfile import mkdtemp

from filelock import FileLock, Timeout

from scrapy_neardup.errors import StoreError, StoreLocked

#: Seconds that a test of the lock may hold it.
_ASKING = 0.2


def lock(path: Path, location: str) -> FileLock:
    """Take the lock at ``path``. Raises StoreLocked. The operating system frees it when the process dies."""
    held = FileLock(path, timeout=_ASKING, mode=0o600, thread_local=False)  # another thread may close the state
    try:
        held.acquire(poll_interval=_ASKING / 8)
    except OSError as error:
        if isinstance(error, Timeout) and path.exists():  # else some file system lets nobody make it
            raise StoreLocked(
                f"Another process is using the state at {location}. Wait until its crawl ends, or give each spider its "
                "own state with NEARDUP_SCOPE = 'spider', or by a name in NEARDUP_STORE, such as "
                "'leveldb:///data/%(name)s'. Meanwhile scrapy neardup stats, explain, report and export can read "
                "the state."
            ) from None
        raise StoreError(
            f"The state at {location} cannot be locked: {str(error).rstrip('.')}. Check that {path.name} is a file, "
            "and that you may write to it and to its folder, or set NEARDUP_STORE to another path."
        ) from error
    return held


def is_held(path: Path) -> bool:
    """Whether somebody, even this process, holds the lock. It writes nothing."""
    try:
        import fcntl
    except ImportError:  # Windows, where nobody can read a locked file
        return path.exists() and not _is_free(path)
    with suppress(OSError):  # none there, or not for us to read
        opened = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(opened)
    return False


def _is_free(path: Path) -> bool:
    """Try the lock, and release it again."""
    with suppress(Timeout, OSError), FileLock(path, timeout=0):
        return True
    return False


#: Seconds after which an unlocked folder belongs to a killed process.
_LEFT = 3600


class ScratchDirectory:
    """A folder beside ``place``, where tables can be linked, or else in the temporary directory."""

    def __init__(self, place: Path) -> None:
        prefix = f".{place.name[:100]}.look-"
        _sweep(place.parent, prefix)
        try:
            self._make(prefix, place.parent)
        except OSError:
            try:
                self._make("neardup-look-", None)
            except OSError as error:
                raise StoreError(
                    f"The state at {place} cannot be copied for reading: {error}. Make room, or set TMPDIR to a folder "
                    "with room."
                ) from error

    def _make(self, prefix: str, parent: Path | None) -> None:
        self.path = Path(mkdtemp(prefix=prefix, dir=parent))
        self._lock = FileLock(self.path / "lock", timeout=0, thread_local=False)
        try:
            self._lock.acquire()
        except OSError:  # a full disk may have room for the folder and none for the lock
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def remove(self) -> None:
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)


def _sweep(parent: Path, prefix: str) -> None:
    """Remove folders of killed processes."""
    for left in parent.glob(f"{escape(prefix)}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT and not is_held(left / "lock"):
                shutil.rmtree(left, ignore_errors=True)
