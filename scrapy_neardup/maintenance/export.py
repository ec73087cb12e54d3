"""Write a state to one file, and make a state from such a file."""

from __future__ import annotations

import gzip
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import IO, Any, Protocol

from scrapy_neardup.errors import NearDupError, StoreMismatch
from scrapy_neardup.judge.manual_verdicts import (
    ManualVerdict,
    find_manual_verdict,
    manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.kv.base import SETTING
from scrapy_neardup.maintenance.lines import (
    PageEntry,
    from_line,
    page_from_data,
    page_to_data,
    to_line,
    verdict_from_data,
    verdict_to_data,
)
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.layout import last_id
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SECRET_NAME, SECRET_SETTING, Secret, check_recipe, pack_recipe

#: The number of the export format.
VERSION = 3
#: Bytes of a line, more than a page with its texts has.
LONGEST_LINE = 50_000_000

#: Shows progress.
Watch = Callable[[Iterable[PageEntry]], Iterable[PageEntry]]


class Source(Protocol):
    """Pages with one recipe: an export, or an open state.

    ``name`` stands in messages; ``recipe`` is without the format; ``secret`` is None if it is unknown.
    """

    name: str
    recipe: dict[str, Any]
    secret: Secret | None

    @property
    def counts(self) -> Counts:
        """Return the boilerplate counts."""

    @property
    def verdicts(self) -> Sequence[ManualVerdict]:
        """Return the manual verdicts."""

    def pages(self) -> Iterator[PageEntry]:
        """Yield all pages by id; may be called again."""


class OpenState:
    """The pages of a store."""

    def __init__(self, store: PageStore) -> None:
        self.name = store.location
        self.recipe = {name: value for name, value in store.recipe.items() if name != "format"}
        self.secret = store.secret
        self._store = store

    @property
    def counts(self) -> Counts:
        """Return a copy of the counts."""
        return _load_counts(self._store.counted())

    @property
    def verdicts(self) -> list[ManualVerdict]:
        """Return the manual verdicts."""
        return list(manual_verdicts(self._store))

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

    def __init__(self, path: Path, watch: Watch = iter) -> None:
        self.name = str(path)
        self.recipe: dict[str, Any] = {}
        self.secret: Secret | None = None
        self.verdicts: list[ManualVerdict] = []
        self._path = path
        blocks: dict[int, bytes] = {}
        #: The number of pages.
        self.size = sum(1 for _ in watch(self._read(blocks, self.verdicts)))
        try:
            self.counts = _load_counts(blocks)
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def pages(self) -> Iterator[PageEntry]:
        """Yield all pages by id; an error comes after the last good one."""
        return self._read({}, [])

    def _read(self, blocks: dict[int, bytes], verdicts: list[ManualVerdict]) -> Iterator[PageEntry]:
        number, pages, newest, digest = 0, 0, 0, sha256()
        lines = _read_lines(self._path)
        try:
            for number in count(1):
                line = next(lines, b"")
                if not line:
                    raise ValueError("the file ends here, before its last line")
                data = self._read_head(line) if number == 1 else from_line(line)
                if "sha256" in data:
                    if data != {"pages": pages, "sha256": digest.hexdigest()}:
                        raise ValueError("it does not fit the lines before it")
                    if next(lines, b""):
                        raise ValueError("it should be the last")
                    return
                if "block" in data:
                    _take_block(data, blocks)
                elif "judged" in data:
                    verdicts.append(verdict_from_data(data))
                elif number > 1:
                    entry = page_from_data(data)
                    if blocks or verdicts or entry.record.id <= newest:
                        raise ValueError("its page is out of order")
                    pages, newest = pages + 1, entry.record.id
                    yield entry
                digest.update(line)
        except ValueError as error:
            raise self._damaged(f"line {number}: {error}") from None

    def _read_head(self, line: bytes) -> dict[str, Any]:
        """Read the first line, which identifies the file."""
        try:
            data = from_line(line)
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
        self.recipe = {name: value for name, value in recipe.items() if name != "format"}
        self.secret = _own_secret(data)
        return {}

    def _damaged(self, what: str) -> NearDupError:
        return NearDupError(
            f"{self.name} is damaged: {what}. Nothing of it is used. Copy the file again from its source, or "
            "export the state again."
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


def _own_secret(head: Mapping[str, Any]) -> Secret | None:
    """Return the secret in the head. Raises ValueError if it is not that of the pages."""
    if "secret" not in head:
        return None
    secret = Secret(bytes.fromhex(head["secret"])) if isinstance(head["secret"], str) else None
    if secret is None or secret.name != head["recipe"].get(SECRET_NAME):
        raise ValueError("its secret is not that of the recipe")
    return secret


def _take_block(data: Mapping[str, Any], blocks: dict[int, bytes]) -> None:
    block = data["block"]
    if type(block) is not int or block <= max(blocks, default=-1) or data.keys() != {"block", "counts"}:
        raise ValueError("its block of counts is out of order")
    if not isinstance(data["counts"], str):
        raise ValueError("its counts must be a string")
    blocks[block] = b64decode(data["counts"], validate=True)


def _load_counts(blocks: Mapping[int, bytes]) -> Counts:
    """Return counts as a table. Raises ValueError."""
    counts = Counts()
    for block, packed in blocks.items():
        counts.load(block, packed)
    return counts


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


def write_export(store: PageStore, stream: IO[bytes], watch: Watch = iter) -> int:
    """Write a state or a snapshot to a file; return the number of pages. Memory is bounded.

    Unsealed pages are left out.
    """
    state, pages, digest = OpenState(store), 0, sha256()
    # Without name and time, so that equal states give equal bytes.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=stream, mtime=0) as packed:

        def put(data: Mapping[str, Any]) -> None:
            line = to_line(data)
            digest.update(line)
            packed.write(line)

        own = {"secret": state.secret.value.hex()} if state.secret and state.secret.is_own else {}
        put({"scrapy-neardup": "state", "version": VERSION, "recipe": state.recipe, **own})
        for entry in watch(state.pages()):
            put(page_to_data(entry))
            pages += 1
        for block, counts in store.counted().items():
            put({"block": block, "counts": b64encode(counts).decode()})
        for one in sorted(state.verdicts, key=lambda one: (one.when, one.url)):
            put(verdict_to_data(one))
        packed.write(to_line({"pages": pages, "sha256": digest.hexdigest()}))
    return pages


def import_state(source: Source, store: PageStore, watch: Watch = iter) -> int:
    """Fill an empty state with the recipe of the source; return the number of pages.

    Pages are sealed at the end, so an interrupted import is rolled back at the next opening. If it stops while sealing,
    ``merge`` completes it. Raises NearDupError if there are pages.
    """
    if store.pages:
        raise NearDupError(
            f"The state at {store.location} already has {store.pages:,} pages, so nothing is imported. Name a new "
            "place with --store, or add the pages with: scrapy neardup merge."
        )
    generation = store.begin(f"import of {source.name}")
    for entry in watch(source.pages()):
        store.add(entry.record, entry.evidence, generation=generation, seen=entry.seen)
    store.seal(generation, store.unsealed(generation))
    store.end(generation)
    store.add_counts(source.counts)
    take_verdicts(source.verdicts, store)
    return store.pages


def take_verdicts(verdicts: Iterable[ManualVerdict], store: PageStore) -> tuple[int, int]:
    """Take manual verdicts of another state; the newer one of two stays.

    Return how many were taken, and on how many pages the states disagreed.
    """
    taken, against = [], 0
    for one in verdicts:
        known = find_manual_verdict(store, one.url)
        if known is not None and (known.kind, known.other) != (one.kind, one.other):
            against += 1
        if known is None or known.when < one.when:
            taken.append(one)
    if taken:
        write_manual_verdicts(store, *taken)
    return len(taken), against
