"""Pages that may take long are read in a process that can be ended.

No limit on its input bounds what a parser and an extractor do with a page that was written to hold them up, and nothing
within a process ends them: no signal, no thread, no exception. So such pages (see ``risk``) are read in a child, which
has some seconds and some megabytes for each and is replaced when it takes more, or dies of it.

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
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Timer
from typing import Any, BinaryIO, cast

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.worker import receive, send

#: Nothing is imported before the paths are those of the parent: ``-c`` puts the working directory before them.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from scrapy_neardup.page.worker import main; main()"
#: Seconds that a child may take to start.
_START = 60.0
#: Seconds that a page may take unless something else is said.
MAX_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Terms:
    """On which a child reads: ``extractor`` is an import path, empty for our own reader; the limits of a page."""

    max_html: int
    max_text: int = MAX_TEXT
    seconds: float = MAX_SECONDS
    extractor: str = ""

    @property
    def can_be_sent(self) -> bool:
        """Whether the extractor can be imported by another process."""
        return not self.extractor.startswith("__main__.")


class Apart:
    """Reads pages in a child, one at a time, which is started for the first one.

    May be asked from any thread; whoever asks while another page is read waits for its turn.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._turn = Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False

    def read(self, html: str, url: str) -> Page:
        """The page; raises ExtractionError, with ``too_slow`` or ``too_large`` if it took more than it may."""
        with self._turn:
            if self._child is not None and self._child.poll() is not None:  # somebody else ended it, between two pages
                self._end(self._child)
            try:
                child = self._child or self._started()
            except (OSError, EOFError) as error:
                why = str(error) or "it ended at once"
                raise ExtractionError("too_slow", f"the process that is to read it cannot be started: {why}") from None
            answer = self._answer(child, html, url)
        if "page" in answer:
            page = answer["page"]
            return Page(**{**page, "keywords": tuple(page["keywords"]), "quotes": tuple(page["quotes"])})
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
        terms = self._terms
        greeting = {
            "max_html": terms.max_html,
            "max_text": terms.max_text,
            "seconds": terms.seconds,
            "extractor": terms.extractor,
        }
        with _Limit(child, _START):
            try:
                stdin, stdout = _pipes(child)
                send(stdin, json.dumps(greeting).encode())
                receive(stdout)
            except (OSError, EOFError):
                self._end(child)
                raise
        return child

    def _answer(self, child: subprocess.Popen[bytes], html: str, url: str) -> dict[str, Any]:
        """What the child says of the page, or what is to be said of the child."""
        stdin, stdout = _pipes(child)
        with _Limit(child, self._terms.seconds) as limit:
            try:
                send(stdin, url.encode("utf-8", "replace"))
                send(stdin, html.encode("utf-8", "surrogatepass"))
                answer: dict[str, Any] = json.loads(receive(stdout))
            except (OSError, EOFError, ValueError):
                self._end(child)
                if limit.is_over or self._closed:
                    return {"reason": "too_slow", "message": f"it takes more than {self._terms.seconds:g} s to be read"}
                return {"reason": "too_large", "message": "the process that read it died of it"}
        if answer.get("reason") == "too_large":  # it may have asked for so much that little is left
            self._end(child)
        return answer

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


class _Limit:
    """Ends a child when its time is over."""

    def __init__(self, child: subprocess.Popen[bytes], seconds: float) -> None:
        self.is_over = False
        self._child = child
        self._timer = Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Limit:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.is_over = True
        self._child.kill()


def _pipes(child: subprocess.Popen[bytes]) -> tuple[BinaryIO, BinaryIO]:
    return cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)
