"""What a crawl tells of its state when it opens and when it is over, in the log and in stats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scrapy_neardup.config import Config
from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.feeds import Unstored
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import NearDupError, StoreError
from scrapy_neardup.hashing import compiled
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.stores import Overlay, Store
from scrapy_neardup.stores.listing import LIST, prune_list

logger = line_logger(__name__)

#: Feeds that a line names.
_NAMED = 3


def tell_opening(store: Store, config: Config, notes: Notes, job: str) -> None:
    """How pages are judged, and what was taken back; ``job``: the directory by which this crawl is resumed."""
    logger.debug("%s", compiled.sentence())
    if config.dry_run:
        _tell_dry_run(store, config, notes)
        return
    logger.info(
        "Near-duplicates are %s by the method %s; the state is %s, with %d pages.",
        "dropped" if config.drop else "tagged",
        config.method,
        f"{store.scheme} at {store.location}" if store.lasts else "in memory",
        store.pages,
    )
    _tell_bounds(store, config)
    if config.drops_catalogue:
        logger.info(
            "NEARDUP_PROFILE is 'catalogue', and copies are dropped: of a catalogue a reader would keep nearly all, so "
            "DROP_DUPLICATES = False, which tags them, is advised."
        )
    back = store.taken_back
    if back.pages:
        notes.count(stats.TAKEN_BACK, back.pages)
        logger.warning(
            "%d pages were taken back from the state: the crawl that added them (%s) was killed, or its feed was "
            "not stored. They will be judged anew when they come again.",
            back.pages,
            ", ".join(back.crawls) or "unknown",
        )
    if job:
        tell_of_job(store, notes, job, is_over=False)


def _tell_bounds(store: Store, config: Config) -> None:
    """How long and how many pages are known, where that is bounded."""
    if config.ttl is not None:
        logger.info("Pages are forgotten %g hours after they were last seen (NEARDUP_TTL).", config.ttl / 3600)
    if config.max_pages is not None:
        surplus = store.pages - config.max_pages
        logger.info(
            "Of more than %d pages the oldest are forgotten (NEARDUP_MAX_PAGES).%s",
            config.max_pages,
            f" The state holds {surplus} more: they go a few with each page; all at once by scrapy neardup expire."
            if surplus > 0
            else "",
        )


def _tell_dry_run(store: Store, config: Config, notes: Notes) -> None:
    """That nothing is dropped and nothing filed, and against what pages are judged."""
    notes.stats.set_value(stats.DRY_DROPPED, 0)
    notes.stats.set_value(stats.DRY_TAGGED, 0)
    there = f"{store.scheme} at {store.location}" if store.lasts else "in memory"
    if isinstance(store, Overlay) and not store.pages_found:
        there += ", where no page is yet"
    elif isinstance(store, Overlay):
        at_work = ", at which another crawl is at work" if store.is_held else ""
        there += f", as it is now, with {store.pages_found} pages{at_work}"
    logger.warning(
        "Dry run: pages are judged by the method %s and the state %s, and by the pages of this crawl. Nothing is "
        "dropped%s, and nothing is written into the state: what this crawl delivers the next one will deliver again. "
        "NEARDUP_DRY_RUN = False ends that.",
        config.method,
        there,
        ", and each item carries its verdict" if config.tags_all else "",
    )
    if back := store.taken_back.pages:
        notes.count(stats.TAKEN_BACK, back)
        logger.info("A crawl would take %d pages back from the state, of one that was killed: they are left out.", back)


def tell_of_job(store: Store, notes: Notes, job: str, *, is_over: bool) -> None:
    """Pages that were taken back and that this job does not ask for again, as far as its requests.seen holds them."""
    path = Path(job, LIST)
    try:
        many, first = prune_list(job, lambda url: store.find(url) is not None)
    except StoreError:
        raise
    except (NearDupError, OSError, UnicodeError) as error:
        logger.warning("The list of pages that this job may not request again cannot be read or written: %s", error)
        return
    if many or notes.stats.get_value(stats.NOT_REQUESTED):
        notes.stats.set_value(stats.NOT_REQUESTED, many)
    if not many:
        return
    logger.warning(
        "%d pages that were taken back from the state %s: this JOBDIR was left by a crawl that was killed, or whose "
        "feed was not stored, and what its requests.seen holds is not requested again. Such as %s; all are listed in "
        "%s. To have them, crawl once more without JOBDIR or with a new one, where all that is known is dropped as "
        "unchanged, or have a spider request the URLs of that list. What has come is taken off the list.",
        many,
        "have NOT come again in this crawl" if is_over else "may not come again in this crawl",
        ", ".join(first),
        path,
    )


def tell_unstored(pages: int, feeds: Sequence[Unstored], notes: Notes, job: str) -> None:
    """Pages that stay unsealed at the end, and what the next crawl makes of that."""
    notes.stats.set_value(stats.UNSEALED, pages)
    failed = [f"{one.feed} (not stored, {one.pages} pages)" for one in feeds]
    logger.warning(
        "%d pages are not sealed, as a feed that holds them was not stored: %s. The next crawl takes them back, %s.",
        pages,
        _some(failed) or "see the errors above",
        f"and lists them in {Path(job, LIST)}, for by the JOBDIR of this one they are not requested again"
        if job
        else "and judges them anew when they come again",
    )
    if twice := sorted({other for one in feeds for other in one.beside}):
        logger.warning(
            "Of these pages, those that a stored feed holds too will then be in it twice: %s. Remove what this crawl "
            "has written there, or afterwards the copies, with scrapy neardup dedup.",
            _some(twice),
        )


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
