"""Which setting was meant by a name that is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from scrapy_neardup.config.readers import READERS, SETTINGS

#: What is no setting of its own: each method has its limits, which are parameters.
_OF_METHODS = ("THRESHOLD", "SIMILARITY", "SIMILARITY_THRESHOLD", "DISTANCE", "LIMIT")
#: How our names are written by those who do not know them; and names that speak of dropping duplicates.
_PREFIX = re.compile(r"^(?:SCRAPY_?)?NEAR_?DUP(?:E|S|ES|LICATES?|LICATE_PAGES)?_")
_DROPPING = re.compile(
    r"^(?:DROP|FILTER|SKIP|REMOVE)_?(?:NEAR_?)?DUP(?:E|S|ES|LICAT(?:E|ES|ED|ION|IONS))?(?:_PAGES|_ITEMS)?$"
)


def meant_setting(name: str) -> str:
    """The setting that was probably meant by a name that is none; empty if there is no telling.

    >>> meant_setting("NEARDUP_DROP_DUPLICATES"), meant_setting("NEARDUP_STROE"), meant_setting("DOWNLOAD_DELAY")
    ('DROP_DUPLICATES', 'NEARDUP_STORE', '')
    """
    plain = _PREFIX.sub("", name)
    is_prefixed = plain != name
    if (
        (is_prefixed and plain in ("DROP", "DUPLICATES"))
        or _DROPPING.search(plain)
        or _is_close(plain, "DROP_DUPLICATES")
    ):
        return "DROP_DUPLICATES"
    if not is_prefixed:
        return ""
    named = {setting.removeprefix("NEARDUP_"): setting for setting in READERS}
    named |= dict.fromkeys(_OF_METHODS, "NEARDUP_PARAMETERS")
    return named[close[0]] if (close := get_close_matches(plain, named, 1)) else ""


def _is_close(name: str, other: str) -> bool:
    return abs(len(name) - len(other)) <= 4 and bool(get_close_matches(name, [other], 1, 0.8))


def look_alikes(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings that are none of ours and may be meant to be, each with ours; they may also be somebody else's."""
    others = [name for name in settings if name not in SETTINGS and not name.startswith("NEARDUP_")]
    return {name: meant for name in others if (meant := meant_setting(name))}
