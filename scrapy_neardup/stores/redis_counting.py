"""What a store on a server does with sentences: all that use the state count the same; see ``redis_notes``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scrapy_neardup.stores import layout
from scrapy_neardup.stores.base import Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.counts import Counts
from scrapy_neardup.stores.recurrence import Sentences
from scrapy_neardup.stores.redis_leases import Leases
from scrapy_neardup.stores.redis_link import Link
from scrapy_neardup.stores.redis_notes import BEGINNING, CHUNK, COUNTED, MOST, STREAM, Entries, Note, entries_of, others
from scrapy_neardup.stores.redis_rows import ServerRows
from scrapy_neardup.stores.redis_program import Program
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

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True) -> None:
        self._noted_by_all(sentences, site, everywhere)

    def note_form(self, site: str, *, in_form: bool) -> None:
        self._noted_by_all(None, site, in_form)

    def _noted_by_all(self, sentences: Sentences | None, site: str, yes: bool) -> None:
        if self.view is not None:
            self.view.notes.append((sentences, site, yes))
            return
        program = self._link.program()
        self.tell(program, [(sentences, site, yes)])
        self._link.run(program)
        self.count([(sentences, site, yes)])

    def tell(self, program: Program, notes: Iterable[tuple[Sentences | None, str, bool]]) -> None:
        """Have a program tell others of what is to be counted."""
        for sentences, site, yes in notes:
            program.append(STREAM, MOST, Note(self.leases.token, sentences, site, yes).pack())

    def count(self, notes: Iterable[tuple[Sentences | None, str, bool]]) -> None:
        """Count it here."""
        for sentences, site, yes in notes:
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
            self.count((note.sentences, note.site, note.yes) for note in others(entries, self.leases.token))
        except ValueError as error:
            raise self.damaged(f"what was counted of a page cannot be read ({error})") from None
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
