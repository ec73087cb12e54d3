"""``scrapy neardup evaluate``: compare methods on labelled corpora."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scrapy_neardup.commands.output import (
    as_json,
    counted,
    line,
    method_spec,
    parameter_overrides,
    progress,
    table,
    write,
)
from scrapy_neardup.commands.pages import opened_feed
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.evaluation.documents import Document
from scrapy_neardup.evaluation.evaluate import GROUPINGS, SINGLE_PASS, STORES, evaluate, sweep, threshold_of
from scrapy_neardup.evaluation.labels import NEG, POS, REPOST, TEMPLATE, Corpus, Gold, GoldScore, read_corpus
from scrapy_neardup.evaluation.scores import Score
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.methods.cascade.parameters import METHOD, PROFILES
from scrapy_neardup.model import Verdict
from scrapy_neardup.settings import Config

# ----------------------------------------------------------------------------------------------------------------------
# What ``evaluate`` prints of a corpus: a row for each score, and below, how far verdicts agree with a reader.


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


# ----------------------------------------------------------------------------------------------------------------------
# ``scrapy neardup evaluate``: methods on labelled corpora, side by side.


NAME = "evaluate"
HELP = "Score methods on labelled corpora: missed copies, wrong drops, time and size."
EXAMPLES = """\
corpus:
  A folder with docs.jsonl ({"id": …, "title": …, "text": …} per line, in crawl order) and pairs.jsonl ({"a": id,
  "b": id, "jaccard": …, "containment": …} per line). pairs.jsonl has every pair with a Jaccard similarity of 0.5 or a
  containment of 0.8 or more, on character 5-grams. Both may be .gz, .xz or .bz2.

  Besides, or instead, gold.jsonl (or --gold FILE) has pairs read by a person: {"a": id of the earlier, "b": id of the
  later, "drop": "yes", "no" or "unsure", "label": any word} per line. "drop" answers: would a publisher who wants each
  article once drop the later page? Similarity cannot answer that: a reader may want two notices in one form. In a
  --gold file for several folders, "corpus" names the folder. Files by `scrapy neardup judgements` and `tune` work too.

  Or any feed with --pairs: pairs computed by `scrapy neardup pairs`, or labels collected by `scrapy neardup tune`
  ("label": "copy", "different" or "skip"). With labels only the labelled documents are scored. Each counts as often
  as it was drawn, mostly near the threshold.

columns:
  missed        share of duplicates (Jaccard 0.8 or more with an earlier document) that were kept
  false/10k     wrong drops per 10,000 documents that are like no earlier one
  reposts       share of edited copies by another account (0.6 to 0.8) that were dropped; more is better
  templates     share of forms filled in for another product that were dropped; fewer is better
  ms, bytes     CPU time and size of the state, per page
  agreement     share of gold pairs (without "unsure") where the later document is dropped or kept as the reader says:
                for all pairs, and for each label

examples:
  scrapy neardup evaluate corpora/news corpora/blogs
  scrapy neardup evaluate corpora/news --method all
  scrapy neardup evaluate corpora/news --method cascade --method cascade:base=0.7,short=50
  scrapy neardup evaluate corpora/news --sweep
  scrapy neardup evaluate corpora/news --method shingle --grouping union-find
  scrapy neardup evaluate crawl.jsonl --gold read.jsonl
  scrapy neardup evaluate crawl.jsonl.gz --pairs labels.jsonl --verdicts verdicts.jsonl --json
"""


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method as it was asked for; one of ``all`` is made when its turn comes, so that it may fail alone."""

    name: str
    parameters: dict[str, Any]
    made: Method | None = None

    @property
    def method(self) -> Method:
        """The method; raises NearDupError if it cannot be had."""
        return self.made or make_method(self.name, self.parameters)

    @property
    def text(self) -> str:
        """As it is written on the command line."""
        given = ",".join(f"{name}={json.dumps(value)}" for name, value in self.parameters.items())
        return f"{self.name}:{given}" if given else self.name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("corpus", nargs="+", type=Path, metavar="CORPUS", help="a folder, or a file of documents")
    parser.add_argument(
        "--method",
        action="append",
        metavar="NAME[:PARAMETER=VALUE,…]",
        help=f"one of {', '.join(METHODS)}, or all; may be repeated (default: cascade, by NEARDUP_PROFILE)",
    )
    parser.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of all methods, as JSON; may be repeated",
    )
    parser.add_argument("--sweep", action="store_true", help="try several values of the threshold, one line each")
    parser.add_argument("--store", choices=STORES, default="memory:", help="kind of state (default: memory:)")
    parser.add_argument(
        "--grouping",
        choices=GROUPINGS,
        default=SINGLE_PASS,
        help="compare with originals only, as a crawl does, or also with their copies (default: %(default)s)",
    )
    parser.add_argument(
        "--pairs", type=Path, metavar="FILE", help="reference pairs (default: pairs.jsonl of the corpus)"
    )
    parser.add_argument(
        "--gold", type=Path, metavar="FILE", help="pairs read by a person (default: gold.jsonl of the corpus)"
    )
    parser.add_argument("--verdicts", type=Path, metavar="FILE", help="write all verdicts to this file, as JSON lines")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def run(arguments: argparse.Namespace) -> int:
    """Print the scores; 1 if some of several methods could not be evaluated."""
    config = Config.from_settings(arguments.settings)
    common = parameter_overrides(arguments.parameter)
    if not arguments.method:
        common = {**PROFILES[config.profile], **common}
    asked = list(_read_methods(arguments.method or [METHOD], common))
    if len(arguments.corpus) > 1 and arguments.pairs is not None:
        raise SettingsError("--pairs works with one corpus. Name one, or put a pairs.jsonl into each.")
    if arguments.verdicts is not None and (len(arguments.corpus) > 1 or len(asked) > 1 or arguments.sweep):
        raise SettingsError("--verdicts works with one method on one corpus, without --sweep. Name one of each.")
    with opened_feed(config) as feed:
        corpora = [read_corpus(path, arguments.pairs, feed, arguments.gold) for path in arguments.corpus]
        if arguments.gold is not None and not any(corpus.gold for corpus in corpora):
            names = " or ".join(corpus.name for corpus in corpora)
            raise SettingsError(f'No line of {arguments.gold} is about {names}. Check "corpus" in its lines.')
        failures = sum(_report(corpus, asked, arguments) for corpus in corpora)
    return 1 if failures else 0


