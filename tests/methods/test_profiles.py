"""Profiles: what each sets, what counts for more, and what the one for catalogues makes of products."""

from __future__ import annotations

import pytest

from scrapy_neardup.config import Config
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.profiles import METHOD, PROFILES
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.stores import close_store, open_store

CATALOGUE = {"NEARDUP_PROFILE": "catalogue"}
DESCRIPTION = (
    "The {name} is built from oiled larch and folds to the size of a suitcase, so it fits into the smallest boot.\n"
    "Four brass hinges hold the two halves together; each of them can be tightened by hand, without any tool at all.\n"
    "The seat bears a hundred and twenty kilograms, was tested for ten years, and can be replaced on its own.\n"
    "Wipe it with a wet cloth after every rain, and oil it once a year; a bottle for three years comes along.\n"
    "The wood comes from two valleys north of here, where every tree that is felled is replaced by three young ones.\n"
    "It is dried for two summers under the roof of the old mill, sawn there, and planed in a shed behind it.\n"
    "Who orders until noon may have a word of up to nine letters burnt into the back rest, at no price but patience.\n"
    "Spare hinges, seats and screws are kept for every year since the first one; write to us which year yours is of.\n"
    "We send it within two working days from our workshop by the lake, and take it back if you do not care for it."
)


def judged(settings: dict[str, object], pages: list[Page]) -> list[Kind]:
    store = open_store("memory:", {})
    detector = Detector(Config.from_settings(settings).make_method(), store, min_letters=40, who="test")
    kinds = [detector.judge_now(page, sealed=True).kind for page in pages]
    close_store(store)
    return kinds


def product(number: int, title: str, text: str, site: str = "shop.example") -> Page:
    return Page(f"http://{site}/{number}", title, text=text, site=site)


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_sets_only_what_decides(name: str) -> None:
    plain, profiled = make_method(METHOD, {}), make_method(METHOD, PROFILES[name])
    assert profiled.parameters.recipe() == plain.parameters.recipe()
    assert set(PROFILES[name]) <= set(plain.parameters.decisions())


def test_what_a_user_sets_counts_for_more_than_the_profile() -> None:
    given = Config.from_settings({**CATALOGUE, "NEARDUP_PARAMETERS": {"by_site": 0.3, "base": 0.6}}).parameters
    assert given == {**PROFILES["catalogue"], "by_site": 0.3, "base": 0.6}
    assert Config.from_settings({"NEARDUP_PROFILE": "article"}) == Config.from_settings({})


def test_a_profile_of_another_method_is_refused() -> None:
    with pytest.raises(SettingsError, match="leave one of the two out"):
        Config.from_settings({**CATALOGUE, "NEARDUP_METHOD": "minhash"})


def test_products_of_one_family_are_kept_and_the_same_product_is_not() -> None:
    family = [
        product(1, "Bench Heron", DESCRIPTION.format(name="Heron")),
        product(2, "Bench Egret", DESCRIPTION.format(name="Egret")),
    ]
    again = product(3, "Bench Heron", family[0].text + "\nNow in stock again.")
    assert judged({}, [*family, again]) == [Kind.UNIQUE, Kind.DUPLICATE, Kind.DUPLICATE]
    assert judged(dict(CATALOGUE), [*family, again]) == [Kind.UNIQUE, Kind.UNIQUE, Kind.DUPLICATE]


@pytest.mark.parametrize(
    ("settings", "advised"),
    [
        (CATALOGUE, True),
        ({**CATALOGUE, "DROP_DUPLICATES": False}, False),
        ({**CATALOGUE, "NEARDUP_DRY_RUN": True}, False),
        ({}, False),
    ],
)
def test_a_catalogue_is_advised_to_tag(settings: dict[str, object], *, advised: bool) -> None:
    assert Config.from_settings(settings).drops_catalogue is advised
