"""``scrapy neardup tune``: find a threshold from a few labelled pairs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
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
from scrapy_neardup.cli.inputs import read_documents
from scrapy_neardup.cli.opening import snapshot_state
from scrapy_neardup.cli.output import (
    ask,
    format_count,
    format_table,
    is_coloured,
    present,
    progress,
    save,
    to_line,
    warn,
    write,
)
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.lab.candidates import Stratum, draw_pairs, find_candidates, make_strata, make_thresholds
from scrapy_neardup.lab.documents import Spool, open_spool, read_kept_documents
from scrapy_neardup.lab.estimates import ENOUGH, Figure, Tuning, tune
from scrapy_neardup.lab.evaluate import find_overrides
from scrapy_neardup.lab.exact import Alike, open_gram_file
from scrapy_neardup.lab.pairs import COPY, DIFFERENT, SKIP, AnswerFile, Pair, compare_documents, read_answers
from scrapy_neardup.report.html import check_template
from scrapy_neardup.report.tuning import Question, QuestionSide, make_question, render_questions
from scrapy_neardup.settings import Config
from scrapy_neardup.state.urls import STORES
from scrapy_neardup.text.marking import Mark, Part, truncate
from scrapy_neardup.untrusted import clean_text, shell_word

#: Words that a reader may type, and their labels.
_LABELS = {"y": COPY, "yes": COPY, "n": DIFFERENT, "no": DIFFERENT, "s": SKIP, "skip": SKIP}
_QUESTION = "Is the later page a copy? [y]es, [n]o, [s]kip, [q]uit: "
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
    option("--html FILE", "write the pairs as an HTML page, and ask nothing", type=Path),
    option(
        "--labels FILE",
        "read labels, and ask nothing; with --html, leave out labelled pairs; may be repeated",
        type=Path,
        action="append",
        default=[],
    ),
    option("--cost N", "one wrong drop counts as N missed copies (default: 1)", type=float, default=1.0),
    limit_option(1500, "characters to show of a text (default: 1500; 0: all)"),
    flag("--json", "print the figures as one JSON object"),
    examples="""\
how it works:
  Each page is paired with the earlier page that it is most like. Some pairs are drawn: most where another threshold
  would change the verdict, some where none would, between sites and within a site. You say whether the later page is a
  copy, without knowing the verdict of the method. Then the command shows what each threshold would have done to all
  pages, with 95 % intervals, and the settings to paste.

  on the terminal  y, n, s (skip) or q (quit), then Enter. Each answer is saved to the file (-o) at once. The same
                   command again goes on with the rest.
  --html FILE      the same as one HTML page without network: keys y, n, s, and a button that saves the labels (extra:
                   report). Read the labels with --labels.

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
  scrapy neardup tune crawl.jsonl --html pairs.html
  scrapy neardup tune crawl.jsonl --labels labels.jsonl
  scrapy neardup tune crawl.jsonl --labels labels.jsonl --method simhash --cost 5
  scrapy neardup evaluate crawl.jsonl --pairs labels.jsonl --method all
