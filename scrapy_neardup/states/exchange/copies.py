"""Originals of one state that are copies of those of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scrapy_neardup.judging.former import former_method
from scrapy_neardup.judging.matching import Matching
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint
from scrapy_neardup.stores import Record, Store
from scrapy_neardup.stores.recipe import is_method_of


@dataclass(frozen=True, slots=True)
class Copy:
    """Of which original a page is a copy, how like, and whether it is to speak for that one as a witness."""

    original: int
    comparison: Comparison
    is_witness: bool


def method_of(recipe: Mapping[str, Any], own: Method | None = None) -> Method | None:
    """The method by which the pages of a recipe were fingerprinted: ``own`` if it fits, else a built-in one.

    None if neither does, as for a method of somebody else's or one with a lexicon, of which the recipe has a digest.
    """
    if own is not None and is_method_of(recipe, own.recipe()):
        return own
    return former_method(recipe)  # of somebody else's not even the module is imported


def find_copy(method: Method, store: Store, page: Record) -> Copy | None:
    """Of which original in the store a page of another state is a copy, as a crawl would have judged it.

    Two things are not in a record, and both make a copy less likely, not more: the boilerplate of the page, and what
    the project's policy takes for copies beside what the method says.
    """
    if not page.sketch:
        return None
    found = Matching(method, store).best(page.url, Fingerprint(page.keys, page.sketch)).best
    if found is None or not found.comparison.duplicate:
        return None
    differs = found.comparison.similarity < method.witness_below
    return Copy(found.original.group, found.comparison, differs and found.compared.is_original)
