"""Pairs of documents: their similarity, and the answer of a person who has read them."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, read_input
from scrapy_neardup.lab.documents import Document, guess_format
from scrapy_neardup.lab.exact import Alike
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.titles import article_title

#: Answers to the question: would a publisher who wants each article once drop the later page?
COPY, DIFFERENT, SKIP = ANSWERS = ("copy", "different", "skip")
#: The same answers in other words, by field, in the order of fields; "skip" stands for unsure.
_WORDS: Mapping[str, Mapping[str, str]] = {
    "drop": {"yes": COPY, "no": DIFFERENT, "unsure": SKIP},
    "verdict": {
        "repost": COPY,
        "reissue": COPY,
        "extended": COPY,
        "template": DIFFERENT,
        "sharedcode": DIFFERENT,
        "unsure": SKIP,
    },
    "label": {answer: answer for answer in ANSWERS},
}
_NEED = (
    'each line must be one JSON object for two documents, with similarities {"a": id, "b": id, "jaccard": 0.83, '
    '"containment": 0.91} or with an answer {"a": id of the earlier, "b": id of the later, "drop": "yes"}'
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents by id, ``a`` before ``b``, with all that is known of them.

    ``jaccard_clean``: the similarity without sentences that recur over a site; it counts in place of ``jaccard``.
    ``left``: letters that remain then. ``title``: similarity of titles, None if one is missing. ``answer``: one of
    ``ANSWERS``, None if nobody has read the pair; ``label``: any word for the sort of pair. ``stratum``: where it was
    drawn, of ``stratum_size`` pairs. ``corpus``: the name of the corpus, if a file is for several.
    """

    a: str
    b: str
    jaccard: float | None = None
    containment: float | None = None
    title: float | None = None
    title_same: bool | None = None
    same_site: bool | None = None
    stratum: str = ""
    stratum_size: float | None = None
    answer: str | None = None
    label: str = ""
    same_account: bool | None = None
    jaccard_clean: float | None = None
    left: float | None = None
    corpus: str = ""

    @property
    def similarity(self) -> float:
        """The Jaccard similarity that counts."""
        return next((one for one in (self.jaccard_clean, self.jaccard) if one is not None), 0.0)

    def row(self) -> dict[str, Any]:
        """Return the line of a file; an answer is its ``label``."""
        names = ("a", "b", "jaccard", "containment", "title", "title_same", "same_site")
        values = asdict(self)
        drawn = {"stratum": self.stratum, "stratum_size": self.stratum_size} if self.stratum_size else {}
        return {name: values[name] for name in names} | drawn | ({"label": self.answer} if self.answer else {})


def compare_documents(found: Alike, one: Document, other: Document) -> Pair:
    """Return the pair of two documents, ``one`` came first."""
    first, second = (letters(normalize(article_title(document.page.title))) for document in (one, other))
    sites = one.page.site, other.page.site
    return Pair(
        one.id,
        other.id,
        jaccard=round(found.jaccard, 4),
        containment=round(found.containment, 4),
        title=compare_titles(first, second),
        title_same=first == second,
        same_site=sites[0] == sites[1] if all(sites) else None,
    )


def compare_titles(one: str, other: str) -> float | None:
    """Return the Jaccard similarity of pairs of letters; None if a title has none.

    >>> compare_titles("theferry", "theferryagain"), compare_titles("", "theferry")
    (0.5833, None)
    """
    pairs = [{title[at : at + 2] for at in range(max(1, len(title) - 1))} for title in (one, other)]
    return round(len(pairs[0] & pairs[1]) / len(pairs[0] | pairs[1]), 4) if one and other else None


def read_pairs(
    path: Path, *needed: str, known: Mapping[str, int] | None = None, corpora: Container[str] | None = None
) -> Iterator[Pair]:
    """Yield the pairs of JSON lines or a table.

    ``needed``: figures, or ``answer``, that each pair must have. ``known``: the place of each document of a corpus; the
    earlier one of a pair becomes ``a``. ``corpora``: names of the corpus; lines for another one are skipped. Raises
    NearDupError that names the line.
    """
    if not path.is_file():
        raise NearDupError(f"{path} with pairs does not exist. Put it there, or name another file; {_NEED}.")
    format = guess_format(str(path))
    for record in read_input(str(path), "jsonl" if format == "text" else format):
        if not isinstance(record, Entry):
            raise NearDupError(f"{record.place} is {record.why}; {_NEED}.")
        try:
            pair = _parse(record.fields)
            if corpora is not None and pair.corpus and pair.corpus not in corpora:
                continue
            if known is not None:
                pair = _turn(pair, known)
            if missing := [name for name in needed if getattr(pair, name) is None]:
                raise ValueError(f"{missing[0]} is missing")
        except ValueError as error:
            raise NearDupError(f"{record.place}: {error}; {_NEED}.") from None
        yield pair


