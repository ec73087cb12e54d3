"""Parameters that only decide: no byte of a fingerprint depends on them, and so no state is refused for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.errors import SettingsError, StoreMismatch
from scrapy_neardup.methods import METHODS, Method
from scrapy_neardup.methods.base import nothing_is_common
from scrapy_neardup.model import Page
from scrapy_neardup.state.recipe import check_recipe, fits, pack_recipe
from tests.methods.test_contract import EDGES, PAGES, made
from tests.methods.test_parameters import others, parameters_of

#: As pages are that were read from HTML, and as an unjudged edge is.
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
each_method = pytest.mark.parametrize("name", METHODS)


def every_third_is_common(sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    common: npt.NDArray[np.bool_] = sentences % np.uint32(3) == 0
    return common


def changes(name: str, directory: Path, *, deciding: bool) -> list[tuple[str, Any]]:
    """Parameters of one sort, each with another value than its default that goes with the others."""
    found = []
    for field in parameters_of(name):
        if bool(field.metadata.get("decides")) is not deciding:
            continue
        for value in others(field, directory):
            try:
                made(name, **{field.name: value})
            except SettingsError:
                continue
            found.append((field.name, value))
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
        check_recipe(written, made(name, **{parameter: value}).recipe(), "a state")
    fixed = changes(name, tmp_path, deciding=False)
    assert fixed
    for parameter, value in fixed:
        if parameter == "lexicon" and made(name).recipe() == made(name, **{parameter: value}).recipe():
            continue  # it is the one that is given here to have English pages judged
        with pytest.raises(StoreMismatch, match=rf"parameters\.{parameter} is .* scrapy neardup migrate, or set "):
            check_recipe(written, made(name, **{parameter: value}).recipe(), "a state")


def test_which_parameters_decide_is_written_down() -> None:
    """One more is a promise on all states there are, and one less refuses those that were crawled with two values."""
    found = {name: " ".join(made(name).decisions()) for name in METHODS}
    assert found == {
        "cascade": "certain certain_apart certain_on_site base by_site by_gone by_title by_reworded by_numbers least "
        "certain_least catalogue short_least excerpt retitled",
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


def test_thresholds_whose_keys_depend_on_them_stay_in_the_recipe() -> None:
    """Pages that are no duplicates by the one may share no key by the other: they would never be compared."""
    page = VARIED["long"]
    near, far = (made("simhash", distance=distance).fingerprint(page) for distance in (3, 4))
    assert near.keys != far.keys
    strict, lax = (made("cosine", similarity=similarity).fingerprint(page) for similarity in (0.98, 0.5))
    assert len(strict.keys) < len(lax.keys)


@each_method
def test_a_state_with_all_parameters_in_its_recipe_is_accepted(name: str, tmp_path: Path) -> None:
    """As it was written before those that only decide were left out of it."""
    method = made(name)
    old = {**method.recipe(), "format": 2, "secret": "0" * 16, "parameters": method.parameters.as_data()}
    assert fits(old, method.recipe())
    for parameter, value in changes(name, tmp_path, deciding=True):
        assert fits({**old, "parameters": {**old["parameters"], parameter: value}}, method.recipe())
    assert not fits({**old, "parameters": {**old["parameters"], "simplified": True}}, method.recipe())
    assert not fits({**old, "parameters": {}}, method.recipe())
