"""How many edits each method withstands: pages are edited, a little and a lot, and compared with themselves.

    python benchmarks/robustness.py FILE ... [--method NAME[:PARAMETER=VALUE,...] ...] [--pages N] [-o curves.svg]

After the experiment of a Chinese paper on Simhash: 1,000 texts, 1 to 20 % added or deleted at random places, sentences
reordered. Here pages are edited in more ways, and a page counts only if a state would find it too. Pairs of different
pages are the control: without it, a method that calls everything a copy would win. The curves need matplotlib.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from scrapy_neardup.cli.measure import parse_method
from scrapy_neardup.cli.output import format_table
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inspect.sources import read_documents
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.settings import Config
from scrapy_neardup.text.characters import HAN, HAN_CHARACTER
from scrapy_neardup.text.normalize import letters, normalize

#: Marks that end a sentence, with closing quotes and following white space; or a line break.
_END = re.compile(r"(?:[。！？；!?;…]+|\.(?=[\s\"'”’)\]]))[\"'”’」』）)\]]*\s*|[\r\n\u2028\u2029]\s*")
#: A unit that can be replaced: a Chinese character, or a word of another script.
_UNIT = re.compile(rf"[{HAN}]|[^\W_{HAN}]+")
#: The distance of full-width forms from ASCII.
_FULL = 0xFEE0
_WIDTHS = {code: code + _FULL for code in range(0x21, 0x7F)} | {code + _FULL: code for code in range(0x21, 0x7F)}
_SPAN = 20  # characters that are deleted at one place, or more: about half a sentence
#: Lines that sites write above and below an article, by language.
_AROUND = {
    "zh": (
        ("首页 > 资讯中心 > 正文", "字号：大 中 小", "我要评论　收藏本页　打印", "来源：本站综合　责任编辑：小禾"),
        (
            "本文仅代表作者个人观点，与本站立场无关，请读者自行核实相关内容。",
            "版权声明：未经授权不得转载、摘编本站文字与图片，违者必究。",
            "关于我们 | 联系方式 | 网站地图 | 上一篇 | 下一篇",
        ),
    ),
    "en": (
        ("Home > News > Today", "Share  |  Print  |  Save for later", "Text size: A A A", "Reported by our own desk"),
        (
            "The views expressed here are the author's own and need not be those of this site.",
            "All rights reserved. No part of this page may be republished without our written consent.",
            "About us | Contact | Site map | Previous story | Next story",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Material:
    """Parts of other documents for an edit. Characters and words are as frequent as there."""

    sentences: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    characters: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, pages: Iterable[Page]) -> Material:
        """Material from a few pages; it keeps their texts several times."""
        pages = list(pages)
        found = [unit for page in pages for unit in _UNIT.findall(page.text)]
        return cls(
            tuple(piece.strip() for page in pages for piece in split_sentences(page.text) if piece.strip()),
            tuple(page.title for page in pages if page.title),
            tuple(unit for unit in found if _is_han(unit)),
            tuple(unit for unit in found if not _is_han(unit)),
        )


def split_sentences(text: str) -> list[str]:
    r"""Cut a text into sentences with end marks and line breaks; joined they are the text.

    >>> split_sentences("他说：“走吧！”\n没人动。 It cost 3.5 million. Why?")
    ['他说：“走吧！”\n', '没人动。 ', 'It cost 3.5 million. ', 'Why?']
    """
    found: list[str] = []
    begin = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        if text[begin:end].strip() or (end == len(text) and not found and text):
            found.append(text[begin:end])
            begin = end
    if found and begin < len(text):
        found[-1] += text[begin:]  # white space at the very end
    return found


def add(text: str, amount: float, rng: Random, material: Material) -> str:
    """Insert sentences of other documents, ``amount`` of the text's length in all.

    The last one is cut to fit, as a sentence is more than 1% of most texts.
    """
    own, missing = split_sentences(text), _count(amount, len(text))
    if not own or not material.sentences:
        return text
    before: list[list[str]] = [[] for _ in range(len(own) + 1)]
    while missing > 0:
        sentence = _close_sentence(rng.choice(material.sentences))
        sentence = sentence if len(sentence) <= missing else _close_sentence(sentence[:missing].rstrip())
        before[rng.randrange(len(before))].append(sentence)
        missing -= len(sentence)
    if before[-1]:
        own[-1] = _close_sentence(own[-1])
    return "".join("".join((*new, old)) for new, old in zip(before, (*own, ""), strict=True))


def delete(text: str, amount: float, rng: Random, material: Material) -> str:
    """Delete ``amount`` of the characters, in runs at random places."""
    gone = min(_count(amount, len(text)), len(text) - 1)
    if gone < 1:
        return text
    runs = rng.randint(1, min(gone, 1 + gone // _SPAN))
    cuts = [0, *sorted(rng.sample(range(1, gone), runs - 1)), gone]
    places = sorted(rng.randint(0, len(text) - gone) for _ in range(runs))
    kept, at = [], 0
    for place, begin, end in zip(places, cuts, cuts[1:], strict=False):  # cuts are one more
        kept.append(text[at : place + begin])
        at = place + end
    return "".join((*kept, text[at:]))


def replace(text: str, amount: float, rng: Random, material: Material) -> str:
    """Replace ``amount`` of the Chinese characters and other words, scattered.

    The hardest edit for shingles: every change spoils as many as a shingle is long.
    """
    units = list(_UNIT.finditer(text))
    result, at = [], 0
    for index in sorted(rng.sample(range(len(units)), _count(amount, len(units)))):
        unit = units[index]
        choice = material.characters if _is_han(unit[0]) else material.words
        others = [other for other in (rng.choice(choice) for _ in range(5)) if other != unit[0]] if choice else []
        result += [text[at : unit.start()], others[0] if others else unit[0]]
        at = unit.end()
    return "".join((*result, text[at:]))


def reorder(text: str, amount: float, rng: Random, material: Material) -> str:
    """Move a random number of sentences; no amount."""
    own = split_sentences(text)
    if len(own) < 2:
        return text
    own[-1] = _close_sentence(own[-1])
    for _ in range(rng.randint(1, len(own))):
        source, target = rng.sample(range(len(own)), 2)
        own.insert(target, own.pop(source))
    return "".join(own)


def retitle(text: str, amount: float, rng: Random, material: Material) -> str:
    """the title of another document; no amount."""
    others = [title for title in material.titles if title != text]
    return rng.choice(others) if others else text


def wrap(text: str, amount: float, rng: Random, material: Material) -> str:
    """Add another site's lines above and below the text; no amount."""
    above, below = _AROUND["zh" if 5 * sum(map(_is_han, text)) > len(text) else "en"]
    chosen = (rng.sample(lines, rng.randint(2, len(lines))) for lines in (above, below))
    return "\n".join((*next(chosen), text, *next(chosen)))


