"""The parameters of every method: their limits, their errors, their part in the recipe."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.methods.base import Parameters, choice, file, flag, names, number, option, whole
from scrapy_neardup.text.lexicon import stop_words

LEXICON = Path(__file__).with_name("lexicon.tsv")
#: Values that suit no parameter of any method.
IMPOSSIBLE: list[Any] = [None, [], {}, "no such thing", -1, math.nan, math.inf, b"x"]
each_method = pytest.mark.parametrize("name", METHODS)


def parameters_of(name: str) -> tuple[Field[Any], ...]:
    return fields(METHODS[name].parameters_type)


def others(field: Field[Any], directory: Path) -> list[Any]:
    """Values of a parameter that are not its default."""
    default: Any = field.default
    if "limits" in field.metadata:
        candidates = [*field.metadata["limits"], default + 6, default * 2, default / 2]
        kept = [type(default)(value) for value in candidates]
    elif "choices" in field.metadata:
        kept = list(field.metadata["choices"])
    elif field.name == "lexicon":
        kept = [str(LEXICON)]
    else:
        path = directory / "some.txt"
        path.write_text("船\n", encoding="utf-8")
        kept = [str(path)]
    return [value for value in kept if value != default]


def refusal(name: str, parameters: dict[str, Any]) -> str:
    """What is said against these parameters; empty if nothing is."""
    try:
        make_method(name, parameters)
    except SettingsError as error:
        return str(error)
    return ""


def not_refused(name: str, cases: Iterable[tuple[str, Any]], pattern: str) -> dict[str, str]:
    """The cases, each a parameter and a value for it, that are not refused in such words, and what is said instead."""
    answers = {f"{field}={value!r}": (field, refusal(name, {field: value})) for field, value in cases}
    return {
        case: said or "taken"
        for case, (field, said) in answers.items()
        if not re.search(rf"^{name}: {field} must be {pattern}", said)
    }


@each_method
def test_the_recipe_changes_with_each_parameter_that_does_not_only_decide(name: str, tmp_path: Path) -> None:
    """A parameter is in the recipe, or among what is decided by: in one of them, whatever it is."""
    usual = make_method(name, {})
    for field in parameters_of(name):
        refused = {value: refusal(name, {field.name: value}) for value in others(field, tmp_path)}
        # What does not go with the defaults of the other parameters is refused by the method's name.
        assert all(not said or said.startswith(f"{name}: ") for said in refused.values()), (field.name, refused)
        taken = [value for value, said in refused.items() if not said]
        assert taken, f"{field.name}: no other value of it was tried"
        decides = bool(field.metadata.get("decides"))
        for value in taken:
            other = make_method(name, {field.name: value})
            changed = (other.recipe() != usual.recipe(), other.decisions() != usual.decisions())
            assert changed == (not decides, decides), f"{field.name}: {value} and {field.default}"


@each_method
def test_an_impossible_parameter_is_refused_by_name(name: str) -> None:
    cases = ((field.name, value) for field in parameters_of(name) for value in IMPOSSIBLE)
    assert not_refused(name, cases, r".+\.") == {}


@each_method
def test_beyond_its_limits_a_parameter_is_refused(name: str) -> None:
    cases: list[tuple[str, Any]] = []
    for field in parameters_of(name):
        if "limits" in field.metadata:
            low, high = field.metadata["limits"]
            assert low <= field.default <= high, field.name
            step = 1 if type(field.default) is int else 1e-6
            cases += [(field.name, low - step), (field.name, high + step)]
    assert cases
    assert not_refused(name, cases, "a .*number from .* to .*, not ") == {}


@each_method
def test_the_threshold_is_a_parameter_and_can_be_swept(name: str) -> None:
    method = METHODS[name]
    assert method.threshold in {field.name for field in parameters_of(name)}
    assert len(set(method.sweep)) == len(method.sweep) > 2
    for value in method.sweep:
        assert getattr(make_method(name, {method.threshold: value}).parameters, method.threshold) == value


@each_method
def test_the_parameters_name_their_method(name: str) -> None:
    assert METHODS[name].parameters_type.method == name
    assert METHODS[name]().parameters == METHODS[name].parameters_type()


@dataclass(frozen=True, slots=True)
class Sample(Parameters):
    """One field of each sort."""

    method: ClassVar[str] = "sample"
    n: int = whole(5, 1, 9)
    share: float = number(0.5)
    power: int = option(64, 64, 128)
    sort: str = choice("a", "a", "b")
    some: str = names("a", "a", "b", "c")
    on: bool = flag(default=True)
    words: str = file("a list of words", stop_words)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n": 10}, "sample: n must be a whole number from 1 to 9, not 10."),
        ({"n": True}, "sample: n must be a whole number from 1 to 9, not True."),
        ({"n": 5.0}, "sample: n must be a whole number from 1 to 9, not 5.0."),
        ({"share": 1.5}, "sample: share must be a number from 0 to 1, not 1.5."),
        ({"share": True}, "sample: share must be a number from 0 to 1, not True."),
        ({"power": 65}, "sample: power must be one of 64, 128, not 65."),
        ({"power": 64.0}, "sample: power must be one of 64, 128, not 64.0."),
        ({"sort": "c"}, "sample: sort must be one of a, b, not 'c'."),
        ({"some": "a,d"}, "sample: some must be one or more of a, b, c, separated by commas, not 'a,d'."),
        ({"some": ""}, "sample: some must be one or more of a, b, c, separated by commas, not ''."),
        ({"on": 1}, "sample: on must be True or False, not 1."),
        ({"words": "/no/such"}, "sample: words must be the path of a list of words, or an empty string"),
    ],
)
def test_an_error_names_the_possible_values(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Sample(**given)
    assert str(refused.value).startswith(said)


def test_possible_values_are_accepted() -> None:
    Sample(n=1, share=1, power=128, sort="b", some="c,a", on=False, simplified=True)


def test_a_file_counts_by_its_content_and_not_by_its_path(tmp_path: Path) -> None:
    one, moved, other = (tmp_path / name for name in ("one", "moved", "other"))
    one.write_text("船", encoding="utf-8")
    moved.write_text("船", encoding="utf-8")
    other.write_text("桥", encoding="utf-8")
    recipe = Sample(words=str(one)).recipe()
    assert recipe == Sample(words=str(moved)).recipe()
    assert recipe != Sample(words=str(other)).recipe()
    assert str(tmp_path) not in str(recipe)
