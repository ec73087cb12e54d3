"""Counts on a server. Crawlers publish the sentences that they count in a stream, and count those of the others.

Each crawler holds the counts in memory. The state has them in blocks ``b``, which include the stream up to a position.
Who opens the state reads the blocks, then the rest of the stream. Who closes it writes the blocks anew, unless somebody
else has meanwhile. The stream is bounded, and a killed crawl publishes no more: counts may be too low, never too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.server.layout import STREAM
from scrapy_neardup.server.notes import TOGETHER, Entries, Note, entries_of, most_entries, pack_notes, unpack_notes
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.rows import RemoteTransaction, ServerRows
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.sentence_counts import Sentences

if TYPE_CHECKING:
    from scrapy_neardup.server.connection import Link
    from scrapy_neardup.server.leases import Leases

#: The row with the position in the stream that the blocks include.
COUNTED = layout.meta_key("counted")
_START = b"0-0"
#: Entries to read at a time: by a blocking reader, and by a loop.
_CHUNK, FEW = 500, 16


class OvertakenError(Exception):
    """Others have changed what a write depends on."""


class SharedCounting(PageStore):
    """The part of a store on a server that counts sentences and templates."""

    #: The transaction that answers synchronous code while it runs; None: the server answers.
    transaction: RemoteTransaction | None = None
    leases: Leases
    _link: Link
    _rows: ServerRows
    #: The rows read since a write began on which it depends; None outside a write.
    _read_set: dict[bytes, bytes | None] | None = None
    #: The position in the stream up to which all is counted here, and that of the blocks read.
    stream_position = _START
    _blocks_position: bytes | None = None
    #: Notes that are counted here and not yet published.
    _unpublished: list[Note]

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        own = np.array([] if page is None else [page], np.uint32)
        if not self._counts.stood_on(own, site, self.hashes).any():
            self._add_note(Note(np.concatenate((sentences, own)), site, everywhere))

    def note_form(self, site: str, *, in_form: bool) -> None:
        self._add_note(Note(None, site, in_form))

    def _add_note(self, note: Note) -> None:
        if self.transaction is not None:
            self.transaction.notes.append(note)
            return
        self.count([note])
        self._publish_all()

    def count(self, notes: Iterable[Note]) -> None:
        """Count notes here, to be published later."""
        for note in notes:
            self._unpublished.append(note)
            self._count_here(note)

    @property
    def has_entry_to_publish(self) -> bool:
        """Whether the notes fill an entry of the stream."""
        return len(self._unpublished) >= TOGETHER

    def publish(self, program: Program) -> bool:
        """Add an entry to a program; False if there is none. Send it only once, or others count it twice."""
        notes, self._unpublished = self._unpublished[:TOGETHER], self._unpublished[TOGETHER:]
        if notes:
            program.append(STREAM, most_entries(len(notes)), pack_notes(self.leases.token, notes))
        return bool(notes)

    def _publish_all(self) -> None:
        while self.publish(program := self._link.program()):
            self._link.run(program)

    def _count_here(self, note: Note) -> None:
        if note.sentences is None:
            self._counts.note_form(note.site, self.hashes, in_form=note.yes)
        else:
            self._counts.note(note.sentences, note.site, self.hashes, everywhere=note.yes)

    def count_entries(self, entries: Entries) -> None:
        """Count what others published, in the order of the stream. Raises StoreDamaged."""
        for position, fields in entries:
            packed = fields[b"n"]
            try:
                if not packed.startswith(self.leases.token):
                    for note in unpack_notes(packed):
                        self._count_here(note)
            except ValueError as error:
                raise self.damaged(f"the counted sentences of a page cannot be read ({error})") from None
            self.stream_position = position

    def _load_counts(self) -> Counts:
        while True:
            self._blocks_position = self._rows.get(COUNTED)
            self._counts = super()._load_counts()
            if self._rows.get(COUNTED) == self._blocks_position:  # else somebody has written them meanwhile
                break
        self.stream_position = self._blocks_position or _START
        if self.known_hashes is not None:
            self._catch_up()
        return self._counts

    def _catch_up(self) -> None:
        key = self._link.prefix + STREAM
        while True:
            entries = entries_of(self._link.call(lambda client: client.xread({key: self.stream_position}, _CHUNK)))
            self.count_entries(entries)
            if len(entries) < _CHUNK:
                return

    def _write_counts(self, puts: Mapping[bytes, bytes], *, sync: bool) -> None:
        """Write the blocks, unless somebody has since we read them: they or the stream have all counts then."""
        if self.known_hashes is not None:
            self._publish_all()
        blocks: dict[bytes, bytes] = {}
        if self._rows.get(COUNTED) == self._blocks_position:
            if self.known_hashes is not None:
                self._catch_up()
            blocks = {layout.block_key(block): packed for block, packed in self._counts.changed().items()}
        if not blocks and not puts:
            return
        counted = {COUNTED: self.stream_position} if blocks else {}
        self._read_set = {COUNTED: self._blocks_position} if blocks else {}
        try:
            self._write(Changes({**blocks, **counted, **puts}), sync=sync)
        except OvertakenError:
            self._read_set = {}
            self._write(Changes(dict(puts)), sync=sync)
        else:
            self._blocks_position = counted.get(COUNTED, self._blocks_position)
            self._counts.saved()
        finally:
            self._read_set = None
