"""Write a state to one file, and make a state from such a file."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import NearDupError, StoreMismatch
from scrapy_neardup.hashing.keys import BITS
from scrapy_neardup.judge.former import former_method
from scrapy_neardup.judge.manual_verdicts import (
    ManualKind,
    ManualVerdict,
    find_manual_verdict,
    manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.judge.matching import Matching
from scrapy_neardup.kv.base import SETTING
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import last_id
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SECRET_NAME, SECRET_SETTING, Secret, check_recipe, is_method_of, pack_recipe
from scrapy_neardup.state.record import Record


@dataclass(frozen=True, slots=True)
class Copy:
    """A page's original, the similarity, and whether the page is a witness."""

    original: int
    comparison: Comparison
    is_witness: bool


def method_of(recipe: Mapping[str, Any], own: Method | None = None) -> Method | None:
    """Return the method of a recipe: ``own`` if it fits, else a built-in one.

    None for a custom method, or one with a lexicon, because the recipe has only a digest of it.
    """
    if own is not None and is_method_of(recipe, own.recipe()):
        return own
    return former_method(recipe)  # of somebody else's not even the module is imported


def find_copy(method: Method, store: PageStore, page: Record) -> Copy | None:
    """Return the original in the store that a page of another state copies, judged as in a crawl.

    A record lacks the page's boilerplate and the project's policy; both make a copy less likely.
    """
    if not page.sketch:
        return None
    found = Matching(method, store).best(page.url, Fingerprint(page.keys, page.sketch)).best
    if found is None or not found.comparison.duplicate:
        return None
    differs = found.comparison.similarity < method.witness_below
    return Copy(found.original.group, found.comparison, differs and found.compared.is_original)


_LAST_SECOND = 2**32


def judgement_to(one: ManualVerdict) -> dict[str, Any]:
    """Return a manual verdict as the object of its line.

    >>> judgement_to(ManualVerdict("https://a.example/", ManualKind.KEEP, "", 1714521600))
    {'judged': 'keep', 'url': 'https://a.example/', 'other': '', 'when': 1714521600}
    """
    return {"judged": one.kind.value, "url": one.url, "other": one.other, "when": one.when}


def judgement_from(data: Mapping[str, Any]) -> ManualVerdict:
    """Return the manual verdict in a line. Raises ValueError."""
    judged, url, other, when = (data.get(name) for name in ("judged", "url", "other", "when"))
    if len(data) != 4 or not isinstance(url, str) or not isinstance(other, str):
        raise ValueError("its manual verdict names no page")
    if type(when) is not int or not 0 <= when < _LAST_SECOND:
        raise ValueError("the time of its manual verdict is out of range")
    try:
        return ManualVerdict(url, ManualKind(judged), other, when)
    except ValueError:
        raise ValueError(f"its manual verdict must be keep or copy, not {judged!r:.60}") from None


def take_judgements(said: Iterable[ManualVerdict], store: PageStore) -> tuple[int, int]:
    """Take manual verdicts of another state; the newer one of two stays.

    Return how many were taken, and on how many pages the states disagreed.
    """
    taken, against = [], 0
    for one in said:
        known = find_manual_verdict(store, one.url)
        if known is not None and (known.kind, known.other) != (one.kind, one.other):
            against += 1
        if known is None or known.when < one.when:
            taken.append(one)
    if taken:
        write_manual_verdicts(store, *taken)
    return len(taken), against


#: Ids are nanoseconds; a store could not continue after this one.
_LAST_ID = 2**63
_HEX = re.compile(r"[0-9a-f]{16}")
_NAMES = frozenset(
    ("id", "url", "seen", "original", "similarity", "keys", "sketch", "delivered", "former", "dropped", "body", "since")
) | {"evidence"}
_EMPTY = Evidence()
_EVIDENCE = {one.name: type(getattr(_EMPTY, one.name)) for one in fields(Evidence)}


@dataclass(frozen=True, slots=True)
class Filed:
    """A record, its last sight in seconds since 1970, and its evidence."""

    record: Record
    seen: int
    evidence: Evidence | None = None


