"""The recipe of a state: method, parameters, versions and secret that made its fingerprints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from scrapy_neardup.errors import SettingsError, StoreError, StoreMismatch
from scrapy_neardup.kv.base import SETTING, Changes, KeyValueStore
from scrapy_neardup.state.layout import FORMAT, meta_key

# The secret keys all hashes of strangers' text, so nobody outside can aim at a page.


#: The setting that gives several states one secret.
SECRET_SETTING = "NEARDUP_SECRET"  # noqa: S105  # a name
#: The field of the recipe.
SECRET_NAME = "secret"  # noqa: S105  # a name
#: The keys of a state's recipe and of its secret.
RECIPE, SECRET = meta_key("recipe"), meta_key("secret")
_LEAST = 16
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Secret:
    """The key of all hashes of a state; ``is_own``: only the state has it."""

    value: bytes = field(repr=False)
    is_own: bool = True

    @classmethod
    def drawn(cls) -> Secret:
        return cls(token_bytes(_BYTES))

    @classmethod
    def shared(cls, said: str) -> Secret:
        """Return the user's secret. Raises SettingsError for a short one."""
        if len(said) < _LEAST:
            raise SettingsError(
                f"{SECRET_SETTING} is too short to be safe. Give at least {_LEAST} characters, for example from "
                "python -c 'import secrets; print(secrets.token_hex())', and keep it out of the repository."
            )
        return cls(blake2b(said.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest(), is_own=False)

    @property
    def name(self) -> str:
        """A name that reveals nothing; two secrets have two names."""
        return blake2b(key=self.value, digest_size=8, person=b"neardup name").hexdigest()


#: A public key, for reproducible figures.
NO_SECRET = Secret(b"", is_own=False)


def secret_of(recipe: Mapping[str, Any], own: bytes | None, fixed: Secret | None, location: str) -> Secret | None:
    """Return the secret of a state: its ``own``, or the ``fixed`` one of the settings if its recipe names that.

    None if neither is there; such a state cannot look anything up. Raises StoreMismatch for another secret.
    """
    name, held = recipe.get(SECRET_NAME), None if own is None else Secret(own)
    if fixed is not None and not fixed.is_own and fixed.name != name:
        whose, cure = f"another {SECRET_SETTING}", "Set the earlier value"
        if held is not None:
            whose, cure = "its own secret", f"Remove {SECRET_SETTING}"
        raise StoreMismatch(
            f"The state at {location} was written with {whose}, not with the {SECRET_SETTING} that is set here. "
            f"{cure}, or name a new path for a new state."
        )
    return next((one for one in (held, fixed) if one is not None and one.name == name), None)


# Fingerprints of two recipes cannot be compared:
#     {"format": 7, "secret": …, "method": "cascade", "method version": 1, "spelling": 2, "parameters": {…},
#      "hash": …, "extractor": "… trafilatura 2.3.1 …", "segmenter": "jieba 0.42.1 …",
#      "samples": {"extractor": "a8ce…", …}}
# Parameters that only decide are left out. For tools of other projects it has their names, and under "samples" a digest
# of their output on our texts, which decides whether they are equal (see ``text.samples``).


#: Fields that are compared in another way.
SAMPLES = "samples"
PARAMETERS = "parameters"


def pack_recipe(recipe: Mapping[str, Any]) -> bytes:
    """Return the recipe as a new state stores it, with the format."""
    return json.dumps({"format": FORMAT, **recipe}, ensure_ascii=False, sort_keys=True).encode()


def read_recipe(
    kv: KeyValueStore, recipe: Mapping[str, Any] | None, named_by: str, secret: Secret | None
) -> dict[str, Any]:
    """Return the recipe in a state, or begin a new state with ``recipe``. Without a secret it draws one.

    Raises StoreMismatch for another recipe or the data of others, StoreDamaged, and StoreError for no state.
    """
    written = kv.get(RECIPE)
    if written is None and next(kv.scan(b""), None) is not None:
        written = kv.get(RECIPE)  # on a server somebody else may just have begun the state
        if written is None:
            raise StoreMismatch(
                f"{kv.location} contains data but no scrapy-neardup recipe, so it is not a state. It is unchanged. "
                f"Set {named_by} to another path."
            )
    if written is not None:
        try:
            return check_recipe(written, recipe, kv.location, named_by)
        except ValueError as error:
            raise kv.damage_error(f"its recipe cannot be read ({error})") from None
    if recipe is None:
        raise StoreError(f"There is no state at {kv.location}. Name a state that a crawl has written.")
    secret = secret or Secret.drawn()
    packed = pack_recipe({**recipe, SECRET_NAME: secret.name})
    kv.write(Changes({RECIPE: packed} | ({SECRET: secret.value} if secret.is_own else {})), sync=True)
    return check_recipe(packed, None, kv.location)


def check_recipe(
    written: bytes, recipe: Mapping[str, Any] | None, location: str, named_by: str = SETTING
) -> dict[str, Any]:
    """Return the recipe in ``written``. Raises StoreMismatch that names all differences, unless ``fits``.

    Without ``recipe`` only the format must fit. ``named_by``: what the user can change. Raises ValueError for no
    recipe.
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
    if recipe is not None and (found := _describe_mismatch(theirs, recipe)):
        raise StoreMismatch(
            f"The state at {location} has another recipe: {found}. "
            "Fingerprints of two recipes cannot be compared, so the state is unchanged. Restore the settings and "
            "versions that wrote it, convert it with: scrapy neardup migrate, or set "
            f"{named_by} to a new path to begin another state."
        )
    return theirs


def fits(theirs: Mapping[str, Any], recipe: Mapping[str, Any]) -> bool:
    """Whether fingerprints of two recipes can be compared.

    A tool under another name will do if it reads the samples alike; the same name with another digest will not.
    Deciding parameters in old recipes do not matter.
    """
    return not _describe_mismatch(theirs, recipe)


def renamed(theirs: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the tools with other names in two recipes that fit, old and new."""
    return {
        tool: (str(theirs.get(tool)), str(recipe[tool]))
        for tool in recipe.get(SAMPLES, ())
        if theirs.get(tool) != recipe.get(tool)
    }


def updated(theirs: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe with today's names and samples of tools."""
    samples = dict(recipe.get(SAMPLES, {}))
    return {**theirs, **{tool: recipe[tool] for tool in samples}, **({SAMPLES: samples} if samples else {})}


def _describe_mismatch(theirs: Mapping[str, Any], recipe: Mapping[str, Any]) -> str:
    """Describe the fields of our recipe, as it would be written with their secret, that differ; empty for none."""
    there, here = _flat(theirs), _flat({SECRET_NAME: theirs.get(SECRET_NAME), **json.loads(pack_recipe(recipe))})
    has_parameters, found = any(name.startswith(f"{PARAMETERS}.") for name in here), []
    for name in sorted({*there, *here} - {"format"}):  # how rows are laid out says nothing of fingerprints
        kind = name.partition(".")[0]
        if kind == SAMPLES or (kind == PARAMETERS and has_parameters and name not in here):
            continue
        values = there.get(name), here.get(name)
        digests = there.get(f"{SAMPLES}.{name}"), here.get(f"{SAMPLES}.{name}")
        decisive = values if None in digests else digests
        if decisive[0] != decisive[1]:
            otherwise = "" if None in digests else ", which reads the test samples differently"
            found.append(f"{name} is {values[0]!r} in the state and {values[1]!r} here{otherwise}")
    return "; ".join(found)


def _flat(recipe: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """Return all fields under names such as "parameters.seed"."""
    found: dict[str, Any] = {}
    for name, value in recipe.items():
        found.update(_flat(value, f"{within}{name}.") if isinstance(value, dict) else {within + name: value})
    return found
