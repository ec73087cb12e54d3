"""How many processes that read pages the machine has room for."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

#: More would wait for the process that judges: a page takes it a third of the time that reading takes.
MOST = 4
#: Bytes that are to be free for each: it has 100 MB of its own, and a page may take it 180 MB.
_ROOM = 400_000_000
_LIMITS = Path("/sys/fs/cgroup")
_MEMORY = Path("/proc/meminfo")


def workers_by_machine() -> int:
    """How many processes are to read pages where nobody has said it: none on a single core, where they gain nothing.

    Nor any in a frozen program, which would be started once more in the place of an interpreter.
    """
    return 0 if getattr(sys, "frozen", False) else workers_by(cores(), free_memory())


def workers_by(cores: int, memory: int | None) -> int:
    """The same, by the processors and the free bytes that there are; None where these are not known.

    >>> [workers_by(many, None) for many in (1, 2, 4, 64)], workers_by(4, 900_000_000)
    ([0, 2, 4, 4], 2)
    """
    if cores < 2:
        return 0
    return min(cores, MOST, MOST if memory is None else memory // _ROOM)


def cores(limits: Path = _LIMITS) -> int:
    """The processors that this process may use, by its affinity and by the share of its container; one at least."""
    try:
        found = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        found = os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no container, or one of another kind
        quota, period = (limits / "cpu.max").read_text("ascii").split()
        found = min(found, round(int(quota) / int(period)))
    return max(1, found)


def free_memory(limits: Path = _LIMITS, memory: Path = _MEMORY) -> int | None:
    """The bytes that are free, for the machine and for its container; None where the system does not say it so."""
    found = []
    with suppress(OSError, ValueError, StopIteration):
        lines = memory.read_text("ascii").splitlines()
        found.append(1024 * int(next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))))
    with suppress(OSError, ValueError):  # "max" is no number
        used = int((limits / "memory.current").read_text("ascii"))
        found.append(max(0, int((limits / "memory.max").read_text("ascii")) - used))
    return min(found, default=None)
