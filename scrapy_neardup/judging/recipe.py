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
    told = "; ".join(f"the {tool} was {there}, and is {here} now" for tool, (there, here) in store.renamed.items())
    if strict:
        raise StoreMismatch(
            f"The state at {store.location} was written by other versions: {told}. With {STRICT_SETTING} that is not "
            "taken, though they read our samples alike. Go back to those versions, bring the state to those of now "
            f"with: scrapy neardup migrate, or take {STRICT_SETTING} away."
        )
    say(
        f"The state at {store.location} was written by other versions: {told}. They read our samples alike, so it is "
        f"used as it is. A page that they read otherwise all the same may pass once more, as updated. To have such a "
        f"state refused, set {STRICT_SETTING} = True."
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
    return f"decides by {now} from here on; until now {', '.join(str(before) for before, _ in changed.values())}"
