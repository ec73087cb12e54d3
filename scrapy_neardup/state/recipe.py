"""The recipe of a state: method, parameters, versions and secret that made its fingerprints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from scrapy_neardup.errors import SettingsError, StoreMismatch
from scrapy_neardup.state.kv import SETTING
from scrapy_neardup.state.layout import FORMAT

# ----------------------------------------------------------------------------------------------------------------------
# The secret of a state, under which all is hashed that strangers have written: nobody outside can aim at a page.


#: The setting that gives several states one secret.
SECRET_SETTING = "NEARDUP_SECRET"  # noqa: S105  # a name
#: Under what the recipe of a state names its secret.
SECRET_NAME = "secret"  # noqa: S105  # a name
_LEAST = 16
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Secret:
    """What all hashes of a state are keyed with; ``is_own``: the state itself holds it, as nobody else does."""

    value: bytes = field(repr=False)
    is_own: bool = True

    @classmethod
    def drawn(cls) -> Secret:
        """A new one for one state."""
        return cls(token_bytes(_BYTES))

    @classmethod
    def shared(cls, said: str) -> Secret:
        """The one that a user gives several states; raises SettingsError for one that could be guessed."""
        if len(said) < _LEAST:
            raise SettingsError(
                f"{SECRET_SETTING} is too short to be safe. Give at least {_LEAST} characters, for example from "
                "python -c 'import secrets; print(secrets.token_hex())', and keep it out of the repository."
            )
        return cls(blake2b(said.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest(), is_own=False)

    @property
    def name(self) -> str:
        """By which it is known without being told: two secrets have two names."""
        return blake2b(key=self.value, digest_size=8, person=b"neardup name").hexdigest()


#: Anyone knows it: for figures that can be had again, of texts that nobody can aim at a state.
NO_SECRET = Secret(b"", is_own=False)


def secret_of(recipe: Mapping[str, Any], own: bytes | None, given: Secret | None, location: str) -> Secret | None:
    """The secret of a state that names it in its recipe and may hold its ``own``.

    None if it is neither there nor ``given``: nothing can be looked up in such a state. Raises StoreMismatch if another
    one is given.
    """
    name, held = recipe.get(SECRET_NAME), None if own is None else Secret(own)
    if given is not None and not given.is_own and given.name != name:
        whose, cure = f"another {SECRET_SETTING}", "Set the earlier value"
        if held is not None:
            whose, cure = "its own secret", f"Remove {SECRET_SETTING}"
        raise StoreMismatch(
            f"The state at {location} was written with {whose}, not with the {SECRET_SETTING} that is set here. "
            f"{cure}, or name a new path for a new state."
        )
    return next((one for one in (held, given) if one is not None and one.name == name), None)


# ----------------------------------------------------------------------------------------------------------------------
# By what recipe the pages of a state were fingerprinted: those of two recipes cannot be compared.
#
#     {"format": 5, "secret": …, "method": "cascade", "method version": 1, "spelling": 2, "parameters": {…},
#      "hash": …, "extractor": "… trafilatura 2.3.1 …", "segmenter": "jieba 0.42.1 …",
#      "samples": {"extractor": "a8ce…", …}}
#
# It holds nothing that only decides on two fingerprints: see ``decisions``. Of the tools, which are other people's, it
# holds what they are called and, under "samples", a digest of what they make of texts of ours: by that, and not by a
# version, they are the same or not (see ``text.samples``).


#: Names of what is compared in a way of its own.
SAMPLES = "samples"
PARAMETERS = "parameters"


def pack_recipe(recipe: Mapping[str, Any]) -> bytes:
    """The recipe as it is written into a new state, with the format of the state."""
    return json.dumps({"format": FORMAT, **recipe}, ensure_ascii=False, sort_keys=True).encode()


def check_recipe(
    written: bytes, recipe: Mapping[str, Any] | None, location: str, named_by: str = SETTING
) -> dict[str, Any]:
    """The recipe in ``written``; raises StoreMismatch, with all that differs, unless ``fits`` says that it will do.

    Without one to compare with, only the format must be ours. ``named_by``: what the user can change to begin another
    state. Raises ValueError for what is no recipe.
    """
    theirs = json.loads(written)
    if not isinstance(theirs, dict):
        raise ValueError("it is no JSON object")
    if theirs.get("format") != FORMAT:
        raise StoreMismatch(
            f"The state at {location} has format {theirs.get('format')}, but this release uses format {FORMAT}. The "
            "state is unchanged. If a later release wrote it, run: pip install --upgrade scrapy-neardup; else crawl "
            f"anew: set {named_by} to a new path. 'scrapy neardup migrate' cannot read other formats."
        )
    if recipe is not None and not fits(theirs, recipe):
        raise StoreMismatch(
            f"The state at {location} has another recipe: {_describe_mismatch(theirs, _ours(theirs, recipe))}. "
            "Fingerprints of two recipes cannot be compared, so the state is unchanged. Restore the settings and "
            "versions that wrote it, convert it with: scrapy neardup migrate, or set "
            f"{named_by} to a new path to begin another state."
        )
    return theirs


def fits(theirs: Mapping[str, Any], recipe: Mapping[str, Any]) -> bool:
    """Whether fingerprints by a recipe can be compared with those of a recipe that was read.

    A tool under another name or version will do if it makes of the samples what that one made of them; one under the
    same that makes something else of them will not. Parameters that are here none of the recipe, as they only decide,
    may stand there: states had all of them in their recipes once.
    """
    return not _describe_mismatch(theirs, _ours(theirs, recipe))


def is_method_of(theirs: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    """Whether a recipe that was read is that of a method which says so of itself, whatever tools it names."""
    own = {name: theirs[name] for name in said if name in theirs}
    return fits(own, said)


def renamed(theirs: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The tools that have another name or version in two recipes that fit, with the one there and the one here."""
    return {
        tool: (str(theirs.get(tool)), str(recipe[tool]))
        for tool in recipe.get(SAMPLES, ())
        if theirs.get(tool) != recipe.get(tool)
    }


