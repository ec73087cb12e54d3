"""Sources of pages to copy: an open state, or a file that holds a whole state.

Such a file has packed JSON lines, the same for every kind of state. The first line has format, recipe, and the secret
if it is the state's own. Then come the pages by id, and the rows with counts of sentences and manual verdicts. The last
line has the number of pages and a checksum.
"""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import IO, Any, Protocol

from scrapy_neardup.errors import NearDupError, StoreMismatch
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.manual_verdicts import ManualVerdict
from scrapy_neardup.kv.base import SETTING, Row
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.maintenance.verify import unpack_record
from scrapy_neardup.state.boilerplate import Counts, read_counts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import last_id, record_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SECRET_NAME, SECRET_SETTING, Secret, check_recipe, pack_recipe
from scrapy_neardup.state.record import Record

#: The number of the export format.
VERSION = 5
#: Bytes of a line, more than a page with its texts has.
LONGEST_LINE = 50_000_000
#: Ids are nanoseconds; a store could not continue after this one.
_LAST_ID = 2**63
_LAST_SECOND = 2**32
#: Rows of a file besides the pages: counts of sentences, manual verdicts.
_OTHERS = (b"b", b"n")


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A record, its last sight in seconds since 1970, and its evidence."""

    record: Record
    seen: int
    evidence: Evidence | None = None


class Source(Protocol):
    """Pages with one recipe. ``name`` is for messages."""

    name: str
    recipe: dict[str, Any]

    @property
    def secret(self) -> Secret | None:
        """The secret, if it is known."""

    def pages(self) -> Iterator[PageEntry]:
        """Yield all pages, nearly by id; may be called again."""

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """Yield the other rows with a prefix."""


def counts_of(source: Source) -> Counts:
    """Return the boilerplate counts of a source. Raises NearDupError."""
    try:
        return read_counts(source.rows(b"b"))
    except ValueError as error:
        raise _damaged(source.name, error) from None


def verdicts_of(source: Source, hashes: Keyed) -> list[ManualVerdict]:
    """Return the manual verdicts of a source. Raises NearDupError."""
    try:
        return [ManualVerdict.of_row(key, packed, hashes) for key, packed in source.rows(b"n")]
    except ValueError as error:
        raise _damaged(source.name, error) from None


class OpenState:
    """The pages of a store."""

    def __init__(self, store: PageStore) -> None:
        self.name = store.location
        self.recipe = {name: value for name, value in store.recipe.items() if name != "format"}
        self.secret = store.secret
        self._store = store

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """Yield the rows with a prefix."""
        return iter(self._store.counted().items()) if prefix == b"b" else self._store.rows(prefix)

    def pages(self) -> Iterator[PageEntry]:
        """Yield the current pages by id, without unsealed ones; there are some while a crawl runs."""
        store = self._store
        unsealed = {last_id(key) for key, _ in store.rows(b"j")}
        for record in store.records():
            if record.id not in unsealed:
                yield PageEntry(record, store.last_seen(record.url), store.evidence(record.id))


class ExportFile:
    """The pages of an exported file, which the constructor reads and verifies completely.

    Raises NearDupError; later too, if the file has changed.
    """

    def __init__(self, path: Path, watch: Watch = unwatched) -> None:
        self.name = str(path)
        self.recipe: dict[str, Any] = {}
        self.secret: Secret | None = None
        self._path = path
        self._rows: dict[bytes, bytes] = {}
        for _ in watch(self.pages()):
            pass
        counts_of(self)

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """Yield the rows with a prefix."""
        return (row for row in self._rows.items() if row[0].startswith(prefix))

    def pages(self) -> Iterator[PageEntry]:
        """Yield all pages by id; an error comes after the last good one."""
        number, pages, newest, digest = 0, 0, 0, sha256()
        lines = _read_lines(self._path)
        try:
            for number in count(1):
                line = next(lines, b"")
                if not line:
                    raise ValueError("the file ends here, before its last line")
                data = self._read_head(line) if number == 1 else _from_line(line)
                if "sha256" in data:
                    if data != {"pages": pages, "sha256": digest.hexdigest()}:
                        raise ValueError("it does not fit the lines before it")
                    if next(lines, b""):
                        raise ValueError("it should be the last")
                    return
                if "row" in data:
                    self._take_row(**data)
                elif number > 1:
                    entry = _unpack_page(**data)
                    if entry.record.id <= newest:
                        raise ValueError("its page is out of order")
                    pages, newest = pages + 1, entry.record.id
                    yield entry
                digest.update(line)
        except (ValueError, TypeError, KeyError) as error:
            raise _damaged(self.name, f"line {number}: {error}") from None

    def _read_head(self, line: bytes) -> dict[str, Any]:
        """Read the first line, which identifies the file."""
        try:
            data = _from_line(line)
        except ValueError:
            data = {}
        version, recipe = data.get("version"), data.get("recipe")
        if data.get("scrapy-neardup") != "state" or type(version) is not int or not isinstance(recipe, dict):
            raise NearDupError(
                f"{self.name} is no export of a state, or its start is damaged. Make an export with: scrapy neardup "
                "export -o FILE. Name a state by its URL, such as sqlite:///path."
            )
        if version != VERSION:
            raise NearDupError(
                f"{self.name} has export format {version}, but this release reads format {VERSION}. If a later release "
                "wrote it, run: pip install --upgrade scrapy-neardup; else crawl anew."
            )
        self.recipe = recipe
        if "secret" in data:
            self.secret = Secret(bytes.fromhex(data["secret"]))
            if self.secret.name != recipe.get(SECRET_NAME):
                raise ValueError("its secret is not that of the recipe")
        return {}

    def _take_row(self, row: str, value: str) -> None:
        key = b64decode(row, validate=True)
        if key[:1] not in _OTHERS:
            raise ValueError("its row is of a kind that no export has")
        self._rows[key] = b64decode(value, validate=True)


def _damaged(name: str, what: object) -> NearDupError:
    return NearDupError(
        f"{name} is damaged: {what}. Nothing of it is used. Copy the file again from its source, or export the state "
        "again."
    )


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a compressed file. Raises ValueError. An uncompressed file is one line."""
    try:
        with path.open("rb") as file:
            if file.read(2) != b"\x1f\x8b":
                yield b"not packed"
                return
        with gzip.open(path) as unpacked:
            while line := unpacked.readline(LONGEST_LINE + 1):
                if len(line) > LONGEST_LINE:
                    raise ValueError(f"it has more than {LONGEST_LINE:,} bytes, which no line of an export has")
                yield line
    except EOFError:
        raise ValueError("the file ends too early") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"it cannot be unpacked ({error})") from None
    except OSError as error:
        raise NearDupError(f"{path} cannot be read: {error.strerror or error}. Check its permissions.") from None


