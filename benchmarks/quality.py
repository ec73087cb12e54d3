"""Verdicts on a labelled corpus, streamed in order: title and text only, state in memory.

    python benchmarks/quality.py DOCS.jsonl[.xz|.gz] VERDICTS.jsonl [PARAMETERS]

DOCS holds one object a line (id, title, text); VERDICTS gets {"id", "original", "kind", "similarity"} a line.
PARAMETERS is JSON, the fields of the method's parameters.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
import time
from collections import Counter
from pathlib import Path

from scrapy_neardup.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.stores import open_store

_OPEN = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    parameters = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    store = open_store("memory:", {})
    detector = Detector(make_method("cascade", parameters), store, min_letters=40, who="benchmark")
    kinds: Counter[str] = Counter()
    begun = time.process_time()
    with _OPEN.get(source.suffix, open)(source, "rt", encoding="utf-8") as lines, target.open("w") as out:
        for line in lines:
            document = json.loads(line)
            # The id stands for the URL, so that no page is another version of an earlier one.
            ruling = detector.check(Page(document["id"], document.get("title") or "", text=document["text"]))
            verdict = ruling.verdict
            assert verdict is not None
            if ruling.reservation is not None:
                detector.commit(ruling.reservation, sealed=True)
            match = verdict.match
            answer = {
                "id": document["id"],
                "original": match.url if match else None,
                "kind": verdict.kind.value,
                "similarity": match and round(match.similarity, 3),
            }
            out.write(json.dumps(answer) + "\n")
            kinds[verdict.kind.value] += 1
    milliseconds = (time.process_time() - begun) / sum(kinds.values()) * 1e3
    print(f"{dict(kinds)}, {milliseconds:.2f} ms a document")


if __name__ == "__main__":
    main()
