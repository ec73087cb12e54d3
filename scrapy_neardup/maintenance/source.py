"""The pages of an open state, to copy them into another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.kv.base import Row
from scrapy_neardup.state.boilerplate import Counts, read_counts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import GENERATIONS, RECORDS, UNSEALED, last_id
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SECRET_NAME, SECRET_SETTING, check_recipe, pack_recipe
from scrapy_neardup.state.record import Record


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A record, its last sight in seconds since 1970, and its evidence."""

    record: Record
    seen: int
    evidence: Evidence | None = None


class OpenState:
    """The pages of a store or a snapshot, but no unsealed ones: of crawls that run, were killed, or wait for a feed.

    ``recipe`` says how their fingerprints were made. ``damage_error`` makes the error for a damaged row.
    """

    def __init__(self, store: PageStore) -> None:
        self.name = store.location
        self.recipe = {name: value for name, value in store.recipe.items() if name != "format"}
        self.secret = store.secret
        self.damage_error = store.kv.damaged
        self.store = store

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """Yield the rows with a prefix."""
        return iter(self.store.counts.rows().items()) if prefix == b"b" else self.store.rows(prefix)

    def counts(self) -> Counts:
        """Return the boilerplate counts. Raises StoreDamaged."""
        try:
            return read_counts(self.rows(b"b"))
        except ValueError as error:
            raise self.store.kv.damaged(str(error)) from None

    def pages(self) -> Iterator[PageEntry]:
        """Yield the sealed pages by id."""
        store = self.store
        unsealed = {last_id(key) for key, _ in store.rows(UNSEALED)}
        # On a server crawls go on meanwhile. A page's id is larger than that of its crawl. So up to the oldest crawl,
        # and up to the newest page that is there now, no page comes or goes.
        crawls = [last_id(key) for key, _ in store.rows(GENERATIONS)]
        newest = next((last_id(key) for key, _ in store.kv.scan(RECORDS, reverse=True)), 0)
        settled_up_to = min([newest, *crawls])
        for record in store.records():
            id = record.id
            # Whether it is unsealed comes first: a page that is rolled back has no record any more.
            is_unsettled = store.is_shared and id > settled_up_to and (store.is_pending(id) or store.record(id) is None)
            if id not in unsealed and not is_unsettled:
                yield PageEntry(record, store.last_seen(record.url), store.evidence(id))


def check_recipes(sources: Iterable[OpenState], recipe: Mapping[str, Any], named_by: str) -> None:
    """Raise StoreMismatch for the first source with another recipe. It names another secret, or all other differences.

    ``named_by``: the option that names the target, for the message.
    """
    for source in sources:
        if source.recipe.get(SECRET_NAME) != recipe.get(SECRET_NAME):
            raise StoreMismatch(
                f"{source.name} was written with another secret, so its fingerprints cannot be compared with the "
                f"others. To merge states, give them the same {SECRET_SETTING} from their first crawl."
            )
        check_recipe(pack_recipe(source.recipe), recipe, source.name, named_by)
