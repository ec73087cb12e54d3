"""Where pages come from: an export, or a state that is open."""

from __future__ import annotations

import gzip
import zlib
from array import array
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import NearDupError, StoreMismatch
from scrapy_neardup.hashing.width import NARROW, WIDE, KeyWidth
from scrapy_neardup.judging.judgements import Opinion, judgements
from scrapy_neardup.states.exchange.filed import Filed, from_data, from_line
from scrapy_neardup.states.exchange.judged import judgement_from
from scrapy_neardup.stores import SETTING, Store
from scrapy_neardup.stores.counts import Counts
from scrapy_neardup.stores.layout import last_id
from scrapy_neardup.stores.recipe import check_recipe, pack_recipe
from scrapy_neardup.stores.secret import SECRET_NAME, SECRET_SETTING, Secret

#: The forms of an export, with the width of the keys in it; there is a new one with every change that an earlier
#: release would read wrong.
VERSIONS = {2: WIDE, 3: NARROW}

#: Put around the pages of a source, to show how far it is.
Watch = Callable[[Iterable[Filed]], Iterable[Filed]]


class Source(Protocol):
    """Pages that were fingerprinted by one recipe."""

    @property
    def name(self) -> str:
        """What it is called in a message."""

    @property
    def recipe(self) -> dict[str, Any]:
        """By what the pages were fingerprinted, as plain data."""

    @property
    def secret(self) -> Secret | None:
        """Under which they were, if it is there: several states may share one that none of them holds."""

    @property
    def width(self) -> KeyWidth:
        """Of the keys under which the pages are filed."""

    @property
    def counts(self) -> Counts:
        """On how many pages sentences stand."""

    @property
    def judgements(self) -> Sequence[Opinion]:
        """What somebody has said of pages by hand."""

    def pages(self) -> Iterator[Filed]:
        """All pages by id, as often as they are asked for."""


#: Bytes of a line: more than a page has with its texts.
LONGEST_LINE = 50_000_000


class OpenState:
    """The pages of a store."""

    def __init__(self, store: Store) -> None:
        self.name = store.location
        #: Without the format, which is that of the store and not of the pages.
        self.recipe = {name: value for name, value in store.recipe.items() if name != "format"}
        self.secret = store.secret
        self.width = store.width
        self._store = store

    @property
    def counts(self) -> Counts:
        """A copy of its counts of sentences."""
        return _loaded(self._store.counted())

    @property
    def judgements(self) -> list[Opinion]:
        """All judgements in it."""
        return list(judgements(self._store))

    def pages(self) -> Iterator[Filed]:
        """All pages by id, as they are when their turn comes; not those that count only if their feed is stored."""
        store, pending = self._store, self._pending()
        at = 0
        for record in store.records():
            while at < len(pending) and pending[at] < record.id:
                at += 1
            if at < len(pending) and pending[at] == record.id:
                continue
            yield Filed(record, store.last_seen(record.url), store.evidence(record.id))

    def _pending(self) -> npt.NDArray[np.uint64]:
        """Ids of the pages that are not sealed, 8 bytes each: there are some while a crawl is at work on the state."""
        ids = array("Q", (last_id(journal) for journal, _ in self._store.rows(b"j")))
        return np.sort(np.array(ids, np.uint64))


