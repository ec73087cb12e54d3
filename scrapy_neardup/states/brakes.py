"""For which sites and originals the safety brake has come on, and for which of them somebody says that all is well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from scrapy_neardup.stores import Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import brake_key, last_id

#: Of more the oldest are not remembered: strangers choose how many there are.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Braked:
    """A site, or an original by its id and URL, whose copies pass. ``id``: the page with which the brake came on.

    ``site``: for an original, that of its copies. ``original``, ``url``: 0 and empty where it is on for the site.
    ``released``: all is well there, and it is not to come on for that again.
    """

    id: int
    site: str
    original: int = 0
    url: str = ""
    released: bool = False

    @property
    def since(self) -> float:
        """Seconds since 1970."""
        return self.id / 1e9

    @property
    def name(self) -> str:
        """What it is on for, as it is released by."""
        return self.url or self.site


def remember_brake(store: Store, braked: Braked) -> None:
    """Write down that the brake has come on, again if it was on for it, and wait for the disk."""
    changes = Changes()
    known = list(brakes(store))
    same, others = ([one for one in known if (one.name == braked.name) is same] for same in (True, False))
    for one in (*same, *others[: max(0, len(others) - _MOST + 1)]):
        changes.delete(brake_key(one.id))
    store.write(_put(changes, braked))


def brakes(store: Store) -> Iterator[Braked]:
    """All that it has come on for, the oldest first; raises StoreDamaged for a row that is none."""
    return store.unpacked(b"h", unpacked_brake)


def release(store: Store, names: set[str]) -> list[Braked]:
    """Take the brake off these sites, and originals by their URLs, for good; returns what it was on for."""
    released = [replace(one, released=True) for one in brakes(store) if one.name in names and not one.released]
    changes = Changes()
    for one in released:
        _put(changes, one)
    if released:
        store.write(changes)
    return released


def watch_again(store: Store, names: set[str]) -> list[Braked]:
    """Forget that it came on for these, or was released: it may come on for them like for any other."""
    found = [one for one in brakes(store) if one.name in names]
    if found:
        store.write(Changes(deletes={brake_key(one.id) for one in found}))
    return found


def unpacked_brake(key: bytes, packed: bytes) -> Braked:
    """What ``remember_brake`` wrote; raises ValueError for another row."""
    id = last_id(key)
    try:
        about = json.loads(packed)
        found = Braked(id, str(about["site"]), int(about["original"]), str(about["url"]), bool(about["released"]))
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"what the safety brake is on for cannot be read ({packed[:60]!r})") from None
    if key != brake_key(id):
        raise ValueError(f"{key!r} is no key of the safety brake")
    return found


def _put(changes: Changes, braked: Braked) -> Changes:
    about = {name: getattr(braked, name) for name in ("site", "original", "url", "released")}
    changes.put(brake_key(braked.id), json.dumps(about).encode())
    return changes