def width(text: str, amount: float, rng: Random, material: Material) -> str:
    """Swap half-width and full-width forms; no amount.

    >>> width("3.5元，共２台", 0, Random(1), Material())
    '３．５元,共2台'
    """
    return text.translate(_WIDTHS)


def script(text: str, amount: float, rng: Random, material: Material) -> str:
    """Swap simplified and traditional Chinese, with the library opencc; no amount."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # opencc takes no lone surrogates
    both = (str(_load_converter(way).convert(text)) for way in ("s2t", "t2s"))
    return max(both, key=lambda other: sum(a != b for a, b in zip(text, other, strict=False)))


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit: its function, whether it has an amount, and the parts of a page that it changes."""

    change: Callable[[str, float, Random, Material], str]
    has_amount: bool = False
    parts: tuple[str, ...] = ("text",)


#: Edits by name.
EDITS: dict[str, Edit] = {
    "add": Edit(add, has_amount=True),
    "delete": Edit(delete, has_amount=True),
    "replace": Edit(replace, has_amount=True),
    "reorder": Edit(reorder),
    "retitle": Edit(retitle, parts=("title",)),
    "wrap": Edit(wrap),
    "width": Edit(width, parts=("title", "text")),
    "script": Edit(script, parts=("title", "text")),
}


