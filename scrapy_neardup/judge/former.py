"""Pages of a former recipe, and how a state is taken over to a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from scrapy_neardup.errors import SettingsError, StoreError, StoreMismatch
from scrapy_neardup.hashing import HASH_NAME
from scrapy_neardup.judge.copies import Registrar, note_once
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.judge.matching import Matching, distinctive_keys
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.page.extraction import Extractor, extractor_name
from scrapy_neardup.page.samples import reader_sample
from scrapy_neardup.state.pages import PageStore, decide, former_recipes, former_sketch, stands_for
from scrapy_neardup.state.recipe import SAMPLES, is_method_of
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.samples import converter_sample, segmenter_sample
from scrapy_neardup.text.tokens import segmenter_name

# ----------------------------------------------------------------------------------------------------------------------
# Pages that were judged by a former recipe, and come again: are they what they were then?
#
# A state that was brought to another method, without texts to fingerprint its pages by, knows them by URL alone. Yet it
# keeps their former sketches, and where the former method can still be made, a page that comes again is fingerprinted
# by that one as well. So one that is unchanged is not delivered twice; it is filed anew, under its id, and from then on
# like any other. A known copy of such a page is compared with it in the same way, as its original may come after it.
#
# All else is judged as what comes for the first time: in doubt a page passes, as ``updated``.


@dataclass(frozen=True, slots=True)
class FormerlyFound:
    """What the former method says of a page and the earlier one ``base``: itself, or what it was a copy of."""

    base: Record
    comparison: Comparison


class Former:
    """The former methods of one state; nothing is asked of a state that was never migrated."""

    def __init__(self, store: PageStore) -> None:
        """Raises StoreDamaged if the row that tells of them cannot be read."""
        self._store = store
        self._methods = [former_method(recipe) for recipe in former_recipes(store)]

    def of(self, page: Page, known: Record | None) -> FormerlyFound | None:
        """What was known of a page by its URL; None where nothing can be said. Raises StoreError."""
        if not self._methods or known is None:
            return None
        base = known if known.former else self._store.record(known.original)
        found = former_sketch(self._store, base.id) if base is not None and base.former else None
        if base is None or found is None or found[0] >= len(self._methods):
            return None
        method = self._methods[found[0]]
        if method is None:
            return None
        method = method.with_hashes(self._store.hashes)
        try:
            made: Fingerprint = method.fingerprint(page)
            return FormerlyFound(base, method.compare(made, found[1], frozenset()))
        except StoreError:
            raise
        except Exception:  # it is one more look, at what another release may have written: never in the way of a page
            return None


class AsFormerly:
    """Rules on pages of a former recipe that come again, as far as that recipe decides."""

    def __init__(self, registrar: Registrar, matching: Matching, also_copies: Set[Likeness]) -> None:
        self._registrar = registrar
        self._matching = matching
        self._also_copies = also_copies
        self._store = registrar.store

    def ruling(self, page: Page, fingerprint: Fingerprint, known: Record, formerly: FormerlyFound) -> Ruled | None:
        """The ruling on a page that is what it was, or is a copy of what it was a copy of; else None."""
        base, comparison = formerly.base, formerly.comparison
        if not (comparison.identical if known.former else comparison.is_copy(self._also_copies)):
            return None
        original = stands_for(self._store, base) or base
        match = Match(original.id, original.url, original.first_seen, comparison.similarity, comparison.containment)
        if known.former:
            self._file_anew(page, fingerprint, known)
            return Ruled(Verdict(Kind.UNCHANGED, page.url, known.id, match))
        verdict = Verdict(Kind.DUPLICATE, page.url, known.id, match, likeness=comparison.likeness)
        if self._registrar.passes(verdict):
            return None  # it is to be delivered: as what comes for the first time
        along = self._registrar.drop(self._store.new_id(), page, match, comparison.likeness)
        self._store.touch(known, of=(original,), along=along)
        return Ruled(verdict)

    def before(self, known: Record, formerly: FormerlyFound | None) -> Match:
        """What was at the URL of a page that is not what it was, as far as that can be told."""
        comparison = formerly.comparison if formerly else None
        similarity, containment = (comparison.similarity, comparison.containment) if comparison else (0.0, 0.0)
        return Match(known.id, known.url, known.first_seen, similarity, containment)

    def _file_anew(self, page: Page, fingerprint: Fingerprint, known: Record) -> None:
        keys = distinctive_keys(fingerprint.keys, self._matching.common(fingerprint)) if known.is_original else ()
        record = replace(known, keys=keys, sketch=fingerprint.sketch, former=False, body=page.body)
        self._store.add(record, self._store.evidence(known.id), replaces=known.id)
        note_once(self._store, page.url, page.site, fingerprint, everywhere=not known.delivered)


def former_method(recipe: Mapping[str, Any]) -> Method | None:
    """The method of a recipe that was read, if it is built in and needs no file, of which the recipe has a digest."""
    with suppress(SettingsError, KeyError, TypeError, AttributeError):
        kind = METHODS[recipe["method"]]
        known = {field.name for field in fields(kind.parameters_type)}
        given = {name: value for name, value in recipe["parameters"].items() if name in known}
        method = make_method(kind.name, given)
        if is_method_of(recipe, method.recipe()):
            return method
    return None


# ----------------------------------------------------------------------------------------------------------------------
# By what the pages of a state are fingerprinted, and how a crawl, a command or a script takes it up with its own.


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


def check_tools(store: PageStore, *, strict: bool, say: Callable[[str], object]) -> None:
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


def take_over(store: PageStore, recipe: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """Have the state name the tools and what is decided by as a crawl that begins has them; says what has changed.

    An empty answer: nothing that was known before. Raises StoreError.
    """
    store.take_on(recipe)
    changed = decide(store, said)
    if not changed:
        return ""
    now = ", ".join(f"{name} = {value}" for name, (_, value) in changed.items())
    return f"now decides by {now}; before by {', '.join(str(before) for before, _ in changed.values())}"
