"""A process beside this one that answers what it is asked, and can be ended.

It is a plain child with pipes rather than ``multiprocessing``, ``concurrent.futures`` or pebble (well kept, with the
time limit that the others lack): these start their children by importing the program's main module once more,
so that a script that starts its crawl without ``if __name__ == "__main__"`` would start a crawl in each; and what comes
back through their pipes is unpickled, though it comes from a process that has just read what strangers wrote. Here the
answer is JSON, with bytes behind it. The child is never forked: the parent has a reactor, threads, and a database open.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, BinaryIO, cast

from scrapy_neardup.page.deadlines import Deadlines
from scrapy_neardup.page.worker import KEPT, Message, receive, receive_message, send, send_message

#: Nothing is imported before the paths are those of the parent: ``-c`` puts the working directory before them.
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from importlib import import_module as i; i(sys.argv[1]).main()"
#: Seconds that a child may take to start.
_START = 60.0


class ChildError(Exception):
    """There is no answer."""


class CannotStart(ChildError):
    """There is no child; the message says why."""


class TookTooLong(ChildError):
    """It took more time than it may."""


class Died(ChildError):
    """Two children died of it."""


class Over(ChildError):
    """The child was closed."""


class Child:
    """Asks a process one thing at a time; it is started for the first one.

    May be asked from any thread; whoever asks while another one waits for an answer waits for its turn. Of the death of
    a child what it was asked is not to blame for certain (somebody may have ended it, or the system, which wants for
    memory), so that is tried once more. ``replaced``: how many children had begun to answer and ended before their
    time, and ``why`` the last one did.
    """

    def __init__(
        self, module: str, terms: Mapping[str, Any], seconds: float, what: str, deadlines: Deadlines | None = None
    ) -> None:
        """``module``: whose ``main`` the child is; ``terms``: what it is told first. ``what`` takes ``seconds``."""
        self.replaced = 0
        self.why = ""
        self._module = module
        self._terms = terms
        self._seconds = seconds
        self._what = what
        self._deadlines = deadlines or Deadlines()
        self._turn = Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False

    def ask(self, asked: Message, begun: Callable[[], None] = lambda: None) -> Message:
        """The answer; raises ChildError. ``begun`` is called once there is a child, in the thread that asks."""
        with self._turn:
            answer = self._tried(asked, begun) or self._tried(asked, begun)
        if answer is None:
            raise Died
        return answer

    @property
    def process_id(self) -> int:
        """That of the child; 0 if there is none."""
        return self._child.pid if self._child is not None else 0

    def close(self) -> None:
        """End the child, also in the midst of its work; whoever waits for that is told that it is over."""
        self._closed = True
        if (child := self._child) is not None:
            child.kill()
        with self._turn:  # whoever waits for the child has seen its end
            self._end(self._child)

    def _tried(self, asked: Message, begun: Callable[[], None]) -> Message | None:
        """What is answered; None if the child died of it."""
        if self._child is not None and self._child.poll() is not None:  # somebody else ended it, between two
            self._replace(self._child, f"was killed by something else between two {self._what}s")
        try:
            child = self._child or self._started()
        except (OSError, EOFError) as error:
            if self._closed:
                raise Over from None
            raise CannotStart(str(error) or "it ended at once") from None
        begun()
        return self._answer(child, asked)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise Over
        child = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable or "python", "-c", _PROGRAM, self._module, *map(str, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal goes to all processes of a session
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
        )
        self._child = child
        if self._closed:  # while it was made, whoever closed us saw none
            child.kill()
        with self._deadlines.within(_START, child):
            try:
                stdin, stdout = _pipes(child)
                send(stdin, json.dumps(self._terms).encode())
                receive(stdout)
            except (OSError, EOFError):
                self._end(child)
                raise
        return child

    def _answer(self, child: subprocess.Popen[bytes], asked: Message) -> Message | None:
        """What the child says; None if it died."""
        stdin, stdout = _pipes(child)
        with self._deadlines.within(self._seconds, child) as deadline:
            try:
                send_message(stdin, asked)
                answer = receive_message(stdout)
            except (OSError, EOFError, ValueError):
                if self._closed:
                    self._end(child)
                    raise Over from None
                if deadline.is_over:
                    self._replace(child, f"was ended because a {self._what} took more than {self._seconds:g} s")
                    raise TookTooLong from None
                self._replace(child, "died")
                return None
        if answer.head["full"]:
            self._replace(child, f"was ended because it used more than {KEPT // 10**6} MB")
        return answer

    def _replace(self, child: subprocess.Popen[bytes], why: str) -> None:
        self.replaced, self.why = self.replaced + 1, why
        self._end(child)

    def _end(self, child: subprocess.Popen[bytes] | None) -> None:
        if child is None:
            return
        child.kill()
        for pipe in _pipes(child):
            with suppress(OSError):  # what it has not read any more
                pipe.close()
        child.wait()
        if self._child is child:
            self._child = None


def _pipes(child: subprocess.Popen[bytes]) -> tuple[BinaryIO, BinaryIO]:
    return cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)
