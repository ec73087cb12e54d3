"""Of the last pages of a site, how many looked like another one of it under another title: what makes a catalogue.

On most sites one page in a hundred does. Where one in five does, as among the products of a shop, what two pages share
is the form of the site, and the method asks for more: see ``cascade_check``.
"""

from __future__ import annotations

import zlib

import numpy as np

#: Sites of which that is known at once, the last ones that were noted.
_SITES = 4096
#: Pages after which those of a site are halved, with those in a form: so it is the last ones that count.
_LAST = 1024
#: Before so many pages nothing is said of a site.
_LEAST = 64
#: How a site is written, before all are compressed; the same on every machine. The one that was noted last comes last.
_PACKED = np.dtype([("site", ">u4"), ("pages", ">u2"), ("forms", ">u2")])


class Forms:
    """The counts of 4,096 sites, by 32-bit fingerprint; half a megabyte, whatever the number of sites."""

    def __init__(self) -> None:
        self._sites: dict[int, tuple[int, int]] = {}
        self._is_changed = False

    def note(self, site: int, *, in_form: bool) -> None:
        """Count a page of a site, and whether it looked like another one under another title."""
        pages, forms = self._sites.pop(site, (0, 0))
        self._put(site, pages + 1, forms + in_form)

    def share(self, site: int) -> float:
        """The share of such pages among the last ones of a site; 0 where too few are known."""
        pages, forms = self._sites.get(site, (0, 0))
        return forms / pages if pages >= _LEAST else 0.0

    def changed(self) -> bytes | None:
        """All of it, packed, if it was changed since it was last ``saved``."""
        return self.packed() if self._is_changed else None

    def packed(self) -> bytes | None:
        """All of it, compressed, unless it is empty."""
        rows = [(site, *counts) for site, counts in self._sites.items()]
        return zlib.compress(np.array(rows, _PACKED).tobytes(), 1) if rows else None

    def saved(self) -> None:
        """What ``changed`` gave has been written."""
        self._is_changed = False

    def load(self, packed: bytes) -> None:
        """Take what was written; raises ValueError if it is none, and then takes nothing."""
        try:
            plain = zlib.decompress(packed)
        except zlib.error as error:
            raise ValueError(f"the counts of forms cannot be unpacked ({error})") from None
        if len(plain) % _PACKED.itemsize:
            raise ValueError(f"there are no counts of forms in {len(plain)} bytes")
        found = np.frombuffer(plain, _PACKED)
        pages, sites = found["pages"], np.unique(found["site"])
        are_counts = (found["forms"] <= pages) & (pages > 0) & (pages < _LAST)
        if not len(sites) == len(found) <= _SITES or not are_counts.all():
            raise ValueError("the counts of forms hold what cannot stand there")
        columns = (found[name].tolist() for name in ("site", "pages", "forms"))
        self._sites = {site: (pages, forms) for site, pages, forms in zip(*columns, strict=True)}

    def merge(self, other: Forms) -> None:
        """Add those of another state."""
        for site, (pages, forms) in other._sites.items():
            ours = self._sites.pop(site, (0, 0))
            self._put(site, ours[0] + pages, ours[1] + forms)

    def _put(self, site: int, pages: int, forms: int) -> None:
        while pages >= _LAST:
            pages, forms = pages // 2, forms // 2
        self._sites[site] = pages, forms
        if len(self._sites) > _SITES:
            del self._sites[next(iter(self._sites))]
        self._is_changed = True
