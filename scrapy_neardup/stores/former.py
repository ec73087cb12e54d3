"""By which recipes pages were judged that a migration could not fingerprint anew, as their texts were not there.

Such a page is known by its URL. Its former sketch is kept in a row of its own, where nobody takes it for one of now: by
it the page can be known to be unchanged when it comes again (see ``judging.former``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scrapy_neardup.stores.base import Store
from scrapy_neardup.stores.layout import former_key, last_id, meta_key

KEY = meta_key("former")
_NUMBER = 2


def former_recipes(store: Store) -> list[dict[str, Any]]:
    """Those recipes, in the order of their numbers; raises StoreDamaged for a row that is none."""
    packed = store.value(KEY)
    try:
        return [] if packed is None else unpack_former(packed)
    except ValueError:
        raise store.damaged("its earlier recipes cannot be read") from None


def pack_former(recipes: Sequence[Mapping[str, Any]]) -> bytes:
    """The row that holds them."""
    return json.dumps(recipes, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")


def unpack_former(packed: bytes) -> list[dict[str, Any]]:
    """What ``pack_former`` wrote; raises ValueError for anything else."""
    try:
        return [dict(recipe) for recipe in json.loads(packed)]
    except TypeError as error:
        raise ValueError(str(error)) from None


def pack_former_sketch(number: int, sketch: bytes) -> bytes:
    """The former sketch of a page, by the recipe with this number."""
    return number.to_bytes(_NUMBER, "big") + sketch


def former_sketch(store: Store, id: int) -> tuple[int, bytes] | None:
    """The number of a page's recipe, and its sketch; None if it is not there."""
    packed = store.value(former_key(id))
    return None if packed is None else (int.from_bytes(packed[:_NUMBER], "big"), packed[_NUMBER:])


def former_problem(key: bytes, packed: bytes, recipes: int) -> str:
    """What is wrong with the row of a former sketch, of a state with so many former recipes; empty if nothing is."""
    if len(key) != len(former_key(0)):
        return f"the key {key!r} is no key of an earlier sketch"
    if len(packed) < _NUMBER or int.from_bytes(packed[:_NUMBER], "big") >= recipes:
        return f"that of {last_id(key):016x} names none of the {recipes} earlier recipes"
    return ""
