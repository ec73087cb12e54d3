"""Methods held against exact similarity: the figures of the page on accuracy.

    python benchmarks/similarity.py CORPUS ... [--method NAME[:PARAMETER=VALUE,...] ...]

A corpus is a folder with docs.jsonl (plain or compressed) and pairs.jsonl. The latter has every pair with a Jaccard
similarity of 0.5 or a containment of 0.8 on character 5-grams of letters and digits: {"a": id, "b": id, "jaccard": …,
"containment": …}.
``account_same`` says whether one account wrote both, ``jaccard_clean`` is the similarity without boilerplate, ``left``
the letters that remain then.

The most similar earlier document decides the class of a document: copy (Jaccard 0.8: must be dropped), new (below 0.5
and a containment of 0.8: must be kept), repost (0.6 with an article of another account: should be dropped), notice
(below 0.75, only with articles of the same account: should be kept). Others, and short ones, are not scored.
Similarity is not the truth: a copy may be another notice in the same form.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from scrapy_neardup.cli.measure import parse_method
from scrapy_neardup.cli.output import format_table
from scrapy_neardup.inspect.evaluation import open_empty_store, replay
from scrapy_neardup.inspect.sources import read_documents
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Page
from scrapy_neardup.settings import Config
from scrapy_neardup.text.characters import HAN_CHARACTER
from scrapy_neardup.text.normalize import letters, normalize

COPY, NEW, REPOST, NOTICE = CLASSES = ("copy", "new", "repost", "notice")
#: The columns: copies that were kept, others that were dropped.
COLUMNS = ("missed", "wrong", "reposts", "notices")
#: Letters besides boilerplate that a pair needs.
_LETTERS_LEFT = 30
_WORD = re.compile(r"\w+")


def classify(documents: list[Page], pairs: list[dict[str, Any]]) -> dict[str, str]:
    """Return the class of each document that is scored."""
    order = {page.url: at for at, page in enumerate(documents)}
    earlier: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for pair in pairs:
        if pair["jaccard"] >= 0.5 or pair["containment"] >= 0.8:
            earlier[max(pair["a"], pair["b"], key=order.__getitem__)].append(pair)
    first = [page.text for page in documents[:100]]
    is_chinese = sum(bool(HAN_CHARACTER.search(text)) for text in first) > len(first) / 2
    has_accounts = any("account_same" in pair for pair in pairs)
    found = {}
    for page in documents:
        own = earlier[page.url]
        if is_short(page.text, is_chinese=is_chinese) or any(_left(pair) < _LETTERS_LEFT for pair in own):
            continue
        if not own:
            found[page.url] = NEW
            continue
        best = max(map(_similarity, own))
        if best >= 0.8:
            found[page.url] = COPY
        elif any(_similarity(pair) >= 0.6 and pair.get("account_same") is False for pair in own):
            found[page.url] = REPOST
        elif has_accounts and best < 0.75 and all(pair.get("account_same") for pair in own):
            found[page.url] = NOTICE
    return found


def _similarity(pair: dict[str, Any]) -> float:
    clean = pair.get("jaccard_clean")
    return float(pair["jaccard"] if clean is None else clean)


def _left(pair: dict[str, Any]) -> float:
    left = pair.get("left")
    return _LETTERS_LEFT if left is None else float(left)


def is_short(text: str, *, is_chinese: bool) -> bool:
    """Whether a text is too short for similarities."""
    normalized = normalize(text)
    if is_chinese:
        return len(letters(normalized)) < 60
    words = _WORD.findall(normalized)
    return len(set(zip(words, words[1:], words[2:], strict=False))) < 20


def main() -> None:
    """Read the command line, and print a table for each corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--method", action="append", help="one of the methods, or all; may be repeated")
    options = parser.parse_args()
    names = [one for name in options.method or ["cascade"] for one in (METHODS if name == "all" else [name])]
    for place in options.corpora:
        with Config().open_source(hashes_items=False) as source:
            documents = list(read_documents(str(next(place.glob("docs.jsonl*"))), source, Counter()))
        pairs = [json.loads(line) for line in (place / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
        classes = classify(documents, pairs)
        sizes, rows = Counter(classes.values()), []
        for name in names:
            method = make_method(*parse_method(name))
            dropped: Counter[str] = Counter()
            with open_empty_store(method) as store:
                for page, verdict in replay(documents, method, store):
                    dropped[classes.get(page.url, "")] += verdict.is_copy
                size = store.kv.size() / len(documents)
            others = [dropped[one] for one in CLASSES[1:]]
            rows.append([name, sizes[COPY] - dropped[COPY], *others, f"{size:.0f}"])
        of = [f"{what} of {sizes[one]:,}" for what, one in zip(COLUMNS, CLASSES, strict=True)]
        print(f"{place.name}, {len(documents):,} documents\n\n{format_table(['method', *of, 'bytes a page'], rows)}\n")


if __name__ == "__main__":
    main()
