"""The page store on a Redis server, shared by many crawlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from secrets import token_bytes

from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.hashing.keys import pack_keys
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.server.claims import NUMBER_BITS, Leases, pack, pending_page
from scrapy_neardup.server.engine import Redis
from scrapy_neardup.server.layout import COUNTED, filing_of, once_name
from scrapy_neardup.server.program import PendingPage, Program
from scrapy_neardup.server.transaction import Note, OvertakenError, RemoteTransaction, unpack_notes
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import Counts, Sentences
from scrapy_neardup.state.expiry import Expiry
from scrapy_neardup.state.journal import Journal, UnsealedPages
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import RECIPE
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.records import Clock, Postings

#: Pages to seal or forget at once; the server does nothing else meanwhile.
BATCH = 200
_START = b"0-0"
#: Entries to read at a time.
CHUNK = 100
#: Entries as the server answers them: position; name and value of the field.
Entries = list[tuple[bytes, tuple[bytes, bytes]]]


class SharedClock(Clock):
    """Gives ids that no other crawler gives."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def new_id(self) -> int:
        """Return the time in nanoseconds, with the number of this crawler in its low bits."""
        step = 1 << NUMBER_BITS
        self.newest = max((self.newest | (step - 1)) + 1, self.nanoseconds() & -step) | self._leases.number
        return self.newest


class PostingRows(Postings):
    """One row for each posting, because many crawlers file under one key at once."""

    def __init__(self, kv: Redis) -> None:
        super().__init__(kv)
        self._redis = kv

    def find(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        return self._redis.newest_postings(keys, limit)

    def file(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        changes.puts[filing_of(pack(id))] = b"".join(pack_keys(keys))

    def remove(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        changes.puts.pop(filing_of(pack(id)), None)
        for key in keys:
            changes.delete(layout.posting_key(key, id))


class SharedJournal(Journal):
    """The crawls that write to a server. A crawl is abandoned when its lease has ended."""

    batch = BATCH

    def __init__(self, rows: RedisStore, expiry: Expiry) -> None:
        super().__init__(rows, expiry)
        self._redis = rows.kv

    def take_over(self, generation: int) -> bool:
        if not self._redis.leases.take_over(generation):
            return False
        for page in self.unpack_in_flight(generation, self._redis.link.ask(Program.in_flight, pack(generation))):
            program = self._redis.link.program()
            program.unregister(page)
            self._redis.link.run(program)
        return True

    def unpack_in_flight(self, generation: int, found: Sequence[bytes]) -> list[PendingPage]:
        """Return the pages of a crawl from the answer to ``Program.in_flight``."""
        rows = zip(found[::2], found[1::2], strict=True)
        records = [self._rows.unpack_record(layout.last_id(id), packed) for id, packed in rows]
        return [pending_page(record, generation, self._rows.url_key(record.url)) for record in records]

    def _running(self) -> Iterable[int]:
        return [layout.last_id(key) for key, _ in self._redis.scan(layout.GENERATIONS)]

    def _generations(self, abandoned: Iterable[int]) -> Iterable[int]:
        return abandoned

    def is_unsealed(self, id: int) -> bool:
        program = self._redis.link.program()
        for generation in self._running():
            program.get(layout.journal_key(generation, id))
        return not program.is_empty and any(found is not None for found in self._redis.link.run(program)[1:])


class SharedBoilerplate:
    """The boilerplate counts of a state on a server. ``load`` reads them, ``store.counts`` holds them.

    Crawlers publish the sentences that they count in a stream, and also count what others publish. Each holds counts
    in memory. The state has them in blocks ``b``, which include the stream up to a position. Who opens the state reads
    the blocks, then the rest of the stream. Who closes it writes new blocks, unless somebody else has meanwhile. The
    stream is bounded: counts may be too low, never too high.
    """

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
                raise self._redis.damage_error(f"the counted sentences of a page cannot be read ({error})") from None
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


class RedisStore(PageStore):
    """A state on a server. The next opening rolls back the unsealed pages of crawls without a lease."""

    kv: Redis
    clock: SharedClock
    boilerplate: SharedBoilerplate
    journal: SharedJournal

    def _make_parts(self) -> None:
        kv = self.kv
        self.leases = kv.leases
        self.clock = SharedClock(kv.leases)
        newest = next(kv.scan(layout.RECORDS, reverse=True), None)
        self.clock.newest = layout.last_id(newest[0]) if newest else 0
        self._postings = PostingRows(kv)
        self.boilerplate = SharedBoilerplate(self, kv)
        self.boilerplate.load(self._load_counts)
        self._expiry = Expiry(self)
        self.journal = SharedJournal(self, self._expiry)

    @property
    def pages(self) -> int:
        return self.kv.pages()

    @pages.setter
    def pages(self, pages: int) -> None:
        """The server counts."""

    def see(self, pages: Iterable[Record], seconds: float, changes: Changes) -> None:
        for page in pages:
            key = self.url_key(page.url)
            if key not in changes.puts and key not in changes.deletes:
                changes.sights[key] = layout.pack_seen(page.id, seconds)

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        self.boilerplate.add(Note(sentences, site, everywhere, page))

    def note_form(self, site: str, *, in_form: bool) -> None:
        self.boilerplate.add(Note(None, site, in_form))

    def _write_counts(self, *, sync: bool) -> None:
        self.boilerplate.write()

    def note_rollback(self, rolled_back: UnsealedPages) -> None:
        super().note_rollback(rolled_back)
        self.is_held = any(
            self.leases.is_held_by_others(layout.last_id(key)) for key, _ in self.kv.scan(layout.GENERATIONS)
        )

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                self._write_counts(sync=True)
            finally:
                self.kv.close()
