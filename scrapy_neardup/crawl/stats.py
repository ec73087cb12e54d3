"""The names of the stats, all below ``neardup/``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_neardup.report.words import Words

#: Pages judged; the sum of the six verdicts.
PAGES = "neardup/pages"
#: Pages that passed, whose item was then lost: taken back.
ROLLED_BACK = "neardup/rolled_back"
#: Times that a page waited for the outcome of a near-duplicate on its way.
WAITED = "neardup/waited"
#: Pages whose request opted out, with meta={"neardup": False}.
OPTED_OUT = "neardup/opted_out"
#: Things that went wrong and were survived: the log says what.
ERRORS = "neardup/errors"
#: Pages that may take long, and were read in a process of their own.
APART = "neardup/apart"
#: Processes that read pages (NEARDUP_WORKERS) and ended before their time, so that others took their places.
REPLACED = "neardup/workers/replaced"
#: Pages of crawls that were killed or whose feed was not stored, taken back at the opening.
TAKEN_BACK = "neardup/taken_back"
#: Those of them that this crawl will not request again, by its JOBDIR.
NOT_REQUESTED = "neardup/taken_back/not_requested"
#: Pages of this crawl that are not sealed, as their feed was not stored.
UNSEALED = "neardup/unsealed"
#: Times that the safety brake came on: for a site, for an original; items of copies that passed as it was on.
BRAKE_SITE = "neardup/brake/site"
BRAKE_ORIGINAL = "neardup/brake/original"
BRAKE_PASSED = "neardup/brake/passed"
#: Sites and originals for which it came on in an earlier crawl.
BRAKE_KEPT = "neardup/brake/kept"
#: Items that were written to the feed of dropped ones, and errors of that feed.
DROPPED_FEED = "neardup/dropped_feed"
DROPPED_FEED_FAILED = "neardup/dropped_feed/failed"
#: Pages that somebody has judged by hand, against what the method says.
BY_HAND = "neardup/by_hand"
#: Pages that were not read, as their very bytes had been judged before.
SAME_BYTES = "neardup/same_bytes"
#: Pages of earlier crawls whose feed this one overwrites.
OVERWRITTEN = "neardup/overwritten"
#: Pages that the state has forgotten, by NEARDUP_TTL and NEARDUP_MAX_PAGES.
EXPIRED = "neardup/expired"
#: Items that a dry run passed on, and that a crawl would have dropped or tagged; both there in a dry run alone.
DRY_DROPPED = "neardup/dry_run/dropped"
DRY_TAGGED = "neardup/dry_run/tagged"
#: Times that the server of the state did not answer, and was waited for.
SERVER_GONE = "neardup/server_gone"
#: Pages whose items came through, and which such a server has lost.
LOST_BY_SERVER = "neardup/lost_by_server"
#: Seconds spent.
TIME_EXTRACTION = "neardup/time/extraction"
TIME_METHOD = "neardup/time/method"
TIME_STORE = "neardup/time/store"
#: The state at the end of the crawl.
STATE_PAGES = "neardup/state/pages"
STATE_BYTES = "neardup/state/bytes"


def verdict(kind: str, reason: str = "") -> str:
    """The stat of a verdict.

    >>> verdict("duplicate"), verdict("unjudged", "no_text")
    ('neardup/duplicate', 'neardup/unjudged/no_text')
    """
    return f"neardup/{kind}/{reason}" if reason else f"neardup/{kind}"


def extraction(reader: str) -> str:
    """The stat of the way in which the text of a page was found in its HTML.

    >>> extraction("article")
    'neardup/extraction/article'
    """
    return f"neardup/extraction/{reader}"


def likeness(name: str) -> str:
    """The stat of the way in which a page is like an earlier one.

    >>> likeness("retitled")
    'neardup/kind/retitled'
    """
    return f"neardup/kind/{name}"


def closing_line(numbers: Mapping[str, Any], language: str = "") -> str:
    """What a crawl found, in one line, in English unless another language is named.

    >>> print(closing_line({PAGES: 9, "neardup/unique": 6, "neardup/duplicate": 2, "neardup/unjudged/no_text": 1,
    ...                     STATE_PAGES: 8, STATE_BYTES: 4096}))
    9 pages: 6 unique, 2 duplicate, 0 unchanged, 0 updated, 1 unjudged. State: 8 pages, 4.1 kB.
    >>> print(closing_line({PAGES: 2, "neardup/duplicate": 2, DRY_DROPPED: 2, STATE_PAGES: 8}).partition(". 2 ")[0])
    Dry run, nothing was dropped and no page filed: 2 items would have been dropped and 0 tagged
    >>> print(closing_line({PAGES: 2, "neardup/unique": 2, ROLLED_BACK: 1, STATE_PAGES: 1, STATE_BYTES: 512}, "zh"))
    2 个网页：新网页 2、副本 0、未变 0、有更新 0、未判断 0。收回 1 个，因为它们的 item 丢失了。状态：1 个网页，0.5 kB。
    """
    words = Words(language or "en")
    counts = {kind: numbers.get(verdict(kind), 0) for kind in ("unique", "duplicate", "unchanged", "updated")}
    if better := numbers.get(verdict("better"), 0):
        counts["better"] = better
    counts["unjudged"] = sum(count for name, count in numbers.items() if name.startswith("neardup/unjudged/"))
    told = ((ROLLED_BACK, "closing.lost"), (BRAKE_PASSED, "closing.brake"), (EXPIRED, "closing.expired"))
    back = "".join(words(phrase, many=many) for stat, phrase in told if (many := numbers.get(stat, 0)))
    dry = DRY_DROPPED in numbers
    would = words("closing.dry", dropped=numbers.get(DRY_DROPPED, 0), tagged=numbers.get(DRY_TAGGED, 0)) if dry else ""
    state = words(
        "closing.state_as_it_was" if dry else "closing.state",
        pages=numbers.get(STATE_PAGES, 0),
        size=f"{numbers.get(STATE_BYTES, 0) / 1000:.1f}",
    )
    verdicts = words("comma").join(words(f"verdict.{kind}", many=count) for kind, count in counts.items())
    return would + words("closing.crawl", pages=numbers.get(PAGES, 0), verdicts=verdicts, back=back, state=state)
