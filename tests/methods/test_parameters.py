"""The parameters of every method: limits, errors, their part in the recipe; and parameters that only decide."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.errors import SettingsError, StoreMismatch
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.methods.base import Parameters, choice, file, flag, nothing_is_common, number, whole
from scrapy_neardup.model import Page
from scrapy_neardup.state.recipe import check_recipe, fits, pack_recipe
from scrapy_neardup.text.lexicon import read_stop_words
from tests.methods.test_contract import EDGES, GIVEN, PAGES, made

LEXICON = Path(__file__).with_name("lexicon.txt")
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
    """The message that refuses these parameters; empty if they are accepted."""
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
def test_an_impossible_parameter_and_one_beyond_its_limits_are_refused_by_name(name: str) -> None:
    assert METHODS[name].parameters_type.method == name
    cases = [(field.name, value) for field in parameters_of(name) for value in IMPOSSIBLE]
    assert not_refused(name, cases, r".+\.") == {}
    beyond: list[tuple[str, Any]] = []
    for field in parameters_of(name):
        if "limits" in field.metadata:
            low, high = field.metadata["limits"]
            assert low <= field.default <= high, field.name
            step = 1 if type(field.default) is int else 1e-6
            beyond += [(field.name, low - step), (field.name, high + step)]
    assert beyond
    assert not_refused(name, beyond, "a .*number from .* to .*, not ") == {}


@dataclass(frozen=True, slots=True)
class Sample(Parameters):
    """One field of each sort."""

    method: ClassVar[str] = "sample"
    n: int = whole(5, 1, 9)
    share: float = number(0.5)
    power: int = choice(64, 64, 128)
    sort: str = choice("a", "a", "b")
    on: bool = flag(default=True)
    words: str = file("a list of words", read_stop_words)


def make_sample(given: dict[str, Any]) -> Sample:
    return Sample(**given)


def test_an_error_names_the_possible_values() -> None:
    Sample(n=1, share=1, power=128, sort="b", on=False, simplified=True)
    for name, value, said in (
        ("n", 10, "a whole number from 1 to 9, not 10."),
        ("n", True, "a whole number from 1 to 9, not True."),
        ("n", 5.0, "a whole number from 1 to 9, not 5.0."),
        ("share", 1.5, "a number from 0 to 1, not 1.5."),
        ("share", True, "a number from 0 to 1, not True."),
        ("power", 65, "one of 64, 128, not 65."),
        ("power", 64.0, "one of 64, 128, not 64.0."),
        ("sort", "c", "one of a, b, not 'c'."),
        ("on", 1, "True or False, not 1."),
        ("words", "/no/such", "the path of a list of words, or an empty string"),
    ):
        with pytest.raises(SettingsError, match=f"^sample: {name} must be {re.escape(said)}"):
            make_sample({name: value})


def test_a_file_counts_by_its_content_and_not_by_its_path(tmp_path: Path) -> None:
    one, moved, other = (tmp_path / name for name in ("one", "moved", "other"))
    one.write_text("船", encoding="utf-8")
    moved.write_text("船", encoding="utf-8")
    other.write_text("桥", encoding="utf-8")
    recipe = Sample(words=str(one)).recipe()
    assert recipe == Sample(words=str(moved)).recipe()
    assert recipe != Sample(words=str(other)).recipe()
    assert str(tmp_path) not in str(recipe)


#: The pages as if they were read from HTML.
READ = {
    name: replace(
        page,
        main="\n".join(page.text.splitlines()[:2]),
        text=f"首页 生意 天气\n{page.text}\n版权所有，未经许可不得转载\n",
        headline=page.title[:12],
        reader="article",
        site="river.example",
    )
    for name, page in PAGES.items()
}
VARIED: dict[str, Page] = {
    **PAGES,
    **{f"{name}, read": page for name, page in READ.items()},
    **{name: EDGES[name] for name in ("no text", "one character", "one sentence", "punctuation", "lone surrogates")},
    "long": replace(PAGES["ferry"], text="\n".join(page.text for page in PAGES.values())),
}


def every_third_is_common(sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    common: npt.NDArray[np.bool_] = sentences % np.uint32(3) == 0
    return common


def changes(name: str, directory: Path, *, deciding: bool) -> list[tuple[str, Any]]:
    """Parameters of one sort, each with another value than its default that goes with the others."""
    found = []
    for field in parameters_of(name):
        if bool(field.metadata.get("decides")) is deciding:
            refused = {
                value: refusal(name, {**GIVEN.get(name, {}), field.name: value}) for value in others(field, directory)
            }
            # What does not go with the defaults of the other parameters is refused by the method's name.
            assert all(not said or said.startswith(f"{name}: ") for said in refused.values()), (field.name, refused)
            taken = [(field.name, value) for value, said in refused.items() if not said]
            assert taken, f"{field.name}: no other value of it was tried"
            found += taken
    return found


def everything(method: Method) -> list[object]:
    """All that is kept of varied pages, whatever is common, and all that is compared with what is kept."""
    return [
        (name, made.keys, made.sketch, made.sentences.tolist(), made.whole, made.own, made.boilerplate, made.site_free)
        for name, page in VARIED.items()
        for is_common in (nothing_is_common, every_third_is_common)
        for made in (method.fingerprint_own(page, is_common), method.fingerprint(page))
    ]


@each_method
def test_a_parameter_that_only_decides_changes_no_byte_of_a_fingerprint(name: str, tmp_path: Path) -> None:
    usual = everything(made(name))
    for parameter, value in changes(name, tmp_path, deciding=True):
        assert everything(made(name, **{parameter: value})) == usual, f"{parameter} = {value}"


@each_method
def test_a_state_accepts_another_threshold_and_no_other_change(name: str, tmp_path: Path) -> None:
    written = pack_recipe(made(name).recipe())
    for parameter, value in changes(name, tmp_path, deciding=True):
        other = made(name, **{parameter: value})
        check_recipe(written, other.recipe(), "a state")
        assert other.decisions() != made(name).decisions(), f"{parameter}: {value}"
    fixed = changes(name, tmp_path, deciding=False)
    assert fixed
    for parameter, value in fixed:
        if parameter == "lexicon" and made(name).recipe() == made(name, **{parameter: value}).recipe():
            continue  # it is the one that is given here to have English pages judged
        with pytest.raises(StoreMismatch, match=rf"parameters\.{parameter} is .* scrapy neardup migrate, or set "):
            check_recipe(written, made(name, **{parameter: value}).recipe(), "a state")


def test_deciding_parameters_are_written_down() -> None:
    """One more is a promise on all states there are, and one less refuses those that were crawled with two values."""
    found = {name: " ".join(made(name).decisions()) for name in METHODS}
    assert found == {
        "cascade": "certain base by_site by_gone by_title by_reworded least catalogue short_certain excerpt retitled",
        "cosine": "",
        "idf_terms": "",
        "imatch": "",
        "keywords": "alpha",
        "minhash": "similarity",
        "nshash": "equal",
        "punctuation": "threshold",
        "random_projection": "similarity",
        "segments": "equal",
        "shingle": "similarity",
        "simhash": "",
        "supershingle": "equal",
        "term_profile": "",
    }


@each_method
def test_a_state_with_all_parameters_in_its_recipe_is_accepted(name: str, tmp_path: Path) -> None:
    """Earlier versions wrote deciding parameters into the recipe, too."""
    method = made(name)
    old = {**method.recipe(), "format": 2, "secret": "0" * 16, "parameters": method.parameters.as_data()}
    assert fits(old, method.recipe())
    for parameter, value in changes(name, tmp_path, deciding=True):
        assert fits({**old, "parameters": {**old["parameters"], parameter: value}}, method.recipe())
    assert not fits({**old, "parameters": {**old["parameters"], "simplified": True}}, method.recipe())
    assert not fits({**old, "parameters": {}}, method.recipe())
