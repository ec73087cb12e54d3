"""What follows when the safety brake comes on: a warning, a stat, copies that pass, or the end of the crawl."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.brake import Alarm, Brake
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.judging.reservations import Ruled
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.oneline import line_logger, one_line, shell_word
from scrapy_neardup.stores import Store

logger = line_logger(__name__)

#: What brings back the pages that were dropped, by whether the state lasts.
_CURE = {
    True: "If not, scrapy neardup keep URL brings it with the next crawl (scrapy neardup dropped --last lists all)",
    False: "If not, a crawl with NEARDUP_POLICY that tags copies brings the pages that were dropped",
}
_NOW = {
    "warn": "They go on being dropped, as NEARDUP_BRAKE is 'warn'.",
    "tag": "From here on copies {of} pass, tagged; with NEARDUP_BRAKE = 'warn' they would be dropped.",
    "close": "The crawl is closed, as NEARDUP_BRAKE is 'close'; copies {of} that are on their way pass, tagged.",
}


class BrakeWatch:
    """The brake of one crawl, and what it does; ``passes`` is asked before a copy is filed, ``see`` told after."""

    def __init__(self, mode: str, notes: Notes, close_crawl: Callable[[str], None]) -> None:
        """``mode``: what NEARDUP_BRAKE says; ``close_crawl`` takes the reason."""
        self._brake = Brake(acts=mode != "warn")
        self._mode = mode
        self._notes = notes
        self._close_crawl = close_crawl

    def passes(self, verdict: Verdict) -> bool:
        """Whether a copy is to pass as the brake is on.

        The detector must know before it files the copy: one that passes is on its way, and unchanged in the next crawl.
        """
        return self._brake.lets_pass(verdict)

    def see(self, page: Page, ruled: Ruled, store: Store) -> None:
        """Count a page that was judged; raises StoreError if it is one too many and the state cannot name the others.

        A copy without a reservation is one whose item is dropped.
        """
        dropped = ruled.verdict.kind is Kind.DUPLICATE and ruled.reservation is None
        alarm = self._brake.see(page, ruled.verdict, dropped=dropped)
        if alarm is None:
            return
        self._notes.count(stats.BRAKE_SITE if alarm.is_of_site else stats.BRAKE_ORIGINAL)
        logger.warning("%s", self._sentence(alarm, store))
        if self._brake.is_on_for_all:
            logger.warning(
                "The safety brake has come on so often that it is on for all sites from here on: %s",
                "copies pass, tagged." if self._mode != "warn" else "nothing more is told of.",
            )
        if self._mode == "close" and self._notes.is_new("brake"):
            self._close_crawl("neardup_brake")

    def _sentence(self, alarm: Alarm, store: Store) -> str:
        verdict, records = alarm.verdict, [store.record(id) for id in alarm.dropped]
        match = verdict.match
        original = match.url if match else ""
        both = f', both say "{one_line(match.shared[0], 60)}"' if match and match.shared else ""
        urls = ", ".join(one_line(record.url) for record in records if record)
        now = _NOW[self._mode].format(of="on this site" if alarm.is_of_site else "of that page")
        return (
            f"{_found(alarm, one_line(original))}. The last one is {one_line(verdict.url)}, as a copy of "
            f"{one_line(original)}{both}. {now} See whether it is one: scrapy neardup compare "
            f"{shell_word(verdict.url)} {shell_word(original)}. {_CURE[store.lasts]}: {urls}"
        )


def _found(alarm: Alarm, original: str) -> str:
    site, many = one_line(alarm.site), len(alarm.dropped)
    if alarm.before is None:
        return (
            f"{many} pages of {site}, each under another title, were dropped for one page, {original}: it may be no "
            "article but what many pages hold, or all that is still read of them"
        )
    return (
        f"Of the last pages of {site} {many} were dropped as copies, of those before {alarm.before:.0%}: its text may "
        "not be read any more, or somebody forges copies of its articles"
    )
