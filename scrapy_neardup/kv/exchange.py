"""Put a new state in the place of an old one, and keep the old one beside it."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import suppress
from pathlib import Path

from scrapy_neardup.atomic import replace_file, sync_directory
from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import FileEngine
from scrapy_neardup.kv.checked import open_witness
from scrapy_neardup.kv.tally import RowTally

# No system moves several files at once, so the moves are written down first. While that file exists no crawl opens the
# state, and running the migration again completes the moves.
#     <location>                         the state; afterwards the new one
#     <location>-new                     the new one while it is made
#     <location>-before-20261122-161500  the old one afterwards, until its owner removes it
#     <location>-exchange                the moves, while they happen


def draft_of(location: str) -> str:
    """Return the location for a new state."""
    return f"{location}-new"


def is_unfinished(location: str) -> bool:
    """Whether an exchange was begun and not completed."""
    with suppress(OSError):  # a name that is too long, a directory that may not be read
        return _plan_of(location).exists()
    return False


def refuse_unfinished(location: str) -> None:
    """Raise StoreError if an exchange was cut short."""
    if is_unfinished(location):
        raise StoreError(
            f"A migration of the state at {location} stopped while it exchanged the files. Nothing is lost. "
            "Finish it with: scrapy neardup migrate"
        )


def remove_draft(kind: type[FileEngine], location: str) -> None:
    """Remove the unused draft of an interrupted migration. Raises StoreError."""
    draft = draft_of(location)
    try:
        with kind(draft).locked():
            for piece in kind.pieces(draft):
                shutil.rmtree(piece) if piece.is_dir() else piece.unlink(missing_ok=True)
            for log in ("-wal", "-shm", "-journal"):  # SQLite's
                Path(draft + log).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"The unfinished migration {draft} cannot be removed: {error}. Remove it by hand.") from error
    _tidy(kind, draft)


def exchange(kind: type[FileEngine], location: str, left: RowTally | None) -> str:
    """Put the closed draft in the place of the closed state; return where the old one is, empty if there was none.

    ``left``: the tally of the state at its close; None for a new place. Raises StoreLocked or StoreError if the state
    is or was used, or if moves fail; ``finish`` completes these.
    """
    engine = kind(location)
    with engine.locked():
        witness = open_witness(engine, writable=False)
        if witness is not None:
            witness.release()
        if left is not None and witness is not None and witness.newest != left:
            raise StoreError(
                f"A crawl used the state at {location} during the migration, so the state is unchanged. Stop the "
                "crawl, then run scrapy neardup migrate again."
            )
        kept = ""
        if kind.exists(location):
            stamp = f"{location}-before-{time.strftime('%Y%m%d-%H%M%S')}"
            kept = next(one for one in (stamp, *(f"{stamp}-{n}" for n in range(2, 1000))) if not Path(one).exists())
        with replace_file(_plan_of(location)) as plan:
            plan.write_text(json.dumps({"kept": kept}), encoding="utf-8")
        sync_directory(Path(location).parent)
        _move_all(kind, location)
    _tidy(kind, draft_of(location))
    return kept


def finish(kind: type[FileEngine], location: str) -> str:
    """Complete the moves of an exchange."""
    with kind(location).locked():
        kept = _move_all(kind, location)
    _tidy(kind, draft_of(location))
    return kept


def _move_all(kind: type[FileEngine], location: str) -> str:
    plan = _plan_of(location)
    try:
        kept = str(json.loads(plan.read_text(encoding="utf-8"))["kept"])
        for new, here, old in zip(*map(kind.pieces, (draft_of(location), location, kept or location)), strict=True):
            _move(new, here, old if kept else None)
        for folder in {piece.parent for one in (location, kept or location) for piece in kind.pieces(one)}:
            sync_directory(folder)
        plan.unlink()
        sync_directory(plan.parent)
    except (OSError, ValueError, KeyError) as error:
        raise StoreError(
            f"The new state cannot replace {location}: {error}. Nothing is lost, but crawls refuse the state until it "
            "is replaced. Check the disk, then run scrapy neardup migrate again."
        ) from error
    return kept


def _move(new: Path, here: Path, old: Path | None) -> None:
    if not new.exists():  # it was moved
        return
    if here.exists():
        if old is None or old.exists():
            raise FileExistsError(f"{here} is already there")
        old.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds a secret
        here.rename(old)
    new.rename(here)


def _tidy(kind: type[FileEngine], draft: str) -> None:
    """Remove the lock and folder of a draft."""
    with suppress(OSError):
        kind.lock_of(draft).unlink(missing_ok=True)
    folder = kind.lock_of(draft).parent
    if str(folder) == draft:
        shutil.rmtree(folder, ignore_errors=True)


def _plan_of(location: str) -> Path:
    return Path(f"{location}-exchange")
