"""A small corpus with exact reference pairs: invented towns and trades, copied, edited and filled in anew."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from scrapy_neardup.lab.corpus import Corpus, read_corpus
from scrapy_neardup.lab.documents import Document, DocumentReader
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS

_ENGLISH = {
    "who": ["the baker", "a ferryman", "our mayor", "the choir", "a beekeeper", "the surveyor", "a glazier"],
    "did": ["repaired", "painted", "sold", "measured", "borrowed", "hid", "described", "auctioned"],
    "what": ["the old bridge", "a copper kettle", "seven lanterns", "the parish map", "a crate of plums"],
    "where": ["behind the mill", "in Oakhollow", "near the lock", "on the moor", "at the fair", "by the quarry"],
    "when": ["on Monday", "last winter", "before dawn", "after the flood", "during the strike", "in a dry summer"],
}
_SYLLABLES = ["bra", "ven", "tol", "mi", "kas", "er", "ond", "lu", "pet", "shaw", "ri", "gan"]
_CHINESE = {
    "when": ["星期一", "去年冬天", "天亮以前", "洪水过后", "赶集那天", "今年夏天", "傍晚时分"],
    "who": ["老木匠", "渡口的船夫", "镇上的裁缝", "养蜂人", "合唱队", "修表师傅", "两位姐妹", "邮递员"],
    "where": ["在磨坊后面", "在橡树谷", "在运河边", "在山坡上", "在牲口市场", "在采石场旁边"],
    "did": ["修好了", "卖掉了", "画下了", "丈量了", "借走了", "收藏了", "拍卖了"],
    "what": ["那座旧桥", "一把铜壶", "七盏灯笼", "老地图", "一箱李子", "风向标", "祖传的钟"],
}


@dataclass
class Made:
    """Documents and pairs as they are written to files; ``accounts`` by document id."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    accounts: dict[str, str] = field(default_factory=dict)

    def add(self, text: str, title: str = "", account: str = "") -> None:
        id = f"d{len(self.documents):02}"
        self.documents.append({"id": id, "title": title, "text": text})
        self.accounts[id] = account

    def pairs(self) -> list[dict[str, Any]]:
        """Every pair worth naming, by the exact sets of character 5-grams."""
        grams = {document["id"]: five_grams(document["text"]) for document in self.documents}
        found = []
        for a, b in combinations(grams, 2):
            shared = len(grams[a] & grams[b])
            least = min(len(grams[a]), len(grams[b]))
            pair = {"a": a, "b": b, "jaccard": shared / max(1, len(grams[a] | grams[b]))}
            pair["containment"] = shared / max(1, least)
            if pair["jaccard"] >= 0.5 or pair["containment"] >= 0.8:
                same = {"account_same": self.accounts[a] == self.accounts[b]} if any(self.accounts.values()) else {}
                found.append({**pair, **same})
        return found

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "docs.jsonl").write_text(lines(self.documents), encoding="utf-8")
        (folder / "pairs.jsonl").write_text(lines(self.pairs()), encoding="utf-8")
        return folder


def lines(objects: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)


def five_grams(text: str) -> set[str]:
    letters = "".join(char for char in text.casefold() if char.isalnum())
    return {letters[at : at + 5] for at in range(len(letters) - 4)}


def sentence(rng: random.Random, *, chinese: bool) -> str:
    if chinese:
        return "".join(rng.choice(words) for words in _CHINESE.values()) + f"，用了{rng.randint(100, 999)}块木板。"
    name = " ".join("".join(rng.choices(_SYLLABLES, k=3)).capitalize() for _ in range(3))
    return " ".join(rng.choice(words) for words in _ENGLISH.values()).capitalize() + f", as {name} recalls."


def article(seed: int, *, chinese: bool, sentences: int = 12) -> str:
    rng = random.Random(seed)
    return "\n".join(sentence(rng, chinese=chinese) for _ in range(sentences))


def edited(text: str, changed: int, *, chinese: bool) -> str:
    """The text with ``changed`` of its sentences replaced, spread evenly."""
    rng, parts = random.Random(f"{changed} {text[:40]}"), text.split("\n")
    for place in range(0, len(parts), max(1, len(parts) // changed))[:changed]:
        parts[place] = sentence(rng, chinese=chinese)
    return "\n".join(parts)


def mixed(*, chinese: bool = True) -> Made:
    """30 documents: 21 of their own, 4 copies, 3 slightly edited copies, a short one, and a copy of that."""
    made = Made()
    for seed in range(21):
        made.add(article(seed, chinese=chinese), f"{seed}")
    for seed in range(4):
        made.add(article(seed, chinese=chinese), f"{seed}")
    for seed in range(4, 7):
        made.add(edited(article(seed, chinese=chinese), 1, chinese=chinese), f"{seed}")
    made.add("闭馆一天。" if chinese else "Closed today.")
    made.add("闭馆一天。" if chinese else "Closed today.")
    return made


def document(id: str, text: str = "", title: str = "", url: str = "") -> Document:
    return Document(Page(id, title, text=text), url)


def reader(**renamed: str) -> DocumentReader:
    """A reader with the usual names of fields, but for some."""
    return DocumentReader(PageSource({**DEFAULT_FIELDS, **renamed}, HtmlReader(100_000), hashes_items=False))


def read(path: Path, pairs: Path | None = None, gold: Path | None = None) -> Corpus:
    return read_corpus(path, list(reader().read(path)), pairs, gold)


def drafts(*, of: int = 24) -> list[dict[str, Any]]:
    """Articles, then each once more with 0 to 9 of its 12 sentences replaced; every second one on the same site."""
    made = [
        {"url": f"https://daily.example/{seed}", "title": f"Article {seed}", "text": article(seed, chinese=False)}
        for seed in range(of)
    ]
    again = []
    for seed, one in enumerate(made):
        changed = seed % 10
        text = edited(one["text"], changed, chinese=False) if changed else one["text"]
        site = "daily" if seed % 2 else "mirror"
        again.append({"url": f"https://{site}.example/again/{seed}", "title": f"Article {seed}, again", "text": text})
    return made + again


def write_feed(folder: Path, records: list[dict[str, Any]] | None = None) -> Path:
    file = folder / "feed.jsonl"
    file.write_text(lines(drafts() if records is None else records), encoding="utf-8")
    return file
