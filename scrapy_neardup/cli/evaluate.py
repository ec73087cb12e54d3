"""``scrapy neardup evaluate``: score methods on labelled corpora."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scrapy_neardup.cli.command import (
    command,
    config_of,
    flag,
    format_parameters,
    method_option,
    option,
    parse_method,
    parse_parameters,
)
from scrapy_neardup.cli.documents import read_documents
from scrapy_neardup.cli.output import as_json, format_count, format_table, progress, to_line, write
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.lab.corpus import NEG, POS, REPOST, TEMPLATE, Corpus, read_corpus
from scrapy_neardup.lab.documents import Document, open_spool
from scrapy_neardup.lab.evaluate import STORES, GoldScore, Score, evaluate, find_threshold
from scrapy_neardup.lab.pairs import COPY, DIFFERENT, SKIP, Pair
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.methods.cascade.parameters import METHOD, PROFILES
from scrapy_neardup.model import Verdict

_COLUMNS = ("missed", "false/10k", "precision", "recall", "F1", "reposts", "templates", "ms/page", "bytes/page")
_GOLD_COLUMNS = ("label", "agreement", "dropped wrongly", "kept wrongly")
_NONE = "–"
#: The words for answers in the output.
_DROP = {COPY: "yes", DIFFERENT: "no", SKIP: "unsure"}


@command(
    "evaluate",
    option("corpus CORPUS", "a folder, or a file of documents", nargs="+", type=Path),
    method_option(", or all; may be repeated (default: cascade, by NEARDUP_PROFILE)", action="append"),
    option(
        "-p, --parameter NAME=VALUE",
        "a parameter of all methods, as JSON; may be repeated",
        action="append",
        default=[],
    ),
    flag("--sweep", "try several values of the threshold, one line each"),
    option("--store", "kind of state (default: memory:)", choices=STORES, default="memory:"),
    option("--pairs FILE", "reference pairs (default: pairs.jsonl of the corpus)", type=Path),
    option("--gold FILE", "pairs read by a person (default: gold.jsonl of the corpus)", type=Path),
    option("--verdicts FILE", "write all verdicts to this file, as JSON lines", type=Path),
    flag("--json", "print one JSON object per line"),
    examples="""\
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
  scrapy neardup evaluate crawl.jsonl --gold read.jsonl
  scrapy neardup evaluate crawl.jsonl.gz --pairs labels.jsonl --verdicts verdicts.jsonl --json
""",
)
def score_methods(arguments: argparse.Namespace) -> int:
    """Print the scores; return 1 if some of several methods failed."""
    config = config_of(arguments)
    parameters = parse_parameters(arguments.parameter)
    if not arguments.method:
        parameters = {**PROFILES[config.profile], **parameters}
    specs = list(_parse_methods(arguments.method or [METHOD], parameters))
    if len(arguments.corpus) > 1 and arguments.pairs is not None:
        raise SettingsError("--pairs works with one corpus. Name one, or put a pairs.jsonl into each.")
    if arguments.verdicts is not None and (len(arguments.corpus) > 1 or len(specs) > 1 or arguments.sweep):
        raise SettingsError("--verdicts works with one method on one corpus, without --sweep. Name one of each.")
    with ExitStack() as stack:
        corpora = []
        for path in arguments.corpus:
            documents = stack.enter_context(open_spool(read_documents("evaluate", config, path)))
            corpora.append(read_corpus(path, documents, arguments.pairs, arguments.gold))
        if arguments.gold is not None and not any(corpus.gold for corpus in corpora):
            names = " or ".join(corpus.name for corpus in corpora)
            raise SettingsError(f'No line of {arguments.gold} is about {names}. Check "corpus" in its lines.')
        failures = sum(_report(corpus, specs, arguments) for corpus in corpora)
    return 1 if failures else 0


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method that the user named."""

    name: str
    parameters: dict[str, Any]

    @property
    def text(self) -> str:
        """The method as on the command line."""
        return f"{self.name}:{format_parameters(self.parameters)}" if self.parameters else self.name


def _parse_methods(texts: list[str], common: dict[str, Any]) -> Iterator[MethodSpec]:
    """Yield the methods. Raises NearDupError for one that cannot be made, unless it is one of ``all``."""
    for text in texts:
        name, own = parse_method(text)
        parameters = {**common, **own}
        if name != "all":
            make_method(name, parameters)
        yield from (MethodSpec(one, parameters) for one in (METHODS if name == "all" else [name]))


@dataclass(frozen=True, slots=True)
class _Result:
    """The score of a method, or why it has none. In a sweep ``value`` has name and value of the threshold."""

    spec: MethodSpec
    value: dict[str, Any]
    score: Score | None
    error: str = ""


def _report(corpus: Corpus, specs: list[MethodSpec], arguments: argparse.Namespace) -> int:
    """Evaluate the methods on a corpus, and print; return how many failed."""
    results = []
    for spec in specs:
        for result in _evaluate(corpus, spec, arguments, alone=len(specs) == 1):
            results.append(result)
            if arguments.json:
                failure = {"method": spec.name, "parameters": spec.parameters, "error": result.error}
                figures = {**result.value, **result.score.as_dict()} if result.score else failure
                write(as_json({"corpus": corpus.name, **figures}, indent=None) + "\n")
    if not arguments.json:
        write(_format_results(corpus, results, sweep=arguments.sweep))
    return sum(one.score is None for one in results)


