"""What a state remembers of earlier crawls: their deciding settings, and the recipes that it had before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.state.layout import former_key, last_id, meta_key
from scrapy_neardup.state.pages import PageStore

# Parameters and settings that only decide are not in the recipe, so crawls of one state may differ in them. The state
# remembers those of the last crawl, and the log names changes.


DECISIONS_KEY = meta_key("decisions")


def decisions_of(store: PageStore) -> dict[str, Any]:
    """Return the deciding values of the last crawl. Raises StoreDamaged."""
    packed = store.value(DECISIONS_KEY)
    try:
        return {} if packed is None else dict(json.loads(packed))
    except (ValueError, TypeError):
        raise store.damaged("the deciding settings of its last crawl cannot be read") from None


def decide(store: PageStore, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Remember the deciding values of this crawl; return the changes, old and new. Raises StoreError."""
    plain = json.loads(json.dumps(said))
    before = decisions_of(store)
    if before != plain:
        packed = json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        store.write(Changes({DECISIONS_KEY: packed}))
    return {name: (before[name], now) for name, now in plain.items() if name in before and before[name] != now}


# A migration cannot fingerprint pages without their texts. It keeps them by URL, with their former sketch in a row of
# its own. With that sketch a page that comes again can be recognised as unchanged; see ``judge.former``.


FORMER_KEY = meta_key("former")
_NUMBER = 2


def former_recipes(store: PageStore) -> list[dict[str, Any]]:
    """Return the former recipes, by number. Raises StoreDamaged."""
    packed = store.value(FORMER_KEY)
    try:
        return [] if packed is None else unpack_former(packed)
    except ValueError:
        raise store.damaged("its earlier recipes cannot be read") from None


def pack_former(recipes: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the row of the former recipes."""
    return json.dumps(recipes, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")


def unpack_former(packed: bytes) -> list[dict[str, Any]]:
    """Unpack former recipes. Raises ValueError."""
    try:
        return [dict(recipe) for recipe in json.loads(packed)]
    except TypeError as error:
        raise ValueError(str(error)) from None


def pack_former_sketch(number: int, sketch: bytes) -> bytes:
    """Return a former sketch with the number of its recipe."""
    return number.to_bytes(_NUMBER, "big") + sketch


def former_sketch(store: PageStore, id: int) -> tuple[int, bytes] | None:
    """Return the number of a page's former recipe and its sketch, or None."""
    packed = store.value(former_key(id))
    return None if packed is None else (int.from_bytes(packed[:_NUMBER], "big"), packed[_NUMBER:])


def unpack_former_sketch(key: bytes, packed: bytes, recipes: int) -> None:
    """Raise ValueError if this is no row of a former sketch in a state with so many former recipes."""
    if len(key) != len(former_key(0)):
        raise ValueError(f"the key {key!r} is no key of an earlier sketch")
    if len(packed) < _NUMBER or int.from_bytes(packed[:_NUMBER], "big") >= recipes:
        raise ValueError(f"that of {last_id(key):016x} names none of the {recipes} earlier recipes")