def edit_page(page: Page, name: str, amount: float, rng: Random, material: Material) -> Page:
    """The edited page."""
    edit = EDITS[name]
    changed: dict[str, Any] = {p: edit.change(getattr(page, p), amount, rng, material) for p in edit.parts}
    return dataclasses.replace(page, **changed)


@cache
def _load_converter(way: str) -> Any:
    from opencc import OpenCC

    return OpenCC(way)


def _count(amount: float, size: int) -> int:
    """``amount`` of ``size``, at least 1."""
    return min(size, max(1, round(amount * size)))


def _close_sentence(piece: str) -> str:
    """a piece that another sentence can follow."""
    if piece[-1:].isspace() or piece.endswith(tuple("。！？；…”’」』）")):
        return piece
    return piece + (" " if piece.endswith(tuple(".!?;\"')]")) else "\n")


def _is_han(unit: str) -> bool:
    return HAN_CHARACTER.match(unit) is not None


#: Shares of the text that an edit changes, as in the paper; an edit without an amount has 0.
AMOUNTS = (0.01, 0.02, 0.05, 0.10, 0.15, 0.20)
#: The name of the control among the edits.
CONTROL = "other page"
#: Texts that lend sentences and titles, as many as in the paper.
LENDERS = 50
#: Pages that each page is compared with for the control.
OTHERS = 10

