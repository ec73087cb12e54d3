"""The power is cut while a state is written: what was synced is there, what was not may be lost, and none is damage.

The state lies on a file system in a file. That file is copied while the writer runs: what the inner file system has not
written down by then is not in the copy, as after a power cut. Only root may mount, and it takes minutes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from scrapy_neardup.kv import tally
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.urls import STORES
from tests.build import record as page
from tests.kv.damages import RECIPE

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

_WRITING = """
import sys, time
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.urls import STORES
from tests.build import record as page
from tests.kv.damages import RECIPE

store = open_at(STORES[sys.argv[1]], sys.argv[2], RECIPE)
generation = store.journal.begin("a crawl")
for n in range(10**9):
    store.add(page(n), generation=0 if n % 3 else generation)
    if n % 150 == 0:
        store.journal.seal(generation, [page(m).id for m in range(max(0, n - 149), n + 1) if not m % 3])
        print("sealed", n, time.time(), flush=True)
    else:
        print("added", n, time.time(), flush=True)
    time.sleep(0.0005)
"""


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(at)], capture_output=True).returncode:
        pytest.skip("only root may mount a file system in a file")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


@pytest.mark.parametrize("seconds", [0.3, 2.5, 7.1])
@pytest.mark.parametrize("kind", ["leveldb", "sqlite"])
def test_what_was_synced_before_a_power_cut_is_there_and_none_of_it_is_called_damage(
    kind: str, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, cut = tmp_path / "disk", tmp_path / "cut"
    with image.open("wb") as file:
        file.truncate(200 * 2**20)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mkfs.ext4")
    with mounted(image, tmp_path / "here") as here:
        script = [sys.executable, "-c", _WRITING, kind, str(here / "state")]
        told = tmp_path / "told"
        with told.open("w") as out, subprocess.Popen(script, stdout=out) as child:
            while not told.stat().st_size:
                time.sleep(0.01)
            time.sleep(seconds)
            done = [line.split() for line in told.read_text().splitlines()[:-1]]
            began = time.time()
            subprocess.run(["cp", "--sparse=always", str(image), str(cut)], check=True)
            child.kill()
    monkeypatch.setattr(tally, "boot", lambda: b"the next boot")
    with (
        mounted(cut, tmp_path / "there") as there,
        closing(open_at(STORES[kind], str(there / "state"), RECIPE)) as store,
    ):
        assert check(store).sound
        sealed = max(int(n) for what, n, _ in done if what == "sealed")
        synced = [int(n) for _, n, when in done if float(when) < began - 1.5]
        for n in range(max([sealed + 1, *(n + 1 for n in synced)])):
            # Of those that are not sealed each third one was rolled back.
            assert store.find(page(n).url) == (None if n > sealed and not n % 3 else page(n)), n
        lost = len(done) - store.pages - store.rolled_back.pages
        print(f"{kind}: of {len(done)} pages {max(0, lost)} are lost, none that was sealed")  # noqa: T201
