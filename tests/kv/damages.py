"""What becomes of states that are damaged in every way there is: loud, healthy, or silent, of which there must be none.

    python -m tests.kv.damages [leveldb|sqlite ...] [--every N] [--pages N]

A state of each kind is made twice: closed cleanly, and by a process that is killed in the midst of writing. Each file
of it is deleted, emptied, cut, zeroed in places and has bits flipped in many; then it is opened, and every page that
was acknowledged must be there and right by its record, its URL and its keys, or one of our errors must say what is
wrong. A state that is refused stays as it is. A process of its own does that for each damage: what ends it is counted,
too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from scrapy_neardup.errors import StoreError
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.urls import STORES
from tests.build import record as page

RECIPE = {"method": "minhash", "seed": 7}
#: Pages that were there before the last process, and those that it adds at least.
SIZE = (500, 400)
#: Seconds that reading a state may take.
_PATIENCE = 60
#: Begins what the check of an opened state says.
_CHECK = "check:"
Mutation = Callable[[Path], None]


# The states

_FILLING = """
import sys
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.urls import STORES
from tests.kv.damages import RECIPE
from tests.build import record as page

kind, place, begin, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = open_at(STORES[kind], place, RECIPE)
for n in range(begin, end):
    store.add(page(n))
    print(n, flush=True)
store.close()
"""


@dataclass(frozen=True)
class State:
    """A state that was left, and how many pages of it had been acknowledged."""

    kind: str
    ending: str
    folder: Path
    pages: int

    @property
    def place(self) -> Path:
        return self.folder / f"state.{self.kind}"


def make(kind: str, ending: str, folder: Path, size: tuple[int, int] = SIZE) -> State:
    """Make the state that is to be damaged; ``ending``: "closed" or "killed"."""
    before, added = size
    folder.mkdir(parents=True)
    place = str(folder / f"state.{kind}")
    script = [sys.executable, "-c", _FILLING, kind, place]
    # In two openings: what the first one wrote becomes a table of LevelDB's in the second.
    for begin, end in ((0, before // 2), (before // 2, before)):
        subprocess.run([*script, str(begin), str(end)], check=True, stdout=subprocess.DEVNULL)
    pages = before + added
    with subprocess.Popen([*script, str(before), str(pages if ending == "closed" else 10**9)], stdout=-1) as child:
        assert child.stdout is not None
        if ending == "killed":
            lines = [child.stdout.readline() for _ in range(added)]
            child.kill()
            lines += child.stdout.readlines()
            pages = 1 + max(int(line) for line in lines if line.endswith(b"\n"))
        else:
            child.stdout.read()
    return State(kind, ending, folder, pages)


# The damages


def _rewritten(change: Callable[[bytearray], object]) -> Mutation:
    def mutate(file: Path) -> None:
        data = bytearray(file.read_bytes())
        change(data)
        file.write_bytes(data)

    return mutate


def _keep(share: float, less: int = 0) -> Mutation:
    return lambda file: os.truncate(file, max(0, int(file.stat().st_size * share) - less))


def _zero(share: float, block: int) -> Mutation:
    def change(data: bytearray) -> None:
        at = min(int(len(data) * share), max(0, len(data) - 1)) // block * block
        end = min(len(data), at + block)
        data[at:end] = bytes(end - at)

    return _rewritten(change)


def _flip(share: float, bit: int) -> Mutation:
    def change(data: bytearray) -> None:
        if data:
            data[int(len(data) * share)] ^= 1 << bit

    return _rewritten(change)


def _delete(file: Path) -> None:
    if file.is_dir():
        shutil.rmtree(file)
    else:
        file.unlink()


def _empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def _replace_by_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def mutations(flips: int) -> dict[str, list[Mutation]]:
    places = random.Random(flips)
    return {
        "deleted": [_delete],
        "emptied": [_keep(0)],
        "cut": [_keep(0.5), _keep(1, 1), _keep(1, 7), _keep(1, 100)],
        "zeroed": [
            *(_zero(share, 512) for share in (0, 0.3, 0.6, 1)),
            _zero(0.5, 4096),
            _zero(1, 4096),
            _zero(1, 32768),
        ],
        "flipped": [_flip(places.random(), places.randrange(8)) for _ in range(flips)],
        "a directory": [_replace_by_directory],
    }


@dataclass(frozen=True)
class Damage:
    """One way to damage one file of a state; ``file``: its kind."""

    state: State
    file: str
    name: str
    how: str
    mutate: Mutation


#: How many bits are flipped, in turn, in a file of this kind.
_FLIPS = {"ldb": 14, "log": 40, "MANIFEST": 24, "sqlite": 60, "wal": 60, "witness": 24, "shm": 6, "CURRENT": 4}


def damages(state: State) -> Iterator[Damage]:
    for file in sorted(state.folder.rglob("*")):
        name = file.relative_to(state.folder).as_posix()
        if file.is_dir():
            if file != state.place:
                yield Damage(state, "db/", name, "deleted", _delete)
                yield Damage(state, "db/", name, "emptied", _empty)
            continue
        kind = _kind(file)
        for how, ways in mutations(_FLIPS.get(kind, 2)).items():
            for mutate in ways:
                yield Damage(state, kind, name, how, mutate)
    if state.kind == "sqlite":
        log = "state.sqlite-wal"
        if (state.folder / log).exists():
            yield Damage(state, "wal and shm", log, "deleted", _delete_with("-shm"))
            yield Damage(state, "db and wal", log, "deleted", _delete_with(""))


def _delete_with(ending: str) -> Mutation:
    def mutate(log: Path) -> None:
        log.unlink()
        log.with_name(log.name.removesuffix("-wal") + ending).unlink()

    return mutate


def _kind(file: Path) -> str:
    name = file.name
    for kind in ("MANIFEST", "CURRENT", "LOCK", "LOG", "witness", "lock", "-wal", "-shm"):
        if name.startswith(kind) or name.endswith(kind):
            return kind.lstrip("-")
    return file.suffix.lstrip(".")


# What becomes of it


def outcome(damage: Damage, folder: Path) -> tuple[str, str]:
    """``loud``, ``healthy``, ``silent`` or ``foreign``, and in which words; ``folder`` is for the damaged copy."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(damage.state.folder, copy)
    damage.mutate(copy / damage.name)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _report(writing, damage, copy / damage.state.place.name)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as told:
        said = told.read()
    _, status = os.waitpid(child, 0)
    kind, _, words = said.partition(" ")
    return (kind, words) if status == 0 and kind else ("foreign", f"the process ended with {status}: {said}")


