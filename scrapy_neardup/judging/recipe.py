"""By what the pages of a state are fingerprinted, and how a crawl, a command or a script takes it up with its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.hashing import HASH_NAME
from scrapy_neardup.methods import Method
from scrapy_neardup.page.extraction import Extractor, extractor_name
from scrapy_neardup.page.samples import reader_sample
from scrapy_neardup.stores import Store
from scrapy_neardup.stores.decisions import decide
from scrapy_neardup.stores.recipe import SAMPLES
from scrapy_neardup.text.samples import converter_sample, segmenter_sample
from scrapy_neardup.text.tokens import segmenter_name

#: The setting that has a state refused by any other version.
STRICT_SETTING = "NEARDUP_STRICT"


def state_recipe(method: Method, extractor: Extractor | None) -> dict[str, Any]:
    """Everything that must be equal for the pages of two crawls to be comparable, as plain data."""
    said = {
        **method.recipe(),
        "hash": HASH_NAME,
        "segmenter": segmenter_name(),
        "extractor": extractor_name(extractor),
    }
    samples = {"segmenter": segmenter_sample()}
    if extractor is None:
        samples["extractor"] = reader_sample()
    if "script" in said:
        samples["script"] = converter_sample()
    return {**said, SAMPLES: samples}


def check_tools(store: Store, *, strict: bool, say: Callable[[str], object]) -> None:
    """Warn of tools that have another version than those that wrote the state; if ``strict``, raise StoreMismatch.

    Of them all, ``fits`` said that they read as those did, or the state would not be open.
    """
    if not store.renamed:
        return
    told = "; ".join(f"the {tool} was {there} and is {here} now" for tool, (there, here) in store.renamed.items())
    if strict:
        raise StoreMismatch(
            f"Other versions wrote the state at {store.location}: {told}. {STRICT_SETTING} refuses it, although both "
            "read the test samples alike. Restore those versions, convert the state with: scrapy neardup migrate, or "
            f"remove {STRICT_SETTING}."
        )
    say(
        f"Other versions wrote the state at {store.location}: {told}. Both read the test samples alike, so the state "
        "is used. A page that they read differently may pass once more as updated. To refuse such a state, set "
        f"{STRICT_SETTING} = True."
    )


def take_over(store: Store, recipe: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """Have the state name the tools and what is decided by as a crawl that begins has them; says what has changed.

    An empty answer: nothing that was known before. Raises StoreError.
    """
    store.take_on(recipe)
    changed = decide(store, said)
    if not changed:
        return ""
    now = ", ".join(f"{name} = {value}" for name, (_, value) in changed.items())
    return f"now decides by {now}; before by {', '.join(str(before) for before, _ in changed.values())}"
