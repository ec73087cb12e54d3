"""What was said of pages by hand is taken back."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from scrapy_neardup.commands.output import write
from scrapy_neardup.commands.wording import as_json, counted, line
from scrapy_neardup.judging.judgements import judgement_of, remove_judgements
from scrapy_neardup.stores import Store


def take_back(store: Store, urls: Iterable[str], *, as_data: bool) -> int:
    """Remove the judgements on these pages; 1 if there is none on one of them."""
    found = {url: judgement_of(store, url) for url in urls}
    judged = [url for url, said in found.items() if said is not None]
    others = [url for url, said in found.items() if said is None]
    if judged:
        remove_judgements(store, *judged)
    for url in others:
        sys.stderr.write(f"{line(url)}\n  has no manual verdict; see: scrapy neardup judgements\n")
    if as_data:
        write(as_json({"removed": judged, "missing": others}) + "\n")
    else:
        write(f"{counted(len(judged), 'manual verdict')} removed.\n")
    return 1 if others else 0
