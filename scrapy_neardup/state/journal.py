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
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.state import layout
from scrapy_neardup.state.expiry import Expiry

# Scrapy's JOBDIR remembers requests, not deliveries. So the URLs of rolled-back pages are listed in the directory of
# the job. They are written before the pages are rolled back: after a kill in between they are listed twice, not never.


#: The list in the directory of a job.
LIST = "neardup-taken-back.txt"
#: URLs to name in a message.
_FEW = 3
_NOT_IN_A_LINE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")


def add_to_list(directory: str, urls: Iterable[str]) -> None:
    """Append URLs, and wait for the disk. A job whose directory is gone needs no list.

    Raises StoreError; then nothing may be rolled back.
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
    """Remove known URLs from the list; return how many are left, and the first few. An empty list goes.

    Raises NearDupError.
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
    """Escape line ends in a URL."""
    return _NOT_IN_A_LINE.sub(lambda found: quote(found[0]), url)


#: Pages per batch.
BATCH = 1000


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Pages that an opening rolled back, and their crawls."""

    pages: int
    crawls: tuple[str, ...]

    def sentence(self) -> str:
        """Describe them for a log."""
        return (
            f"{self.pages} pages are rolled back in the state, because their crawl "
            f"({', '.join(self.crawls) or 'unknown'}) was killed or its feed was not stored. They are judged again "
            "when they come again."
        )


class Generations(Expiry):
    """The crawls that write to a store. Each is a generation whose journal lists unsealed pages."""

    @abstractmethod
    def new_id(self) -> int:
        """Return an id larger than every other."""

    def begin(self, who: str, job: str = "") -> int:
        """Begin a crawl; ``who`` names it in messages.

        ``job``: the directory from which it can be resumed, where URLs of rolled-back pages are listed.
        """
        generation = self.new_id()
        self._running.add(generation)
        about = json.dumps({"who": who, "job": job}, ensure_ascii=False).encode()
        self._write(Changes({layout.generation_key(generation): about}), sync=False)
        return generation

    def seal(self, generation: int, ids: Iterable[int]) -> None:
        """Make pages permanent. They are on disk when this returns."""
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
        """Roll one page back, sealed or not. The record that an unsealed one replaced comes back."""
        changes = Changes()
        gone = self._withdraw(layout.journal_key(generation, id), changes)
        self._commit(changes)
        self.pages -= gone

    def unsealed(self, generation: int) -> Iterator[int]:
        """Yield the unsealed pages of a crawl."""
        return (layout.last_id(journal) for journal, _ in self._scan(layout.journal_prefix(generation)))

    def end(self, generation: int) -> int:
        """End a crawl; return how many pages stay unsealed."""
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
        """Take over an abandoned crawl; False if it is alive."""
        return True

    def _all_unsealed(self, left: Iterable[int]) -> Iterator[bytes]:
        """Yield the journal of all crawls, newest page first: the later version of a URL names the earlier one.

        ``left``: abandoned crawls. Their pages may be millions, so they are not collected.
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
