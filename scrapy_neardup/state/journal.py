"""The journal: which pages are unsealed, and how they are sealed or rolled back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import islice
from pathlib import Path
from urllib.parse import quote, unquote

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Changes, KeyValueStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.expiry import Expiry
from scrapy_neardup.state.records import PageRows

# The dupefilter of a resumed job suppresses the URLs of rolled-back pages, although their items were lost. So these
# URLs are listed in the directory of the job, for the user to request them. They are written before the pages are
# rolled back: after a kill in between they are listed twice, not never.

#: The list in the directory of a job.
LIST = "neardup-taken-back.txt"
#: URLs to name in a message.
_FEW = 3
#: Spaces and control characters, which a line must not have.
_NOT_IN_A_LINE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")


def add_to_list(directory: str, urls: Iterable[str]) -> None:
    """Append URLs, and wait for the disk. A job without its directory needs no list.

    Raises StoreError; then nothing may be rolled back.
    """
    path = Path(directory, LIST)
    try:
        if not path.parent.is_dir():
            return
        with path.open("a", encoding="utf-8", errors="surrogatepass") as file:
            if file.tell():  # a full disk may have cut the last line
                file.write("\n")
            file.writelines(f"{_escape(url)}\n" for url in urls)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(
            f"The rolled-back URLs cannot be written to {path} ({error.strerror or error}), but a resumed crawl needs "
            "them there. Make that directory writable, or remove it to start the job again."
        ) from error


def prune_list(directory: str, is_known: Callable[[str], bool]) -> tuple[int, list[str]]:
    """Remove known URLs from the list; return how many are left, and the first few. An empty list goes.

    Only what is left is held in memory. The page of an escaped URL may come again under either form. Raises
    NearDupError.
    """
    path = Path(directory, LIST)
    if not path.is_file():
        return 0, []
    with path.open(encoding="utf-8", errors="surrogatepass", newline="\n") as lines:
        urls = filter(None, map(str.strip, lines))
        left = list(dict.fromkeys(url for url in urls if not any(map(is_known, {url, unquote(url)}))))
    if left:
        with replace_file(path) as draft:
            draft.write_text("".join(f"{url}\n" for url in left), "utf-8", "surrogatepass")
    else:
        path.unlink(missing_ok=True)
    return len(left), left[:_FEW]


def _escape(url: str) -> str:
    return _NOT_IN_A_LINE.sub(lambda found: quote(found[0]), url)


@dataclass(frozen=True, slots=True)
class UnsealedPages:
    """A number of unsealed pages, and their crawls."""

    pages: int = 0
    crawls: tuple[str, ...] = ()

    def describe_rollback(self) -> str:
        """Say for a log that the opening rolled them back."""
        return (
            f"{self.pages} pages are rolled back in the state, because their crawl "
            f"({', '.join(self.crawls) or 'unknown'}) was killed or its feed was not stored. They are judged again "
            "when they come again."
        )


class Journal:
    """The crawls that write to a state. Each is a generation; the journal lists its unsealed pages, a row each."""

    #: Pages to seal, forget or roll back at once. A shared state has smaller batches.
    batch = 1000

    def __init__(self, rows: PageRows, expiry: Expiry) -> None:
        #: Crawls of this process that may have unsealed pages; in a snapshot also its other crawls.
        self.running: set[int] = set()
        self._rows = rows
        self._kv = rows.kv
        self._expiry = expiry

    def begin(self, who: str, job: str = "") -> int:
        """Begin a crawl; ``who`` names it in messages.

        ``job``: the directory from which it can be resumed, where URLs of rolled-back pages are listed.
        """
        generation = self._rows.clock.new_id()
        self.running.add(generation)
        about = json.dumps({"who": who, "job": job}, ensure_ascii=False).encode()
        self._kv.write(Changes({layout.generation_key(generation): about}), sync=False)
        return generation

    def seal(self, generation: int, ids: Iterable[int]) -> None:
        """Make pages permanent. They are on disk when this returns."""
        ids = iter(ids)
        while some := list(islice(ids, self.batch)):
            self._kv.run(partial(self._seal, generation, some))

    def _seal(self, generation: int, ids: Sequence[int]) -> None:
        changes, gone = Changes(), 0
        for id in ids:
            replaced = self._strike(id, changes, [generation])
            # On a server another crawl may just have rolled the page back. This delete then makes the write depend on
            # the lease of the crawl, and so fail.
            changes.delete(layout.journal_key(generation, id))
            gone += self.supersede(replaced, changes)
            self._expiry.requeue(id, changes)
        self._rows.apply(changes, sync=True, added=-gone)

    def supersede(self, id: int, changes: Changes) -> int:
        """Remove a replaced page. If it is unsealed, remove the page that it replaces too. Return how many went.

        Example: v2 is unsealed and replaces v1; now v3, which replaces v2, is sealed. v2 and v1 go in one batch. If
        that stopped after v2, nothing would name v1, and it would stay in the state beside v3.
        """
        gone = 0
        while id:
            gone += self._rows.erase(id, changes)
            id = self._strike(id, changes, self._running())
        return gone

    def _running(self) -> Iterable[int]:
        """Return the crawls that may have unsealed pages. A shared state overrides this."""
        return self.running

    def _strike(self, id: int, changes: Changes, generations: Iterable[int]) -> int:
        """Remove a page from the journal; return the page that it replaces, or 0."""
        for generation in generations:
            key = layout.journal_key(generation, id)
            if key not in changes.deletes and (replaced := self._kv.get(key)) is not None:
                changes.delete(key)
                return layout.last_id(replaced)
        return 0

    def roll_back(self, generation: int, id: int) -> None:
        """Roll one page back, sealed or not. The record that an unsealed one replaced comes back."""
        self._kv.run(lambda: self._roll_back_all([layout.journal_key(generation, id)], sync=None))

    def _roll_back_all(self, journal_keys: Iterable[bytes], *, sync: bool | None = True) -> None:
        """Roll pages back in one batch. ``sync``: as for ``PageRows.apply``."""
        changes = Changes()
        gone = sum(self._roll_back(key, changes) for key in journal_keys)
        self._rows.apply(changes, sync=sync, added=-gone)

    def _roll_back(self, journal_key: bytes, changes: Changes) -> int:
        rows, id = self._rows, layout.last_id(journal_key)
        packed = changes.puts.get(journal_key) or self._kv.get(journal_key)  # another page of the batch may change it
        replaced = layout.last_id(packed or b"")  # 0: none
        record = rows.kept(id, changes)
        changes.delete(journal_key)
        if record is None:
            return 0
        url = rows.url_key(record.url)
        newest = rows.is_page_of(url, id, changes)
        gone = rows.erase(id, changes)
        if newest and replaced:
            changes.put(url, layout.pack_seen(replaced, rows.clock.now()))
            self._expiry.requeue(replaced, changes)
        elif not newest:  # this is v2: if an unsealed v3 replaces it, v3 replaces v1 from now on
            for later, found in self._kv.scan(layout.UNSEALED):
                later_replaces = changes.puts.get(later, found)  # another page of the batch may have changed it
                if layout.last_id(later_replaces) == id and later not in changes.deletes:
                    self._kv.get(later)  # so that the write fails if another crawl of a server just seals v3
                    changes.put(later, layout.pack_id(replaced))
        return gone

    def unsealed(self, generation: int) -> Iterator[int]:
        return (layout.last_id(key) for key, _ in self._kv.scan(layout.journal_prefix(generation)))

    def is_unsealed(self, id: int) -> bool:
        """Whether a page of a running crawl is unsealed."""
        # Generations and ids come from one clock, so a page has a larger number than its crawl.
        running = (generation for generation in self.running if generation < id)
        return any(self._kv.get(layout.journal_key(generation, id)) is not None for generation in running)

    def end(self, generation: int) -> int:
        """End a crawl if all its pages are sealed; return how many are not.

        With unsealed pages it does not end: the next opening rolls them back and ends it.
        """
        unsealed = sum(1 for _ in self.unsealed(generation))
        if not unsealed:
            self.running.discard(generation)
            self._kv.write(Changes(deletes={layout.generation_key(generation)}), sync=True)
        return unsealed

    # Abandoned crawls.

    def roll_back_crawls(self, crawls: Mapping[int, tuple[str, str]], *, lists: bool = True) -> UnsealedPages:
        """Roll back the unsealed pages of abandoned crawls, and list their URLs in the directories of their jobs."""
        crawls = {crawl: about for crawl, about in crawls.items() if self.take_over(crawl)}
        jobs = {crawl: job for crawl, (_, job) in crawls.items() if lists}
        pages, unsealed = 0, self._all_unsealed(crawls)
        while some := list(islice(unsealed, self.batch)):
            self._list_for_jobs(some, jobs)
            self._kv.run(partial(self._roll_back_all, some))
            pages += len(some)
        if crawls:
            self._kv.write(Changes(deletes={layout.generation_key(crawl) for crawl in crawls}), sync=True)
        return UnsealedPages(pages, tuple(who for who, _ in crawls.values()))

    def take_over(self, generation: int) -> bool:
        """Take over an abandoned crawl; False if it is alive. Here all are abandoned: no other process can run.

        A shared state overrides this.
        """
        return True

    def _generations(self, abandoned: Iterable[int]) -> Iterable[int]:
        """Return the crawls with unsealed pages to roll back. Here all: no other process can run.

        A shared state overrides this.
        """
        return {layout.generation_of(key) for key, _ in self._kv.scan(layout.UNSEALED)}

    def _all_unsealed(self, abandoned: Iterable[int]) -> Iterator[bytes]:
        """Yield the journal keys of abandoned crawls, newest page first, as a later version names an earlier one.

        Their pages may be millions, so they are not collected.
        """
        scans = (self._kv.scan(layout.journal_prefix(one), reverse=True) for one in self._generations(abandoned))
        return (key for key, _ in merge(*scans, key=lambda row: layout.last_id(row[0]), reverse=True))

    def _list_for_jobs(self, journal_keys: Iterable[bytes], jobs: Mapping[int, str]) -> None:
        urls: dict[str, list[str]] = {}
        for key in journal_keys:
            job = jobs.get(layout.generation_of(key), "")
            if job and (record := self._rows.record(layout.last_id(key))) is not None:
                urls.setdefault(job, []).append(record.url)
        for job, listed in urls.items():
            add_to_list(job, listed)


def crawls_in(kv: KeyValueStore) -> dict[int, tuple[str, str]]:
    """Return name and job of each crawl that has a generation. Raises StoreDamaged."""
    try:
        known = {layout.last_id(key): json.loads(about) for key, about in kv.scan(layout.GENERATIONS)}
        return {crawl: (str(about["who"]), str(about.get("job", ""))) for crawl, about in known.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise kv.damage_error("the row of a crawl cannot be read") from None
