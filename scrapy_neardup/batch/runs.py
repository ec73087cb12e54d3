"""A run of batch: a folder that holds what is judged, how, and how far it is.

``run.json`` has the inputs, the settings and the secret of the hashes. ``pages`` holds PAGES in files of consecutive
ranks, and ``rows`` what each part left behind. A file is written completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from scrapy_neardup.atomic import open_private, replace_file
from scrapy_neardup.batch.pages import BatchOptions
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.state.recipe import Secret

_MANIFEST = "run.json"


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """A part: its number, the rank of its first page, and the files with its pages. ``rows``: what it left behind."""

    number: int
    first: int
    files: tuple[Path, ...]
    rows: Path


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
        """The parts of this run alone. Small files make one part together."""
        first = len(self.previous.parts) if self.previous else 0
        groups: list[list[Path]] = []
        size = 0
        for file in sorted(self.folder.glob("pages/[0-9]*.parquet")):
            pages = pq.read_metadata(file).num_rows
            if not groups or size + pages > self.pages:
                groups.append([])
                size = 0
            groups[-1].append(file)
            size += pages
        return [
            ArchivePart(number, _first_rank(files[0]), tuple(files), self.folder / "rows" / f"{number:06}.arrow")
            for number, files in enumerate(groups, first)
        ]


def _first_rank(file: Path) -> int:
    rank: int = pq.ParquetFile(file).read_row_group(0, ["rank"])["rank"][0].as_py()
    return rank


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
