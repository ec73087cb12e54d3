"""Parameters of the default method for fields that the default is wrong for: ``NEARDUP_PROFILE``.

A profile sets only what decides, so it may change between crawls of one state; what a user sets himself counts for
more. There is none without a reason and a corpus on which it was measured (docs/tuning.md): for mails and forums the
default is right, as quotes are left out of every page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The method whose parameters these are.
METHOD = "cascade"
ARTICLE, CATALOGUE = "article", "catalogue"

#: Each profile with its parameters.
PROFILES: Mapping[str, Mapping[str, Any]] = {
    ARTICLE: {},
    # On one site, or where it is not known: nearly the same all over (0.92, which is base and by_site), and no word of
    # either title gone. Products of one family share their description, and differ in a name.
    CATALOGUE: {"certain_on_site": 1.0, "by_site": 0.4, "by_gone": 0.5},
}
