"""A mended copy of a damaged state: what can be read is filed anew, the damaged one stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scrapy_neardup.errors import StoreError
from scrapy_neardup.states.check.checking import check
from scrapy_neardup.states.check.findings import Findings
from scrapy_neardup.states.check.refile import Refiled, refile
from scrapy_neardup.states.check.salvage import Salvage
from scrapy_neardup.states.reading import Watch, unwatched
from scrapy_neardup.stores import Store
from scrapy_neardup.stores.layout import meta_key
from scrapy_neardup.stores.recipe import check_recipe
from scrapy_neardup.stores.secret import SECRET_SETTING, Secret, secret_of
from scrapy_neardup.stores.tally import KEY, RowTally
from scrapy_neardup.stores.witness import secret_at


@dataclass(frozen=True, slots=True)
class Repaired:
    """What became of a state.

    ``before``: the pages that it counted when it was last written to, None if that cannot be read. ``assumed``: whether
    the recipe had to be taken from elsewhere. ``findings``: what a check of the new state found.
    """

    location: str
    filed: Refiled
    before: int | None
    assumed: bool
    findings: Findings

    @property
    def lost(self) -> int:
        """Pages that are known to be lost; there may be more."""
        filed = self.filed
        kept = filed.pages + filed.unsealed + filed.replaced
        return max(filed.named, filed.broken, (self.before or 0) - kept)


def repair(
    source: tuple[type[Store], str],
    target: tuple[type[Store], str],
    recipe: Mapping[str, Any] | None = None,
    watch: Watch = unwatched,
    secret: Secret | None = None,
) -> Repaired:
    """Make a mended copy of the state at ``source`` (its kind and location) at ``target``, where nothing may be yet.

    ``recipe`` is taken if that of the state cannot be read; ``secret`` is the one that the state does not hold itself.
    All work is done beside the target, in a directory that is removed in any case; the target appears when it is whole.
    Raises StoreLocked while a crawl uses the source,
    StoreError if nothing of it can be read or there is no room.
    """
    (kind, location), (new_kind, new_location) = source, target
    place, witness = Path(new_location), new_kind.witness_of(new_location)
    for there in (place, witness):
        if there is not None and there.exists():
            raise StoreError(f"{there} already exists. Name a new place for the repaired copy.")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".repair-", dir=place.parent, ignore_cleanup_errors=True) as folder:
            draft = str(Path(folder) / "new")
            with kind.damaged_copy(location, Path(folder)) as copy:
                salvage = Salvage(copy)
                written, before, held = _about(salvage, location)
                if written is None and recipe is None:
                    raise StoreError(
                        f"The recipe of the state at {location} cannot be read. "
                        "If the settings here are those of its crawl, add --assume-recipe."
                    )
                found = _secret(written, held or _beside(kind, location), secret, location)
                if found is None:
                    raise StoreError(
                        f"The secret of the state at {location} cannot be read, and without it no page can be found. "
                        f"Restore the state from a backup, or, if it was written with a {SECRET_SETTING}, set that."
                    )
                with closing(new_kind(draft, written or recipe, secret=found)) as store:
                    filed = refile(salvage, store, watch)
            with closing(new_kind(draft, None, secret=found)) as store:
                findings = check(store, watch)
            Path(draft).rename(place)
            beside = new_kind.witness_of(draft)
            if witness is not None and beside is not None and beside.exists():  # else it has moved with the state
                beside.rename(witness)
    except OSError as error:
        raise StoreError(
            f"The repaired copy at {place} cannot be made: {error}. Name another place, or make room."
        ) from None
    return Repaired(new_location, filed, before, written is None, findings)


def _about(salvage: Salvage, location: str) -> tuple[dict[str, Any] | None, int | None, bytes | None]:
    """The recipe, the count of pages and the state's own secret, as far as they can be read.

    Raises StoreMismatch for another format.
    """
    about = dict(salvage.rows(b"m"))
    try:
        recipe = check_recipe(about[meta_key("recipe")], None, location)
    except (KeyError, TypeError, ValueError):
        recipe = None
    own = about.get(meta_key("secret"))
    try:
        return recipe, RowTally.unpack(about.get(KEY, b"")).pages, own
    except ValueError:
        return recipe, None, own


def _beside(kind: type[Store], location: str) -> bytes | None:
    """The secret that the witness of a state holds."""
    witness = kind.witness_of(location)
    return secret_at(witness) if witness is not None else None


def _secret(recipe: dict[str, Any] | None, own: bytes | None, given: Secret | None, location: str) -> Secret | None:
    """The secret of the state; where it cannot be told by the recipe, the one that is there."""
    if recipe is not None:
        return secret_of(recipe, own, given, location)
    return given if own is None else Secret(own)
