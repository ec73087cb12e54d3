"""ARCHITECTURE.md is a map of the house as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import scrapy_neardup
from tests.test_layers import ORDER

ROOT = Path(__file__).parents[1]
PACKAGE = Path(scrapy_neardup.__file__).parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_rooms_are_listed_in_their_order() -> None:
    assert re.findall(r"^\| `(\w+)/?` \|", section("The rooms"), re.MULTILINE) == ORDER


def test_the_way_of_an_item_has_eight_modules_at_most_and_each_is_there() -> None:
    way = section("The way of an item").split("```")[1]
    stations = re.findall(r"\b((?:crawl|page|judge)/\w+)", way)
    assert len(set(stations)) == len(stations)
    between = stations[: stations.index("crawl/delivery") + 1]
    assert between[0] == "crawl/visits"
    assert len([one for one in between if one != "judge/matching"]) <= 8
    for station in stations:
        assert (PACKAGE / f"{station}.py").is_file(), station


def test_every_file_and_registry_that_is_named_is_there() -> None:
    rooms = "|".join(ORDER)
    for name in re.findall(rf"`((?:{rooms})/[\w/.]*)`", TEXT):
        assert any((PACKAGE / f"{name}{end}").exists() for end in ("", ".py")), name
    for name in re.findall(r"`((?:tests|docs)/[\w/.]+)`", TEXT):
        assert (ROOT / name).exists(), name
    sources = "\n".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    names = set(re.findall(r"`([A-Z]{4,})`", section("Where to add"))) - {"NAME", "HELP", "EXAMPLES"}
    assert names
    for name in names:
        assert re.search(rf"^{name}\b", sources, re.MULTILINE), name