def updated(theirs: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe that was read, with the names and samples of the tools as they are now."""
    samples = dict(recipe.get(SAMPLES, {}))
    return {**theirs, **{tool: recipe[tool] for tool in samples}, **({SAMPLES: samples} if samples else {})}


def _ours(theirs: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Ours as it would be written, tuples as lists; with their secret, which the settings do not know."""
    plain: dict[str, Any] = json.loads(pack_recipe(recipe))
    return {SECRET_NAME: theirs.get(SECRET_NAME), **plain}


def _describe_mismatch(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """All that keeps two recipes from being compared; empty for nothing."""
    there, here = dict(theirs), dict(ours)
    for one in (there, here):
        one.pop("format", None)  # how rows are laid out says nothing of fingerprints
    sampled, samples = (_mapping(one.pop(SAMPLES, None)) for one in (there, here))
    found = []
    for tool in sorted({*sampled, *samples}):
        names = there.pop(tool, None), here.pop(tool, None)
        same = sampled.get(tool) == samples.get(tool) if tool in sampled and tool in samples else names[0] == names[1]
        if not same:
            otherwise = ", which reads the test samples differently" if tool in sampled and tool in samples else ""
            found.append(f"{tool} is {names[0]!r} in the state and {names[1]!r} here{otherwise}")
    wanted = _mapping(here.get(PARAMETERS))
    if wanted:
        there[PARAMETERS] = {name: value for name, value in _mapping(there.get(PARAMETERS)).items() if name in wanted}
    return "; ".join(one for one in (_differences(there, here), *found) if one)


def _mapping(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any], within: str = "") -> str:
    """The fields that differ, as "name: theirs there, ours here"."""
    found = []
    for name in sorted({*theirs, *ours}):
        there, here = theirs.get(name), ours.get(name)
        if isinstance(there, dict) and isinstance(here, dict):
            found.append(_differences(there, here, f"{within}{name}."))
        elif there != here:
            found.append(f"{within}{name} is {there!r} in the state and {here!r} here")
    return "; ".join(one for one in found if one)