def _evaluate(corpus: Corpus, spec: MethodSpec, arguments: argparse.Namespace, *, alone: bool) -> Iterator[_Result]:
    """Yield the result of a method; in a sweep one for each value of its threshold.

    The error of the only method is raised.
    """
    try:
        method = make_method(spec.name, spec.parameters)
        tried: list[tuple[dict[str, Any], Method]] = [({}, method)]
        if arguments.sweep:
            name = find_threshold(method)
            tried = [
                ({"threshold": name, "value": value}, make_method(spec.name, {**spec.parameters, name: value}))
                for value in type(method).sweep
            ]
        for value, method in tried:
            with _open_verdicts(arguments.verdicts, corpus.gold) as on_verdict:
                watch = partial(progress, total=len(corpus.labels))
                score = evaluate(method, corpus, store_url=arguments.store, progress=watch, on_verdict=on_verdict)
            yield _Result(spec, value, score)
    except NearDupError as error:
        if alone:
            raise
        yield _Result(spec, {}, None, str(error))


@contextmanager
def _open_verdicts(path: Path | None, gold: tuple[Pair, ...]) -> Iterator[Callable[[Document, Verdict], None]]:
    """Open a writer of verdicts, which adds the reader's answers; it does nothing without a file."""
    if path is None:
        yield lambda document, verdict: None
        return
    answers: dict[str, list[Pair]] = defaultdict(list)
    for one in gold:
        answers[one.b].append(one)
    try:
        with path.open("w", encoding="utf-8") as file:

            def on_verdict(document: Document, verdict: Verdict) -> None:
                row = _verdict_row(document, verdict, answers.get(document.id, ()))
                file.write(json.dumps(row) + "\n")

            yield on_verdict
    except OSError as error:
        raise NearDupError(f"The verdicts cannot be written to {path}: {error}. Name another file.") from None


def _verdict_row(document: Document, verdict: Verdict, answers: Iterable[Pair]) -> dict[str, Any]:
    match = verdict.match if verdict.is_copy else None
    gold = []
    for one in answers:
        agrees = None if one.answer == SKIP else (one.answer == COPY) == verdict.is_copy
        gold.append({"a": one.a, "drop": _DROP[one.answer or SKIP], "label": one.label, "agrees": agrees})
    row = {
        "id": document.id,
        "original": match.url if match else None,
        "verdict": verdict.kind.value,
        "kind": verdict.kind_of_likeness,
        "similarity": round(match.similarity, 3) if match else None,
    }
    return {**row, "gold": gold} if gold else row


def _format_results(corpus: Corpus, results: list[_Result], *, sweep: bool) -> str:
    """Return a table of scores, and one that says how far verdicts agree with a reader."""
    first = ("method", "threshold", "value") if sweep else ("method",)
    scores, gold = [], []
    for one in results:
        names = [one.spec.text, *map(str, one.value.values())]
        names += [_NONE] * (len(first) - len(names))
        scores.append([*names, *(_score_cells(one.score) if one.score else [_NONE] * len(_COLUMNS))])
        if one.score and one.score.gold:
            gold += [[*names, *cells] for cells in _gold_cells(one.score.gold)]
    failures = "".join(f"\n{one.spec.text}: {one.error}\n" for one in results if one.error)
    table = format_table([*first, *_COLUMNS], scores, words=max(1, len(first) - 1))
    count = Counter(corpus.labels.values())
    text = (
        f"{corpus.name}: {len(corpus.labels):,} documents, including {count[POS]:,} duplicates, "
        f"{count[NEG]:,} different, {count[REPOST]:,} reposts, {count[TEMPLATE]:,} templates"
        f"\n\n{table}\n{failures}\n"
    )
    if gold:
        unsure = sum(one.answer == SKIP for one in corpus.gold)
        left_out = f", and {unsure:,} where the reader is unsure" if unsure else ""
        pairs = format_count(len(corpus.gold) - unsure, "pair")
        table = format_table([*first, *_GOLD_COLUMNS], gold, words=len(first) + 1)
        text += f"{corpus.name}: {pairs} read by a person{left_out}\n\n{table}\n\n"
    return text


def _gold_cells(gold: GoldScore) -> Iterator[list[str]]:
    """Yield a row for all pairs, and one for each label if there are several."""
    labels = gold.by_label if len(gold.by_label) > 1 else {}
    for name, one in (("all", gold), *labels.items()):
        dropped, kept = f"{one.dropped_wrongly}/{one.different}", f"{one.kept_wrongly}/{one.copies}"
        yield [to_line(name), f"{one.agree}/{one.pairs}", dropped, kept]


def _score_cells(score: Score) -> list[str]:
    shares = [f"{share:.4f}" for share in (score.precision, score.recall, score.f1)]
    edited = f"{score.reposts_dropped}/{score.reposts}", f"{score.templates_dropped}/{score.templates}"
    cells = [f"{score.missed}/{score.pos}", f"{score.false_per_10k:.1f}", *shares, *edited]
    cost = [f"{score.ms_per_page:.2f}", f"{score.bytes_per_page:.0f}"]
    return [*(cells if score.labelled else [_NONE] * len(cells)), *cost]
