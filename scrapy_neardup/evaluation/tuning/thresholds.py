"""The values of a method's threshold that are tried, and the methods with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scrapy_neardup.evaluation.evaluate import threshold_of
from scrapy_neardup.methods import Method, make_method


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A method under several values of its threshold, the most lenient first; ``now`` is the place of its own one."""

    name: str
    parameter: str
    values: tuple[float, ...]
    now: int
    methods: tuple[Method, ...]

    @property
    def value(self) -> float:
        """The value that the method has."""
        return self.values[self.now]

    @property
    def share_sketches(self) -> bool:
        """Whether the sketches of one are those of all: the parameter only decides on two of them."""
        return self.parameter in self.methods[0].decisions()


def thresholds(name: str, parameters: dict[str, Any]) -> Thresholds:
    """The values that the method wants tried, and the one that it has; raises SettingsError if it does not say."""
    method = make_method(name, parameters)
    parameter = threshold_of(method)
    own = getattr(method.parameters, parameter)
    descending = type(method).sweep[0] > type(method).sweep[-1]
    values = sorted({*type(method).sweep, own}, reverse=descending)
    methods = tuple(make_method(name, {**parameters, parameter: value}) for value in values)
    return Thresholds(name, parameter, tuple(values), values.index(own), methods)
