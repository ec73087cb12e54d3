"""Parameters of the default method for fields that the default is wrong for: ``NEARDUP_PROFILE``.

A profile sets only what decides, so it may change between crawls of one state; what a user sets himself counts for
more. There is none without a reason and a corpus on which it was measured (docs/en/guides/kinds-of-sites.md): for mails
and forums the default is right, as quotes are left out of every page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_neardup.methods.cascade_parameters import CATALOGUE as ON_CATALOGUE

#: The method whose parameters these are.
METHOD = "cascade"
ARTICLE, CATALOGUE = "article", "catalogue"

#: Each profile with its parameters.
PROFILES: Mapping[str, Mapping[str, Any]] = {
    ARTICLE: {},
    # From the first page on, and also where the site is not known.
    CATALOGUE: ON_CATALOGUE,
}