def _unpack_page(id: str, url: str, seen: int, record: str, evidence: str | None = None) -> PageEntry:
    """Return the page of a line. Raises ValueError."""
    number = int(id, 16)
    if not 0 < number < _LAST_ID or not 0 <= seen < _LAST_SECOND:
        raise ValueError("an id or a time is out of range")
    found = unpack_record(record_key(number), b64decode(record, validate=True))
    if found is None or found.url != url:
        raise ValueError("its record cannot be read")
    return PageEntry(found, seen, None if evidence is None else Evidence.unpack(b64decode(evidence, validate=True)))


def _pack_page(entry: PageEntry) -> dict[str, Any]:
    record = entry.record
    packed = b64encode(record.pack()).decode()
    data = {"id": f"{record.id:016x}", "url": record.url, "seen": entry.seen, "record": packed}
    return data | ({"evidence": b64encode(entry.evidence.pack()).decode()} if entry.evidence is not None else {})


def _to_line(data: Mapping[str, Any]) -> bytes:
    """Format a line; lone surrogates stay readable for Python."""
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass") + b"\n"


def _from_line(line: bytes) -> dict[str, Any]:
    """Parse a line. Raises ValueError."""
    try:
        data = json.loads(line.decode("utf-8", "surrogatepass"))
    except RecursionError:
        data = None
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


def check_recipes(sources: Iterable[Source], recipe: Mapping[str, Any], named_by: str = SETTING) -> None:
    """Raise StoreMismatch, with all differences, for the first source with another recipe.

    ``named_by``: what the user can change.
    """
    for source in sources:
        if source.recipe.get(SECRET_NAME) != recipe.get(SECRET_NAME):
            raise StoreMismatch(
                f"{source.name} was written with another secret, so its fingerprints cannot be compared with the "
                f"others. To merge states, give them the same {SECRET_SETTING} from their first crawl."
            )
        check_recipe(pack_recipe(source.recipe), recipe, source.name, named_by)


def write_export(store: PageStore, stream: IO[bytes], watch: Watch = unwatched) -> int:
    """Write a state or a snapshot to a file; return the number of pages. Memory is bounded.

    Unsealed pages are left out.
    """
    state, pages, digest = OpenState(store), 0, sha256()
    # Without name and time: equal states give equal bytes.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=stream, mtime=0) as packed:

        def put(data: Mapping[str, Any]) -> None:
            line = _to_line(data)
            digest.update(line)
            packed.write(line)

        own = {"secret": state.secret.value.hex()} if state.secret and state.secret.is_own else {}
        put({"scrapy-neardup": "state", "version": VERSION, "recipe": state.recipe, **own})
        for entry in watch(state.pages(), store.pages):
            put(_pack_page(entry))
            pages += 1
        for prefix in _OTHERS:
            for key, value in state.rows(prefix):
                put({"row": b64encode(key).decode(), "value": b64encode(value).decode()})
        packed.write(_to_line({"pages": pages, "sha256": digest.hexdigest()}))
    return pages
