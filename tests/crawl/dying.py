"""A small crawl that dies at its n-th step, for each n, and the crawls after it; what came of each, as JSON.

    python -m tests.crawl.dying leveldb|sqlite FOLDER [again]

A step is the moment before and the moment after whatever changes something outside of the process: each write of the
state, each time that a file is opened, synced, renamed, removed or closed, each item that goes into a feed, each feed
that is stored. Dying is ``os._exit``: nothing is flushed, nobody is told, as with kill -9. With ``again`` it is the
second crawl that dies, at its opening, when it takes back what the first one left. The moment after one act and that
before the next are one to the world, so it dies at one of the two; and of each act at the first, the middle and the
last one.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from scrapy.exceptions import DropItem
from scrapy.exporters import JsonLinesItemExporter
from scrapy.extensions.feedexport import FileFeedStorage

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.leveldb import LevelDB
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.opening import close_store, open_store
from tests.crawl.engineless import article, crawl

#: Whatever is done to the world outside.
ACTS: dict[Any, str] = {
    LevelDB: "write open close_files",
    SQLite: "write open close_files",
    Detector: "commit release seal",
    FileFeedStorage: "open store",
    JsonLinesItemExporter: "export_item",
    os: "fsync",
    Path: "replace unlink mkdir write_bytes",
}
NEWS = "更正：此前的报道有误，编辑部在核实之后补充了两段新的内容，并向读者致歉。"


class Steps:
    """Counts steps, and dies at one of them."""

    def __init__(self) -> None:
        self.count, self.dies_at, self.names = 0, 0, list[str]()
        for owner, names in ACTS.items():
            for name in names.split():
                setattr(owner, name, self.around(getattr(owner, name), f"{owner.__name__}.{name}"))

    def begin(self, dies_at: int) -> None:
        self.count, self.dies_at, self.names = 0, dies_at, []

    def around(self, act: Callable[..., Any], name: str) -> Callable[..., Any]:
        def acted(*args: Any, **more: Any) -> Any:
            self.step(f"before {name}")
            try:
                return act(*args, **more)
            finally:
                self.step(f"after {name}")

        return acted

    def step(self, name: str) -> None:
        self.count += 1
        self.names.append(name)
        if self.count == self.dies_at:
            os._exit(9)


def named(item: dict[str, Any], name: str) -> dict[str, Any]:
    return {**item, "name": name, "padding": "-" * 1700}


def items() -> list[dict[str, Any]]:
    new = [named(article(family), f"{family}") for family in range(1, 7)]
    copies = [named(article(family, 1), f"copy of {family}") for family in (2, 3, 4)]
    updated = article(0)
    return [named({**updated, "text": updated["text"] + NEWS}, "0, updated"), *new[:4], *copies, *new[4:]]


def later(item: dict[str, Any]) -> None:
    if item["name"] == "4":
        raise DropItem("not wanted")
    if item["name"] == "3":
        raise ValueError("could not be stored")


class Site:
    """One place with a state and feeds, and crawls of the same site one after the other."""

    def __init__(self, folder: Path, scheme: str) -> None:
        self.folder = folder
        self.store = f"{scheme}://{folder}/state"

    def crawl(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        feeds = {
            f"file://{self.folder}/batch-%(batch_id)d.jsonl": {"format": "jsonlines", "batch_item_count": 2},
            f"file://{self.folder}/whole.jsonl": {"format": "jsonlines"},
        }
        return crawl(found, later, FEEDS=feeds, NEARDUP_STORE=self.store)

    def delivered(self, pattern: str) -> Counter[str]:
        """How often each item is in these files; half a line is none."""
        found = Counter[str]()
        for file in self.folder.glob(pattern):
            for line in file.read_bytes().splitlines():
                with suppress(ValueError):
                    found[json.loads(line)["name"]] += 1
        return found

    def wrong(self) -> dict[str, int]:
        """What a check of the state finds."""
        store = open_store(self.store, None)
        try:
            return dict(check(store).counts)
        finally:
            close_store(store)

    def outcome(self) -> dict[str, Any]:
        """A crawl that nothing happens to, and what there is afterwards; another one, which has nothing to deliver."""
        stats = self.crawl(items())
        feeds = {pattern: self.delivered(pattern) for pattern in ("batch-*.jsonl", "whole.jsonl")}
        last = self.crawl(items())
        again = {pattern: self.delivered(pattern) for pattern in feeds}
        return {
            "feeds": feeds,
            "taken_back": stats.get("neardup/taken_back", 0),
            "nothing_new": again == feeds and not last.get("neardup/taken_back"),
            "wrong": self.wrong(),
        }


def in_child(work: Callable[[], Any], answer: Path) -> tuple[int, Any]:
    """What the work gives, done in a process of its own, and how that ended."""
    answer.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        try:
            with answer.open("w") as file:
                json.dump(work(), file)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, json.loads(answer.read_text()) if not code else None


def chosen(names: list[str]) -> list[tuple[int, str]]:
    """The steps at which it dies, counted from 1."""
    places = dict[str, list[int]]()
    for step, (name, following) in enumerate(zip(names, [*names[1:], ""], strict=True), start=1):
        if not (name.startswith("after") and following.startswith("before")):
            places.setdefault(name, []).append(step)
    return sorted(
        {(step, name) for name, steps in places.items() for step in (steps[0], steps[len(steps) // 2], steps[-1])}
    )


def main() -> None:
    scheme, folder, again = sys.argv[1], Path(sys.argv[2]), "again" in sys.argv
    logging.disable()
    crawl(items(), later, NEARDUP_STORE="memory:")  # so that all is imported and loaded
    steps, site = Steps(), Site(folder / "site", scheme)
    answer, before = folder / "answer.json", folder / "before"

    def dying(dies_at: int) -> list[str]:
        steps.begin(dies_at)
        site.crawl(items())
        return steps.names

    def start() -> None:
        shutil.rmtree(site.folder, ignore_errors=True)
        shutil.copytree(before, site.folder)

    site.folder.mkdir()
    in_child(lambda: site.crawl([named(article(family), f"{family}") for family in (0, 1, 9)]), answer)
    site.folder.rename(before)
    start()
    _, names = in_child(lambda: dying(0), answer)
    if again:  # where most pages are on their way, and nothing is stored
        start()
        in_child(lambda: dying(len(names) - names[::-1].index("before FileFeedStorage.store") - 1), answer)
        shutil.rmtree(before)
        site.folder.rename(before)
        start()
        _, names = in_child(lambda: dying(0), answer)
        names = names[: names.index("before JsonLinesItemExporter.export_item") + 1]
    start()
    _, reference = in_child(site.outcome, answer)
    runs = []
    for step, name in chosen(names):
        start()
        code, _ = in_child(lambda: dying(step), answer)  # noqa: B023 - it is called at once
        runs.append([name, code, *in_child(site.outcome, answer)])
    sys.stdout.write(json.dumps({"reference": reference, "runs": runs}))


if __name__ == "__main__":
    main()