def read_answers(
    path: Path, *needed: str, known: Mapping[str, int] | None = None, corpora: Container[str] | None = None
) -> list[Pair]:
    """Return the pairs of a file with answers; the last line of a pair counts. See ``read_pairs``."""
    pairs = read_pairs(path, "answer", *needed, known=known, corpora=corpora)
    return list({(pair.a, pair.b): pair for pair in pairs}.values())


def _parse(fields: Mapping[str, Any]) -> Pair:
    """Return the pair of a line. Raises ValueError with the reason."""
    if fields.get("a") is None or fields.get("b") is None:
        raise ValueError("a and b must name two documents")
    answer, label = _parse_answer(fields)
    same_account = fields.get("account_same")
    flag = "" if same_account is None else str(same_account).lower()
    if flag not in ("true", "false", ""):
        raise ValueError(f"account_same must be true or false, not {same_account!r}")
    return Pair(
        str(fields["a"]),
        str(fields["b"]),
        jaccard=_parse_figure(fields, "jaccard", 1),
        containment=_parse_figure(fields, "containment", 1),
        jaccard_clean=_parse_figure(fields, "jaccard_clean", 1),
        left=_parse_figure(fields, "left"),
        same_account=flag == "true" if flag else None,
        answer=answer,
        label=label,
        stratum=str(fields.get("stratum") or ""),
        stratum_size=_parse_figure(fields, "stratum_size"),
        corpus=str(fields.get("corpus") or ""),
    )


def _parse_figure(fields: Mapping[str, Any], name: str, most: float = math.inf) -> float | None:
    value = fields.get(name)
    if value is None or value == "":
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= most:
        limits = f"from 0 to {most:g}" if most < math.inf else "from 0"
        raise ValueError(f"{name} must be a number {limits}, not {value!r}")
    return number


def _parse_answer(fields: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the answer, and the word for the sort of pair."""
    name = next((name for name in _WORDS if fields.get(name) not in (None, "")), "")
    if not name:
        return None, ""
    word, label = fields[name], fields.get("label")
    if not isinstance(word, str) or word not in _WORDS[name]:
        raise ValueError(f"{name} must be one of {', '.join(_WORDS[name])}, not {word!r}")
    if not isinstance(label, (str, int, float, type(None))):
        raise ValueError(f"label must be a text, not {label!r}")
    if name == "label":
        label = ""
    elif name == "verdict" and label is None:
        label = word
    return _WORDS[name][word], str(label or "")


def _turn(pair: Pair, known: Mapping[str, int]) -> Pair:
    """Return the pair with the earlier document first. Raises ValueError for an unknown one."""
    for id in (pair.a, pair.b):
        if id not in known:
            raise ValueError(f"no document has the id {id!r}")
    if pair.a == pair.b:
        raise ValueError("a and b are the same document")
    earlier, later = sorted((pair.a, pair.b), key=known.__getitem__)
    return replace(pair, a=earlier, b=later)


class AnswerFile:
    """A file of answers to pairs that were drawn. Each answer is on disk before the next pair is shown."""

    def __init__(self, path: Path) -> None:
        """``path``: existing answers stay."""
        self._path = path
        read = read_answers(path, "stratum_size") if path.exists() else []
        self._pairs = {(pair.a, pair.b): pair for pair in read}

    @property
    def pairs(self) -> list[Pair]:
        """All pairs with their answers."""
        return list(self._pairs.values())

    def has(self, pair: Pair) -> bool:
        """Whether the pair has an answer."""
        return (pair.a, pair.b) in self._pairs

    def add(self, pair: Pair, answer: str) -> None:
        """Append an answer. Raises NearDupError if it cannot be written."""
        answered = replace(pair, answer=answer)
        line = json.dumps(answered.row(), ensure_ascii=False).encode("utf-8", "backslashreplace")
        before = self._path.read_bytes() if self._path.exists() else b""
        with replace_file(self._path) as draft:
            draft.write_bytes(b"".join((before, b"\n" * (before[-1:] not in (b"", b"\n")), line, b"\n")))
        self._pairs[pair.a, pair.b] = answered
