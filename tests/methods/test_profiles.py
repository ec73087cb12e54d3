"""Profiles: what each sets, what counts for more, and what the one for catalogues makes of products."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.cascade.parameters import METHOD, PROFILES
from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store

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


def judged(settings: dict[str, object], pages: list[Page]) -> list[Outcome]:
    store = open_store("memory:", {})
    detector = Detector(Config.from_settings(settings).make_method(), store, who="test")
    kinds = [detector.judge_now(page, sealed=True).outcome for page in pages]
    close_store(store)
    return kinds


def product(number: int, title: str, text: str, site: str = "shop.example") -> Page:
    return Page(f"http://{site}/{number}", title, text=text, site=site)


def test_a_profile_sets_what_decides_for_its_method_unless_a_user_does() -> None:
    for name in PROFILES:
        plain, profiled = make_method(METHOD, {}), make_method(METHOD, PROFILES[name])
        assert profiled.parameters.recipe() == plain.parameters.recipe(), name
        assert set(PROFILES[name]) <= set(plain.parameters.decisions())
    given = Config.from_settings({**CATALOGUE, "NEARDUP_PARAMETERS": {"by_site": 0.3, "base": 0.6}}).parameters
    assert given == {**PROFILES["catalogue"], "by_site": 0.3, "base": 0.6}
    assert Config.from_settings({"NEARDUP_PROFILE": "article"}) == Config.from_settings({})
    with pytest.raises(SettingsError, match="Remove one of the two"):
        Config.from_settings({**CATALOGUE, "NEARDUP_METHOD": "minhash"})


def test_products_of_one_family_are_kept_and_the_same_product_is_not() -> None:
    family = [
        product(1, "Bench Heron", DESCRIPTION.format(name="Heron")),
        product(2, "Bench Egret", DESCRIPTION.format(name="Egret")),
    ]
    again = product(3, "Bench Heron", family[0].text + "\nNow in stock again.")
    cases: list[dict[str, object]] = [{}, {**CATALOGUE}]
    for settings in cases:
        assert judged(settings, [*family, again]) == [Outcome.UNIQUE, Outcome.UNIQUE, Outcome.DUPLICATE]
    unnamed = replace(family[0], text=family[0].text.replace("Heron", "bench"))
    assert judged({}, [unnamed, family[1]]) == [Outcome.UNIQUE, Outcome.UNIQUE]
    other = product(4, "Bench", family[0].text)
    assert judged({}, [other, family[1]]) == [Outcome.UNIQUE, Outcome.DUPLICATE]
    assert judged(dict(CATALOGUE), [other, family[1]]) == [Outcome.UNIQUE, Outcome.UNIQUE]


PLACES = [
    *("Arden", "Borrow", "Calder", "Dunmore", "Esker", "Farrow", "Glenmore"),
    *("Harrow", "Islay", "Jarrow", "Kelso", "Lorne", "Melrose", "Nairn"),
]
NAMES = ["Heron", "Egret", "Curlew", "Plover", "Avocet", "Dunlin"]
SHED = (
    "A {name} keeps the rain off whatever stands below it, and is put up by two people on one dry afternoon.",
    "Its roof is of slate from the {place} quarry, each piece split by hand and hung on two copper nails.",
    "The door of the {name} opens to either side; where the ground slopes, say so, and it comes with a sill.",
    "Inside, eleven hooks hold rakes, oars or bicycles, and a shelf runs along the wall at the height of {place} men.",
    "There is a window to the north on request, glazed with {place} glass that was rolled before the war.",
    "Every {name} is numbered below the gutter, and we know to this day where the first two hundred stand.",
)


def family(place: str) -> list[Page]:
    """Products of a shop in one form: what they share differs from place to place. The first has no name."""
    shared = "\n".join(line.format(name="shed", place=place) * 2 for line in SHED)
    first = 100 * PLACES.index(place)
    return [
        product(first + number, f"{name} of {place}" if number else place, f"{shared}\nThis one is called {name}.")
        for number, name in enumerate(NAMES)
    ]


def test_a_shop_is_told_by_what_its_pages_are_and_its_products_are_kept_from_then_on() -> None:
    """Until some sixty of its pages are known it is taken for a site of articles, and again under ``catalogue`` 1."""
    pages = [page for place in PLACES for page in family(place)]
    kinds = judged({}, pages)
    early, late = kinds[: len(pages) // 2], kinds[-12:]
    assert early.count(Outcome.DUPLICATE) > 20
    assert late == [Outcome.UNIQUE] * 12
    again = [Page(f"{page.url}?from=list", page.title, text=page.text, site=page.site) for page in pages[-12:]]
    assert judged({}, [*pages, *again])[-12:] == [Outcome.DUPLICATE] * 12
    never = judged({"NEARDUP_PARAMETERS": {"catalogue": 1.0}}, pages)
    assert never[-12:].count(Outcome.DUPLICATE) >= 10


@pytest.mark.parametrize(
    ("site", "title", "outcome"),
    [
        ("shop.example", "Bench", Outcome.UNIQUE),
        ("shop.example", "", Outcome.DUPLICATE),  # nothing tells items apart
        ("paper.example", "Bench", Outcome.DUPLICATE),
        ("", "Bench", Outcome.DUPLICATE),  # texts of many outlets, which retitle them
    ],
)
def test_what_is_known_of_a_shop_is_said_of_no_other_site(site: str, title: str, outcome: Outcome) -> None:
    store = open_store("memory:", {})
    for number in range(100):
        for known in "shop.example", "":
            store.note_form(known, in_form=number % 10 == 0)
    detector = Detector(make_method(METHOD, {}), store, who="test")
    text = DESCRIPTION.format(name="Heron or the Egret")
    heron = product(1, title and f"{title} Heron", text[100:], site)
    egret = product(2, title and f"{title} Egret", text, site)
    detector.judge_now(heron, sealed=True)
    assert detector.judge_now(egret, sealed=True).outcome is outcome
    close_store(store)
