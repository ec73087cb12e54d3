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

_T = TypeVar("_T")


def _declare(default: _T, is_valid: Callable[[Any], bool], valid: str, **metadata: object) -> _T:
    """Declare a field. "check" in its metadata returns an empty string, or the end of "... must be"."""
    return field(default=default, metadata={"check": lambda value: "" if is_valid(value) else valid, **metadata})


def whole(default: int, low: int, high: int, *, step: int = 1, at_most: str = "") -> int:
    """Declare a whole number from ``low`` to ``high``, a multiple of ``step``; ``at_most``: a field before it."""
    valid = f"a whole number from {low} to {high}{'' if step == 1 else f', a multiple of {step}'}"

    def is_valid(value: Any) -> bool:
        return type(value) is int and low <= value <= high and not value % step

    return _declare(default, is_valid, valid, limits=(low, high), at_most=at_most)


def number(default: float, low: float = 0.0, high: float = 1.0) -> float:
    """Declare a number from ``low`` to ``high``; by default a share or a similarity."""

    def is_valid(value: Any) -> bool:
        return type(value) in (int, float) and bool(math.isfinite(value) and low <= value <= high)

    return _declare(default, is_valid, f"a number from {low:g} to {high:g}", limits=(low, high))


def choice(default: _T, *choices: _T) -> _T:
    """Declare one of a few names or whole numbers."""
    valid = f"one of {', '.join(map(str, choices))}"
    return _declare(default, lambda value: type(value) is type(default) and value in choices, valid, choices=choices)


def flag(default: bool) -> bool:
    """Declare True or False."""
    return _declare(default, lambda value: type(value) is bool, "True or False", choices=(True, False))


def file(what: str, read: Callable[[str], object]) -> str:
    """Declare the path of a file, empty for none. The recipe of a state holds a digest of its content.

    ``read`` reads the file and raises SettingsError for a wrong one.
    """

    def is_valid(value: Any) -> bool:
        if isinstance(value, str) and value and Path(value).is_file():
            read(value)
            return True
        return isinstance(value, str) and not value

    return _declare("", is_valid, f"the path of {what}, or an empty string for none", file=True)


def decides(declared: _T) -> _T:
    """Declare that fingerprints and counts do not depend on a parameter, only the comparison of two.

    Such a parameter is no part of a state's recipe and may change between crawls. In doubt do not declare it: a refused
    state costs less than a misread one.
    """
    original = cast("Field[_T]", declared)
    return cast(_T, field(default=original.default, metadata={**original.metadata, "decides": True}))


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of all methods; a derived class adds the parameters of one method.

    It is a frozen dataclass. Each field is declared by one of the functions above, with default and limits: ``n: int =
    whole(5, 1, 64)``.
    """

    #: The method's name, for errors; each method puts its own here.
    method: ClassVar[str] = "method"

    #: Read traditional Chinese characters as simplified ones, to find copies in the other script too. Needs
    #: the extra ``opencc``.
    simplified: bool = flag(default=False)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if wrong := one.metadata["check"](value):
                raise SettingsError(f"{self.method}: {one.name} must be {wrong}, not {value!r}.")
            if (most := one.metadata.get("at_most")) and value > (limit := getattr(self, most)):
                raise SettingsError(f"{self.method}: {one.name} must be at most {most} ({limit}), not {value}.")
        if self.simplified:
            converter_name()
        self._check()

    def _check(self) -> None:
        """Check how fields relate to each other; raises SettingsError."""

    def recipe(self) -> dict[str, Any]:
        """Return the parameters on which fingerprints depend, with a digest for each file."""
        return {name: value for name, value in self.as_data().items() if name not in self._deciding_names()}

    def decisions(self) -> dict[str, Any]:
        """Return the deciding parameters: they may differ between crawls of one state."""
        return {name: getattr(self, name) for name in self._deciding_names()}

    def as_data(self) -> dict[str, Any]:
        """Return all parameters, with a digest for each file."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        files = [one.name for one in fields(self) if one.metadata.get("file") and values[one.name]]
        return {**values, **{name: _digest(values[name]) for name in files}}

    def _deciding_names(self) -> list[str]:
        return [one.name for one in fields(self) if one.metadata.get("decides")]


def _digest(path: str) -> str:
    return blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()


#: Returns which sentences (32-bit fingerprints) are boilerplate.
IsCommon = Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.bool_]]


