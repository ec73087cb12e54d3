"""Pages are read in a process that can be ended: those that may take long, and with workers all of them.

No limit on its input bounds what a parser and an extractor do with a page that was written to hold them up, and nothing
within a process ends them: no signal, no thread, no exception. So such pages (see ``risk``) are read in a child, which
has some seconds and some megabytes for each and is replaced when it takes more, or dies of it. Of the latter a page is
not to blame for certain (somebody may have ended the child, or the system, which wants for memory), so it is tried once
more.

It is a plain child with pipes rather than ``multiprocessing``, ``concurrent.futures`` or pebble (well kept, with the
time limit that the others lack): these start their children by importing the program's main module once more,
so that a script that starts its crawl without ``if __name__ == "__main__"`` would start a crawl in each; and what comes
back through their pipes is unpickled, though it comes from a process that has just read what strangers wrote. Here the
answer is JSON. The child is never forked: the parent has a reactor, threads, and a database open.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, BinaryIO, cast

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.deadlines import Deadlines
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.raw import Raw
from scrapy_neardup.page.worker import KEPT, receive, send, sent_raw

#: Nothing is imported before the paths are those of the parent: ``-c`` puts the working directory before them.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from scrapy_neardup.page.worker import main; main()"
#: Seconds that a child may take to start.
_START = 60.0
#: Seconds that a page may take unless something else is said.
MAX_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Terms:
    """On which a child reads: ``extractor`` is an import path, empty for our own reader; the limits of a page.

    ``only_quick``: pages that may take long are not read, but given back (``MayTakeLong``).
    """

    max_html: int
    max_text: int = MAX_TEXT
    seconds: float = MAX_SECONDS
    extractor: str = ""
    only_quick: bool = False

    @property
    def can_be_sent(self) -> bool:
        """Whether the extractor can be imported by another process."""
        return not self.extractor.startswith("__main__.")


class MayTakeLong(Exception):
    """A page was not read, as that may take long; ``html`` is what it would be read from."""

    def __init__(self, html: str) -> None:
        super().__init__("it may take long")
        self.html = html


class NoReader(ExtractionError):
    """The child cannot be started."""


#: What comes of a page.
Answer = Page | ExtractionError | MayTakeLong


class Apart:
    """Reads pages in a child, one at a time, which is started for the first one.

    May be asked from any thread; whoever asks while another page is read waits for its turn. ``replaced``: how many
    children had begun to read and ended before their time, and ``why`` the last one did.
    """

    def __init__(self, terms: Terms, deadlines: Deadlines | None = None) -> None:
        self.replaced = 0
        self.why = ""
        self._terms = terms
        self._deadlines = deadlines or Deadlines()
        self._turn = Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False

    def read(self, raw: Raw, begun: Callable[[], None] = lambda: None) -> Page:
        """The page; raises ExtractionError, with ``too_slow`` or ``too_large`` if it took more than it may.

        ``begun`` is called once there is a child to read it, in the thread that asks. Raises NoReader if there is none,
        and MayTakeLong as ``Terms`` say.
        """
        with self._turn:
            answer = self._tried(raw, begun) or self._tried(raw, begun) or _DIED
        if "page" in answer:
            page = answer["page"]
            return Page(**{**page, "keywords": tuple(page["keywords"]), "quotes": tuple(page["quotes"])})
        if "html" in answer:
            raise MayTakeLong(answer["html"])
        raise ExtractionError(answer["reason"], answer["message"])

    @property
    def process_id(self) -> int:
        """That of the child; 0 if there is none."""
        return self._child.pid if self._child is not None else 0

    def close(self) -> None:
        """End the child, also in the midst of a page; whoever waits for that is told that it was too slow."""
        self._closed = True
        if (child := self._child) is not None:
            child.kill()
        with self._turn:  # whoever waits for the child has seen its end
            self._end(self._child)

    def _tried(self, raw: Raw, begun: Callable[[], None]) -> dict[str, Any] | None:
        """What is answered; None if the child died of it."""
        if self._child is not None and self._child.poll() is not None:  # somebody else ended it, between two pages
            self._replace(self._child, "was ended between two pages")
        try:
            child = self._child or self._started()
        except (OSError, EOFError) as error:
            if self._closed:
                return _over()
            why = str(error) or "it ended at once"
            raise NoReader("too_slow", f"the process that is to read it cannot be started: {why}") from None
        begun()
        return self._answer(child, raw)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise EOFError("the crawl is over")
        child = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable or "python", "-c", _PROGRAM, *map(str, sys.path)],
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
                send(stdin, json.dumps(asdict(self._terms)).encode())
                receive(stdout)
            except (OSError, EOFError):
                self._end(child)
                raise
        return child

    def _answer(self, child: subprocess.Popen[bytes], raw: Raw) -> dict[str, Any] | None:
        """What the child says of the page, or what is to be said of the child; None if it died."""
        stdin, stdout = _pipes(child)
        with self._deadlines.within(self._terms.seconds, child) as deadline:
            try:
                sent_raw(stdin, raw)
                answer: dict[str, Any] = json.loads(receive(stdout))
                if not answer.keys() & {"page", "reason"}:
                    answer["html"] = receive(stdout).decode("utf-8", "surrogatepass")
            except (OSError, EOFError, ValueError):
                if self._closed:
                    self._end(child)
                    return _over()
                if deadline.is_over:
                    slow = f"it takes more than {self._terms.seconds:g} s to be read"
                    self._replace(child, f"was ended, as a page took more than {self._terms.seconds:g} s")
                    return {"reason": "too_slow", "message": slow}
                self._replace(child, "died")
                return None
        if answer["full"]:
            self._replace(child, f"was ended, as it had come to hold more than {KEPT // 10**6} MB")
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


#: What is said of a page of which two children died.
_DIED: dict[str, Any] = {"reason": "too_large", "message": "the process that read it died of it, twice"}


def _over() -> dict[str, Any]:
    return {"reason": "too_slow", "message": "the crawl is over"}


def _pipes(child: subprocess.Popen[bytes]) -> tuple[BinaryIO, BinaryIO]:
    return cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)
