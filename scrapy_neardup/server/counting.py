"""Counts on a server. Crawlers publish the sentences that they count in a stream, and count those of the others.

Each crawler holds the counts in memory. The state has them in blocks ``b``, which include the stream up to a position.
Who opens the state reads the blocks, then the rest of the stream. Who closes it writes the blocks anew, unless somebody
else has meanwhile. The stream is bounded, and a killed crawl publishes no more: counts may be too low, never too high.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence

import numpy as np

from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.server.engine import Redis
from scrapy_neardup.server.layout import STREAM
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.transaction import Note, OvertakenError
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import BoilerplateCounts, Counts
from scrapy_neardup.state.records import PageRows
from scrapy_neardup.state.sentence_counts import Sentences

#: Notes in the stream, about; a page has two.
_MOST = 40_000
#: Notes in one entry, at most.
_TOGETHER = 128
#: The row with the position in the stream that the blocks include.
COUNTED = layout.meta_key("counted")
_START = b"0-0"
#: Entries to read at a time: by a blocking reader, and by a loop.
_CHUNK, FEW = 500, 16
#: Entries as the server answers them: position and fields.
Entries = list[tuple[bytes, dict[bytes, bytes]]]


class SharedBoilerplate(BoilerplateCounts):
    """The boilerplate counts of a state on a server."""

    #: All entries of the stream before this one are counted here; the same for the blocks that were read.
    stream_position = _START
    _blocks_position: bytes | None = None

    def __init__(self, rows: PageRows, kv: Redis) -> None:
        self._redis = kv
        #: Notes that are counted here and not yet published.
        self._unpublished: list[Note] = []
        super().__init__(rows)
        self.stream_position = self._blocks_position or _START
        if self._knows_secret():
            self._catch_up()

    def _knows_secret(self) -> bool:
        try:
            return bool(self._rows.hashes)
        except StoreMismatch:
            return False

    def load(self) -> Counts:
        """Return the counts in the blocks. Raises StoreDamaged."""
        while True:
            self._blocks_position = self._redis.fetch(COUNTED)
            counts = super().load()
            if self._redis.fetch(COUNTED) == self._blocks_position:  # else somebody has written them meanwhile
                return counts

    def note(self, sentences: Sentences, site: str, *, everywhere: bool, page: int | None) -> None:
        """See ``PageStore.note``."""
        own = np.array([] if page is None else [page], np.uint32)
        if not self.counts.on_site(site, self._rows.hashes).stood_here(own).any():
            self._add_note(Note(np.concatenate((sentences, own)), site, everywhere))

    def note_form(self, site: str, *, in_form: bool) -> None:
        """See ``PageStore.note_form``."""
        self._add_note(Note(None, site, in_form))

    def _add_note(self, note: Note) -> None:
        if self._redis.transaction is not None:
            self._redis.transaction.notes.append(note)
            return
        self.count([note])
        self._publish_all()

    def count(self, notes: Iterable[Note]) -> None:
        """Count notes here, to be published later."""
        for note in notes:
            self._unpublished.append(note)
            self._count_here(note)

    def publish(self, program: Program) -> bool:
        """Add an entry to a program; False if there is none. Send it only once, or others count it twice."""
        notes, self._unpublished = self._unpublished[:_TOGETHER], self._unpublished[_TOGETHER:]
        if notes:
            program.append(STREAM, most_entries(len(notes)), pack_notes(self._redis.leases.token, notes))
        return bool(notes)

    def _publish_all(self) -> None:
        while self.publish(program := self._redis.link.program()):
            self._redis.link.run(program)

    def _count_here(self, note: Note) -> None:
        counts = self.counts.on_site(note.site, self._rows.hashes)
        if note.sentences is None:
            counts.note_form(in_form=note.yes)
        else:
            counts.note(note.sentences, everywhere=note.yes)

    def count_entries(self, entries: Entries) -> None:
        """Count what others published, in the order of the stream. Raises StoreDamaged."""
        for position, fields in entries:
            packed = fields[b"n"]
            try:
                if not packed.startswith(self._redis.leases.token):
                    for note in unpack_notes(packed):
                        self._count_here(note)
            except ValueError as error:
                raise self._kv.damaged(f"the counted sentences of a page cannot be read ({error})") from None
            self.stream_position = position

    def fetch_entries(self, most: int) -> Entries:
        """Return the next entries of the stream, up to ``most``, which are not counted here yet."""
        link = self._redis.link
        key = link.prefix + STREAM
        answer = link.call(lambda client: client.xread({key: self.stream_position}, most))
        return [entry for _, entries in answer or () for entry in entries]

    def _catch_up(self) -> None:
        many = _CHUNK
        while many == _CHUNK:
            entries = self.fetch_entries(_CHUNK)
            self.count_entries(entries)
            many = len(entries)

    def write(self, *, sync: bool) -> None:
        """Write the blocks, unless somebody has since we read them: they or the stream have all counts then."""
        redis = self._redis
        if self._knows_secret():
            self._publish_all()
        if redis.fetch(COUNTED) != self._blocks_position:
            return
        if self._knows_secret():
            self._catch_up()
        blocks = self.changes().puts
        if not blocks:
            return
        redis.read_set = {COUNTED: self._blocks_position}
        try:
            redis.write(Changes({**blocks, COUNTED: self.stream_position}), sync=sync)
        except OvertakenError:
            return
        finally:
            redis.read_set = None
        self._blocks_position = self.stream_position
        self.counts.saved()


def pack_notes(crawler: bytes, notes: Sequence[Note]) -> bytes:
    """Return one entry of the stream. ``crawler`` (8 bytes) has already counted the notes.

    8s crawler · JSON: of each note its sentences (null, or in base64, I per sentence), its site, and ``yes``.
    """
    rows = [
        (None if note.sentences is None else b64encode(note.sentences.astype(">u4").tobytes()).decode(), *note[1:])
        for note in notes
    ]
    return crawler + json.dumps(rows).encode()


def unpack_notes(entry: bytes) -> list[Note]:
    """Return what ``pack_notes`` packed; raises ValueError for anything else."""
    try:
        return [
            Note(None if packed is None else np.frombuffer(b64decode(packed), ">u4").astype(np.uint32), site, yes)
            for packed, site, yes in json.loads(entry[8:])
        ]
    except TypeError as error:
        raise ValueError(str(error)) from None


def most_entries(notes: int) -> int:
    """Return the length of the stream, by an entry of so many notes."""
    return max(1, _MOST // max(1, notes))
