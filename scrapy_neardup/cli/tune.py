"""``scrapy neardup tune``: find a threshold from a few labelled pairs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from scrapy_neardup.cli.command import (
    METHOD,
    command,
    config_of,
    flag,
    limit_option,
    number,
    option,
    parse_method,
)
from scrapy_neardup.cli.documents import read_documents
from scrapy_neardup.cli.opening import snapshot_state
from scrapy_neardup.cli.output import (
    BRACKETS,
    ask,
    format_count,
    format_parts,
    format_table,
    is_coloured,
    present,
    progress,
    to_line,
    warn,
    write,
)
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.lab.candidates import Stratum, draw_pairs, find_candidates, make_strata, make_thresholds
from scrapy_neardup.lab.documents import Document, Spool, open_rows, open_spool, read_kept_documents
from scrapy_neardup.lab.estimates import ENOUGH, Figure, Tuning, tune
from scrapy_neardup.lab.evaluate import find_overrides
from scrapy_neardup.lab.exact import Alike, GramFile
from scrapy_neardup.lab.pairs import COPY, DIFFERENT, SKIP, AnswerFile, Pair, compare_documents, read_answers
from scrapy_neardup.settings import Config
from scrapy_neardup.state.urls import STORES
from scrapy_neardup.text.marking import Mark, mark_sentences, sentence_letters, truncate
from scrapy_neardup.untrusted import clean_text

#: Words that a reader may type, and their labels.
_LABELS = {"y": COPY, "yes": COPY, "n": DIFFERENT, "no": DIFFERENT, "s": SKIP, "skip": SKIP}
_QUESTION = "Is the later page a copy? [y]es, [n]o, [s]kip, [q]uit: "
#: Characters of a text that are shown at most.
_MOST_SHOWN = 6_000
#: A value is better if it is so probable.
_CLEAR = 0.9


@command(
    "tune",
    option("feed FEED|STATE", "a feed, or the URL of a state that keeps texts"),
    METHOD,
    option("--pairs N", "number of pairs to draw (default: 40)", type=number(1), default=40),
    option("--seed N", "another seed draws other pairs (default: 1)", type=int, default=1),
    option(
        "-o FILE", "file for the answers (default: %(default)s)", dest="output", type=Path, default=Path("labels.jsonl")
    ),
    option(
        "--labels FILE",
        "read labels, and ask nothing; may be repeated",
        type=Path,
        action="append",
        default=[],
    ),
    option("--cost N", "one wrong drop counts as N missed copies (default: 1)", type=float, default=1.0),
    limit_option(1500, "characters to show of a text (default: 1500; 0: all, up to 6,000)"),
    flag("--json", "print the figures as one JSON object"),
    examples="""\
how it works:
  Each page is paired with the earlier page that it is most like. Some pairs are drawn: most where another threshold
  would change the verdict, some where none would, between sites and within a site. You say whether the later page is a
  copy, without knowing the verdict of the method. Then the command shows what each threshold would have done to all
  pages, with 95 % intervals, and the settings to paste.

  Type y, n, s (skip) or q (quit), then Enter. Each answer is saved to the file (-o) at once. The same command again
  goes on with the rest.

