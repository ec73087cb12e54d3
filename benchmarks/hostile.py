"""Time and memory of pages that were written to hold up a crawl, from the response to the verdict.

    python benchmarks/hostile.py [WORDS ...] [--in SIZE] [--cpu]

Judges each kind of ``hostile_pages`` in three sizes, with the default method and an empty state in memory: 5 MB and
99,000 tags; the largest page that the crawl's own process reads (``scrapy_neardup.page.limits``); the largest page
whose text is judged in full. WORDS choose kinds by their names. Memory: what the crawl's process and its worker gain,
measured every ten milliseconds. ``--cpu`` measures seconds of processor in both processes, for a busy machine. The
exit code is 1 if a page takes more than 2.2 seconds or 200 MB.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread

sys.path.insert(0, str(Path(__file__).parent))
from hostile_pages import ITEMS, KINDS, Room, kinds

from scrapy_neardup.errors import PageError
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.page.extraction import Answer, PageContent
from scrapy_neardup.page.source import PageResponse, PageSource
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import memory_state

ROOMS = {
    "5 MB": Room(5_000_000, 99_000),
    "inline": Room(690_000, 6_900, chars_count=True),
    "judged": Room(390_000, 6_900, chars_count=True),
}
#: Kinds that are measured in one process.
TOGETHER = 12
SECONDS, MEGABYTES = 2.0, 200.0
URL = "http://river.example/news/page.html"


@dataclass(frozen=True)
class Figures:
    """The cost of one page; ``held``: seconds that the crawl's own process was busy."""

    kind: str
    room: str
    size: int
    packed: int
    seconds: float
    held: float
    megabytes: float
    verdict: str

    @property
    def is_too_much(self) -> bool:
        return self.seconds > 1.1 * SECONDS or self.megabytes > MEGABYTES

    @property
    def share(self) -> float:
        """The larger share of the two limits that it uses."""
        return max(self.seconds / SECONDS, self.megabytes / MEGABYTES)

    def line(self) -> str:
        return (
            f"{self.kind:45} {self.room:7} {self.size:10,} {self.packed:10,} {self.seconds:7.2f} {self.held:7.2f} "
            f"{self.megabytes:6.0f}  {self.verdict}"
        )


HEAD = f"{'kind':45} {'room':7} {'bytes':>10} {'gzipped':>10} {'seconds':>7} {'held up':>7} {'MB':>6}  verdict"


class Bench:
    """Judges pages as a crawl does."""

    def __init__(self) -> None:
        config = Config()
        pool = config.make_risky_pool()
        assert pool is not None
        self.pool = pool
        store = memory_state({})
        self.detector = Detector(
            config.make_method(), store, who="benchmark", policy=Policy(min_letters=config.min_letters)
        )
        self.waited = 0.0
        self.source = PageSource(config.fields, config.make_reader(), read_risky=self._read)

    def _read(self, raw: PageContent) -> Answer:
        begun = time.perf_counter()
        try:
            return self.pool.read(raw)
        finally:
            self.waited += time.perf_counter() - begun

    def warm_up(self) -> None:
        """Load dictionaries, and start the worker: no page pays for that."""
        text = "Of the 23 boats of the harbour, none of which had been painted, eleven went out again."
        page = PageResponse("http://sea.example/", ("<p>" * 9_000 + text).encode())
        while not self.pool.process_ids:  # on a busy machine the start may take too long
            with suppress(PageError):
                self.source.page({}, page, "http://sea.example/")
        self.verdict({"text": text}, None, "http://sea.example/")
        self.waited = 0.0

    def verdict(self, item: Mapping[str, object], served: PageResponse | None, url: str = URL) -> str:
        try:
            ruling = self.detector.check(self.source.page(item, served, url))
        except PageError as error:
            return f"unjudged ({error.reason})"
        return ruling.verdict.headline if isinstance(ruling, Ruled) else "blocked"


def measured(kind: str, room: str, *, cpu: bool) -> Figures:
    """Judge one page, in this process."""
    served, item, plain = None, {}, b""
    if kind in KINDS:
        made = KINDS[kind](ROOMS[room])
        plain = made if isinstance(made, bytes) else made.encode("utf-8", "replace")
        served = PageResponse(URL, plain)
    else:
        item = dict(ITEMS[kind](ROOMS[room]))
        plain = json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")
    packed, size = len(gzip.compress(plain, 6)), len(plain)
    made, plain = "", b""
    bench = Bench()
    with closing(bench.pool):
        bench.warm_up()
        gc.collect()
        with Use((os.getpid(), *bench.pool.process_ids)) as use:
            begun, own = time.perf_counter(), time.process_time()
            verdict = bench.verdict(item, served)
            seconds, own = time.perf_counter() - begun, time.process_time() - own
    held = own if cpu else seconds - bench.waited
    if cpu:
        seconds = own + use.seconds
    return Figures(kind, room, size, packed, seconds, held, use.most / 1e6, verdict)


class Use:
    """Measures how much memory processes gain: ``most`` adds up the peak of each.

    ``seconds``: processor time of the last of them.
    """

    def __init__(self, processes: Sequence[int]) -> None:
        self._processes = processes
        self._before: dict[int, int] = {}
        self._peaks: dict[int, int] = {}
        self._ticks: list[int] = []
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Use:
        for process in self._processes:
            Path(f"/proc/{process}/clear_refs").write_text("5", "ascii")  # the peak begins with the present memory
        self._note()
        self._before = dict(self._peaks)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._note()

    @property
    def most(self) -> int:
        return sum(self._peaks.values()) - sum(self._before.values())

    @property
    def seconds(self) -> float:
        return (self._ticks[-1] - self._ticks[0]) / os.sysconf("SC_CLK_TCK")

    def _look(self) -> None:
        while not self._over.wait(0.01):
            self._note()

    def _note(self) -> None:
        for process in self._processes:
            with suppress(OSError, StopIteration):  # it was ended
                lines = Path(f"/proc/{process}/status").read_text("ascii", "replace").splitlines()
                times = Path(f"/proc/{process}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
                if process == self._processes[-1]:
                    self._ticks.append(int(times[11]) + int(times[12]))
                self._peaks[process] = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORDS", help="only kinds that hold one of these")
    parser.add_argument("--in", dest="room", choices=ROOMS, help="only in this size")
    parser.add_argument("--cpu", action="store_true", help="count the time of processors")
    parser.add_argument("--raw", nargs="+", metavar="KIND", help="these kinds in this process, as JSON lines")
    given = parser.parse_args(arguments)
    if given.raw:
        for kind in given.raw:
            print(json.dumps(asdict(measured(kind, given.room, cpu=given.cpu))), flush=True)
        return 0
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores")
    print(HEAD)
    found: list[Figures] = []
    chosen = [kind for kind in kinds() if not given.words or any(word in kind for word in given.words)]
    for some in (chosen[start : start + TOGETHER] for start in range(0, len(chosen), TOGETHER)):
        for room in [given.room] if given.room else ROOMS:
            command = [sys.executable, __file__, "--in", room, *["--cpu"] * given.cpu, "--raw", *some]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
                assert run.stdout is not None
                for line in run.stdout:
                    found.append(Figures(**json.loads(line)))
                    print(found[-1].line(), flush=True)
            if run.returncode:
                print(f"ended with {run.returncode} behind the last of these")
                return 1
    worst = sorted(found, key=lambda one: -one.share)
    print("\nthe worst:", HEAD, *(one.line() for one in worst[:12]), sep="\n")
    too_much = [one for one in found if one.is_too_much]
    print(f"\n{len(found)} pages, {len(too_much)} of them too much")
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
