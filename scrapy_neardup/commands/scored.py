"""What ``evaluate`` prints of a corpus: a row for each score, and below, how far verdicts agree with a reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from scrapy_neardup.commands.output import table
from scrapy_neardup.commands.wording import counted, line
from scrapy_neardup.evaluation.gold import GoldScore
from scrapy_neardup.evaluation.labels import NEG, POS, REPOST, TEMPLATE, Corpus
from scrapy_neardup.evaluation.scores import Score

_COLUMNS = ("missed", "false/10k", "precision", "recall", "F1", "reposts", "templates", "ms/page", "bytes/page")
_READ = ("label", "agreement", "dropped wrongly", "kept wrongly")
_NONE = "–"


class Tables:
    """The scores of all methods on a corpus; ``sweep``: several for each, by the value of its threshold."""

    def __init__(self, corpus: Corpus, *, sweep: bool) -> None:
        self._corpus = corpus
        self._first = ("method", *(("threshold", "value") if sweep else ()))
        self._rows: list[list[str]] = []
        self._read: list[list[str]] = []
        self._failures: list[str] = []

    def add(self, method: str, value: Mapping[str, object], score: Score) -> None:
        """Take a score, in a sweep with the threshold's name and ``value``."""
        first = [method, *map(str, value.values())]
        self._rows.append([*first, *_cells(score)])
        self._read += [[*first, *cells] for cells in _agreement(score.gold)] if score.gold else []

    def fail(self, method: str, why: str) -> None:
        """Take what went wrong with a method."""
        headers = [*self._first, *_COLUMNS]
        self._rows.append([method] + [_NONE] * (len(headers) - 1))
        self._failures.append(f"\n{method}: {why}\n")

    def text(self) -> str:
        """All of it."""
        words = max(1, len(self._first) - 1)
        scores = table([*self._first, *_COLUMNS], self._rows, words=words)
        found = f"{_about(self._corpus)}\n\n{scores}\n{''.join(self._failures)}\n"
        if not self._read:
            return found
        read = table([*self._first, *_READ], self._read, words=len(self._first) + 1)
        return f"{found}{_about_gold(self._corpus)}\n\n{read}\n\n"


def _about(corpus: Corpus) -> str:
    count = Counter(corpus.labels.values())
    return (
        f"{corpus.name}: {len(corpus.labels):,} documents, including {count[POS]:,} duplicates, "
        f"{count[NEG]:,} different, {count[REPOST]:,} reposts, {count[TEMPLATE]:,} templates"
    )


def _about_gold(corpus: Corpus) -> str:
    unsure = sum(one.drop is None for one in corpus.gold)
    left_out = f", and {unsure:,} where the reader is unsure" if unsure else ""
    return f"{corpus.name}: {counted(len(corpus.gold) - unsure, 'pair')} read by a person{left_out}"


def _agreement(gold: GoldScore) -> Iterator[list[str]]:
    """A row for all pairs that were read, and one for each label if there are several."""
    labels = gold.by_label if len(gold.by_label) > 1 else {}
    for name, one in (("all", gold), *labels.items()):
        dropped, kept = f"{one.dropped_wrongly}/{one.different}", f"{one.kept_wrongly}/{one.copies}"
        yield [line(name), f"{one.agree}/{one.pairs}", dropped, kept]


def _cells(score: Score) -> list[str]:
    room = [f"{score.ms_per_page:.2f}", f"{score.bytes_per_page:.0f}"]
    if not score.labelled:
        return [_NONE] * (len(_COLUMNS) - len(room)) + room
    return [
        f"{score.missed}/{score.pos}",
        f"{score.false_per_10k:.1f}",
        f"{score.precision:.4f}",
        f"{score.recall:.4f}",
        f"{score.f1:.4f}",
        f"{score.reposts_dropped}/{score.reposts}",
        f"{score.templates_dropped}/{score.templates}",
        *room,
    ]
