"""Sites whose pages give no text, or whose texts change by themselves, are named, each once."""

from __future__ import annotations

import pytest
from scrapy.utils.test import get_crawler

from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.site_watch import LowTextSites, MinorUpdateSites
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.model import Kind, Verdict

Seen = tuple[Kind, AnyReason]
SPOKEN: Seen = (Kind.UNIQUE, "")
SILENT: Seen = (Kind.UNJUDGED, "no_text")
TOO_SHORT: Seen = (Kind.UNJUDGED, "too_short")


def told(caplog: pytest.LogCaptureFixture, *kinds: Seen, site: str = "river.example") -> list[str]:
    sites = LowTextSites()
    for number, (kind, reason) in enumerate(kinds):
        sites.see(Verdict(kind, f"http://{site}/{number}", reason=reason, reader="prose"))
    return [record.getMessage() for record in caplog.records]


def test_a_site_of_which_more_than_a_tenth_is_silent_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = told(caplog, *[SPOKEN] * 18, *[SILENT] * 5, *[TOO_SHORT] * 4)
    assert line.startswith("3 of 21 pages of river.example have too little text")
    assert "'scrapy neardup extract http://river.example/20'" in line
    assert "NEARDUP_EXTRACTOR" in line


@pytest.mark.parametrize(
    "kinds",
    [
        [SILENT] * 19,
        [SPOKEN] * 18 + [SILENT] * 2,
        [SPOKEN] * 90 + [SILENT] * 10,
        [SPOKEN] * 18 + [(Kind.UNJUDGED, "boilerplate")] * 9,
    ],
    ids=["few pages", "a tenth of few", "a tenth of many", "text of the site's"],
)
def test_other_sites_are_not_named(caplog: pytest.LogCaptureFixture, kinds: list[Seen]) -> None:
    assert told(caplog, *kinds) == []


def test_each_site_is_counted_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    sites = LowTextSites()
    for number in range(20):
        for site in ("river.example", "lake.example"):
            reason: AnyReason = "no_text" if site == "lake.example" else ""
            sites.see(Verdict(Kind.UNJUDGED if reason else Kind.UNIQUE, f"http://{site}/{number}", reason=reason))
    assert ["lake.example" in record.getMessage() for record in caplog.records] == [True]


def test_the_sites_that_are_watched_are_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_neardup.crawl.site_watch._SITES", 1)
    sites = LowTextSites()
    for site in ("river.example", "lake.example"):
        for number in range(25):
            sites.see(Verdict(Kind.UNJUDGED, f"http://{site}/{number}", reason="no_text"))
    assert ["river.example" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize(("minor", "warnings"), [(10, 0), (11, 1), (30, 1)])
def test_a_site_of_mostly_minor_updates_is_named_once(
    caplog: pytest.LogCaptureFixture, minor: int, warnings: int
) -> None:
    stats = get_crawler().stats
    sites = MinorUpdateSites(Notes(stats))
    kinds = [Kind.UNIQUE] * 50 + [Kind.UNCHANGED] * 5 + [Kind.UPDATED] * 4 + [Kind.MINOR_UPDATE] * minor
    for number, kind in enumerate(kinds):
        sites.see(Verdict(kind, f"http://river.example/{number}"))
    assert stats.get_value("neardup/suspicious_drops/minor_updates", 0) == warnings
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == warnings
    for line in lines:
        assert line.startswith("11 of 20 known pages of river.example differ")
        assert "NEARDUP_EXTRACTOR" in line
        assert "NEARDUP_POLICY = {'minor_update': 'tag'}" in line
