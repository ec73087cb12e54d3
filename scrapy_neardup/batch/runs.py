"""A run of batch: a folder that holds what is judged, how, and how far it is.

``run.json`` has the inputs, the settings and the secret of the hashes. ``pages`` holds PAGES in files of consecutive
ranks, and ``rows`` what each part left behind. A file is written completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from scrapy_neardup.atomic import open_private, replace_file
from scrapy_neardup.batch.pages import BatchOptions, place_of, rank_of
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.state.recipe import Secret

_MANIFEST = "run.json"
#: Records of an input in one file, and pages of the first part, at most.
_RECORDS, _FIRST = 10_000, 20_000


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """A part: its number, the rank of its first page, and the files with its pages. ``rows``: what it left behind."""

    number: int
    first: int
    files: tuple[Path, ...]
    rows: Path

    def batches(self, columns: Sequence[str] | None = None, pages: int = 1000) -> Iterator[pa.RecordBatch]:
        """Return its pages, so many at a time, as PAGES or with these columns alone."""
        for file in self.files:
            yield from pq.ParquetFile(file).iter_batches(pages, columns=columns and list(columns))


class Stretch(NamedTuple):
    """What one process reads: the number and name of an input, and which of its ``strides``."""

    input: int
    name: str
    stride: int


class BatchRun:
    """A run, perhaps one that was begun before."""

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
        another run, or the previous one is of another kind.
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
        if previous is not None and previous.options.as_data() != options.as_data():
            raise NearDupError(f"{previous.folder} was made with other settings. Use these, or judge its inputs again.")
        begun = _read_manifest(folder)
        if begun is None:
            secret = options.secret or (previous.options.secret if previous else None) or Secret.drawn()
            begun = {"about": about, "secret": secret.value.hex(), "pages": pages, "strides": strides}
            _write_manifest(folder, begun)
        elif begun["about"] != about:
            raise NearDupError(f"{folder} holds a run of other inputs or settings. Name another folder with --run.")
        self.options: BatchOptions = replace(options, secret=Secret(bytes.fromhex(begun["secret"])))
        self.pages: int = begun["pages"]
        self.strides: int = begun["strides"]
        if previous is not None and previous.options.secret != self.options.secret:
            raise NearDupError(f"{previous.folder} was made with another NEARDUP_SECRET. Use the same one.")

    @classmethod
    def load(cls, folder: Path, options: BatchOptions) -> BatchRun:
        """Return a complete run, to go on with. Raises NearDupError."""
        begun = _read_manifest(folder)
        if begun is None:
            raise NearDupError(f"{folder} holds no run of batch. Name the folder of one with --previous.")
        about = begun["about"]
        previous = cls.load(Path(about["previous"]), options) if about["previous"] else None
        run = cls(folder, options, about["inputs"], previous, pages=begun["pages"])
        if not run.is_complete:
            raise NearDupError(f"The run in {folder} is not complete. Repeat its command: it goes on where it was.")
        return run

    @property
    def is_complete(self) -> bool:
        """Whether all verdicts are there."""
        return (self.folder / "complete").exists()

    @property
    def parts(self) -> list[ArchivePart]:
        """All parts, those of earlier runs first."""
        return [*(self.previous.parts if self.previous else ()), *self.own_parts]

    @property
    def own_parts(self) -> list[ArchivePart]:
        """The parts of this run alone, once its inputs are read."""
        return [*self.group(sorted(self.folder.glob("pages/[0-9]*.parquet")))]

    def group(self, files: Iterable[Path]) -> Iterator[ArchivePart]:
        """Return files of pages, in their order, as parts.

        The first parts are small, so that judging begins early. Each further part is at most as large as all before it.
        """
        number = len(self.previous.parts) if self.previous else 0
        group, size, before = list[Path](), 0, 0
        for file in files:
            pages = pq.read_metadata(file).num_rows
            if group and size + pages > min(self.pages, max(_FIRST, before)):
                yield self._part(number, group)
                number, before = number + 1, before + size
                group, size = [], 0
            group.append(file)
            size += pages
        if group:
            yield self._part(number, group)

    def _part(self, number: int, files: Sequence[Path]) -> ArchivePart:
        input, group = map(int, files[0].stem.split("-"))
        first = rank_of(input, group * self.records_of_file)
        return ArchivePart(number, first, tuple(files), self.folder / "rows" / f"{number:06}.arrow")

    def stretches(self) -> list[Stretch]:
        """Return the stretches that no process has read yet."""
        named = enumerate(self.inputs, self.first_input)
        every = (Stretch(number, name, stride) for number, name in named for stride in range(self.strides))
        return [one for one in every if not self.marker(one).exists()]

    def place_of(self, rank: int) -> tuple[str, int]:
        """Return the name of the input of a page, and the number of its record there."""
        input, record = place_of(rank)
        return self.inputs[input - self.first_input], record

    def marker(self, stretch: Stretch) -> Path:
        """Return the file that is there once a stretch is read."""
        return self.folder / "pages" / f"{stretch.input:06}-{stretch.stride:03}.json"

    def pages_file(self, input: int, group: int) -> Path:
        """Return the file with the pages of a group of records of an input."""
        return self.folder / "pages" / f"{input:06}-{group:09}.parquet"

    @property
    def records_of_file(self) -> int:
        """How many records of an input are read into one file."""
        return min(self.pages, _RECORDS)


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise NearDupError(f"{folder / _MANIFEST} cannot be read: {error}. Name another folder with --run.") from None
    return found


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(folder / _MANIFEST) as draft, open(draft, "w", encoding="utf-8", opener=open_private) as file:
        json.dump(manifest, file)
