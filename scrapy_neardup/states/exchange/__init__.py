"""States on their way: into a file, out of one, and several into one.

The file is portable between stores, machines and releases: JSON lines, packed by gzip, so ``zcat`` shows it. A page is
a line (see ``filed``), in the order in which the pages were first seen.

    {"scrapy-neardup": "state", "version": 3, "recipe": {…}}
    {"id": "17f0a5…", "url": "https://…", "seen": 1714521600, "keys": […], "sketch": "…"}
    …
    {"block": 0, "counts": "…"}                   counted sentences, in base64: see ``stores.recurrence``
    …
    {"judged": "keep", "url": "https://…", …}     what somebody has said of a page by hand: see ``judged``
    …
    {"pages": 1204, "sha256": "…"}                of all lines before this one

The same state makes the same lines everywhere, and the same file wherever zlib packs alike.
"""

from __future__ import annotations

from scrapy_neardup.states.exchange.copies import method_of
from scrapy_neardup.states.exchange.export import write_export
from scrapy_neardup.states.exchange.importing import import_state
from scrapy_neardup.states.exchange.merging import Merged, merge
from scrapy_neardup.states.exchange.sources import ExportFile, OpenState, Source, check_recipes, for_state

__all__ = [
    "ExportFile",
    "Merged",
    "OpenState",
    "Source",
    "check_recipes",
    "for_state",
    "import_state",
    "merge",
    "method_of",
    "write_export",
]
