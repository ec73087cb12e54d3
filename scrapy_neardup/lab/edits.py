"""Edits of an article that is copied: pure functions of a text and a random generator.

Adding, deleting and reordering follow a Chinese experiment on the robustness of Simhash: sentences of 50 other texts at
random places, 1 to 20 per cent. Reposts also make the other edits. A generator in the same state gives the same edit on
every machine.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from random import Random
from typing import Any

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.model import Page
from scrapy_neardup.text.characters import HAN, HAN_CHARACTER

#: Marks that end a sentence, with closing quotes and following white space; or a line break.
_END = re.compile(r"(?:[。！？；!?;…]+|\.(?=[\s\"'”’)\]]))[\"'”’」』）)\]]*\s*|[\r\n\u2028\u2029]\s*")
#: A unit that can be replaced: a Chinese character, or a word of another script.
_UNIT = re.compile(rf"[{HAN}]|[^\W_{HAN}]+")
#: The distance of full-width forms from ASCII.
_FULL = 0xFEE0
_WIDTHS = {code: code + _FULL for code in range(0x21, 0x7F)} | {code + _FULL: code for code in range(0x21, 0x7F)}
_SPAN = 20  # characters that are deleted at one place, or more: about half a sentence
_NO_OPENCC = 'The edit "script" needs the library opencc. Run: pip install "scrapy-neardup[opencc]"'
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
        """Collect material from a few pages; it keeps their texts several times."""
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
    """Return the title of another document; no amount."""
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
    """Swap simplified and traditional Chinese; no amount.

    Raises NearDupError without the library opencc.
    """
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


def find_edit(name: str) -> Edit:
    """Return an edit. Raises SettingsError that lists the names."""
    if name not in EDITS:
        raise SettingsError(f"There is no edit {name!r}. Use one of: {', '.join(EDITS)}.")
    return EDITS[name]


def edit_page(page: Page, name: str, amount: float, rng: Random, material: Material) -> Page:
    """Return the edited page. Raises SettingsError for an unknown edit."""
    edit = find_edit(name)
    changed: dict[str, Any] = {p: edit.change(getattr(page, p), amount, rng, material) for p in edit.parts}
    return dataclasses.replace(page, **changed)


def why_unavailable(name: str) -> str:
    """Say why an edit is unavailable here; empty if it is available."""
    return _NO_OPENCC if name == "script" and find_spec("opencc") is None else ""


@cache
def _load_converter(way: str) -> Any:
    try:
        from opencc import OpenCC
    except ImportError:
        raise NearDupError(_NO_OPENCC) from None
    return OpenCC(way)


def _count(amount: float, size: int) -> int:
    """Return ``amount`` of ``size``, at least 1."""
    return min(size, max(1, round(amount * size)))


def _close_sentence(piece: str) -> str:
    """Return a piece that another sentence can follow."""
    if piece[-1:].isspace() or piece.endswith(tuple("。！？；…”’」』）")):
        return piece
    return piece + (" " if piece.endswith(tuple(".!?;\"')]")) else "\n")


def _is_han(unit: str) -> bool:
    return HAN_CHARACTER.match(unit) is not None
