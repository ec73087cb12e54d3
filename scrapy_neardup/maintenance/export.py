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
from scrapy_neardup.judge.manual_verdicts import ManualVerdict, Opinion, judgement_of, judgements, write_judgements
from scrapy_neardup.judge.matching import Matching
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.kv import SETTING
from scrapy_neardup.state.layout import last_id
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SECRET_NAME, SECRET_SETTING, Secret, check_recipe, is_method_of, pack_recipe
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# Originals of one state that are copies of those of another.


@dataclass(frozen=True, slots=True)
class Copy:
    """Of which original a page is a copy, how like, and whether it is to speak for that one as a witness."""

    original: int
    comparison: Comparison
    is_witness: bool


def method_of(recipe: Mapping[str, Any], own: Method | None = None) -> Method | None:
    """The method by which the pages of a recipe were fingerprinted: ``own`` if it fits, else a built-in one.

    None if neither does, as for a method of somebody else's or one with a lexicon, of which the recipe has a digest.
    """
    if own is not None and is_method_of(recipe, own.recipe()):
        return own
    return former_method(recipe)  # of somebody else's not even the module is imported


def find_copy(method: Method, store: PageStore, page: Record) -> Copy | None:
    """Of which original in the store a page of another state is a copy, as a crawl would have judged it.

    Two things are not in a record, and both make a copy less likely, not more: the boilerplate of the page, and what
    the project's policy takes for copies beside what the method says.
    """
    if not page.sketch:
        return None
    found = Matching(method, store).best(page.url, Fingerprint(page.keys, page.sketch)).best
    if found is None or not found.comparison.duplicate:
        return None
    differs = found.comparison.similarity < method.witness_below
    return Copy(found.original.group, found.comparison, differs and found.compared.is_original)


# ----------------------------------------------------------------------------------------------------------------------
# What somebody has said of pages by hand, on its way to another state.


_LAST_SECOND = 2**32


def judgement_to(one: Opinion) -> dict[str, Any]:
    """A judgement as the object of its line.

    >>> judgement_to(Opinion("https://a.example/", ManualVerdict.KEEP, "", 1714521600))
    {'judged': 'keep', 'url': 'https://a.example/', 'other': '', 'when': 1714521600}
    """
    return {"judged": one.said.value, "url": one.url, "other": one.other, "when": one.when}


def judgement_from(data: Mapping[str, Any]) -> Opinion:
    """The judgement of a line's object; raises ValueError that says what is wrong with it."""
    judged, url, other, when = (data.get(name) for name in ("judged", "url", "other", "when"))
    if len(data) != 4 or not isinstance(url, str) or not isinstance(other, str):
        raise ValueError("its manual verdict names no page")
    if type(when) is not int or not 0 <= when < _LAST_SECOND:
        raise ValueError("the time of its manual verdict is out of range")
    try:
        return Opinion(url, ManualVerdict(judged), other, when)
    except ValueError:
        raise ValueError(f"its manual verdict must be keep or copy, not {judged!r:.60}") from None


def take_judgements(said: Iterable[Opinion], store: PageStore) -> tuple[int, int]:
    """Write down those of another state that this one lacks or has said otherwise before; of two the newer one stays.

    Returns how many were taken, and of how many pages the two said different things.
    """
    taken, against = [], 0
    for one in said:
        known = judgement_of(store, one.url)
        if known is not None and (known.said, known.other) != (one.said, one.other):
            against += 1
        if known is None or known.when < one.when:
            taken.append(one)
    if taken:
        write_judgements(store, *taken)
    return len(taken), against


# ----------------------------------------------------------------------------------------------------------------------
# All that a state holds of a page, and how it is written in a line of an export.


#: An id is the time in nanoseconds; from here on a store could give no larger one.
_LAST_ID = 2**63
_HEX = re.compile(r"[0-9a-f]{16}")
_NAMES = frozenset(
    ("id", "url", "seen", "original", "similarity", "keys", "sketch", "delivered", "former", "dropped", "body", "since")
) | {"evidence"}
_EMPTY = Evidence()
_EVIDENCE = {one.name: type(getattr(_EMPTY, one.name)) for one in fields(Evidence)}


@dataclass(frozen=True, slots=True)
class Filed:
    """A page's record, when the page was last seen (in seconds since 1970), and what can be told of it."""

    record: Record
    seen: int
    evidence: Evidence | None = None


def to_data(filed: Filed) -> dict[str, Any]:
    """A page as the object of its line; what is as most pages have it is left out.

    Ids and keys are 16 hexadecimal digits, as JSON's numbers lose the last ones in many languages. A similarity
    has five decimals, which tell each of its 65,536 steps.

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
    """The page of a line's object; raises ValueError that says what is wrong with it."""
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
    """A line of an export. Text stands as it is; lone surrogates too, in the way of UTF-8 that Python can read back."""
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "surrogatepass") + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """The object of a line; raises ValueError for anything else."""
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


# ----------------------------------------------------------------------------------------------------------------------
# Where pages come from: an export, or a state that is open.


#: The number of the export format.
VERSION = 3

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

    def __init__(self, store: PageStore) -> None:
        self.name = store.location
        #: Without the format, which is that of the store and not of the pages.
        self.recipe = {name: value for name, value in store.recipe.items() if name != "format"}
        self.secret = store.secret
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


# ----------------------------------------------------------------------------------------------------------------------
# A state becomes a file.


def write_export(store: PageStore, stream: IO[bytes], watch: Watch = iter) -> int:
    """Write a state, or what is looked at of one; returns the number of pages. Memory does not grow with it.

    Pages that are not sealed are left out: whoever takes the file would know them for good.
    """
    state, pages, digest = OpenState(store), 0, sha256()
    # Neither a name nor a time stands in the head: the same state makes the same bytes.
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


# ----------------------------------------------------------------------------------------------------------------------
# A file becomes a state.


def import_state(source: Source, store: PageStore, watch: Watch = iter) -> int:
    """Fill a state that holds no page yet and is of the source's recipe; returns the number of pages.

    Nothing counts before all is there: what an import that was stopped has added is taken back when the state is next
    opened. Only one that is stopped while it seals, at the very end, leaves a part, which ``merge`` completes. Raises
    NearDupError if there are pages.
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
