"""The secret of a state, under which all is hashed that strangers have written: nobody outside can aim at a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from scrapy_neardup.errors import SettingsError, StoreMismatch

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
