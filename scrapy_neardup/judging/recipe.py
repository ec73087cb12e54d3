"""By what the pages of a state are fingerprinted, as a crawl, a command or a script is about to do it."""

from __future__ import annotations

from typing import Any

from scrapy_neardup.hashing import HASH_NAME
from scrapy_neardup.methods import Method
from scrapy_neardup.page.extraction import Extractor, extractor_name
from scrapy_neardup.text.tokens import segmenter_name


def state_recipe(method: Method, extractor: Extractor | None) -> dict[str, Any]:
    """Everything that must be equal for the pages of two crawls to be comparable, as plain data."""
    return {
        **method.recipe(),
        "hash": HASH_NAME,
        "segmenter": segmenter_name(),
        "extractor": extractor_name(extractor),
    }
