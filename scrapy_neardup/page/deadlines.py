"""Processes that have until some moment, and are ended then."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic

#: Seconds after which the thread that watches ends, if there is nothing to be watched.
_IDLE = 10.0


@dataclass(eq=False, slots=True)
class Deadline:
    """``is_over``: the process was ended, as its time was over."""

    child: subprocess.Popen[bytes]
    at: float
    is_over: bool = False


class Deadlines:
    """Watches over any number of processes, by one thread, which is there while there is something to watch.

    A thread for each page would do as well, but starting it costs as much as handing over the page.
    """

    def __init__(self) -> None:
        self._due: set[Deadline] = set()
        self._changed = Condition()
        self._is_watched = False
        self._looks_at = 0.0

    @contextmanager
    def within(self, seconds: float, child: subprocess.Popen[bytes]) -> Iterator[Deadline]:
        """A child that is ended if this is not left in time."""
        deadline = Deadline(child, monotonic() + seconds)
        with self._changed:
            self._due.add(deadline)
            if not self._is_watched:
                Thread(target=self._watch, name="neardup-deadlines", daemon=True).start()
                self._is_watched, self._looks_at = True, deadline.at
            elif deadline.at < self._looks_at:
                self._changed.notify()
        try:
            yield deadline
        finally:
            with self._changed:
                self._due.discard(deadline)

    def _watch(self) -> None:
        with self._changed:
            idle_since = None
            while True:
                now = monotonic()
                for one in [one for one in self._due if one.at <= now]:
                    one.is_over = True
                    one.child.kill()
                    self._due.discard(one)
                idle_since = None if self._due else idle_since or now
                if idle_since is not None and now - idle_since >= _IDLE:
                    self._is_watched = False
                    return
                self._looks_at = min((one.at for one in self._due), default=now + _IDLE)
                self._changed.wait(self._looks_at - now)
