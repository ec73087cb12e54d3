"""What a store on a server does with sentences: all that use the state count the same; see ``redis_notes``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from scrapy_neardup.stores import layout
from scrapy_neardup.stores.base import Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.counts import Counts
from scrapy_neardup.stores.recurrence import Sentences
from scrapy_neardup.stores.redis_leases import Leases
from scrapy_neardup.stores.redis_link import Link
from scrapy_neardup.stores.redis_notes import (
    BEGINNING,
    CHUNK,
    COUNTED,
    STREAM,
    TOGETHER,
    Entries,
    Note,
    entries_of,
    most_entries,
    others,
    packed,
)
from scrapy_neardup.stores.redis_program import Program
from scrapy_neardup.stores.redis_rows import ServerRows
from scrapy_neardup.stores.view import PageView


class OvertakenError(Exception):
    """What a write depends on has changed in between."""


class SharedCounting(Store):
    """The part of a store that counts."""

    #: From what synchronous code is answered while it runs for one page; None: from the server.
    view: PageView | None = None
    leases: Leases
    _link: Link
    _rows: ServerRows
    #: Rows that were read since a write was begun that depends on them; None where none was begun.
    _asked: dict[bytes, bytes | None] | None = None
    #: Up to where in the stream all is counted here, and where the blocks ended that were read.
    _read_to = BEGINNING
    _counted: bytes | None = None
    #: What is counted here, and others do not know yet.
    _untold: list[Note]

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        own = np.array([] if page is None else [page], np.uint32)
        if not self._counts.stood_on(own, site, self.hashes).any():
            self._noted_by_all(np.concatenate((sentences, own)), site, everywhere)

    def note_form(self, site: str, *, in_form: bool) -> None:
        self._noted_by_all(None, site, in_form)

    def _noted_by_all(self, sentences: Sentences | None, site: str, yes: bool) -> None:
        note = Note(sentences, site, yes)
        if self.view is not None:
            self.view.notes.append(note)
            return
        self.count([note])
        self._tell_rest()

    def count(self, notes: Iterable[Note]) -> None:
        """Count it here; others are told of it later."""
        for note in notes:
            self._untold.append(note)
            self._count_here(note)

    @property
    def has_much_to_tell(self) -> bool:
        """Whether so much was counted that others should know."""
        return len(self._untold) >= TOGETHER

    def tell(self, program: Program) -> bool:
        """Have a program tell others of what was counted here; False if there is nothing to tell.

        It is to be sent once: what was told twice would be counted twice.
        """
        some, self._untold = self._untold[:TOGETHER], self._untold[TOGETHER:]
        if some:
            program.append(STREAM, most_entries(len(some)), packed(self.leases.token, some))
        return bool(some)

    def _tell_rest(self) -> None:
        while self.tell(program := self._link.program()):
            self._link.run(program)

    def _count_here(self, note: Note) -> None:
        sentences, site, yes = note
        if sentences is None:
            self._counts.note_form(site, self.hashes, in_form=yes)
        else:
            self._counts.note(sentences, site, self.hashes, everywhere=yes)

    @property
    def read_to(self) -> bytes:
        """Up to where in the stream all is counted here."""
        return self._read_to

    def take_in(self, entries: Entries) -> None:
        """Count what others have told of, in the order of the stream. Raises StoreDamaged."""
        entries = list(entries)
        try:
            for note in others(entries, self.leases.token):
                self._count_here(note)
        except ValueError as error:
            raise self.damaged(f"the counted sentences of a page cannot be read ({error})") from None
        if entries:
            self._read_to = entries[-1][0]

    def _load_counts(self) -> Counts:
        while True:
            self._counted = self._rows.get(COUNTED)
            self._counts = super()._load_counts()
            if self._rows.get(COUNTED) == self._counted:  # else somebody wrote them in between
                break
        self._read_to = self._counted or BEGINNING
        if self.known_hashes is not None:
            self._catch_up()
        return self._counts

    def _catch_up(self) -> None:
        while True:
            with self._link.used() as client:
                answer = client.xread({self._link.prefix + STREAM: self._read_to}, count=CHUNK)
            entries = entries_of(answer)
            self.take_in(entries)
            if len(entries) < CHUNK:
                return

    def _write_counts(self, puts: Mapping[bytes, bytes], *, sync: bool) -> None:
        """Only if nobody has since they were read here: who did has counted all, or the stream still tells it."""
        if self.known_hashes is not None:
            self._tell_rest()
        blocks: dict[bytes, bytes] = {}
        if self._rows.get(COUNTED) == self._counted:  # else nothing has to be packed
            if self.known_hashes is not None:
                self._catch_up()
            blocks = {layout.block_key(block): packed for block, packed in self._counts.changed().items()}
        if not blocks and not puts:
            return
        counted = {COUNTED: self._read_to} if blocks else {}
        self._asked = {COUNTED: self._counted} if blocks else {}
        try:
            self._write(Changes({**blocks, **counted, **puts}), sync=sync)
        except OvertakenError:
            self._asked = {}
            self._write(Changes(dict(puts)), sync=sync)
        else:
            self._counted = counted.get(COUNTED, self._counted)
            self._counts.saved()
        finally:
            self._asked = None
