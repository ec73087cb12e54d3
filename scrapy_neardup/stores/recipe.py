"""By what recipe the pages of a state were fingerprinted: those of two recipes cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.stores.layout import FORMAT
from scrapy_neardup.stores.place import SETTING
from scrapy_neardup.stores.secret import SECRET_NAME


def pack_recipe(recipe: Mapping[str, Any]) -> bytes:
    """The recipe as it is written into a new state, with the format of the state."""
    return json.dumps({"format": FORMAT, **recipe}, ensure_ascii=False, sort_keys=True).encode()


def check_recipe(
    written: bytes, recipe: Mapping[str, Any] | None, location: str, named_by: str = SETTING
) -> dict[str, Any]:
    """The recipe in ``written``; raises StoreMismatch, with all that differs, unless it is ``recipe``.

    Without one to compare with, only the format must be ours. ``named_by``: what the user can change to begin another
    state. Raises ValueError for what is no recipe.
    """
    theirs = json.loads(written)
    if not isinstance(theirs, dict):
        raise ValueError("it is no JSON object")
    if recipe is not None and SECRET_NAME not in recipe:  # the settings do not know it
        recipe = {**recipe, SECRET_NAME: theirs.get(SECRET_NAME)}
    ours = {**theirs, "format": FORMAT} if recipe is None else _plain(recipe)
    if theirs != ours:
        raise StoreMismatch(
            f"The state at {location} was written by another recipe: {_differences(theirs, ours)}. "
            "Fingerprints of two recipes cannot be compared, so it was not touched. Go back to the settings and "
            f"versions that wrote it, or set {named_by} to a new path to begin another state."
        )
    return theirs


def is_recipe(written: Mapping[str, Any], recipe: Mapping[str, Any]) -> bool:
    """Whether a recipe that was read is the one that ``pack_recipe`` would write."""
    return written == {SECRET_NAME: written.get(SECRET_NAME), **_plain(recipe)}


def _plain(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """As it comes back from where it is written: tuples have become lists."""
    plain: dict[str, Any] = json.loads(pack_recipe(recipe))
    return plain


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any], within: str = "") -> str:
    """The fields that differ, as "name: theirs there, ours here"."""
    found = []
    for name in sorted({*theirs, *ours}):
        there, here = theirs.get(name), ours.get(name)
        if isinstance(there, dict) and isinstance(here, dict):
            found.append(_differences(there, here, f"{within}{name}."))
        elif there != here:
            found.append(f"{within}{name} is {there!r} there and {here!r} here")
    return "; ".join(one for one in found if one)
