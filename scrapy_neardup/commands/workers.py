"""The processes of ``dedup``: those that read pages of HTML ahead, and those that fingerprint texts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext

from scrapy_neardup.config import AUTO, Config
from scrapy_neardup.judging.preparer import Preparing
from scrapy_neardup.judging.reader import Readers
from scrapy_neardup.page.cores import workers_by_machine
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.stores import Store

#: Seconds after which a thread that has an answer for a process, or from it, is let in while this one judges. With
#: Python's own five milliseconds, a process would wait for its next texts as long as it takes for them.
_SWITCH = 0.0005


@contextmanager
def reading(store: Store, config: Config) -> Iterator[Readers | None]:
    """What reads pages ahead; None where they are read one after the other."""
    pool = config.make_readers(None if store.is_shared else store.hashes)
    with closing(pool) if pool is not None else nullcontext():
        yield pool


@contextmanager
def preparing(store: Store, config: Config) -> Iterator[Preparing | None]:
    """What fingerprints texts ahead; None where they are fingerprinted one after the other."""
    many = text_workers(workers_by_machine()) if config.workers == AUTO else int(config.workers)
    terms = config.text_terms(store.hashes)
    if not many or store.is_shared or not terms.can_be_sent:
        yield None
        return
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        with closing(Pool(terms, many, "neardup-text")) as pool:
            yield Preparing(pool)
    finally:
        sys.setswitchinterval(before)


def text_workers(many: int) -> int:
    """How many processes fingerprint texts where so many would read HTML, and nobody has said it.

    It and this one are to have a core each. More would wait, as judging is the slower part.

    >>> [text_workers(many) for many in range(5)]
    [0, 0, 1, 1, 1]
    """
    return min(many // 2, 1)
