"""One process at a time: a lock file of our own, taken before the state is opened."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from scrapy_neardup.errors import StoreError, StoreLocked


def lock(path: Path, location: str) -> FileLock:
    """Take the lock at ``path`` at once, or raise StoreLocked.

    The operating system frees it when the process dies, however it dies.
    """
    held = FileLock(path, timeout=0, thread_local=False)  # whoever closes the state may be another thread
    try:
        held.acquire()
    except Timeout:
        raise StoreLocked(
            f"Another process is using the state at {location}. Wait until its crawl has ended, or give this one a "
            "state of its own with NEARDUP_STORE (in custom_settings, if each spider shall have one)."
        ) from None
    except OSError as error:
        raise StoreError(
            f"The state at {location} cannot be locked: {error}. See that this user may write there, and that "
            f"{path.name} is a file, or name another path with NEARDUP_STORE."
        ) from error
    return held