""",
)
def find_threshold(arguments: argparse.Namespace) -> int:
    """Ask for labels or write the HTML page, or print what the labels mean."""
    if not 0 < arguments.cost < 1e6:
        raise SettingsError(f"--cost is {arguments.cost:g}. Give more than 0: one wrong drop counts as so many misses.")
    config = config_of(arguments)
    name, parameters = parse_method(arguments.method) if arguments.method else (config.method, dict(config.parameters))
    tried = make_thresholds(name, parameters)
    if arguments.html:
        check_template()
    elif not arguments.labels and arguments.output.exists():
        read_answers(arguments.output, "stratum_size")  # raises for another kind of file, before the feed is read
    with _documents(arguments.feed, config) as documents, open_gram_file() as sets:
        found = find_candidates(documents, sets, tried, config.min_letters, progress)
        if not found:
            raise NearDupError(
                f"No page of {arguments.feed} is like an earlier one, so there is nothing to tune. Name a larger feed."
            )
        parts = make_strata(found, tried)
        draws = draw_pairs(parts, tried, arguments.pairs, arguments.seed)
        labels = [pair for path in arguments.labels for pair in read_answers(path, "stratum_size")]
        if arguments.html or not arguments.labels:
            questions = [_make_question(documents, found[place].alike, stratum) for place, stratum in draws]
            if arguments.html:
                _write_page(arguments, config, questions, labels)
                return 0
            labels = _ask_for_labels(arguments, questions)
        tuning = tune(documents, found, parts, tried, labels, arguments.cost)
    present(arguments, _data(tuning), _report_lines(tuning, config))
    return 0


def _make_question(spool: Spool, found: Alike, stratum: Stratum) -> tuple[Pair, Question]:
    """Return two documents as a pair without answer, and as a question."""
    documents = spool[found.a], spool[found.b]
    pair = replace(compare_documents(found, *documents), stratum=stratum.name, stratum_size=stratum.size)
    a, b = ((one.id, one.page.title, one.url, one.page.text) for one in documents)
    return pair, make_question(a, b, pair.row())


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


def _write_page(
    arguments: argparse.Namespace, config: Config, pairs: list[tuple[Pair, Question]], labels: list[Pair]
) -> None:
    """Write the HTML page with the pairs that have no label yet."""
    files = arguments.labels
    labelled = {(one.a, one.b) for one in labels}
    left = [question for pair, question in pairs if (pair.a, pair.b) not in labelled]
    if not left:
        raise NearDupError(
            f"All {format_count(len(pairs), 'pair')} have labels. Draw others with --seed or --pairs, or leave --html "
            "out."
        )
    names = (f"labels{f'-{number}' if number > 1 else ''}.jsonl" for number in count(1))
    file = next(name for name in names if all(name != known.name for known in files))
    method = ("--method", arguments.method) if arguments.method else ()
    read = [word for path in (*files, file) for word in ("--labels", str(path))]
    command = " ".join(map(shell_word, ("scrapy", "neardup", "tune", arguments.feed, *method, *read)))
    save(render_questions(left, command, file, config.lang), arguments.html)
    without = len(pairs) - len(left)
    more = f", without {format_count(without, 'pair')} that have labels" if without else ""
    write(
        f"{arguments.html}: {format_count(len(left), 'pair')}{more}. Open it in a browser, save the labels "
        f"at the end, and run\n  {command}\n"
    )


def _ask_for_labels(arguments: argparse.Namespace, pairs: list[tuple[Pair, Question]]) -> list[Pair]:
    """Ask for the labels that the file does not have yet, and return all of them."""
    file = AnswerFile(arguments.output)
    left = [(pair, question) for pair, question in pairs if not file.has(pair)]
    known = len(pairs) - len(left)
    if known:
        write(f"{arguments.output} has answers to {known} of {format_count(len(pairs), 'pair')}.\n")
    for place, (pair, question) in enumerate(left):
        write(f"\n{'─' * 72}\nPair {known + place + 1} of {len(pairs)}\n")
        for when, side in zip(("EARLIER", "LATER"), question.sides, strict=True):
            write(_format_side(when, side, arguments.limit, is_coloured()))
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


def _format_side(when: str, side: QuestionSide, limit: int, coloured: bool) -> str:
    parts = truncate(list(side.parts), limit) if limit else side.parts
    more = side.letters - sum(len(part.text) for part in parts)
    rest = f"… ({more:,} more characters)\n" if more > 0 else ""
    text = "".join(_format_part(part, coloured) for part in parts)
    return f"\n{when}: {to_line(side.title)}\n{to_line(side.url or side.id)}\n\n{text}\n{rest}\n"


def _format_part(part: Part, coloured: bool) -> str:
    """Return text of both pages in grey; without colours, put text of one page in brackets."""
    is_shared, text = part.mark is Mark.SHARED, clean_text(part.text)
    if coloured:
        return f"\x1b[90m{text}\x1b[0m" if is_shared else text
    return text if is_shared else f"[[{text.rstrip()}]]{text[len(text.rstrip()) :]}"


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
    yield (
        f"What each {tried.parameter} of {tried.name} would have done, by {format_count(tuning.labels, 'label')} "
        "(95 % intervals in brackets):\n"
    )
    cells = [
        (
            f"{one.value:g}{' (now)' if at == tried.now else ''}",
            one.called,
            _format_number(one.wrong),
            _format_number(one.missed),
            f"{one.best:.0%}",
        )
        for at, one in enumerate(tuning.outlook.estimates)
    ]
    yield format_table([tried.parameter, "called", "wrong", "missed", "best"], cells) + "\n"
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
