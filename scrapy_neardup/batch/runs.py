"""A run of batch: a folder with its inputs, its settings, and all results so far.

``run.json`` has the inputs, the settings and the secret of the hashes. ``pages`` holds PAGES in files of consecutive
ranks. ``rows`` has three files of each judged part: ROWS, JUDGED, and the shared sentences. A file is written
completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from scrapy_neardup.atomic import open_private, replace_file
from scrapy_neardup.batch.rows import ROWS, TOPICS, Numbers, Questions, Topic, is_among, make_table, numbers, sorted_set
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods import Method
from scrapy_neardup.page.extraction import extractor_name
from scrapy_neardup.settings import Config
from scrapy_neardup.state.layout import kept_url
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record

_MANIFEST = "run.json"
#: Records of an input in one file, and pages of the first part, at most.
_RECORDS, _FIRST = 2_500, 5_000
#: Sentences of a page of usual length, at most; fingerprints have 256 of the longest pages.
_SENTENCES = 30
#: Bits of the number of a record within its input; the bits above number the input, from 1.
_RECORD_BITS = 32

#: Pages in the order of their ranks. ``url`` is the name of the record. ``failed``: why no page could be made of it.
#: ``page``: other fields, as JSON, if there are any. ``item``: the rest of a record, to make ``html`` of it
#: later; see ``ItemFields.pack_rest``. ``keys``, ``sketch``, ``sentences`` and ``own`` are the fingerprint without
#: boilerplate; ``sketch`` is null if there is none. Strings are bytes, as pages may hold halves of surrogate pairs.
PAGES = pa.schema(
    [
        ("rank", pa.int64()),
        *((name, pa.binary()) for name in ("failed", "url", "reader", "site", "canonical", "text", "page", "item")),
        ("html", pa.uint64()),
        ("keys", pa.list_(pa.uint64())),
        ("sketch", pa.binary()),
        ("sentences", pa.list_(pa.uint32())),
        ("own", pa.int64()),
    ]
)
#: The columns of a verdict: a tag without the time. Lone surrogates are escaped.
TAG = pa.schema(
    [
        *((name, pa.string()) for name in ("verdict", "kind", "reason", "reader", "similar_id", "original", "like")),
        *((name, pa.float64()) for name in ("similarity", "containment")),
        ("shared", pa.list_(pa.string())),
    ]
)
#: The pages of a part that may be more than a new original: see ``part_pages``. ``match``: the id of the page that
#: decided the verdict, or 0. ``record``: the packed record that the page wrote, or null. ``id`` is its id, and it
#: replaces the record ``replaces``. Ids are ranks. ``shared``: the sketch of the page that holds the shared sentences.
#: All other pages of a part are new originals.
JUDGED = pa.schema(
    [
        ("rank", pa.int64()),
        ("flags", pa.int8()),
        *((name, pa.int64()) for name in ("id", "replaces")),
        ("record", pa.binary()),
        ("match", pa.int64()),
        *list(TAG)[:-1],
        ("shared", pa.list_(pa.binary())),
    ]
)
#: Flags of a judged page: its sentences count for its site, and everywhere; it counts among the pages of its site that
#: are forms or not, and it is a form.
HERE, EVERYWHERE, FORMED, FORM = 1, 2, 4, 8


def decode(packed: bytes) -> str:
    """Return a string of PAGES."""
    return packed.decode("utf-8", "surrogatepass")


def new_record(rank: int, url: str, keys: Sequence[int], sketch: bytes) -> Record:
    """Return the record of a new original."""
    return Record(rank, url, rank, 1.0, tuple(keys), sketch)


@contextmanager
def new_arrow(path: Path, schema: pa.Schema) -> Iterator[Any]:
    """Open a writer of Arrow's file format; the file appears once it is complete. Two tasks of Spark may write one."""
    with replace_file(path, shared=True) as draft, pa.ipc.new_file(str(draft), schema) as writer:
        yield writer


