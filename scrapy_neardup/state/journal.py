"""The journal: which pages are unsealed, and how they are sealed or rolled back."""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.state import layout
from scrapy_neardup.state.expiry import Expiry
from scrapy_neardup.state.kv import Changes

# ----------------------------------------------------------------------------------------------------------------------
# Pages that were taken back, and that a resumed crawl will not request again: their URLs, in a file for people.
#
# Scrapy's JOBDIR remembers what was requested, not what was delivered. So the URLs are listed there, by whoever opens
# the state and takes the pages back, before that is done: after a kill in between they are in the list twice, not in
# none.


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
        replace_file(path) as draft,
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


# ----------------------------------------------------------------------------------------------------------------------
# The pages of a crawl: they are sealed, or taken back by the next opening.
#
# A page counts at once, but for good only when the feed that holds it is stored. Until then it is in the journal of its
# crawl, and a crawl that was killed leaves its journal behind.


#: Pages that are sealed, taken back or removed in one batch.
BATCH = 1000


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What an opening found unsealed: pages of crawls that were killed or whose feed was not stored."""

    pages: int
    crawls: tuple[str, ...]


class Generations(Expiry):
    """What a store does for the crawls that write to it, each of which is a generation of its pages."""

    @abstractmethod
    def new_id(self) -> int:
        """An id larger than every other."""

    def begin(self, who: str, job: str = "") -> int:
        """A new generation for a crawl; ``who`` names it in the line that tells of its being taken back.

        ``job``: the directory by which the crawl can be resumed, and where then the URLs of its pages are listed.
        """
        generation = self.new_id()
        self._running.add(generation)
        about = json.dumps({"who": who, "job": job}, ensure_ascii=False).encode()
        self._write(Changes({layout.generation_key(generation): about}), sync=False)
        return generation

    def seal(self, generation: int, ids: Iterable[int]) -> None:
        """Keep these pages of a generation for good; they are on disk when this returns."""
        ids = iter(ids)
        while batch := list(islice(ids, BATCH)):
            changes, gone = Changes(), 0
            for id in batch:
                replaced = self._off_the_list(id, changes, [generation])
                changes.delete(layout.journal_key(generation, id))  # even if it is gone: others may have taken it back
                gone += self._supersede(replaced, changes)
            self._may_go(min(batch))
            changes.puts.update(self._unwritten_hands())
            self._write(changes, sync=True)
            self._moved = False
            self.pages -= gone

    def withdraw(self, generation: int, id: int) -> None:
        """Take one page back, sealed or not; an unsealed one gives its place to the record that it replaced."""
        changes = Changes()
        gone = self._withdraw(layout.journal_key(generation, id), changes)
        self._commit(changes)
        self.pages -= gone

    def unsealed(self, generation: int) -> Iterator[int]:
        """The ids of a crawl's pages that are not sealed, in their order."""
        return (layout.last_id(journal) for journal, _ in self._scan(layout.journal_prefix(generation)))

    def end(self, generation: int) -> int:
        """End a crawl's generation; returns how many of its pages stay unsealed, to be taken back later."""
        unsealed = sum(1 for _ in self.unsealed(generation))
        if not unsealed:
            self._running.discard(generation)
            self._write(Changes(deletes={layout.generation_key(generation)}), sync=True)
        return unsealed

    def _take_back(self) -> TakenBack:
        try:
            known = {layout.last_id(key): json.loads(about) for key, about in self._scan(b"g")}
            said = {crawl: (str(about["who"]), str(about.get("job", ""))) for crawl, about in known.items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self.damaged("the row of a crawl cannot be read") from None
        self._take_up()  # all was read that it can be refused for
        crawls = [crawl for crawl in said if self._take_over(crawl)]
        names, jobs = [said[crawl][0] for crawl in crawls], {crawl: said[crawl][1] for crawl in crawls}
        pages, unsealed = 0, self._all_unsealed(crawls)
        while batch := list(islice(unsealed, BATCH)):
            self._list_for_jobs(batch, jobs)
            self._take_back_some(batch)
            pages += len(batch)
        ended = Changes(deletes={layout.generation_key(crawl) for crawl in crawls})
        if ended.deletes:
            self._write(ended, sync=True)
        return TakenBack(pages, tuple(names))

    def _take_back_some(self, journals: Iterable[bytes]) -> None:
        changes = Changes()
        for journal in journals:
            self._withdraw(journal, changes)
        self._write(changes, sync=True)

    def _take_over(self, generation: int) -> bool:
        """End a crawl whose process is gone, but for its unsealed pages; False if somebody is at work on it."""
        return True

    def _all_unsealed(self, left: Iterable[int]) -> Iterator[bytes]:
        """The journal of all crawls, the newest page first: of two versions of a URL the later names the earlier one.

        ``left``: those that nobody is at work on. They are not held at once: of a long crawl they are millions.
        """
        generations = {layout.generation_of(journal) for journal, _ in self._scan(b"j")}
        scans = (self._scan(layout.journal_prefix(generation), reverse=True) for generation in generations)
        return (journal for journal, _ in merge(*scans, key=lambda row: layout.last_id(row[0]), reverse=True))

    def _list_for_jobs(self, journals: Iterable[bytes], jobs: Mapping[int, str]) -> None:
        urls: dict[str, list[str]] = {}
        for journal in journals:
            job = jobs.get(layout.generation_of(journal), "")
            if job and (record := self.record(layout.last_id(journal))) is not None:
                urls.setdefault(job, []).append(record.url)
        for job, listed in urls.items():
            add_to_list(job, listed)
