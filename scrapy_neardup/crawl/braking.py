"""What follows when the safety brake comes on: a warning, a stat, copies that pass, or the end of the crawl.

The state remembers what it came on for, until somebody releases it: so what was dropped until it came on is brought by
the next crawl, and none of it is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.brake import Alarm, Brake
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.judging.reservations import Ruled
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.oneline import line_logger, one_line, shell_word
from scrapy_neardup.states.brakes import Braked, brakes, remember_brake
from scrapy_neardup.stores import Store

logger = line_logger(__name__)

_NOW = {
    "warn": "They go on being dropped, as NEARDUP_BRAKE is 'warn'.",
    "tag": "From here on copies {of} pass, tagged; with NEARDUP_BRAKE = 'warn' they would be dropped.",
    "close": "The crawl is closed, as NEARDUP_BRAKE is 'close'; copies {of} that are on their way pass, tagged.",
}
#: What becomes of those that were dropped.
_THEN = {
    "warn": "with NEARDUP_BRAKE = 'tag' the next crawl brings what was dropped until here",
    "tag": "the next crawl brings what was dropped until here, tagged",
    "close": "the next crawl brings what was dropped until here, tagged",
}
#: Names that are told of when a crawl begins.
_NAMED = 3


class BrakeWatch:
    """The brake of one crawl, and what it does; ``passes`` is asked before a copy is filed, ``see`` told after."""

    def __init__(self, mode: str, notes: Notes, close_crawl: Callable[[str], None]) -> None:
        """``mode``: what NEARDUP_BRAKE says; ``close_crawl`` takes the reason."""
        self._brake = Brake(acts=mode != "warn")
        self._mode = mode
        self._notes = notes
        self._close_crawl = close_crawl

    def take_up(self, store: Store) -> None:
        """It stays on for what it came on for in earlier crawls; raises StoreError if that cannot be read.

        Where it only warns it does so in each crawl, so nothing is on from the beginning.
        """
        known = list(brakes(store))
        found = [braked for braked in known if not braked.released and self._mode != "warn"]
        for braked in known:
            if braked.released:
                self._brake.put_off(braked.original or braked.site)
        for braked in found:
            self._brake.put_on(braked.original or braked.site)
        if not found:
            return
        self._notes.count(stats.BRAKE_KEPT, len(found))
        named = ", ".join(one_line(braked.name) for braked in found[-_NAMED:])
        logger.warning(
            "The safety brake came on in an earlier crawl, for %s%s: copies of theirs pass, tagged. See which these "
            "are: scrapy neardup brake. Where all is well again: scrapy neardup brake --release NAME",
            named,
            f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "",
        )

    def passes(self, verdict: Verdict) -> bool:
        """Whether a copy is to pass as the brake is on.

        The detector must know before it files the copy: one that passes is on its way, and unchanged in the next crawl.
        """
        return self._brake.lets_pass(verdict)

    def see(self, page: Page, ruled: Ruled) -> Alarm | None:
        """Count a page that was judged; if it is one too many, ``remember`` and then ``tell`` are to be called.

        A copy without a reservation is one whose item is dropped.
        """
        dropped = ruled.verdict.kind is Kind.DUPLICATE and ruled.reservation is None
        return self._brake.see(page, ruled.verdict, dropped=dropped)

    def remember(self, alarm: Alarm, store: Store) -> str:
        """Write down that it has come on; what is to be told of that, for which the state names the others.

        Does nothing else, as it may be called again. Raises StoreError.
        """
        match = alarm.verdict.match
        original, url = (0, "") if alarm.is_of_site or match is None else (match.id, match.url)
        remember_brake(store, Braked(alarm.verdict.id, alarm.site, original, url))
        return self._sentence(alarm, store)

    def tell(self, alarm: Alarm, sentence: str) -> None:
        """Say it, count it, and end the crawl where that is wanted."""
        self._notes.count(stats.BRAKE_SITE if alarm.is_of_site else stats.BRAKE_ORIGINAL)
        logger.warning("%s", sentence)
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
        name = shell_word(alarm.site if alarm.is_of_site else original)
        return (
            f"{_found(alarm, one_line(original))}. The last one is {one_line(verdict.url)}, as a copy of "
            f"{one_line(original)}{both}. {now} See whether it is one: scrapy neardup compare "
            f"{shell_word(verdict.url)} {shell_word(original)}. If so: scrapy neardup brake --release {name}. "
            f"If not, {_THEN[self._mode]}: {urls}"
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
