"""The interface of a method, and parameters that check themselves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Set
from copy import copy
from dataclasses import Field, dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast, final

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.model import Comparison, Explanation, Fingerprint, Page, SiteCounts
from scrapy_neardup.text.normalize import SPELLING, converter_name

# ----------------------------------------------------------------------------------------------------------------------
# Parameters that check themselves when they are made.
#
# A method's parameters are the fields of a frozen dataclass derived from ``Parameters``, each declared by one of the
# functions below: ``n: int = whole(5, 1, 64)``. What a field may hold stands in one place, with its default, and the
# errors read the same for every method.
#
# A parameter on which no fingerprint depends, but only what is made of two of them, is declared by ``decides`` of such
# a function. It is no part of a state's recipe, and may be changed between crawls. In doubt a parameter is none of
# these: a state that is refused costs less than one that is misread.


# A field's metadata hold its check, which answers nothing or how the sentence "... must be" ends, and under "limits" or
# "choices" what it may be.
_Check = Callable[[Any], str]
_T = TypeVar("_T")


def whole(default: int, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``."""

    def check(value: Any) -> str:
        return "" if type(value) is int and low <= value <= high else f"a whole number from {low} to {high}"

    return field(default=default, metadata={"check": check, "limits": (low, high)})


def option(default: int, *choices: int) -> int:
    """One of a few whole numbers."""

    def check(value: Any) -> str:
        return "" if type(value) is int and value in choices else f"one of {', '.join(map(str, choices))}"

    return field(default=default, metadata={"check": check, "choices": choices})


def number(default: float, low: float = 0.0, high: float = 1.0) -> float:
    """A number from ``low`` to ``high``; a share or a similarity where nothing else is said."""

    def check(value: Any) -> str:
        right = type(value) in (int, float) and math.isfinite(value) and low <= value <= high
        return "" if right else f"a number from {low:g} to {high:g}"

    return field(default=default, metadata={"check": check, "limits": (low, high)})


def choice(default: str, *choices: str) -> str:
    """One of a few names."""

    def check(value: Any) -> str:
        return "" if isinstance(value, str) and value in choices else f"one of {', '.join(choices)}"

    return field(default=default, metadata={"check": check, "choices": choices})


def names(default: str, *choices: str) -> str:
    """Some of a few names, with commas between them."""

    def check(value: Any) -> str:
        given = value.split(",") if isinstance(value, str) else [""]
        return "" if set(given) <= set(choices) else f"one or more of {', '.join(choices)}, separated by commas"

    return field(default=default, metadata={"check": check, "choices": choices})


def flag(default: bool) -> bool:
    """True or False."""

    def check(value: Any) -> str:
        return "" if type(value) is bool else "True or False"

    return field(default=default, metadata={"check": check, "choices": (True, False)})


def file(what: str) -> str:
    """The path of a file; empty for none. The recipe of a state holds a digest of what is in the file, not its path."""

    def check(value: Any) -> str:
        if isinstance(value, str) and (not value or Path(value).is_file()):
            return ""
        return f"the path of {what}, or an empty string for none"

    return field(default="", metadata={"check": check, "file": True})


def decides(declared: _T) -> _T:
    """The same field, of a parameter on which neither keys nor sketches nor counted sentences depend."""
    made = cast("Field[_T]", declared)
    return cast(_T, field(default=made.default, metadata={**made.metadata, "decides": True}))


