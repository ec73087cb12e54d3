"""One process at a time: a lock file of our own, taken before the state is opened."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from scrapy_neardup.errors import StoreError, StoreLocked

#: Seconds in which whoever only asks whether a lock is held has let go of it again, by far.
_ASKING = 0.2


def lock(path: Path, location: str) -> FileLock:
    """Take the lock at ``path``, or raise StoreLocked.

    The operating system frees it when the process dies, however it dies.
    """
    held = FileLock(path, timeout=_ASKING, thread_local=False)  # whoever closes the state may be another thread
    try:
        held.acquire(poll_interval=_ASKING / 8)
    except Timeout:
        raise StoreLocked(
            f"Another process is using the state at {location}. Wait until its crawl has ended, or give each spider a "
            "state of its own with NEARDUP_SCOPE = 'spider', or by a name in NEARDUP_STORE, such as "
            "'leveldb:///data/%(name)s'. Meanwhile scrapy neardup stats, explain, groups, "
            "report and export can look into it."
        ) from None
    except OSError as error:
        raise StoreError(
            f"The state at {location} cannot be locked: {error}. See that this user may write there, and that "
            f"{path.name} is a file, or name another path with NEARDUP_STORE."
        ) from error
    return held


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock at ``path``, this process included; nothing is made or written to tell."""
    try:
        import fcntl
    except ImportError:  # Windows, where a file that is locked cannot be taken, nor read
        return path.exists() and not _taken(path)
    with suppress(OSError):  # none there, or not for us to read
        opened = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(opened)
    return False


def _taken(path: Path) -> bool:
    """Whether the lock could be taken; it is let go of again."""
    held = FileLock(path, timeout=0)
    try:
        held.acquire()
    except (Timeout, OSError):
        return False
    held.release()
    return True