input:
  FEED is any input of `scrapy neardup dedup`, or a state (leveldb:///path, sqlite:///path) whose crawls kept texts
  (NEARDUP_KEEP = "texts"). Pages of a state are judged by these texts, without their HTML.

columns:
  called        pages that this threshold calls copies
  wrong         how many of them are no copies
  missed        copies that it lets pass
  best          probability that no other value does better (fewer wrong and missed; see --cost)

examples:
  scrapy neardup tune crawl.jsonl
  scrapy neardup tune crawl.jsonl --labels labels.jsonl
  scrapy neardup tune crawl.jsonl --labels labels.jsonl --method simhash --cost 5
  scrapy neardup evaluate crawl.jsonl --pairs labels.jsonl --method all
""",
)
def find_threshold(arguments: argparse.Namespace) -> int:
    """Ask for labels, and print what they mean."""
    if not 0 < arguments.cost < 1e6:
        raise SettingsError(f"--cost is {arguments.cost:g}. Give more than 0: one wrong drop counts as so many misses.")
    config = config_of(arguments)
    name, parameters = parse_method(arguments.method) if arguments.method else (config.method, dict(config.parameters))
    tried = make_thresholds(name, parameters)
    if not arguments.labels and arguments.output.exists():
        read_answers(arguments.output, "stratum_size")  # raises for another kind of file, before the feed is read
    with _documents(arguments.feed, config) as documents, open_rows(GramFile) as sets:
        found = find_candidates(documents, sets, tried, config.min_letters, progress)
        if not found:
            raise NearDupError(
                f"No page of {arguments.feed} is like an earlier one, so there is nothing to tune. Name a larger feed."
            )
        parts = make_strata(found, tried)
        labels = [pair for path in arguments.labels for pair in read_answers(path, "stratum_size")]
        if not arguments.labels:
            drawn = draw_pairs(parts, tried, arguments.pairs, arguments.seed)
            labels = _ask_for_labels(arguments, documents, [(found[place].alike, stratum) for place, stratum in drawn])
        tuning = tune(documents, found, parts, tried, labels, arguments.cost)
    present(arguments, _data(tuning), _report_lines(tuning, config))
    return 0


@contextmanager
def _documents(name: str, config: Config) -> Iterator[Spool]:
    """Open the documents of a feed, or of a state that keeps texts."""
    if name.partition(":")[0] in STORES and "://" in name:
        with snapshot_state(name, config) as store, open_spool(read_kept_documents(store, progress)) as documents:
            if not len(documents):
                raise NearDupError(
                    f"The state at {store.location} keeps no texts, so tune cannot judge its pages. Name a feed with "
                    'the texts, or crawl with NEARDUP_KEEP = "texts" first.'
                )
            yield documents
        return
    with open_spool(read_documents("tune", config, name)) as documents:
        yield documents


def _ask_for_labels(arguments: argparse.Namespace, documents: Spool, drawn: list[tuple[Alike, Stratum]]) -> list[Pair]:
    """Ask for the labels that the file does not have yet, and return all of them."""
    file, sides = AnswerFile(arguments.output), [(documents[alike.a], documents[alike.b]) for alike, _ in drawn]
    pairs = [
        replace(compare_documents(alike, *both), stratum=stratum.name, stratum_size=stratum.size)
        for (alike, stratum), both in zip(drawn, sides, strict=True)
    ]
    left = [(pair, both) for pair, both in zip(pairs, sides, strict=True) if not file.has(pair)]
    known = len(pairs) - len(left)
    if known:
        write(f"{arguments.output} has answers to {known} of {format_count(len(pairs), 'pair')}.\n")
    if left:
        marks = "green" if is_coloured() else "between {} and {}".format(*BRACKETS[Mark.SHARED])
        write(f"Common sentences: {marks}.\n")
    for place, (pair, (earlier, later)) in enumerate(left):
        write(f"\n{'─' * 72}\nPair {known + place + 1} of {len(pairs)}\n")
        write(_format_side("EARLIER", earlier, later, arguments.limit))
        write(_format_side("LATER", later, earlier, arguments.limit))
        answer = _read_label()
        if answer is None:
            warn(f"tune: {format_count(len(left) - place, 'pair')} left. To go on, run the same command again.")
            break
        file.add(pair, answer)
    return file.pairs


def _read_label() -> str | None:
    """Ask until the reader types a label; return None if the reader quits."""
    while True:
        typed = ask(_QUESTION)
        word = typed.strip().lower()
        if word in _LABELS:
            return _LABELS[word]
        if word in ("q", "quit") or not typed:
            write("\n")
            return None


def _format_side(when: str, document: Document, other: Document, limit: int) -> str:
    """Return the beginning of a page, with the sentences that the other page has too."""
    text, shared = clean_text(document.page.text), sentence_letters(other.page.text)
    parts = mark_sentences(text[:_MOST_SHOWN], lambda own: Mark.SHARED if own in shared else Mark.NONE)
    shown = truncate(parts, limit or _MOST_SHOWN)
    more = len(text) - sum(len(part.text) for part in shown)
    rest = f"… ({more:,} more characters)\n" if more else ""
    head = f"\n{when}: {to_line(document.page.title)}\n{to_line(document.url or document.id)}\n\n"
    return f"{head}{format_parts(shown, coloured=is_coloured())}\n{rest}\n"


def _data(tuning: Tuning) -> dict[str, Any]:
    tried, outlook = tuning.tried, tuning.outlook
    return {
        "method": tried.name,
        "threshold": tried.parameter,
        "candidates": sum(one.size for one in tuning.strata),
        "labels": tuning.labels,
        "values": outlook.estimates,
        "now": tried.value,
        "enough_labels": outlook.enough,
        "chosen": tried.values[outlook.chosen] if outlook.enough else None,
        "better": outlook.better if outlook.enough else None,
        "parameters": find_overrides(tried.methods[outlook.chosen]) if outlook.enough else None,
    }


def _report_lines(tuning: Tuning, config: Config) -> Iterator[str]:
    yield ""
    yield from _strata_lines(tuning)
    if tuning.labels:
        yield from _estimate_lines(tuning)
        yield from _advice_lines(tuning, config)
    else:
        yield "No pair is labelled yet. Label some, then run the command again.\n"


def _strata_lines(tuning: Tuning) -> Iterator[str]:
    pages = sum(one.size for one in tuning.strata)
    yield f"{format_count(pages, 'page')} {'is' if pages == 1 else 'are'} like an earlier page.\n"
    rows = []
    for one in tuning.strata:
        answers = tuning.answers.get(one.name, ())
        rows.append((one.name, one.size, len(answers), sum(answer.copy for answer in answers)))
    yield format_table(["of these", "pages", "labelled", "copies"], rows) + "\n"
    if tuning.lost:
        yield f"{format_count(tuning.lost, 'label')} left out, because the pairs are no candidates here.\n"


def _estimate_lines(tuning: Tuning) -> Iterator[str]:
    tried = tuning.tried
    labels = format_count(tuning.labels, "label")
    yield f"What each {tried.parameter} of {tried.name} would have done, by {labels} (95 % intervals in brackets):\n"
    rows = []
    for at, one in enumerate(tuning.outlook.estimates):
        value = f"{one.value:g}{' (now)' if at == tried.now else ''}"
        rows.append((value, one.called, _format_number(one.wrong), _format_number(one.missed), f"{one.best:.0%}"))
    yield format_table([tried.parameter, "called", "wrong", "missed", "best"], rows) + "\n"
    unlabelled = [one for one in tuning.strata if not tuning.answers.get(one.name)]
    if unlabelled:
        pages = format_count(sum(one.size for one in unlabelled), "page")
        yield (
            f"{pages} in {format_count(len(unlabelled), 'stratum', 'strata')} have no label. The figures count half of "
            "them as copies, with a wide interval.\n"
        )


def _advice_lines(tuning: Tuning, config: Config) -> Iterator[str]:
    tried, outlook = tuning.tried, tuning.outlook
    name, value = tried.parameter, tried.value
    if not outlook.enough:
        yield (
            f"Too few labels: {outlook.deciding} for pairs where the values differ, but a comparison needs {ENOUGH}, "
            f"over most kinds of pairs. Label more, or keep {name} at {value:g}.\n"
        )
        return
    chosen, is_kept = tried.values[outlook.chosen], outlook.chosen == tried.now
    is_clear = (outlook.safe if is_kept else outlook.better) >= _CLEAR
    more = "" if is_clear else " To be surer, label more pairs with another --seed."
    if is_kept:
        yield f"Keep {name} {value:g}.{more} The settings:\n"
    else:
        yield f"{name} {chosen:g} is better than {value:g} in {outlook.better:.0%} of cases.{more} The settings:\n"
    if tried.name != config.method or tried.name != "cascade":
        yield f"    NEARDUP_METHOD = {tried.name!r}"
    yield f"    NEARDUP_PARAMETERS = {find_overrides(tried.methods[outlook.chosen])!r}\n"


def _format_number(figure: Figure) -> str:
    return f"{figure.estimate:,.0f} ({figure.low:,.0f}–{figure.high:,.0f})"