#: An edit's name and its amount.
Step = tuple[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("file", nargs="+", help="documents: files of any format, or folders")
    parser.add_argument("--method", action="append", help="may be repeated (default: all)")
    parser.add_argument("--pages", type=int, default=300, help="edit so many random documents")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", dest="curves", type=Path, help="draw curves to this file")
    arguments = parser.parse_args()
    pages = sample_pages(read_pages(arguments.file), arguments.pages, arguments.seed)
    measured = (measure(name, pages, arguments.seed) for name in arguments.method or METHODS)
    trials = [trial for trial in measured if trial]
    print(f"{len(pages):,} documents, seed {arguments.seed}; recognised in %\n")
    print("\n\n".join(tables(trials)))
    if arguments.curves:
        draw(trials, arguments.curves)


def read_pages(files: Sequence[str]) -> Iterator[Page]:
    """The pages with text; of pages with the same letters only the first."""
    seen = set[str]()
    with Config().open_source(hashes_items=False) as source:
        for page in chain.from_iterable(read_documents(file, source, Counter()) for file in files):
            own = letters(normalize(page.text))
            if own and own not in seen:
                seen.add(own)
                yield page


def sample_pages(pages: Iterable[Page], count: int, seed: int) -> list[Page]:
    """Draw ``count`` pages with equal probability, in their order; all if there are no more."""
    found = list(pages)
    places = random_for(seed, "documents").sample(range(len(found)), min(count, len(found)))
    return [found[place] for place in sorted(places)]


class Trial:
    """A method, and its counts by edit and amount."""

    def __init__(self, name: str, method: Method) -> None:
        self.name = name
        self.method = method
        self.pages: Counter[Step] = Counter()
        self.compared: Counter[Step] = Counter()
        self.recognised: Counter[Step] = Counter()

    def count(self, step: Step, new: Fingerprint, old: Fingerprint) -> None:
        """Count a page: called a copy when compared, and also found by a key."""
        duplicate = self.method.compare(new, old.sketch, frozenset()).duplicate
        self.pages[step] += 1
        self.compared[step] += duplicate
        self.recognised[step] += duplicate and not set(new.keys).isdisjoint(old.keys)

    def share(self, step: Step) -> float:
        """The share of pages that were recognised."""
        return self.recognised[step] / max(1, self.pages[step])

    def cell(self, step: Step) -> str:
        """The recognised share, with the compared share in brackets if that is larger; a dash for no pages."""
        if not self.pages[step]:
            return "–"
        recognised, compared = self.recognised[step], self.compared[step]
        more = f" ({100 * compared / self.pages[step]:.1f})" if compared > recognised else ""
        return f"{100 * self.share(step):.1f}{more}"


def measure(name: str, pages: Sequence[Page], seed: int) -> Trial | None:
    """Try a method; None and a line on standard error if it does not work here."""
    try:
        trial = Trial(name, make_method(*parse_method(name)))
        compare(trial, pages, seed)
    except NearDupError as error:
        print(f"left out: {name}: {error}", file=sys.stderr)
        return None
    return trial


def compare(trial: Trial, pages: Sequence[Page], seed: int) -> None:
    """Compare each page with its edited versions, which are the same for all methods, and with a few others."""
    fingerprint, originals = trial.method.fingerprint, []
    for index, (page, material) in enumerate(zip(pages, materials(pages, seed), strict=True)):
        originals.append(fingerprint(page))
        for name, edit in EDITS.items():
            for amount in AMOUNTS if edit.has_amount else (0.0,):
                version = edit_page(page, name, amount, random_for(seed, name, amount, index), material)
                if version != page:
                    trial.count((name, amount), fingerprint(version), originals[-1])
    rng, others = random_for(seed, CONTROL), len(pages) - 1
    for one in range(len(pages)):
        for other in rng.sample(range(others), min(OTHERS, others)):
            trial.count((CONTROL, 0.0), originals[one], originals[other + (other >= one)])


def materials(pages: Sequence[Page], seed: int) -> list[Material]:
    """The material for each page, none of it its own: two sets of lenders lend to each other."""
    order = random_for(seed, "material").sample(range(len(pages)), min(2 * LENDERS, len(pages)))
    half = len(order) // 2
    first = frozenset(order[:half])
    lent_to_first, lent = (Material.of(pages[index] for index in lenders) for lenders in (order[half:], order[:half]))
    return [lent_to_first if index in first else lent for index in range(len(pages))]


def random_for(seed: int, *parts: object) -> Random:
    """A generator for one use, so that one more page or edit changes nothing for others."""
    return Random(" ".join(map(str, (seed, *parts))))


def tables(trials: Sequence[Trial]) -> Iterator[str]:
    """A table of the edits with amounts, and one of the other edits."""
    gradual = [name for name, edit in EDITS.items() if edit.has_amount]
    rows = [(edit, one.name, *(one.cell((edit, amount)) for amount in AMOUNTS)) for edit in gradual for one in trials]
    yield format_table(["edit", "method", *(f"{100 * amount:g}%" for amount in AMOUNTS)], rows)
    others = [*(name for name, edit in EDITS.items() if not edit.has_amount), CONTROL]
    yield format_table(["method", *others], [(one.name, *(one.cell((edit, 0.0)) for edit in others)) for one in trials])


def draw(trials: Sequence[Trial], path: Path) -> None:
    """Draw a panel for each edit with amounts; methods differ in marker and dashes too."""
    from matplotlib.figure import Figure

    gradual = [name for name, edit in EDITS.items() if edit.has_amount]
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    for edit, axes in zip(gradual, figure.subplots(1, len(gradual), sharey=True), strict=True):
        for number, trial in enumerate(trials):
            axes.plot(
                [100 * amount for amount in AMOUNTS],
                [100 * trial.share((edit, amount)) for amount in AMOUNTS],
                label=trial.name,
                marker="osD^vPX<>ph*"[number % 12],
                linestyle=("-", "--", "-.", ":")[number % 4],
            )
        axes.set(title=edit, xlabel="% of the text", ylabel="recognised, %", xlim=0, ylim=(0, 102))
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path)


if __name__ == "__main__":
    main()