def nothing_is_common(sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Without a state no sentence is boilerplate."""
    return np.zeros(len(sentences), np.bool_)


class Method(ABC):
    """A method to recognise near-duplicates, with its parameters.

    It holds no state: with the same secret a page always has the same fingerprint, in every process. If you change the
    result of ``fingerprint``, raise ``version``; then old states are refused and not misread.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    #: The frozen dataclass of the fields of NEARDUP_PARAMETERS.
    parameters_type: ClassVar[type[Parameters]]
    #: A key that more originals share is no evidence: a disclaimer, a keyword of the whole site.
    common: ClassVar[int] = 32
    #: Most candidates to compare, those with the most common keys first.
    candidates: ClassVar[int] = 64
    #: A copy less similar than this to its original gets keys too, as a variant of it. 0: never.
    variant_below: ClassVar[float] = 0.0
    #: Whether fingerprints are too large to keep on disk.
    memory_only: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "parameters_type" in vars(cls):
            cls.parameters_type.method = cls.name

    def __init__(self, parameters: Any = None) -> None:
        self.parameters: Any = self.parameters_type() if parameters is None else parameters
        #: Hashes all text that strangers have written.
        self.hashes = OPEN

    def with_hashes(self, hashes: Keyed) -> Method:
        """Return the same method with the hashes of a state; its sketches fit that state only."""
        if hashes.secret == self.hashes.secret:
            return self
        keyed = copy(self)
        keyed.hashes = hashes
        return keyed

    @abstractmethod
    def fingerprint(self, page: Page) -> Fingerprint:
        """Return keys to file the page under and a sketch to compare."""

    @final
    def for_state(self, page: Page, site: SiteCounts | None) -> Fingerprint:
        """Fingerprint a page for a state: without its boilerplate, and with a state's keys."""
        found = self.fingerprint_own(page, site.is_common if site else nothing_is_common, site)
        found.keys = keys_of(found.keys)  # type: ignore[misc]  # frozen for others: a copy takes 1 % of a page
        return found

    def fingerprint_own(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
        """Fingerprint a page without its boilerplate, and return the sentences to count.

        ``site``: counts of the page's site. A method that does not override this has no guard against boilerplate, and
        judges only the article if it is known.
        """
        return self.fingerprint(replace(page, text=page.main) if page.main else page)

    def may_be_alike(self, new: Fingerprint, old: bytes) -> bool:
        """Whether a new page may be like an earlier one: a fast check before ``compare``.

        Return False only if ``compare`` would find no copy, no kind and no form, with any other arguments.
        """
        return True

    @abstractmethod
    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        """Compare a new page with an earlier one's sketch.

        ``common`` are keys of the new page, as a state keeps them, that too many originals share to be evidence. The
        key of a hash in a sketch is ``key_of(hash)``.
        """

    def is_minor_update(self, new: Fingerprint, delivered: bytes) -> bool:
        """Whether a page has the title of its delivered version and nearly the same text. By default none has."""
        return False

    def length(self, sketch: bytes) -> int:
        """Return the length of a page's own text in a measure of the method, or 0 if the sketch lacks it."""
        return 0

    def explain(self, new: Fingerprint, old: bytes, common: Set[int]) -> Explanation | None:
        """Explain how ``compare`` decides on two pages; None for a method with nothing but a similarity."""
        return None

    def decision(self, new: Fingerprint, old: bytes, common: Set[int]) -> str:
        """Return the deciding rule as a sentence."""
        if explanation := self.explain(new, old, common):
            return explanation.decision
        limits = "".join(f", {name}={value}" for name, value in self.decisions().items())
        return f"{self.name}{limits}: {'a copy' if self.compare(new, old, common).duplicate else 'no copy'}."

    @abstractmethod
    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        """Return up to ``limit`` passages of the page that the earlier one has too, the longest first."""

    def recipe(self) -> dict[str, Any]:
        """Return as plain data the values that comparable sketches have in common."""
        recipe = {
            "method": self.name,
            "method version": self.version,
            "spelling": SPELLING,
            "parameters": self.parameters.recipe(),
        }
        return {**recipe, "script": converter_name()} if self.parameters.simplified else recipe

    def decisions(self) -> dict[str, Any]:
        """Return as plain data the parameters that only decide and may change between crawls."""
        return dict(self.parameters.decisions())