@dataclass(frozen=True, slots=True)
class Parameters:
    """What all methods may be told; a method's own parameters are added by a derived class."""

    #: The name of the method, for errors.
    method: ClassVar[str] = "method"

    #: Read traditional Chinese characters as simplified ones, so that a copy in the other script is found too. Needs
    #: the extra ``opencc``.
    simplified: bool = flag(default=False)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if wrong := one.metadata["check"](value):
                raise SettingsError(f"{self.method}: {one.name} must be {wrong}, not {value!r}.")
        if self.simplified:
            converter_name()
        self._check()

    def _check(self) -> None:
        """What fields must be to one another; raises SettingsError."""

    def recipe(self) -> dict[str, Any]:
        """Those on which fingerprints depend, as plain data, a file as the digest of its content."""
        return {name: value for name, value in self.as_data().items() if name not in self._deciding()}

    def decisions(self) -> dict[str, Any]:
        """The others, which only decide: two crawls of one state may have them different."""
        return {name: getattr(self, name) for name in self._deciding()}

    def as_data(self) -> dict[str, Any]:
        """All of them."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        files = [one.name for one in fields(self) if one.metadata.get("file") and values[one.name]]
        return {**values, **{name: _digest(values[name]) for name in files}}

    def _deciding(self) -> list[str]:
        return [one.name for one in fields(self) if one.metadata.get("decides")]


def _digest(path: str) -> str:
    return blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()


# ----------------------------------------------------------------------------------------------------------------------
# What every method answers: two calls to judge with, one to explain with.


#: Tells of 32-bit fingerprints of sentences which stand on so many pages that they are no evidence.
IsCommon = Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.bool_]]


def nothing_is_common(sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """What is known where there is no state: all is evidence."""
    return np.zeros(len(sentences), np.bool_)


class Method(ABC):
    """A method to recognise near-duplicates, with its parameters.

    A method holds no state: with the same secret, the same page has the same fingerprint in every process, for ever. If
    you change what ``fingerprint`` returns, raise ``version``, so that an old state is refused and not misread.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    #: The frozen dataclass whose fields NEARDUP_PARAMETERS may hold.
    parameters_type: ClassVar[type[Parameters]]
    #: The parameter that decides how alike two pages must be, and values of it worth trying, the strictest last.
    threshold: ClassVar[str]
    sweep: ClassVar[tuple[float, ...]]
    #: Originals that may share a key before it carries no evidence: a disclaimer, a site-wide keyword.
    common: ClassVar[int] = 32
    #: Candidates that are compared, those that share the most keys first.
    candidates: ClassVar[int] = 64
    #: A copy less similar than this to its original is filed as well, as a witness of it. 0: none ever is.
    witness_below: ClassVar[float] = 0.0
    #: Whether a page's fingerprint is too large to be kept on disk.
    memory_only: ClassVar[bool] = False

    def __init__(self, parameters: Any = None) -> None:
        """``parameters``: an instance of ``parameters_type``; without one, the defaults."""
        self.parameters: Any = self.parameters_type() if parameters is None else parameters
        #: By what it hashes whatever strangers have written.
        self.hashes = OPEN

    def under(self, hashes: Keyed) -> Method:
        """The same method with the hashes of a state: its sketches can be compared with those of that state alone."""
        if hashes.secret == self.hashes.secret:
            return self
        keyed = copy(self)
        keyed.hashes = hashes
        return keyed

    @abstractmethod
    def fingerprint(self, page: Page) -> Fingerprint:
        """Keys to file the page under and a sketch to compare it by."""

    @final
    def for_state(self, page: Page, site: SiteCounts | None) -> Fingerprint:
        """``guarded`` by what a state knows of the page's site, if it knows any, with keys of a state."""
        made = self.guarded(page, site.is_common if site else nothing_is_common, site)
        return made.with_keys(keys_of(made.keys))

    def guarded(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
        """The same of what a page says itself, without sentences that stand on many pages, and those to be counted.

        ``site``: what is known of the page's site. A method that does not override this has no guard against
        boilerplate, and judges the article alone where that could be told.
        """
        return self.fingerprint(replace(page, text=page.main) if page.main else page)

    def may_be_alike(self, new: Fingerprint, old: bytes) -> bool:
        """Whether it is worth while to compare a new page with an earlier one's sketch.

        False where ``compare`` would find no copy, no likeness and no form, whatever else it is told: sooner told than
        that, of the many that share nothing but a sentence.
        """
        return True

    @abstractmethod
    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        """Compare a new page with an earlier one's sketch.

        ``common`` holds those keys of the new page that too many originals share to be evidence, as a state keeps them.
        A method that keeps hashes in its sketch finds one there by ``key_of(hash)``.
        """

    def carried(self, title: Any) -> str:
        """What a fingerprint tells of a title (``Fingerprint.title``) as a string, for another process.

        A method whose fingerprints tell nothing of it is never asked.
        """
        raise NotImplementedError

    def restored(self, carried: str) -> Any:
        """The same in that process, where the method is under the same hashes."""
        raise NotImplementedError

    def again(self, sketch: bytes, site: str, counts: SiteCounts) -> tuple[Comparison, bytes] | None:
        """What is to be said of a page of this site, made from the very bytes of an earlier one with this sketch.

        How it compares to that, and its own sketch, empty where that cannot be told; ``counts`` is what is known of the
        site. None: it has to be read. So it is with a method that judges pages by what the state has counted.
        """
        if type(self).guarded is not Method.guarded:
            return None
        return self.compare(Fingerprint((), sketch), sketch, frozenset()), sketch

    def length(self, sketch: bytes) -> int:
        """How long a page is without what is not its own, in a measure of the method; 0 if its sketch does not tell."""
        return 0

    def explain(self, new: Fingerprint, old: bytes, common: Set[int]) -> Explanation | None:
        """How ``compare`` decides on these two; None for a method that looks at nothing but similarity."""
        return None

    @final
    def decision(self, new: Fingerprint, old: bytes, common: Set[int]) -> str:
        """What decides on these two, in a sentence."""
        if explanation := self.explain(new, old, common):
            return explanation.decision
        name = getattr(self, "threshold", "")
        value = getattr(self.parameters, name, None) if name else None
        known = f", {name}={value}" if value is not None else ""
        return f"{self.name}{known}: {'a copy' if self.compare(new, old, common).duplicate else 'no copy'}."

    @abstractmethod
    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        """Up to ``limit`` passages of the page that stand in the earlier one too, the longest first."""

    def recipe(self) -> dict[str, Any]:
        """Everything that must be equal for two sketches to be comparable, as plain data; not what only decides."""
        said = {
            "method": self.name,
            "method version": self.version,
            "spelling": SPELLING,
            "parameters": self.parameters.recipe(),
        }
        return {**said, "script": converter_name()} if self.parameters.simplified else said

    def decisions(self) -> dict[str, Any]:
        """What only decides on two sketches, as plain data: it may be changed from crawl to crawl."""
        return dict(self.parameters.decisions())
