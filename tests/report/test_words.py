"""The words of a report: each language has the same names with the same placeholders."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

from scrapy_neardup.errors import REASONS
from scrapy_neardup.maintenance.scan import COPIES
from scrapy_neardup.report.words import LANGUAGES, Words, catalogue

ROOT = Path(__file__).parents[2] / "scrapy_neardup"


def placeholders(pattern: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(pattern) if name is not None}


def test_all_languages_have_the_same_names_and_placeholders() -> None:
    assert [set(catalogue(language)) for language in LANGUAGES] == [set(catalogue("en"))] * len(LANGUAGES)
    assert len(catalogue("en")) > 120
    for name, pattern in catalogue("en").items():
        wanted = placeholders(pattern.split("|")[-1])
        for form in (form for language in LANGUAGES for form in catalogue(language)[name].split("|")):
            assert placeholders(form) | {"many"} == wanted | {"many"}, name
            assert form, name
            assert form.count("`") % 2 == 0, name
    both = catalogue("en"), catalogue("zh")
    same = {name for name in both[0] if both[0][name] == both[1][name]}
    assert same == {"csv"}


def test_every_name_kind_and_number_has_its_words() -> None:
    folders = ("report/*.py", "report/*.html", "report/*.js", "cli/*.py", "crawl/*.py")
    source = "".join(file.read_text(encoding="utf-8") for folder in folders for file in ROOT.glob(folder))
    names = set(catalogue("en"))
    assert set(re.findall(r'\b(?:say|words)\(\s*"([\w.]+)"\s*[,)]', source)) <= names
    built = re.findall(r"\w+", "kind meaning reason crawls verdict closing role reading fact")
    assert {name for name in names if name.partition(".")[0] not in built and f'"{name}"' not in source} <= {
        *("copies.similarity", "copies.copy_title", "copies.its_site", "copies.original_title", "copies.original_site")
    }
    assert {f"{what}.{kind}" for kind in COPIES for what in ("kind", "meaning")} <= set(catalogue("en"))
    assert {f"reason.{reason}" for reason in REASONS} == {
        name for name in catalogue("en") if name.startswith("reason.")
    }
    assert [Words("en")("groups", many) for many in (0, 1, 2000)] == ["0 groups", "1 group", "2,000 groups"]
    assert [Words("zh")("groups", many) for many in (1, 2)] == ["1 组", "2 组"]
