"""The names of the stats, all below ``neardup/``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_neardup.maintenance.tables import count_verdicts
from scrapy_neardup.model import Outcome
from scrapy_neardup.report.words import Words, format_size

#: Pages that were judged: the sum of the verdicts.
PAGES = "neardup/pages"
#: Pages that passed and were rolled back, because a pipeline, a feed or a failed callback lost their item.
ROLLED_BACK = "neardup/rolled_back"
#: Times that a page waited for the outcome of a near-duplicate in flight.
WAITED = "neardup/waited"
#: Items whose request opted out with ``meta={"neardup": False}``.
OPTED_OUT = "neardup/opted_out"
#: Failures that the crawl survived. The log says which.
ERRORS = "neardup/errors"
#: Pages that might take long, and were read in a separate process.
APART = "neardup/apart"
#: Workers that died, took too long or grew too large, and were replaced (``NEARDUP_WORKERS``).
REPLACED = "neardup/workers/replaced"
#: Pages of an earlier crawl that were rolled back at the start, because that crawl was killed or its feed was not
#: stored.
TAKEN_BACK = "neardup/taken_back"
#: Those of them that a resumed ``JOBDIR`` does not request again. The log names the file that lists them.
NOT_REQUESTED = "neardup/taken_back/not_requested"
#: Pages of this crawl that are not permanent, because their feed was not stored.
UNSEALED = "neardup/unsealed"
#: Sites with a warning because pages under five titles were dropped for one original.
SUSPICIOUS_TITLES = "neardup/suspicious_drops/titles"
#: Sites with a warning because nearly all of the last pages were dropped, and hardly any before.
SUSPICIOUS_JUMP = "neardup/suspicious_drops/jump"
#: Sites with a warning because many pages that earlier crawls delivered were dropped.
SUSPICIOUS_DELIVERED = "neardup/suspicious_drops/delivered"
#: Sites with a warning because most of their known pages came as minor updates.
SUSPICIOUS_MINOR_UPDATES = "neardup/suspicious_drops/minor_updates"
#: Pages with a manual verdict (the commands ``keep`` and ``copy``) that differs from the method's.
BY_HAND = "neardup/by_hand"
#: Pages that were not read, because their URL had the same bytes before.
SAME_BYTES = "neardup/same_bytes"
#: Feeds of earlier crawls that this crawl overwrites.
OVERWRITTEN = "neardup/overwritten"
#: Pages that the state forgot (``NEARDUP_TTL`` and ``NEARDUP_MAX_PAGES``).
EXPIRED = "neardup/expired"
#: Items that a real crawl would have dropped. In a dry run only.
DRY_DROPPED = "neardup/dry_run/dropped"
#: Times that the crawl waited for the server of the state (``NEARDUP_ON_STORE_ERROR = "wait"``).
SERVER_GONE = "neardup/server_gone"
#: Delivered pages that the server lost while it was gone. They are judged anew when they come again.
LOST_BY_SERVER = "neardup/lost_by_server"
#: Seconds spent on reading pages, in all processes together.
TIME_EXTRACTION = "neardup/time/extraction"
#: Seconds spent on fingerprints and comparisons.
TIME_METHOD = "neardup/time/method"
#: Seconds spent on reading and writing the state.
TIME_STORE = "neardup/time/store"
#: Pages in the state.
STATE_PAGES = "neardup/state/pages"
#: Size of the state in bytes.
STATE_BYTES = "neardup/state/bytes"

#: Verdicts that summaries leave out if there is none.
RARE_VERDICTS = (Outcome.MINOR_UPDATE.value, Outcome.BETTER.value, "rows")

#: The stats that are set; all others are counted up. Exporters of metrics refuse a stat that is both.
GAUGES = (REPLACED, NOT_REQUESTED, UNSEALED, TIME_EXTRACTION, TIME_METHOD, TIME_STORE, STATE_PAGES, STATE_BYTES)


def verdict(outcome: str, reason: str = "") -> str:
    """The stat of a verdict."""
    return f"neardup/{outcome}/{reason}" if reason else f"neardup/{outcome}"


def own_counts(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The stats of this package, by their names without ``neardup/``."""
    return {name.removeprefix("neardup/"): many for name, many in numbers.items() if name.startswith("neardup/")}


def closing_line(numbers: Mapping[str, Any], language: str = "") -> str:
    """One line with the results of a crawl, in English unless another language is named.

    >>> print(closing_line({PAGES: 9, "neardup/unique": 6, "neardup/duplicate": 2, "neardup/unjudged/no_text": 1,
    ...                     STATE_PAGES: 8, STATE_BYTES: 4096}))
    9 pages: 6 unique, 2 duplicate, 0 unchanged, 0 updated, 1 unjudged. State: 8 pages, 4.1 kB.
    >>> print(closing_line({PAGES: 2, "neardup/duplicate": 2, DRY_DROPPED: 2, STATE_PAGES: 8}).partition(". 2 ")[0])
    Dry run: nothing is dropped or stored
    >>> print(closing_line({PAGES: 2, "neardup/unique": 2, ROLLED_BACK: 1, STATE_PAGES: 1, STATE_BYTES: 512}, "zh"))
    2 个网页：新网页 2、副本 0、未变 0、有更新 0、未判断 0。回滚 1 个：它们的 item 没有全部通过。状态：1 个网页，512 B。
    """
    words = Words(language or "en")
    counts = count_verdicts(own_counts(numbers))
    counts = {outcome: many for outcome, many in counts.items() if many or outcome not in RARE_VERDICTS}
    phrases = ((ROLLED_BACK, "closing.lost"), (EXPIRED, "closing.expired"))
    back = "".join(words(phrase, many=many) for stat, phrase in phrases if (many := numbers.get(stat, 0)))
    dry = DRY_DROPPED in numbers
    would = words("closing.dry", dropped=numbers.get(DRY_DROPPED, 0)) if dry else ""
    state = words(
        "closing.state_as_it_was" if dry else "closing.state",
        pages=numbers.get(STATE_PAGES, 0),
        size=format_size(numbers.get(STATE_BYTES, 0)),
    )
    verdicts = words("comma").join(words(f"verdict.{outcome}", many=count) for outcome, count in counts.items())
    return would + words("closing.crawl", pages=numbers.get(PAGES, 0), verdicts=verdicts, back=back, state=state)