def _report(writing: int, damage: Damage, place: Path) -> None:
    import signal

    state = damage.state
    # A closed state whose files have their sizes is opened at once, and LevelDB changes its log.
    stays = state.ending == "killed" or damage.file != "ldb"

    signal.alarm(_PATIENCE)
    try:
        before = _contents(place.parent)
        found = _look(state, place)
        is_refused = found[0] == "loud" and not found[1].startswith(_CHECK)
        if is_refused and stays and _contents(place.parent) != before:
            found = "foreign", f"it was refused and changed: {found[1]}"
        again = _look(state, place)  # a second opening is no more lenient
        found = found if again[0] == found[0] or again[0] in ("loud", "healthy") else again
    except BaseException:
        found = "foreign", traceback.format_exc()
    with os.fdopen(writing, "w", encoding="utf-8", errors="replace") as file:
        file.write(f"{found[0]} {found[1]}")
    os._exit(0)


def _contents(folder: Path) -> dict[str, bytes]:
    """All files but locks, which go with their holder, LevelDB's own notes, and what readers of SQLite's log share."""
    passing = ("lock", "-shm", "LOG", "LOG.old")
    found = (file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(passing))
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in found}


def _look(state: State, place: Path) -> tuple[str, str]:
    try:
        with closing(open_at(STORES[state.kind], str(place), RECIPE)) as store:
            for n in range(state.pages):
                expected = page(n)
                if store.record(expected.id) != expected:
                    return "silent", f"page {n} by its id"
                if store.find(expected.url) != expected:
                    return "silent", f"page {n} by its URL"
                if any(store.postings(key, 9) != [expected.id] for key in expected.keys):
                    return "silent", f"page {n} by its keys"
            # The one that was being written when the process was killed may be there.
            if not state.pages <= store.pages <= state.pages + (state.ending == "killed"):
                return "silent", f"{store.pages} pages of {state.pages}"
            findings = check(store)
            if not findings.sound:
                return "loud", f"{_CHECK} {findings.problems[0]['what']}"
    except StoreError as error:
        words = str(error)
        if words.endswith((".", "neardup check")) and "state" in words and ("NEARDUP_" in words or "neardup" in words):
            return "loud", words
        return "foreign", f"no sentence with a cure: {words}"
    return "healthy", ""


def main() -> int:
    """Print the outcomes as JSON; 1 if a damage was silent, or ended in what is no error of ours."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*", default=["leveldb", "sqlite"])
    parser.add_argument("--every", type=int, default=1, help="do each N-th only")
    parser.add_argument("--pages", type=int, default=SIZE[0], help="pages of the state, before the last ones are added")
    arguments = parser.parse_args()
    size = arguments.pages, arguments.pages * 4 // 5
    outcomes = Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        for kind, ending in product(arguments.kinds, ("closed", "killed")):
            state = make(kind, ending, Path(name) / kind / ending, size)
            for damage in list(damages(state))[:: arguments.every]:
                found, words = outcome(damage, Path(name))
                outcomes[found] += 1
                if found in ("silent", "foreign"):
                    print(f"{found}: {kind} {ending}, {damage.name} {damage.how}: {words}", flush=True)  # noqa: T201
    print(json.dumps(outcomes))  # noqa: T201
    return 1 if outcomes["silent"] or outcomes["foreign"] else 0


if __name__ == "__main__":
    sys.exit(main())