def _read_methods(specs: list[str], common: dict[str, Any]) -> Iterator[MethodSpec]:
    for spec in specs:
        name, own = method_spec(spec)
        parameters = {**common, **own}
        if name == "all":
            yield from (MethodSpec(one, parameters) for one in METHODS)
        else:
            yield MethodSpec(name, parameters, make_method(name, parameters))


def _report(corpus: Corpus, asked: list[MethodSpec], arguments: argparse.Namespace) -> int:
    """Evaluate and print; returns how many methods failed."""
    tables = Tables(corpus, sweep=arguments.sweep)
    failures = sum(not _attempt(corpus, one, arguments, tables, alone=len(asked) == 1) for one in asked)
    if not arguments.json:
        write(tables.text())
    return failures


def _attempt(corpus: Corpus, one: MethodSpec, arguments: argparse.Namespace, tables: Tables, *, alone: bool) -> bool:
    """Take the scores of a method; False if it failed, which is raised if it is ``alone``."""
    try:
        for value, score in _measured(corpus, one, arguments):
            tables.add(one.text, value, score)
            if arguments.json:
                _line(corpus=corpus.name, **value, **score.as_dict())
    except NearDupError as error:
        if alone:
            raise
        tables.fail(one.text, str(error))
        if arguments.json:
            _line(corpus=corpus.name, method=one.name, parameters=one.parameters, error=str(error))
        return False
    return True


def _measured(corpus: Corpus, one: MethodSpec, arguments: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Score]]:
    """The scores of one method, in a sweep each with the threshold's name and value."""
    method = one.method
    asked = {
        "store_url": arguments.store,
        "grouping": arguments.grouping,
        "progress": partial(progress, total=len(corpus.labels)),
    }
    if arguments.sweep:
        for value, score in sweep(one.name, corpus, parameters=one.parameters, **asked):
            yield {"threshold": threshold_of(method), "value": value}, score
        return
    with _verdicts(arguments.verdicts, corpus.gold) as on_verdict:
        score = evaluate(
            method,
            corpus.documents(),
            corpus.labels,
            on_verdict=on_verdict,
            different=corpus.different,
            gold=corpus.gold,
            **asked,
        )
    yield {}, score


def _line(**values: Any) -> None:
    write(as_json(values, indent=None) + "\n")


@contextmanager
def _verdicts(path: Path | None, gold: tuple[Gold, ...]) -> Iterator[Callable[[Document, Verdict], None] | None]:
    """What writes each verdict to a file, beside it what a reader said; None without a file."""
    if path is None:
        yield None
        return
    read: dict[str, list[Gold]] = defaultdict(list)
    for one in gold:
        read[one.later].append(one)
    try:
        with path.open("w", encoding="utf-8") as file:

            def on_verdict(document: Document, verdict: Verdict) -> None:
                match = verdict.match if verdict.is_copy else None
                answer: dict[str, Any] = {
                    "id": document.id,
                    "original": match.url if match else None,
                    "verdict": verdict.kind.value,
                    "kind": verdict.kind_of_likeness,
                    "similarity": round(match.similarity, 3) if match else None,
                }
                if said := [_said(one, verdict) for one in read.get(document.id, ())]:
                    answer["gold"] = said
                file.write(json.dumps(answer) + "\n")

            yield on_verdict
    except OSError as error:
        raise NearDupError(f"The verdicts cannot be written to {path}: {error}. Name another file.") from None


def _said(one: Gold, verdict: Verdict) -> dict[str, Any]:
    """What a reader said of a document and an earlier one, and whether the verdict is the same."""
    agrees = None if one.drop is None else one.drop == verdict.is_copy
    return {"a": one.earlier, "drop": one.answer, "label": one.label, "agrees": agrees}
