"""Sites whose pages give no text, or whose texts change by themselves, are named, each once."""

from __future__ import annotations

import pytest

from scrapy_neardup.crawl.site_watch import SiteWatch
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.model import Kind, Page, Verdict
from tests.crawl.parts import notes

Seen = tuple[Kind, AnyReason]
GOOD: Seen = (Kind.UNIQUE, "")
SILENT: Seen = (Kind.UNJUDGED, "no_text")
TOO_SHORT: Seen = (Kind.UNJUDGED, "too_short")
MINOR: Seen = (Kind.MINOR_UPDATE, "")
KNOWN: list[Seen] = [*[GOOD] * 50, *[(Kind.UNCHANGED, "")] * 5, *[(Kind.UPDATED, "")] * 4]  # type: ignore[list-item]
LOW_TEXT = "3 of 21 pages of river.example have too little text"
CHANGES = "11 of 20 known pages of river.example differ"


def see(sites: SiteWatch, kind: Kind, url: str, reason: AnyReason) -> None:
    sites.see(Page(url), Ruled(Verdict(kind, url, reason=reason, reader="prose")))


@pytest.mark.parametrize(
    ("kinds", "warning"),
    [
        ([SILENT] * 19, ""),
        ([*[GOOD] * 18, *[SILENT] * 2], ""),
        ([*[GOOD] * 90, *[SILENT] * 10], ""),
        ([*[GOOD] * 18, *[(Kind.UNJUDGED, "boilerplate")] * 9], ""),
        ([*[GOOD] * 18, *[SILENT] * 5, *[TOO_SHORT] * 4], LOW_TEXT),
        ([*KNOWN, *[MINOR] * 10], ""),
        ([*KNOWN, *[MINOR] * 11], CHANGES),
        ([*KNOWN, *[MINOR] * 30], CHANGES),
    ],
)
def test_a_site_with_too_large_a_share_is_named_once(
    caplog: pytest.LogCaptureFixture, kinds: list[Seen], warning: str
) -> None:
    seen = notes()
    sites = SiteWatch(seen, {})
    for number, (kind, reason) in enumerate(kinds):
        see(sites, kind, f"http://river.example/{number}", reason)
    assert len(caplog.messages) == bool(warning)
    assert all(one.startswith(warning) for one in caplog.messages)
    assert all("scrapy neardup extract http://river.example/" in one for one in caplog.messages)
    assert seen.stats.get_value("neardup/suspicious_drops/minor_updates", 0) == (warning == CHANGES)


@pytest.mark.parametrize("most", [1, 10])
def test_each_site_is_counted_by_itself_up_to_a_bound(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("scrapy_neardup.crawl.site_watch._SITES", most)
    sites = SiteWatch(notes(), {})
    for number in range(25):
        for site in ("river.example", "lake.example"):
            reason: AnyReason = "no_text" if site == "lake.example" else ""
            see(sites, Kind.UNJUDGED, f"http://{site}/{number}", reason)
    assert ["lake.example" in one for one in caplog.messages] == [True] * (most > 1)