def to_data(filed: Filed) -> dict[str, Any]:
    """Return a page as the object of its line, without default values.

    Ids and keys are 16 hexadecimal digits, as JSON numbers lose digits in many languages. Five decimals of a similarity
    keep its 65,536 steps.

    >>> to_data(Filed(Record(26, "https://a.example/", 26), 1714521600))
    {'id': '000000000000001a', 'url': 'https://a.example/', 'seen': 1714521600}
    """
    record, told = filed.record, filed.evidence
    data: dict[str, Any] = {"id": f"{record.id:016x}", "url": record.url, "seen": filed.seen}
    if record.original != record.id:
        data["original"] = f"{record.original:016x}"
    if record.similarity != 1.0:
        data["similarity"] = round(record.similarity, 5)
    if record.keys:
        data["keys"] = [f"{key:016x}" for key in record.keys]
    if record.sketch:
        data["sketch"] = b64encode(record.sketch).decode()
    if record.delivered:
        data["delivered"] = True
    if record.former:
        data["former"] = True
    if record.dropped:
        data["dropped"] = f"{record.dropped:016x}"
    if record.body:
        data["body"] = f"{record.body:016x}"
    if record.since:
        data["since"] = f"{record.since:016x}"
    if told is not None:
        values = {name: getattr(told, name) for name in _EVIDENCE if getattr(told, name) != getattr(_EMPTY, name)}
        data["evidence"] = {**values, "like": f"{told.like:016x}"} if told.like else values
    return data


def from_data(data: Mapping[str, Any]) -> Filed:
    """Return the page in a line. Raises ValueError."""
    if unknown := sorted(data.keys() - _NAMES):
        raise ValueError(f"{unknown[0]!r:.60} is no field of a page")
    id = _number(data.get("id"), "id")
    url, seen = _typed(data.get("url"), "url", str), _typed(data.get("seen"), "seen", int)
    keys = _typed(data.get("keys", []), "keys", list)
    if not 0 < id < _LAST_ID or not 0 <= seen < _LAST_SECOND or len(keys) > 255:
        raise ValueError("an id, a time or a number of keys is out of range")
    original = _number(data["original"], "original") if "original" in data else id
    similarity = _share(data.get("similarity", 1.0), "similarity")
    try:
        sketch = b64decode(_typed(data.get("sketch", ""), "sketch", str), validate=True)
    except ValueError as error:
        raise ValueError(f"its sketch is no base64 ({error})") from None
    delivered = _typed(data.get("delivered", False), "delivered", bool)
    former = _typed(data.get("former", False), "former", bool)
    filed = tuple(_number(key, "key") for key in keys)
    dropped = _number(data["dropped"], "dropped") if "dropped" in data else 0
    body = _number(data["body"], "body") if "body" in data else 0
    since = _number(data["since"], "since") if "since" in data else 0
    record = Record(id, url, original, similarity, filed, sketch, delivered, former, dropped, body, since)
    return Filed(record, seen, _evidence(_typed(data["evidence"], "evidence", dict)) if "evidence" in data else None)


def to_line(data: Mapping[str, Any]) -> bytes:
    """Format a line; lone surrogates stay readable for Python."""
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass") + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """Parse a line. Raises ValueError."""
    try:
        data = json.loads(line.decode("utf-8", "surrogatepass"))
    except RecursionError:
        data = None
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


def _evidence(data: Mapping[str, Any]) -> Evidence:
    if unknown := sorted(data.keys() - _EVIDENCE.keys()):
        raise ValueError(f"{unknown[0]!r:.60} is no field of evidence")
    values: dict[str, Any] = {}
    for name, given in data.items():
        kind = _EVIDENCE[name]
        if name == "like":
            values[name] = _number(given, name)
        elif kind is float:
            values[name] = _share(given, name)
        elif kind is tuple:
            values[name] = tuple(_typed(one, name, str) for one in _typed(given, name, list))
        else:
            values[name] = _typed(given, name, kind)
    return Evidence(**values)


def _number(value: Any, name: str) -> int:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError(f"its {name} must be 16 hexadecimal digits, not {value!r:.60}")
    return int(value, 16)


def _share(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"its {name} must be a number from 0 to 1, not {value!r:.60}")
    return float(value)


def _typed(value: Any, name: str, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"its {name} must be of the type {kind.__name__}, not {value!r:.60}")
    return value


#: The number of the export format.
VERSION = 3

#: Shows progress.
Watch = Callable[[Iterable[Filed]], Iterable[Filed]]


class Source(Protocol):
    """Pages with one recipe: an export, or an open state."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def recipe(self) -> dict[str, Any]:
        """The recipe, as plain data."""

    @property
    def secret(self) -> Secret | None:
        """The secret, if it is known."""

    @property
    def counts(self) -> Counts:
        """Return the boilerplate counts."""

    @property
    def judgements(self) -> Sequence[ManualVerdict]:
        """Yield the manual verdicts."""

    def pages(self) -> Iterator[Filed]:
        """Yield all pages by id; may be called again."""


