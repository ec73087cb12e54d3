"""What a crawl logs and counts: its notes, a state that fails, its beginning and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scrapy.statscollectors import StatsCollector

from scrapy_neardup.crawl import stats
from scrapy_neardup.errors import NearDupError, StoreError
from scrapy_neardup.hashing import compiled
from scrapy_neardup.settings import Config
from scrapy_neardup.state.journal import LIST, prune_list
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: The most feeds that one message names.
_MOST_NAMES = 3


class Notes:
    """Counts in the stats of one crawl, and logs each kind of trouble once.

    ``state_failed``: from then on every item passes unjudged.
    """

    def __init__(
        self,
        stats: StatsCollector,
        close_crawl: Callable[[str], None] = lambda reason: None,
        on_store_error: str = "pass",
    ) -> None:
        """``close_crawl`` gets the reason. It is called when the state fails, if NEARDUP_ON_STORE_ERROR says so."""
        self.stats = stats
        self.state_failed = False
        self._logged: set[str] = set()
        self._close_crawl = close_crawl
        self._on_store_error = on_store_error

    def count(self, stat: str, count: int = 1) -> None:
        self.stats.inc_value(stat, count)

    def set_state(self, pages: int, size: int) -> None:
        """Set the stats of the state; ``size`` in bytes."""
        self.stats.set_value(stats.STATE_PAGES, pages)
        self.stats.set_value(stats.STATE_BYTES, size)

    def mark_logged(self, topic: str) -> bool:
        """Mark a topic as logged; returns whether it is new."""
        is_new = topic not in self._logged
        self._logged.add(topic)
        return is_new

    def warn_once(self, topic: str, message: str, *arguments: object, exc_info: bool = False) -> bool:
        """Log the first warning of a topic; returns whether this was it."""
        if not self.mark_logged(topic):
            return False
        logger.warning(message + " (Further cases of %r are only counted.)", *arguments, topic, exc_info=exc_info)
        return True

    def report(self, error: StoreError, *, is_over: bool = False) -> None:
        """Record that the state failed. The first error is logged, and closes the crawl unless that is over."""
        self.state_failed = True
        self.count(stats.ERRORS)
        if not self.mark_logged("store"):
            return
        closes = self._on_store_error == "close"
        then = (
            "The crawl is closed. To let it go on, set NEARDUP_ON_STORE_ERROR = 'pass'."
            if closes
            else f"The crawl goes on, because NEARDUP_ON_STORE_ERROR is {self._on_store_error!r}."
        )
        logger.error("%s%s", error, "" if is_over else f" From here on every item passes unjudged. {then}")
        if closes and not is_over:
            self._close_crawl("neardup_store_failed")


@contextmanager
def log_refusal() -> Iterator[None]:
    """Log an error that keeps a crawl from starting in one line, before Scrapy logs its traceback."""
    try:
        yield
    except NearDupError as error:
        logger.critical("The crawl does not start: %s", error)
        raise error from None  # its sentence has the cause


def log_opening(store: PageStore, config: Config, notes: Notes, job: str) -> None:
    """Log how pages are judged, and which were rolled back; ``job``: the JOBDIR, or empty."""
    logger.debug("%s", compiled.sentence())
    place = f"{store.scheme} at {store.location}" if store.is_persistent else "in memory"
    rolled_back = store.rolled_back
    if rolled_back.pages:
        notes.count(stats.TAKEN_BACK, rolled_back.pages)
    if config.dry_run:
        _log_dry_run(store, place, config, notes)
        return
    logger.info(
        "Near-duplicates are %s by the method %s; the state is %s, with %d pages.",
        "dropped" if config.drop else "tagged",
        config.method,
        place,
        store.pages,
    )
    if rolled_back.pages:
        logger.warning("%s", rolled_back.describe_rollback())
    if job:
        log_not_requested(store, notes, job, is_over=False)


def _log_dry_run(store: PageStore, place: str, config: Config, notes: Notes) -> None:
    notes.count(stats.DRY_DROPPED, 0)  # every dry run shows it
    if store.snapshot is not None:
        in_use = ", which another crawl is using" if store.is_held else ""
        place += f", a snapshot with {store.pages_at_opening} pages{in_use}"
    logger.warning(
        "Dry run: pages are compared by the method %s with the state %s, and with each other. Nothing is dropped%s, "
        "and the state stays unchanged. Later pipelines get and store all items, copies too. To end the dry run, set "
        "NEARDUP_DRY_RUN = False.",
        config.method,
        place,
        "" if config.drop else ", each item has its verdict",
    )
    if pages := store.rolled_back.pages:
        logger.info("%d pages of a killed crawl are left out; a real crawl rolls them back.", pages)


def log_not_requested(store: PageStore, notes: Notes, job: str, *, is_over: bool) -> None:
    """Log pages that were rolled back and that this job does not request again, because requests.seen lists them."""
    try:
        pages, first = prune_list(job, lambda url: store.find(url) is not None)
    except StoreError:
        raise
    except (NearDupError, OSError, UnicodeError) as error:
        logger.warning("The list of pages that this job may not request again cannot be read or written: %s", error)
        return
    if pages or notes.stats.get_value(stats.NOT_REQUESTED):
        notes.stats.set_value(stats.NOT_REQUESTED, pages)
    if not pages:
        return
    logger.warning(
        "%d pages that were rolled back %s, for example %s. Scrapy does not request again what requests.seen in this "
        "JOBDIR lists. The pages are listed in %s. To get them, crawl without JOBDIR or with a new one, or have a "
        "spider request these URLs.",
        pages,
        "have NOT come again in this crawl" if is_over else "may not come again in this crawl",
        ", ".join(first),
        Path(job, LIST),
    )


def log_unsealed(pages: int, feeds: Sequence[str], notes: Notes, job: str) -> None:
    """Log the pages that stay unsealed at the end. The next crawl rolls them back."""
    notes.stats.set_value(stats.UNSEALED, pages)
    rest = len(feeds) - _MOST_NAMES
    logger.warning(
        "%d pages stay unsealed, because a feed that holds them was not stored: %s. The next crawl rolls them back %s. "
        "Other feeds that hold them will then have them twice: remove the copies with scrapy neardup dedup.",
        pages,
        (", ".join(feeds[:_MOST_NAMES]) or "see the errors above") + (f" and {rest} more" if rest > 0 else ""),
        f"and lists them in {Path(job, LIST)}, because with this JOBDIR Scrapy does not request them again"
        if job
        else "and judges them again when they come again",
    )
