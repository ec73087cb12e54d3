"""Monitors for Spidermon (extra ``spidermon``), which fail a crawl that dropped too much, lost pages or met errors.

Add the suite to the monitors of SPIDERMON_ENGINE_STOP_MONITORS, as the state is closed after the feeds are stored:

    SPIDERMON_ENGINE_STOP_MONITORS = ["scrapy_neardup.crawl.monitors.NearDupMonitors"]
"""

from __future__ import annotations

from typing import Any, ClassVar

from scrapy_neardup.crawl import stats

try:
    from spidermon import MonitorSuite, monitors
    from spidermon.contrib.scrapy.monitors import BaseScrapyMonitor
except ImportError:
    raise ImportError("Monitors need Spidermon. Run: pip install 'scrapy-neardup[spidermon]'") from None


class LimitMonitor(BaseScrapyMonitor):  # type: ignore[misc]  # Spidermon has no types
    """Fails if the sum of some stats exceeds a setting, which is 0 unless it is set."""

    stat_names: ClassVar[tuple[str, ...]] = ()
    setting: ClassVar[str] = ""

    def test_limit(self) -> None:
        """Compare the sum with the setting."""
        found = {name: self.stats[name] for name in self.stat_names if self.stats.get(name)}
        limit = self.crawler.settings.getint(self.setting, 0)
        if sum(found.values()) > limit:
            counts = ", ".join(f"{name} = {count}" for name, count in found.items())
            self.fail(f"{counts}, but {self.setting} allows {limit}.")


@monitors.name("Near-duplicates: share of duplicates")
class DuplicateRateMonitor(BaseScrapyMonitor):  # type: ignore[misc]  # Spidermon has no types
    """Fails if the share of duplicates is outside SPIDERMON_NEARDUP_DUPLICATE_RATE, such as (0.05, 0.5).

    Unless that is set, every share passes.
    """

    def test_rate(self) -> None:
        """Compare the share with both bounds, if pages were judged."""
        bounds = self.crawler.settings.getlist("SPIDERMON_NEARDUP_DUPLICATE_RATE", (0, 1))
        least, most = (float(bound) for bound in bounds)
        pages = self.stats.get(stats.PAGES, 0)
        if not pages:
            self.skipTest("No page was judged.")
        rate = self.stats.get(stats.verdict("duplicate"), 0) / pages
        if not least <= rate <= most:
            wanted = f"SPIDERMON_NEARDUP_DUPLICATE_RATE wants {least:.1%} to {most:.1%}"
            self.fail(f"{rate:.1%} of {pages} pages are duplicates, but {wanted}.")


@monitors.name("Near-duplicates: suspicious drops")
class SuspiciousDropsMonitor(LimitMonitor):
    """Fails after warnings that a site lost unusually many pages: up to four for each site."""

    stat_names = (
        stats.SUSPICIOUS_TITLES,
        stats.SUSPICIOUS_JUMP,
        stats.SUSPICIOUS_DELIVERED,
        stats.SUSPICIOUS_MINOR_UPDATES,
    )
    setting = "SPIDERMON_NEARDUP_MAX_SUSPICIOUS_DROPS"


@monitors.name("Near-duplicates: pages rolled back")
class RolledBackMonitor(LimitMonitor):
    """Fails if a later pipeline or a feed lost items, so their pages were forgotten again."""

    stat_names = (stats.ROLLED_BACK,)
    setting = "SPIDERMON_NEARDUP_MAX_ROLLED_BACK"


@monitors.name("Near-duplicates: pages unsealed")
class UnsealedMonitor(LimitMonitor):
    """Fails if a feed was not stored, so its pages will not be remembered."""

    stat_names = (stats.UNSEALED,)
    setting = "SPIDERMON_NEARDUP_MAX_UNSEALED"


@monitors.name("Near-duplicates: server gone")
class ServerGoneMonitor(LimitMonitor):
    """Fails if waits for the server of the state and pages that it lost exceed the limit."""

    stat_names = (stats.SERVER_GONE, stats.LOST_BY_SERVER)
    setting = "SPIDERMON_NEARDUP_MAX_SERVER_GONE"


@monitors.name("Near-duplicates: errors")
class ErrorMonitor(LimitMonitor):
    """Fails after errors that the crawl survived, such as a state on a full disk."""

    stat_names = (stats.ERRORS,)
    setting = "SPIDERMON_NEARDUP_MAX_ERRORS"


class NearDupMonitors(MonitorSuite):  # type: ignore[misc]  # Spidermon has no types
    """All monitors. To act on a failure, derive a suite with ``monitors_failed_actions``."""

    monitors: ClassVar[list[Any]] = [
        DuplicateRateMonitor,
        SuspiciousDropsMonitor,
        RolledBackMonitor,
        UnsealedMonitor,
        ServerGoneMonitor,
        ErrorMonitor,
    ]
