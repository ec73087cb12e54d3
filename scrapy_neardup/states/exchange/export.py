"""A state becomes a file."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import IO, Any

from scrapy_neardup.states.exchange.filed import to_data, to_line
from scrapy_neardup.states.exchange.judged import judgement_to
from scrapy_neardup.states.exchange.sources import VERSIONS, OpenState, Watch
from scrapy_neardup.stores import Store


def write_export(store: Store, stream: IO[bytes], watch: Watch = iter) -> int:
    """Write a state, or what is looked at of one; returns the number of pages. Memory does not grow with it.

    Pages that are not sealed are left out: whoever takes the file would know them for good.
    """
    state, pages, digest = OpenState(store), 0, sha256()
    # Neither a name nor a time stands in the head: the same state makes the same bytes.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=stream, mtime=0) as packed:

        def put(data: Mapping[str, Any]) -> None:
            line = to_line(data)
            digest.update(line)
            packed.write(line)

        own = {"secret": state.secret.value.hex()} if state.secret and state.secret.is_own else {}
        version = next(form for form, width in VERSIONS.items() if width == state.width)
        put({"scrapy-neardup": "state", "version": version, "recipe": state.recipe, **own})
        for filed in watch(state.pages()):
            put(to_data(filed))
            pages += 1
        for block, counts in store.counted().items():
            put({"block": block, "counts": b64encode(counts).decode()})
        for one in sorted(state.judgements, key=lambda one: (one.when, one.url)):
            put(judgement_to(one))
        packed.write(to_line({"pages": pages, "sha256": digest.hexdigest()}))
    return pages
