"""Counts on a server: how each crawler learns what the others have counted."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from typing import NamedTuple

import numpy as np

from scrapy_neardup.server.connection import Link
from scrapy_neardup.server.layout import DIRECTORY, first_bits, names_between, rows_of, spot
from scrapy_neardup.server.leases import Leases
from scrapy_neardup.server.program import Program
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.kv import Changes, Row
from scrapy_neardup.state.layout import meta_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.sentence_counts import Sentences

# ----------------------------------------------------------------------------------------------------------------------
# What is counted is told to all: the sentences of pages stand in a stream, from which every crawler counts them too.
#
# The counts themselves (``recurrence``) are a table in the memory of each crawler, and of the state the blocks ``b`` as
# of one place in the stream. Who opens the state reads the blocks, and the stream from that place on; who closes it
# writes the blocks anew, with the place up to which they count, if nobody did in between. The stream is bounded: what
# no blocks have counted when it goes is not counted, and counts are never too high.
#
# A crawl tells of many pages at once, as each entry costs whoever reads it more than the page in it: once a second, or
# when so many pages are to be told of. One that is killed takes what it had not told with it.


#: The stream, which is no row, and the row with the place up to which the blocks count.
STREAM = b"+"
COUNTED = meta_key("counted")
#: Before the first entry.
BEGINNING = b"0-0"
#: Notes that the stream holds, about; a page has two.
_MOST = 40_000
#: Notes that are told of in one entry, at most; and when it is time to tell of them.
TOGETHER = 128
#: Entries that are read at a time: by who has nothing else to do, and by a loop that must not be held up.
CHUNK, FEW = 500, 16
_HEAD = struct.Struct(">8sH")
_ONE = struct.Struct(">BHI")
#: Bits of the byte that says what a note is.
_YES, _FORM, _SAME_SITE = 1, 2, 4


class Note(NamedTuple):
    """The sentences of one page: of which site, and whether (``yes``) they are to be counted for all sites.

    Without sentences it says of a page of the site whether it was in a form: see ``Forms``.
    """

    sentences: Sentences | None
    site: str
    yes: bool


def packed(who: bytes, notes: Sequence[Note]) -> bytes:
    """As they stand in one entry. ``who`` (8 bytes) has counted them already.

    8s who · H number of notes · of each B what it is · H bytes of its site · I number of sentences · the sites,
    but for one that is that of the note before · I per sentence.
    """
    heads, sites, sentences, before = list[bytes](), list[bytes](), list[bytes](), None
    for note in notes:
        is_same = note.site == before
        site = b"" if is_same else note.site.encode("utf-8", "surrogatepass")[:65_535]
        found = b"" if note.sentences is None else note.sentences.astype(">u4").tobytes()
        what = note.yes * _YES | (note.sentences is None) * _FORM | is_same * _SAME_SITE
        heads.append(_ONE.pack(what, len(site), len(found) // 4))
        sites.append(site)
        sentences.append(found)
        before = note.site
    return b"".join([_HEAD.pack(who, len(notes)), *heads, *sites, *sentences])


def unpacked(entry: bytes) -> list[Note]:
    """What ``packed`` made; raises ValueError for anything else."""
    try:
        _, many = _HEAD.unpack_from(entry)
        heads = [_ONE.unpack_from(entry, _HEAD.size + n * _ONE.size) for n in range(many)]
    except struct.error as error:
        raise ValueError(str(error)) from None
    at = _HEAD.size + many * _ONE.size
    first = at + sum(size for _, size, _ in heads)
    if len(entry) != first + 4 * sum(count for _, _, count in heads):
        raise ValueError(f"{len(entry)} bytes are too few or too many for {many} notes")
    sentences, begin = np.frombuffer(entry, ">u4", offset=first).astype(np.uint32), 0
    notes, site = list[Note](), ""
    for what, size, count in heads:
        if not what & _SAME_SITE:
            site = entry[at : at + size].decode("utf-8", "surrogatepass")
        notes.append(Note(None if what & _FORM else sentences[begin : begin + count], site, bool(what & _YES)))
        at, begin = at + size, begin + count
    return notes


def most_entries(notes: int) -> int:
    """How many entries the stream is to hold, by one that has so many notes."""
    return max(1, _MOST // max(1, notes))


#: As the server answers: the place of an entry, and its fields.
Entries = Iterable[tuple[bytes, dict[bytes, bytes]]]


def entries_of(answer: object) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of the one stream that was asked for."""
    return [entry for _, entries in answer or () for entry in entries]  # type: ignore[attr-defined]


def others(entries: Entries, who: bytes) -> Iterator[Note]:
    """The notes of others."""
    for _, fields in entries:
        if fields[b"n"][: len(who)] != who:
            yield from unpacked(fields[b"n"])


# ----------------------------------------------------------------------------------------------------------------------
# The rows of a state on a server, read in their order, whoever writes to them in the meantime.


