"""Whether a state holds together: every row is read, and compared with the others that speak of the same page."""

from __future__ import annotations

import struct
from collections.abc import Callable

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judging.judgements import Opinion
from scrapy_neardup.states.check.crosscheck import Pages, check_postings, check_urls, read_pages
from scrapy_neardup.states.check.findings import Findings
from scrapy_neardup.states.kept_rows import KEPT
from scrapy_neardup.states.reading import Watch, unwatched
from scrapy_neardup.stores import Evidence, Store
from scrapy_neardup.stores.counts import Counts
from scrapy_neardup.stores.decisions import KEY as DECISIONS
from scrapy_neardup.stores.expiry import HANDS
from scrapy_neardup.stores.former import KEY as FORMER
from scrapy_neardup.stores.former import former_problem, former_recipes
from scrapy_neardup.stores.layout import last_id, meta_key, unpack_block, unpack_id
from scrapy_neardup.stores.redis_notes import COUNTED
from scrapy_neardup.stores.tally import KEY

#: First letters of keys; see ``scrapy_neardup.stores.layout``.
_PREFIXES = b"bcdefghjkmnorux"
#: What stands below ``m``.
_NAMES = frozenset((meta_key("recipe"), meta_key("secret"), DECISIONS, FORMER, HANDS, KEY, COUNTED))
#: Length of a key below ``e``.
_EVIDENCE = 9
#: Lengths of a key below ``x``, and of its value.
_BODY, _ID = 6, 8


def check(store: Store, watch: Watch = unwatched) -> Findings:
    """Read every row of an open state and say what is wrong; changes nothing.

    Held of all pages at once are about a hundred bytes a page. Postings are compared with the keys of records by number
    and sum for each page, so that neither has to be looked up; keys that are wrong and come to the same sum are not
    found, by a chance of one in 2**64. Every row has a checksum, and all together the sum in the tally.
    """
    found = Findings()
    pages = Pages(store.hashes)
    steps: tuple[Callable[[], None], ...] = (
        lambda: read_pages(store, found, pages, watch),
        lambda: check_urls(store, found, pages, watch),
        lambda: check_postings(store, found, pages, watch),
        lambda: _check_bodies(store, found, pages),
        lambda: _check_evidence(store, found, pages, watch),
        lambda: _check_former(store, found, pages),
        lambda: _check_blocks(store, found),
        lambda: _check_kept(store, found),
        lambda: _check_judgements(store, found),
        lambda: _check_rest(store, found),
        lambda: _check_tally(store, found),
        lambda: _check_file(store, found),
    )
    for step in steps:
        _go_on(step, found)
    return found


def _go_on(step: Callable[[], None], found: Findings) -> None:
    """What cannot be read is a problem too, and the other steps tell more."""
    try:
        step()
    except StoreError as error:
        found.add("unreadable", str(error))


def _check_evidence(store: Store, found: Findings, pages: Pages, watch: Watch) -> None:
    for key, packed in watch(store.rows(b"e"), what="rows of evidence"):
        found.evidence += 1
        if len(key) != _EVIDENCE:
            found.add("unknown row", f"the key {key!r} is no evidence key")
            continue
        if pages.whole and pages.place(last_id(key)) is None:
            found.add("evidence without page", f"there is evidence for {last_id(key):016x}, which is no page")
        try:
            Evidence.unpack(packed)
        except ValueError as error:
            found.add("broken evidence", f"that of {last_id(key):016x}: {error}")


def _check_former(store: Store, found: Findings, pages: Pages) -> None:
    """Sketches by the recipes before a migration."""
    recipes = len(former_recipes(store))
    former = frozenset(pages.former)
    for key, packed in store.rows(b"o"):
        if wrong := former_problem(key, packed, recipes):
            found.add("broken former sketch", wrong)
        elif pages.whole and last_id(key) not in former:
            found.add("former sketch without page", f"{last_id(key):016x} is no page of an earlier recipe")


def _check_bodies(store: Store, found: Findings, pages: Pages) -> None:
    for key, id in store.rows(b"x"):
        if len(key) != _BODY or len(id) != _ID:
            found.add("unknown row", f"the row {key!r} is no body row")
        elif pages.whole and pages.place(unpack_id(id)) is None:
            found.add("body without page", f"the row {key!r} names the page {unpack_id(id):016x}, which is missing")


def _check_blocks(store: Store, found: Findings) -> None:
    counts = Counts()
    for key, packed in store.rows(b"b"):
        found.blocks += 1
        try:
            counts.load(unpack_block(key), packed)
        except (ValueError, struct.error) as error:
            found.add("broken counts", str(error))


def _check_kept(store: Store, found: Findings) -> None:
    for kept in KEPT:
        for key, packed in store.rows(kept.prefix):
            if wrong := _broken(key, packed, kept.unpack):
                found.add(f"broken {kept.what}", wrong)


def _check_judgements(store: Store, found: Findings) -> None:
    for key, packed in store.rows(b"n"):
        found.judgements += 1
        try:
            Opinion.of_row(key, packed, store.hashes)
        except ValueError as error:
            found.add("broken judgement", str(error))


def _broken(key: bytes, packed: bytes, unpack: Callable[[bytes, bytes], object]) -> str:
    try:
        unpack(key, packed)
    except ValueError as error:
        return str(error)
    return ""


def _check_rest(store: Store, found: Findings) -> None:
    """What is only there while a crawl runs, and what nobody knows."""
    for key, _ in store.rows(b"m"):
        if key not in _NAMES:
            found.add("unknown row", f"this version does not write the key {key!r}")
    for prefix, what in ((b"j", "an unsealed page"), (b"g", "an unsealed crawl")):
        for key, _ in () if store.is_shared else store.rows(prefix):  # others may be at work on it
            found.add(
                "left over", f"the key {key!r} belongs to {what}, which should be rolled back when the state opens"
            )
    for first in range(256):
        if first not in _PREFIXES:
            for key, _ in store.rows(bytes([first])):
                found.add("unknown row", f"this version does not write the key {key!r}")
    if (smallest := next(store.rows(b""), None)) is not None and not smallest[0]:
        found.add("unknown row", "a row has an empty key")


def _check_tally(store: Store, found: Findings) -> None:
    for problem in store.tally_problems(tally_alone=True):
        found.add("wrong tally", problem)


def _check_file(store: Store, found: Findings) -> None:
    for problem in store.file_problems():
        found.add("broken file", problem)
