"""Bytes of state per page on disk, for pages of which none is a copy.

python benchmarks/state_size.py [PAGES]
"""

from __future__ import annotations

import resource
import sys
import tempfile

from synthetic import pages

from scrapy_neardup.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.stores import LevelDBStore, SQLiteStore, Store


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as directory:
        for kind, name in ((LevelDBStore, "leveldb"), (SQLiteStore, "sqlite"))[
            : int(sys.argv[2]) if len(sys.argv) > 2 else 2
        ]:
            store: Store = kind(f"{directory}/{name}", {})
            detector = Detector(make_method("cascade", {}), store, min_letters=40, who="benchmark")
            copies, unsealed = 0, []
            for page in pages(count):
                ruling = detector.check(page)
                if ruling.reservation is None:
                    copies += 1
                    continue
                detector.commit(ruling.reservation, sealed=False)
                unsealed.append(ruling.reservation.record.id)
            detector.seal(unsealed)
            detector.end()
            if isinstance(store, LevelDBStore):
                store.compact()
            size = store.size()
            print(
                f"{name}: {size / store.pages:.0f} bytes a page ({store.pages} pages, {copies} taken for copies)",
                flush=True,
            )
            store.close()
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