#: Bytes of a line, more than a page with its texts has.
LONGEST_LINE = 50_000_000


class OpenState:
    """The pages of a store."""

    def __init__(self, store: PageStore) -> None:
        self.name = store.location
        #: Without the format, which is the store's.
        self.recipe = {name: value for name, value in store.recipe.items() if name != "format"}
        self.secret = store.secret
        self._store = store

    @property
    def counts(self) -> Counts:
        """Return a copy of the counts."""
        return _loaded(self._store.counted())

    @property
    def judgements(self) -> list[ManualVerdict]:
        """Yield the manual verdicts."""
        return list(manual_verdicts(self._store))

    def pages(self) -> Iterator[Filed]:
        """Yield the current pages by id, without unsealed ones."""
        store, pending = self._store, self._pending()
        at = 0
        for record in store.records():
            while at < len(pending) and pending[at] < record.id:
                at += 1
            if at < len(pending) and pending[at] == record.id:
                continue
            yield Filed(record, store.last_seen(record.url), store.evidence(record.id))

    def _pending(self) -> npt.NDArray[np.uint64]:
        """Return the unsealed ids; there are some while a crawl runs."""
        ids = array("Q", (last_id(journal) for journal, _ in self._store.rows(b"j")))
        return np.sort(np.array(ids, np.uint64))


class ExportFile:
    """The pages of an exported file, which the constructor reads and verifies completely.

    Raises NearDupError; later too, if the file has changed.
    """

    def __init__(self, path: Path, watch: Watch = iter) -> None:
        self.name = str(path)
        self.recipe: dict[str, Any] = {}
        self.secret: Secret | None = None
        self.judgements: list[ManualVerdict] = []
        self._path = path
        blocks: dict[int, bytes] = {}
        #: The number of pages.
        self.size = sum(1 for _ in watch(self._read(blocks, self.judgements)))
        try:
            self.counts = _loaded(blocks)
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def pages(self) -> Iterator[Filed]:
        """Yield all pages by id; an error comes after the last good one."""
        return self._read({}, [])

    def _read(self, blocks: dict[int, bytes], said: list[ManualVerdict]) -> Iterator[Filed]:
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
                    if filed.record.longest_key > BITS:
                        raise ValueError(f"a key of its page has more than {BITS} bits")
                    pages, newest = pages + 1, filed.record.id
                    yield filed
                digest.update(line)
        except ValueError as error:
            raise self._damaged(f"line {number}: {error}") from None

    def _head(self, line: bytes) -> dict[str, Any]:
        """Read the first line, which identifies the file."""
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
        if version != VERSION:
            raise NearDupError(
                f"{self.name} has export format {version}, but this release reads format {VERSION}. If a later release "
                "wrote it, run: pip install --upgrade scrapy-neardup; else crawl anew."
            )
        return data

    def _damaged(self, what: str) -> NearDupError:
        return NearDupError(
            f"{self.name} is damaged: {what}. Nothing of it is used. Copy the file again from its source, or "
            "export the state again."
        )


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


def _lines(path: Path) -> Iterator[bytes]:
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


def _loaded(blocks: Mapping[int, bytes]) -> Counts:
    """Return counts as a table. Raises ValueError."""
    counts = Counts()
    for block, packed in blocks.items():
        counts.load(block, packed)
    return counts


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
        for filed in watch(state.pages()):
            put(to_data(filed))
            pages += 1
        for block, counts in store.counted().items():
            put({"block": block, "counts": b64encode(counts).decode()})
        for one in sorted(state.judgements, key=lambda one: (one.when, one.url)):
            put(judgement_to(one))
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
    for filed in watch(source.pages()):
        store.add(filed.record, filed.evidence, generation=generation, seen=filed.seen)
    store.seal(generation, store.unsealed(generation))
    store.end(generation)
    store.add_counts(source.counts)
    take_judgements(source.judgements, store)
    return store.pages