def read_batches(file: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Return the batches of a file of PAGES, all columns or only these, mapped into memory."""
    reader = pa.ipc.open_file(pa.memory_map(str(file)))
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number).select(columns or PAGES.names)


def _weigh(file: Path) -> int:
    """Return how many pages of usual length need as much memory as this file, while they are judged."""
    sentences = [batch["sentences"] for batch in read_batches(file, ("sentences",))]
    return max(sum(map(len, sentences)), sum(len(one.flatten()) for one in sentences) // _SENTENCES)


def rank_of(input: int, record: int) -> int:
    """Return the rank of a record, which is also its id while parts are judged; inputs count from 1, records from 0."""
    return input << _RECORD_BITS | record


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What all stages of a run have in common; it can be sent to other processes.

    ``secret`` keys all hashes; None before a run draws one. ``fields``, ``id_field``: see ``RecordReader``.
    """

    config: Config
    secret: Secret | None
    fields: Mapping[str, str]
    id_field: str = "id"

    def make_method(self) -> Method:
        """Return the method, with the hashes of the run."""
        assert self.secret is not None
        return self.config.make_method().with_hashes(Keyed(self.secret.value))

    def as_data(self) -> dict[str, Any]:
        """Return as plain data everything that two runs must share if one goes on with the other."""
        config = self.config
        method = config.make_method()
        about = {
            "fields": dict(self.fields),
            "id": self.id_field,
            "reading": [config.max_html, config.max_text, extractor_name(config.make_extractor())],
            "recipe": method.recipe(),
            "deciding": config.deciding(method),
        }
        plain: dict[str, Any] = json.loads(json.dumps(about))
        return plain


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """A part: its number, the rank of its first page, the files with its pages, and the files that are made of them."""

    number: int
    first: int
    files: tuple[Path, ...]
    rows: Path
    judged: Path
    shared: Path

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Return its pages, a thousand at most at a time, as PAGES or with only these columns."""
        return chain.from_iterable(read_batches(file, columns) for file in self.files)

    def write(self, digest: str, rows: Iterable[pa.Table], judged: pa.Table) -> None:
        """Write JUDGED, and ROWS of each topic. ``digest``: of the answers that judging got."""
        with new_arrow(self.judged, JUDGED.with_metadata({"digest": digest})) as writer:
            writer.write_table(judged.combine_chunks())
        schema = ROWS.with_metadata({"digest": digest})
        with new_arrow(self.rows, schema) as writer:
            for table in rows:
                columns = [column.combine_chunks() for column in table.columns]
                writer.write_batch(pa.record_batch(columns, schema))

    def digest(self) -> str:
        """Return the digest that ``write`` got, or an empty string before the part is judged.

        A kill, or two tasks of Spark for one part, may leave two files that do not belong together: it is not judged.
        """
        one, other = map(digest_of, (self.judged, self.rows))
        return one if one == other else ""

    def write_shared(self, batches: Iterable[Sequence[Sequence[str]]]) -> None:
        """Write the shared sentences of each row of JUDGED, batch by batch: memory holds one."""
        schema = pa.schema([TAG.field("shared")], {"digest": self.digest()})
        with new_arrow(self.shared, schema) as writer:
            for found in batches:
                writer.write_table(make_table([found], schema))

    def rows_of(self, *topics: Topic) -> Iterator[pa.RecordBatch]:
        """Return ROWS of each of these topics."""
        reader = pa.ipc.open_file(pa.memory_map(str(self.rows)))
        for topic in topics:
            yield reader.get_batch(topic - 1).replace_schema_metadata(None)

    def questions(self) -> Questions:
        """Return the hashes that the judged pages ask for."""
        rows = zip(TOPICS, self.rows_of(*TOPICS), strict=True)
        return {topic: sorted_set(numbers(found["hash"])) for topic, found in rows}

    def judged_pages(self) -> pa.Table:
        """Return JUDGED, mapped into memory."""
        return pa.ipc.open_file(pa.memory_map(str(self.judged))).read_all()

    def results(self) -> pa.Table:
        """Return JUDGED with the shared sentences."""
        shared = pa.ipc.open_file(pa.memory_map(str(self.shared))).read_all()["shared"]
        judged = self.judged_pages()
        return judged.set_column(len(judged.schema) - 1, "shared", shared)

    def records(self, ranks: Numbers) -> Iterator[tuple[int, bytes]]:
        """Return the ids and packed records that the pages with these ranks, which ascend, wrote."""
        judged = self.judged_pages()
        known = numbers(judged["rank"])
        wrote = judged.select(["rank", "id", "record"])
        written = {one["rank"]: one for one in wrote.filter(pa.array(is_among(known, ranks))).to_pylist()}
        for batch in self.batches(("rank", "url", "keys", "sketch")):
            for page in batch.filter(pa.array(is_among(numbers(batch["rank"]), ranks))).to_pylist():
                one = written.get(page["rank"])
                if one is None:
                    yield page["rank"], new_record(**page | {"url": kept_url(decode(page["url"]))}).pack()
                elif one["record"] is not None:
                    yield one["id"], one["record"]


def digest_of(file: Path) -> str:
    """Return the digest in a file of a part, see ``ArchivePart.digest``; empty if there is no file."""
    return pa.ipc.open_file(pa.memory_map(str(file))).schema.metadata[b"digest"].decode() if file.exists() else ""


class Stretch(NamedTuple):
    """What one process reads: the number and name of an input, and which of its ``strides``."""

    input: int
    name: str
    stride: int


class BatchRun:
    """A run, new or begun before."""

    def __init__(
        self,
        folder: Path,
        options: BatchOptions,
        inputs: Sequence[str],
        previous: BatchRun | None = None,
        *,
        pages: int,
        strides: int = 1,
    ) -> None:
        """``previous``: a complete run, which this one goes on with. ``pages``: of a part, at most. ``strides``: how
        many processes read each input.

        A run that was begun before has its own ``pages`` and ``strides``. Raises NearDupError if the folder holds
        another run.
        """
        self.folder = folder
        self.inputs = inputs
        self.previous = previous
        self.first_input: int = previous.first_input + len(previous.inputs) if previous else 1
        about = {
            **options.as_data(),
            "inputs": [str(Path(name).resolve()) for name in inputs],
            "previous": str(previous.folder.resolve()) if previous else "",
        }
        begun = _read_manifest(folder)
        if begun is None:
            secret = options.secret or (previous.options.secret if previous else None) or Secret.drawn()
            begun = {"about": about, "secret": secret.value.hex(), "pages": pages, "strides": strides}
            folder.mkdir(parents=True, exist_ok=True)
            with replace_file(folder / _MANIFEST) as draft, open(draft, "w", opener=open_private) as file:
                json.dump(begun, file)
        elif begun["about"] != about:
            raise NearDupError(f"{folder} holds a run of other inputs or settings. Name another folder with --run.")
        self.options: BatchOptions = replace(options, secret=Secret(bytes.fromhex(begun["secret"])))
        self.pages: int = begun["pages"]
        self.strides: int = begun["strides"]
        #: How many records of an input are read into one file.
        self.records_of_file: int = min(self.pages, _RECORDS)
        if previous is not None and previous.options.secret != self.options.secret:
            raise NearDupError(f"{previous.folder} was made with another NEARDUP_SECRET. Use the same one.")

    @classmethod
    def load(cls, folder: Path, options: BatchOptions) -> BatchRun:
        """Return a complete run, to go on with. Raises NearDupError."""
        begun = _read_manifest(folder)
        if begun is None:
            raise NearDupError(f"{folder} holds no run of batch. Name the folder of one with --previous.")
        about = begun["about"]
        if about != {**about, **options.as_data()}:
            raise NearDupError(f"{folder} was made with other settings or fields. Use them, or judge its inputs again.")
        previous = cls.load(Path(about["previous"]), options) if about["previous"] else None
        run = cls(folder, options, about["inputs"], previous, pages=begun["pages"])
        if not run.is_complete:
            raise NearDupError(f"The run in {folder} is not complete. Repeat its command: it goes on where it was.")
        return run

    @property
    def is_complete(self) -> bool:
        return (self.folder / "complete").exists()

    @property
    def parts(self) -> list[ArchivePart]:
        """All parts; earlier runs come first."""
        return [*(self.previous.parts if self.previous else ()), *self.own_parts]

    @property
    def own_parts(self) -> list[ArchivePart]:
        """The parts of this run, once its inputs are read."""
        return [*self.group(sorted(self.folder.glob("pages/[0-9]*.arrow")))]

    def group(self, files: Iterable[Path]) -> Iterator[ArchivePart]:
        """Return files of pages, in their order, as parts.

        The first parts are small, to begin early. Each further part has at most a sixth of the pages before it, as the
        last one is judged when nobody reads. Long pages count as several.
        """
        number = len(self.previous.parts) if self.previous else 0
        group, size, before = list[Path](), 0, 0
        for file in files:
            pages = _weigh(file)
            if group and size + pages > min(self.pages, max(_FIRST, before // 6)):
                yield self._part(number, group)
                number, before = number + 1, before + size
                group, size = [], 0
            group.append(file)
            size += pages
        if group:
            yield self._part(number, group)

    def _part(self, number: int, files: Sequence[Path]) -> ArchivePart:
        input, group = map(int, files[0].stem.split("-"))
        first, names = rank_of(input, group * self.records_of_file), self.folder / "rows" / f"{number:06}"
        made = (names.with_suffix(suffix) for suffix in (".arrow", ".judged", ".shared"))
        return ArchivePart(number, first, tuple(files), *made)

    def stretches(self) -> list[Stretch]:
        """Return the stretches that no process has read yet."""
        named = enumerate(self.inputs, self.first_input)
        every = (Stretch(number, name, stride) for number, name in named for stride in range(self.strides))
        return [one for one in every if not self.marker(one).exists()]

    def places_of(self, ranks: Any) -> tuple[Any, Any]:
        """Return for each rank the place of its input among ``inputs``, and the number of its record there."""
        return (ranks >> _RECORD_BITS) - self.first_input, ranks & ((1 << _RECORD_BITS) - 1)

    def marker(self, stretch: Stretch) -> Path:
        """Return the file that is there once a stretch is read."""
        return self.folder / "pages" / f"{stretch.input:06}-{stretch.stride:03}.json"

    def pages_file(self, input: int, group: int) -> Path:
        """Return the file with the pages of a group of records of an input."""
        return self.folder / "pages" / f"{input:06}-{group:09}.arrow"


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise NearDupError(f"{folder / _MANIFEST} cannot be read: {error}. Name another folder with --run.") from None
    return found
