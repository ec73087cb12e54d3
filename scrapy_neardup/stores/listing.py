"""Pages that were taken back, and that a resumed crawl will not request again: their URLs, in a file for people.

Scrapy's JOBDIR remembers what was requested, not what was delivered. So the URLs are listed there, by whoever opens the
state and takes the pages back, before that is done: after a kill in between they are in the list twice, not in none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import quote

from scrapy_neardup.atomic import replacing
from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keyed import OPEN

#: The name of the list, in the directory of the job.
LIST = "neardup-taken-back.txt"
#: URLs of it that a message names.
_FEW = 3
_NOT_IN_A_LINE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")


def add_to_list(directory: str, urls: Iterable[str]) -> None:
    """Append URLs, a line each, and wait for the disk; a job whose directory is gone begins anew and needs no list.

    Raises StoreError if that fails, and then nothing may be taken back.
    """
    path = Path(directory, LIST)
    try:
        if not path.parent.is_dir():
            return
        with path.open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(f"{_line(url)}\n" for url in urls)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(
            f"The rolled-back URLs cannot be written to {path} ({error.strerror or error}), but a resumed crawl needs "
            "them there. Make that directory writable, or remove it to start the job again."
        ) from error


def prune_list(directory: str, is_known: Callable[[str], bool]) -> tuple[int, list[str]]:
    """Leave those URLs in the list of a job that are not known yet, each once; how many they are, and the first few.

    Without any the list goes. Raises NearDupError if it cannot be read or written.
    """
    path, many, first = Path(directory, LIST), 0, list[str]()
    if not path.is_file():
        return 0, []
    seen = set[int]()
    with (
        path.open(encoding="utf-8", errors="surrogatepass") as file,
        replacing(path) as draft,
        draft.open("w", encoding="utf-8", errors="surrogatepass") as kept,
    ):
        for url in map(str.strip, file):
            mark = OPEN.of(url)
            if url and mark not in seen and not is_known(url):
                seen.add(mark)
                kept.write(f"{url}\n")
                many += 1
                first += [url][: _FEW - len(first)]
    if not many:
        path.unlink(missing_ok=True)
    return many, first


def _line(url: str) -> str:
    """A URL without what would end its line."""
    return _NOT_IN_A_LINE.sub(lambda found: quote(found[0]), url)