#: Fields, and names, that are fetched at a time; and where only a few may be asked for.
_CHUNK, _FEW = 500, 16
#: Keys that are weighed to estimate the size.
_WEIGHED = 5000
#: First letters of rows in hashes that the directory names.
_LISTED = (b"d", b"e", b"j", b"o", b"r")


class ServerRows:
    """Every method waits for the server; all may raise StoreError."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def get(self, key: bytes) -> bytes | None:
        """The value of a row."""
        program = self._link.program()
        program.get(key)
        value: bytes | None = self._link.run(program)[1]
        return value

    def postings(self, key: bytes, limit: int) -> list[int]:
        """Ids of up to ``limit`` pages that are filed under a key, by its bytes, newest first."""
        program = self._link.program()
        program.newest([key], limit)
        return newest_of(self._link.run(program)[1], limit).get(key, [])

    def pages(self) -> int:
        """How many there are."""
        program = self._link.program()
        program.count()
        return int(self._link.run(program)[1] or 0)

    def scan(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """All rows that begin with ``prefix``, in byte order; postings of several keys in that of their names here."""
        if not prefix:
            for letter in sorted(self._letters(), reverse=reverse):
                yield from self.scan(letter, reverse=reverse)
            return
        begun, ended, others = names_between(prefix)
        rest = self._rows_in(others, prefix, prefix, reverse=reverse)
        if prefix[:1] in b"uk":
            rows = self._on_levels(prefix, reverse=reverse)
        else:
            rows = self._listed(begun, ended, prefix, prefix, reverse=reverse)
        yield from merge(rest, rows, key=lambda row: row[0], reverse=reverse)

    def count(self, prefix: bytes) -> int:
        """How many rows of a listed kind (``_LISTED``) there are. None of them is fetched."""
        name = self._link.prefix + DIRECTORY
        with self._link.used() as client:
            names = client.zrangebylex(name, b"[" + prefix, b"(" + bytes([prefix[0] + 1]))
            pipe = client.pipeline(transaction=False)
            for one in names:
                pipe.hlen(self._link.prefix + one)
            return sum(pipe.execute())

    def rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        """The same from a row ``low`` on, few at a time: of pages, journals and drops alone."""
        begun, ended, _ = names_between(prefix)
        return self._listed(max(begun, names_between(low)[0]), ended, max(low, prefix), prefix, chunk=_FEW)

    def size(self) -> int:
        """About so many bytes of the server's memory: some keys are weighed, and stand for the others."""
        from redis.exceptions import ResponseError

        cursor = weighed = seen = total = 0
        with self._link.used() as client:
            while True:
                cursor, names = client.scan(cursor, match=self._pattern(b"*"), count=1000)
                seen += 1000
                pipe = client.pipeline(transaction=False)
                for name in names:
                    pipe.memory_usage(name)
                try:
                    total += sum(size or 0 for size in pipe.execute())
                except ResponseError:  # Kvrocks knows no such thing
                    return int(str(client.info().get("used_db_size", 0)))
                weighed += len(names)
                if not cursor:
                    return total
                if weighed >= _WEIGHED:
                    return round(total * max(1.0, int(client.dbsize()) / seen))

    def _pattern(self, more: bytes) -> bytes:
        return re.sub(rb"([*?\[\]\\])", rb"\\\1", self._link.prefix) + more

    def _letters(self) -> set[bytes]:
        name = self._link.prefix + DIRECTORY
        with self._link.used() as client:
            found = {one[1:] for one in client.zrangebylex(name, b"[*", b"(+")}
            for letter in _LISTED:
                if client.zrangebylex(name, b"[" + letter, b"(" + bytes([letter[0] + 1]), 0, 1):
                    found.add(letter)
        return found | {letter for letter in (b"k", b"u") if next(self._on_levels(letter, reverse=False), None)}

    def _listed(
        self, begun: bytes, ended: bytes, low: bytes, prefix: bytes, *, reverse: bool = False, chunk: int = _CHUNK
    ) -> Iterator[Row]:
        """Rows in the hashes that the directory names from one to another."""
        name, low_end, high_end = self._link.prefix + DIRECTORY, b"[" + begun, b"[" + ended
        while True:
            with self._link.used() as client:
                if reverse:
                    names = client.zrevrangebylex(name, high_end, low_end, 0, _CHUNK)
                else:
                    names = client.zrangebylex(name, low_end, high_end, 0, _CHUNK)
            for one in names:
                yield from self._rows_in(one, low, prefix, reverse=reverse, chunk=chunk)
            if len(names) < _CHUNK:
                return
            low_end, high_end = (low_end, b"(" + names[-1]) if reverse else (b"(" + names[-1], high_end)

    def _rows_in(self, name: bytes, low: bytes, prefix: bytes, *, reverse: bool, chunk: int = _CHUNK) -> Iterator[Row]:
        """Rows of one hash from ``low`` on that begin with ``prefix``, in their order."""
        with self._link.used() as client:
            fields = client.hkeys(self._link.prefix + name)
        rows = zip(rows_of(name, fields), fields, strict=True)
        wanted = sorted((one for one in rows if one[0].startswith(prefix) and one[0] >= low), reverse=reverse)
        for at in range(0, len(wanted), chunk):
            part = wanted[at : at + chunk]
            with self._link.used() as client:
                values = client.hmget(self._link.prefix + name, [field for _, field in part])
            yield from ((row, value) for (row, _), value in zip(part, values, strict=True) if value is not None)

    def _on_levels(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """URLs or postings: the keys of which no directory tells are gathered by their first bits."""
        letter = prefix[:1]
        if letter == b"u" and len(prefix) >= 9:
            yield from self._rows_together(spot(prefix[:9]).names, prefix, reverse=reverse)
            return
        begin = len(self._link.prefix)
        found = self._link.scan(self._pattern(letter + b"*"))  # Kvrocks knows no other pattern
        by_bits = sorted({one[begin:] for one in found}, key=first_bits, reverse=reverse)
        for _, some in groupby(by_bits, key=first_bits):
            yield from self._rows_together(tuple(some), prefix, reverse=reverse)

    def _rows_together(self, names: tuple[bytes, ...], prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        letter, is_of_urls, found = prefix[:1], prefix[:1] == b"u", dict[bytes, bytes]()
        for at in range(0, len(names), _CHUNK):
            with self._link.used() as client:
                pipe = client.pipeline(transaction=False)
                for name in names[at : at + _CHUNK]:
                    key = self._link.prefix + name
                    pipe.hgetall(key) if is_of_urls else pipe.zrangebylex(key, b"-", b"+")
                for held in pipe.execute():
                    rows = held.items() if is_of_urls else ((member, b"") for member in held)
                    found.update((letter + field, value) for field, value in rows)
        yield from sorted((row for row in found.items() if row[0].startswith(prefix)), reverse=reverse)


def newest_of(members: Iterable[bytes], limit: int) -> dict[bytes, list[int]]:
    """The ids of postings of several keys, from several levels, by the bytes of the key, newest first."""
    found: dict[bytes, list[int]] = {}
    for member in members:
        found.setdefault(member[:-8], []).append(layout.last_id(member))
    return {key: sorted(ids, reverse=True)[:limit] for key, ids in found.items()}


# ----------------------------------------------------------------------------------------------------------------------
# What was fetched of a state for one page: synchronous code judges by it, and never waits for a server.
#
# The code asks as it would ask a store. If a row was not fetched, ``NotFetched`` goes up through it, the row is
# fetched, and the code begins again: it has no effect outside before it has ended, as what it writes is held here until
# then.


class NotFetched(BaseException):
    """A row was asked for that is not here; no error, so that nobody on the way takes it for one of a page."""

    def __init__(self, *, row: bytes = b"", scan: bytes = b"", postings: tuple[int, int] | None = None) -> None:
        super().__init__(row, scan, postings)
        self.row = row
        self.scan = scan
        self.postings = postings


@dataclass(slots=True)
class PageView:
    """``rows``: None for one that is not there; ``postings`` by key and limit, newest first; ``scans`` by prefix.

    ``asked``: the rows that were read of those on which writes depend. ``changes``: what was written;
    ``notes``: what is to be counted.
    """

    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    postings: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    scans: dict[bytes, list[Row]] = field(default_factory=dict)
    asked: dict[bytes, bytes | None] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    notes: list[Note] = field(default_factory=list)

    def row(self, key: bytes) -> bytes | None:
        """The value of a row; raises NotFetched."""
        if key in self.changes.deletes:
            return None
        if key in self.changes.puts:
            return self.changes.puts[key]
        try:
            return self.rows[key]
        except KeyError:
            raise NotFetched(row=key) from None

    def scan(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """The rows that begin with ``prefix``, as they were; raises NotFetched."""
        if prefix not in self.scans:
            raise NotFetched(scan=prefix)
        found = self.scans[prefix]
        return reversed(found) if reverse else iter(found)

    def filed(self, key: int, limit: int) -> list[int]:
        """Ids of up to ``limit`` pages that are filed under a key; raises NotFetched."""
        try:
            return self.postings[key, limit]
        except KeyError:
            raise NotFetched(postings=(key, limit)) from None

    def write(self, changes: Changes) -> None:
        """Hold what is to be written."""
        for key in changes.deletes:
            self.changes.delete(key)
        for key, value in changes.puts.items():
            self.changes.put(key, value)
        self.changes.sights.update(changes.sights)

    def again(self) -> None:
        """The code begins anew: what it wrote is void."""
        self.changes = Changes()
        self.asked = {}
        self.notes = []

    def forget(self) -> None:
        """What was read of that on which writes depend is old: it is to be fetched anew."""
        for row in self.asked:
            self.rows.pop(row, None)
        self.again()


# ----------------------------------------------------------------------------------------------------------------------
# What a store on a server does with sentences: all that use the state count the same; see ``redis_notes``.


class OvertakenError(Exception):
    """What a write depends on has changed in between."""


class SharedCounting(PageStore):
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
