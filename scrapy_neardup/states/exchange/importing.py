"""A file becomes a state."""

from __future__ import annotations

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.states.exchange.judged import take_judgements
from scrapy_neardup.states.exchange.sources import Source, Watch, for_state
from scrapy_neardup.stores import Store


def import_state(source: Source, store: Store, watch: Watch = iter) -> int:
    """Fill a state that holds no page yet and is of the source's recipe; returns the number of pages.

    Nothing counts before all is there: what an import that was stopped has added is taken back when the state is next
    opened. Only one that is stopped while it seals, at the very end, leaves a part, which ``merge`` completes. Raises
    NearDupError if there are pages, StoreMismatch if the source's keys are shorter than those of the state.
    """
    if store.pages:
        raise NearDupError(
            f"The state at {store.location} already has {store.pages:,} pages, so nothing is imported. Name a new "
            "place with --store, or add the pages with: scrapy neardup merge."
        )
    source = for_state(source, store)
    generation = store.begin(f"import of {source.name}")
    for filed in watch(source.pages()):
        store.add(filed.record, filed.evidence, generation=generation, seen=filed.seen)
    store.seal(generation, store.unsealed(generation))
    store.end(generation)
    store.add_counts(source.counts)
    take_judgements(source.judgements, store)
    return store.pages