class ExportFile:
    """The pages of a file that ``write_export`` wrote; once this is made, the whole file has been read and verified.

    Raises NearDupError that says what is wrong with the file; also later, if it is another by then.
    """

    def __init__(self, path: Path, watch: Watch = iter) -> None:
        self.name = str(path)
        self.recipe: dict[str, Any] = {}
        self.secret: Secret | None = None
        self.width = WIDE
        self.judgements: list[Opinion] = []
        self._path = path
        blocks: dict[int, bytes] = {}
        #: How many pages there are.
        self.size = sum(1 for _ in watch(self._read(blocks, self.judgements)))
        try:
            self.counts = _loaded(blocks)
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def pages(self) -> Iterator[Filed]:
        """All pages by id; what is wrong behind the last one is told after it."""
        return self._read({}, [])

    def _read(self, blocks: dict[int, bytes], said: list[Opinion]) -> Iterator[Filed]:
        number, pages, newest, digest = 0, 0, 0, sha256()
        lines = _lines(self._path)
        try:
            for number in count(1):
                line = next(lines, b"")
                if not line:
                    raise ValueError("the file ends here, before its last line")
                data = self._head(line) if number == 1 else from_line(line)
                if number == 1:
                    self.recipe = {name: value for name, value in data["recipe"].items() if name != "format"}
                    self.secret = _own_secret(data)
                    self.width = VERSIONS[data["version"]]
                elif "sha256" in data:
                    if data != {"pages": pages, "sha256": digest.hexdigest()}:
                        raise ValueError("it does not fit the lines before it")
                    if next(lines, b""):
                        raise ValueError("it should be the last")
                    return
                elif "block" in data:
                    _take_block(data, blocks)
                elif "judged" in data:
                    said.append(judgement_from(data))
                else:
                    filed = from_data(data)
                    if blocks or said or filed.record.id <= newest:
                        raise ValueError("its page is out of order")
                    if filed.record.longest_key > self.width.bits:
                        raise ValueError(f"a key of its page has more than {self.width.bits} bits")
                    pages, newest = pages + 1, filed.record.id
                    yield filed
                digest.update(line)
        except ValueError as error:
            raise self._damaged(f"line {number}: {error}") from None

    def _head(self, line: bytes) -> dict[str, Any]:
        """The first line, which says what the file is."""
        try:
            data = from_line(line)
        except ValueError:
            data = {}
        version = data.get("version")
        if (
            data.get("scrapy-neardup") != "state"
            or type(version) is not int
            or not isinstance(data.get("recipe"), dict)
        ):
            raise NearDupError(
                f"{self.name} is no export of a state, or its start is damaged. Make an export with: scrapy neardup "
                "export -o FILE. Name a state by its URL, such as sqlite:///path."
            )
        if version not in VERSIONS:
            raise NearDupError(
                f"{self.name} has export format {version}, but this release reads formats {min(VERSIONS)} to "
                f"{max(VERSIONS)}. Run: pip install --upgrade scrapy-neardup"
            )
        return data

    def _damaged(self, what: str) -> NearDupError:
        return NearDupError(
            f"{self.name} is damaged: {what}. Nothing of it is used. Copy the file again from its source, or "
            "export the state again."
        )


class Narrowed:
    """The pages of a source with keys of another width, as a state files them."""

    def __init__(self, source: Source, width: KeyWidth) -> None:
        self.name, self.recipe, self.secret = source.name, source.recipe, source.secret
        self.width = width
        self._source = source

    @property
    def counts(self) -> Counts:
        """As they are."""
        return self._source.counts

    @property
    def judgements(self) -> Sequence[Opinion]:
        """As they are."""
        return self._source.judgements

    def pages(self) -> Iterator[Filed]:
        """All pages by id."""
        for filed in self._source.pages():
            yield replace(filed, record=filed.record.narrowed(self.width))


def for_state(source: Source, store: Store) -> Source:
    """A source with keys as the store's; raises StoreMismatch if they are shorter, as bits cannot be made up."""
    check_width(source, store.width, store.location)
    return source if source.width == store.width else Narrowed(source, store.width)


def check_width(source: Source, width: KeyWidth, location: str) -> None:
    """Raise StoreMismatch if the keys of a source are too short for a state that has keys of this width."""
    if source.width.bits < width.bits:
        raise StoreMismatch(
            f"{source.name} has keys of {source.width.bits} bits, but the state at {location}, made by an earlier "
            f"release, has keys of {width.bits} bits. Merge both into a new state: "
            "scrapy neardup merge ONE OTHER --store NEW."
        )


def check_recipes(sources: Iterable[Source], recipe: Mapping[str, Any], named_by: str = SETTING) -> None:
    """Raise StoreMismatch, with all that differs, for the first of the sources that is of another recipe.

    ``named_by``: what the user can change to begin another state.
    """
    for source in sources:
        if source.recipe.get(SECRET_NAME) != recipe.get(SECRET_NAME):
            raise StoreMismatch(
                f"{source.name} was written with another secret, so its fingerprints cannot be compared with the "
                f"others. To merge states, give them the same {SECRET_SETTING} from their first crawl."
            )
        check_recipe(pack_recipe(source.recipe), recipe, source.name, named_by)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a packed file; raises ValueError where it cannot be unpacked. One that is not packed is one line."""
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
    """The secret in the head of an export; raises ValueError if it is not that of the pages."""
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


def _loaded(blocks: Mapping[int, bytes]) -> Counts:
    """Counts as a table; raises ValueError for what is none."""
    counts = Counts()
    for block, packed in blocks.items():
        counts.load(block, packed)
    return counts
