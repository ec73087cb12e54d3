"""What it costs that damage is noticed: pages filed a second, and seconds to open a state, closed or left by a kill.

python benchmarks/state_safety.py [PAGES [ROUNDS]] [--beside CHECKOUT]

``CHECKOUT``: another version of the package, measured in turn with this one, so that both meet the same other work.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

#: Keys and bytes of the sketch of a page, about as many as those of ``cascade``.
KEYS, SKETCH = 8, 256


def measure(kind: str, pages: int) -> dict[str, float]:
    """One round; its figures by name."""
    from scrapy_neardup.state.opening import STORES
    from scrapy_neardup.state.record import Record

    random.seed(kind)
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/state.{kind}"
        child = os.fork()
        if not child:
            store = open_state(STORES[kind], place, {})
            keys = [[random.getrandbits(64) for _ in range(KEYS)] for _ in range(pages)]
            sketch = random.randbytes(SKETCH)
            began, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
            for n in range(pages):
                id = store.new_id()
                store.add(Record(id, f"https://news.example.cn/2024/05/{n}.html", id, 1.0, tuple(keys[n]), sketch))
            took, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
            cpu_took = used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime
            Path(folder, "told").write_text(json.dumps([took, cpu_took]))
            os._exit(0)  # as good as a kill: nothing is closed
        os.waitpid(child, 0)
        took, cpu_took = json.loads(Path(folder, "told").read_text())
        found["pages filed a second"] = pages / took
        found["CPU microseconds a page"] = 1e6 * cpu_took / pages
        for name in ("open after a kill, s", "open after a close, s"):
            began = time.perf_counter()
            store = open_state(STORES[kind], place, {})
            found[name] = time.perf_counter() - began
            began = time.perf_counter()
            store.close()
            found["close, s"] = time.perf_counter() - began
    return found


def main() -> None:
    """Measure in processes of their own, in turn, and print medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="?", type=int, default=20_000)
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    parser.add_argument("--beside", metavar="CHECKOUT")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.pages)))
        return
    here = str(Path(__file__).parent.parent)
    for kind in ("leveldb", "sqlite"):
        found: dict[str, list[dict[str, float]]] = {where: [] for where in (here, arguments.beside) if where}
        for _ in range(arguments.rounds):
            for where, rounds in found.items():
                script = [sys.executable, __file__, str(arguments.pages), "--one", kind]
                done = subprocess.run(script, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": where})
                rounds.append(json.loads(done.stdout))
        for name in found[here][0]:
            ours, *others = [median(one[name] for one in rounds) for rounds in found.values()]
            beside = "".join(f"; beside {other:.4g}, ratio {ours / other:.2f}" for other in others)
            print(f"{kind}: {name}: {ours:.4g}{beside}", flush=True)


if __name__ == "__main__":
    main()
