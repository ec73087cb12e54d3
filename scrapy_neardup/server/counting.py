"""Counts on a server. Crawlers publish the sentences that they count in a stream, and also count what others publish.

Each crawler holds the counts in memory. The state has them in blocks ``b``, which include the stream up to a position.
Who opens the state reads the blocks, then the rest of the stream. Who closes it writes new blocks, unless somebody else
has meanwhile. The stream is bounded: counts may be too low, never too high.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from secrets import token_bytes

from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.server.engine import Redis
from scrapy_neardup.server.layout import once_name
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.transaction import Note, OvertakenError, RemoteTransaction, unpack_notes
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import RECIPE

#: The row with the position in the stream that the blocks include.
COUNTED = layout.meta_key("counted")
_START = b"0-0"
#: Entries to read at a time.
CHUNK = 100
#: Entries as the server answers them: position; name and value of the field.
Entries = list[tuple[bytes, tuple[bytes, bytes]]]


class SharedBoilerplate:
    """The boilerplate counts of a state on a server. ``load`` reads them, ``store.counts`` holds them."""

    #: All entries of the stream before this one are counted here; the same for the blocks that were read.
    stream_position = _START
    _blocks_position: bytes | None = None
    #: The recipe of the state; another one, or none, if somebody has emptied the server since.
    _recipe: bytes | None = None

    def __init__(self, store: PageStore, kv: Redis) -> None:
        self._store = store
        self._redis = kv

    def load(self, read_blocks: Callable[[], Counts]) -> None:
        """Read the blocks, then the rest of the stream. Raises StoreDamaged."""
        self._recipe = self._redis.fetch(RECIPE)
        while True:
            self._blocks_position = self._redis.fetch(COUNTED)
            self._store.counts = read_blocks()
            if self._redis.fetch(COUNTED) == self._blocks_position:  # else somebody has written them meanwhile
                break
        self.stream_position = self._blocks_position or _START
        self._catch_up()

    def add(self, note: Note) -> None:
        """Count a note, and publish it."""
        if self._redis.transaction is not None:
            self._redis.transaction.notes.append(note)
            return
        program, name = self._redis.link.program(), once_name(token_bytes(8))
        program.expect_no_lease(name)  # if an earlier run without an answer published it, this one does not
        self._redis.leases.take(name, program)
        self._redis.publish(program, [note])
        self._redis.link.run(program)
        self.count([note])

    def count(self, notes: Iterable[Note]) -> None:
        """Count notes."""
        for sentences, site, yes, page in notes:
            counts = self._store.counts.on_site(site, self._store.hashes)
            if sentences is None:
                counts.note_form(in_form=yes)
            else:
                counts.note(sentences, everywhere=yes, page=page)

    def count_entries(self, entries: Entries) -> None:
        """Count what others published, in the order of the stream. Raises StoreDamaged."""
        for position, fields in entries:
            try:
                if not fields[1].startswith(self._redis.leases.token):
                    self.count(unpack_notes(fields[1]))
            except ValueError as error:
                raise self._redis.damaged(f"the counted sentences of a page cannot be read ({error})") from None
            self.stream_position = position

    def _catch_up(self) -> bool:
        """Count the rest of the stream; False if the secret of the state is unknown."""
        try:
            bool(self._store.hashes)
        except StoreMismatch:
            return False
        while entries := self._redis.link.ask(Program.entries, self.stream_position, CHUNK):
            self.count_entries(entries)
        return True

    def write(self) -> None:
        """Write the blocks, unless somebody has since we read them: they or the stream have all counts then."""
        if self._redis.fetch(COUNTED) != self._blocks_position or not self._catch_up():
            return
        if not (blocks := self._store.counts.rows(changed=True)):
            return
        changes = Changes({**blocks, COUNTED: self.stream_position})
        read_set = {COUNTED: self._blocks_position, RECIPE: self._recipe}
        with suppress(OvertakenError):
            self._redis.commit(RemoteTransaction(changes=changes, read_set=read_set))
            self._blocks_position = self.stream_position
            self._store.counts.saved()
