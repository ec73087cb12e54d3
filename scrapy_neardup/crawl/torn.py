"""Half a line at the end of a feed, from a disk that was full or a power cut: what is appended is spoilt with it.

A killed process leaves whole lines: Scrapy hands each to the file at once, which passes it on whole.
"""

from __future__ import annotations

import os
from pathlib import Path

from scrapy.extensions.feedexport import FeedSlot, FileFeedStorage

from scrapy_neardup.oneline import line_logger

logger = line_logger(__name__)

#: Formats of which a line is an item; in CSV half a quoted field goes on behind whatever is added.
_LINES = ("jsonlines", "jsonl", "jl")


def end_torn_line(slot: FeedSlot) -> None:
    """End the last line of a file to which a feed is to be appended; the page of that half item comes again anyway."""
    storage = slot.storage
    if (
        not isinstance(storage, FileFeedStorage)
        or storage.write_mode != "ab"
        or slot.format not in _LINES
        or "postprocessing" in slot.feed_options
        or not Path(storage.path).is_file()
    ):
        return
    with Path(storage.path).open("r+b") as file:
        if not file.seek(0, os.SEEK_END):
            return
        file.seek(-1, os.SEEK_END)
        if file.read(1) == b"\n":
            return
        file.write(b"\n")
    logger.warning(
        "The feed %s ended within a line, as after a full disk. A line end is added, so the items of this crawl are "
        "complete. Remove the half item before them.",
        storage.path,
    )
