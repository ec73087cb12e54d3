"""What a process that makes fingerprints ahead is told of boilerplate: each lesson once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from scrapy_neardup.judging.presumed import Boilerplate
from scrapy_neardup.page.child import Child


class Lessons:
    """Those that the processes of one ``child``, of which one follows another, have been sent."""

    def __init__(self, known: Boilerplate, child: Child) -> None:
        self.known = known
        self._child = child
        #: How many lessons of which list which process was sent.
        self._sent = 0, known.lessons, 0

    @contextmanager
    def told(self) -> Iterator[dict[str, Any]]:
        """What is to be said beside what is asked within: what is new, or all to a process that knows nothing."""
        many, of, process = self._sent
        lessons, replaced = self.known.lessons, self._child.replaced
        are_all = of is not lessons or process == 0 or process != self._child.process_id
        new = lessons[0 if are_all else many :]
        try:
            yield {"lessons": new, "are_all": are_all}
        finally:
            same = self._child.replaced == replaced  # one that took the place of another has not been told all
            self._sent = len(new) + (0 if are_all else many), lessons, self._child.process_id if same else 0


def learned(told: Mapping[str, Any], known: Boilerplate) -> Boilerplate:
    """What is known at the other end, once this was told there."""
    known = Boilerplate() if told["are_all"] else known
    for site, sentence, is_common in told["lessons"]:
        known.take((site, sentence, is_common))
    return known
