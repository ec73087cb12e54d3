"""Pages of a former recipe, and how a state is taken over by a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from scrapy_neardup.errors import SettingsError, StoreError, StoreMismatch
from scrapy_neardup.hashing import HASH_NAME
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.model import Comparison, Page
from scrapy_neardup.page.extraction import Extractor, extractor_name
from scrapy_neardup.page.samples import reader_sample
from scrapy_neardup.state.history import decide, former_recipes, former_sketch
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SAMPLES, is_method_of
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import parse_url
from scrapy_neardup.text.samples import converter_sample, segmenter_sample
from scrapy_neardup.text.tokens import segmenter_name

#: The setting that refuses states of other versions.
STRICT_SETTING = "NEARDUP_STRICT"


@dataclass(frozen=True, slots=True)
class FormerComparison:
    """A page compared by a former method with a ``record`` of that recipe: its own, or that of its original."""

    record: Record
    comparison: Comparison


class FormerMethods:
    """The former methods of a state that was migrated without texts.

    Such a state knows its earlier pages by URL and by their former sketches. A page that comes again is fingerprinted
    by its former method too, so an unchanged page is not delivered twice. In all other cases of doubt it passes as
    ``updated``.
    """

    def __init__(self, store: PageStore) -> None:
        """Raises StoreDamaged if the row of former recipes cannot be read."""
        self._store = store
        self._methods = [former_method(recipe) for recipe in former_recipes(store)]

    def compare(self, page: Page, known: Record | None) -> FormerComparison | None:
        """Compare a page with the known record of its URL; None if no former method can. Raises StoreError."""
        if not self._methods or known is None:
            return None
        record = known if known.former else self._store.record(known.original)
        former = former_sketch(self._store, record.id) if record is not None and record.former else None
        if record is None or former is None:
            return None
        number, sketch = former
        method = self._methods[number] if number < len(self._methods) else None
        if method is None:
            return None
        method = method.with_hashes(self._store.hashes)
        try:
            return FormerComparison(record, method.compare(method.fingerprint(page), sketch, frozenset()))
        except StoreError:
            raise
        except Exception:  # another release wrote the sketch; failing to read it must not stop the page
            return None


def former_method(recipe: Mapping[str, Any]) -> Method | None:
    """The method of a recipe, if it is built in and needs no file; a recipe holds only a digest of a file."""
    with suppress(SettingsError, KeyError, TypeError, AttributeError):
        kind = METHODS[recipe["method"]]
        known = {field.name for field in fields(kind.parameters_type)}
        given = {name: value for name, value in recipe["parameters"].items() if name in known}
        method = make_method(kind.name, given)
        if is_method_of(recipe, method.recipe()):
            return method
    return None


def state_recipe(method: Method, extractor: Extractor | None) -> dict[str, Any]:
    """Everything that must be equal for the pages of two crawls to be comparable, as plain data."""
    recipe = {
        **method.recipe(),
        "hash": HASH_NAME,
        "segmenter": segmenter_name(),
        "extractor": extractor_name(extractor),
    }
    samples = {"segmenter": segmenter_sample()}
    if extractor is None:
        samples["extractor"] = reader_sample()
    if "script" in recipe:
        samples["script"] = converter_sample()
    return {**recipe, SAMPLES: samples}


def need_lasting_method(method: Method, url: str) -> None:
    """Raise SettingsError if the state at a URL lasts and the method works only in memory. Call it before opening.

    An opened state would keep the method as its recipe and refuse every other one.
    """
    if method.memory_only and parse_url(url)[0].is_persistent:
        raise SettingsError(
            f"The method {method.name} keeps several kilobytes per page and works only in memory. "
            "Set NEARDUP_STORE = 'memory:', or choose another method."
        )


def check_tools(store: PageStore, *, strict: bool, say: Callable[[str], object]) -> None:
    """Warn if other versions of the tools wrote the state; if ``strict``, raise StoreMismatch.

    The state is open, so these versions read the samples of the recipe as ours do.
    """
    if not store.renamed:
        return
    renamed = "; ".join(f"the {tool} was {there} and is {here} now" for tool, (there, here) in store.renamed.items())
    if strict:
        raise StoreMismatch(
            f"Other versions wrote the state at {store.location}: {renamed}. {STRICT_SETTING} refuses it, although "
            "both read the test samples alike. Restore those versions, convert the state with: scrapy neardup migrate, "
            f"or remove {STRICT_SETTING}."
        )
    say(
        f"Other versions wrote the state at {store.location}: {renamed}. Both read the test samples alike, so the "
        "state is used. A page that they read differently may pass once more as updated. To refuse such a state, set "
        f"{STRICT_SETTING} = True."
    )


def take_over(
    store: PageStore,
    recipe: Mapping[str, Any],
    deciding: Mapping[str, Any],
    *,
    strict: bool,
    warn: Callable[[str], object],
    inform: Callable[[str], object],
) -> None:
    """Record the tools and the deciding values of a crawl in the state, and say what has changed.

    Raises StoreError; StoreMismatch as ``check_tools``.
    """
    check_tools(store, strict=strict, say=warn)
    store.update_recipe(recipe)
    if changed := decide(store, deciding):
        now = ", ".join(f"{name} = {value}" for name, (_, value) in changed.items())
        before = ", ".join(str(before) for before, _ in changed.values())
        inform(f"The state at {store.location} now decides by {now}; before by {before}.")
