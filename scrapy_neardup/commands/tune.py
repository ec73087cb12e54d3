"""``scrapy neardup tune``: find a threshold from a few labelled pairs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.commands.opening import looked
from scrapy_neardup.commands.output import counted, is_coloured, line, method_spec, printable, progress, write
from scrapy_neardup.commands.pages import check_read, opened_feed
from scrapy_neardup.commands.tune_report import Disagreement, compared, tell
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.evaluation.documents import Document, Spool, documents_of, spooled
from scrapy_neardup.evaluation.exact import gram_file
from scrapy_neardup.evaluation.labels import COPY, DIFFERENT, SKIP, pair_row
from scrapy_neardup.evaluation.tuning_estimates import Label, LabelFile, read_answers
from scrapy_neardup.evaluation.tuning_pairs import Candidate, Stratum, Thresholds, candidates, drawn, strata, thresholds
from scrapy_neardup.maintenance.scan import with_evidence
from scrapy_neardup.methods import METHODS
from scrapy_neardup.oneline import shell_word
from scrapy_neardup.report.tuning import AskedPair, AskedSide, asked_pair, check, tuning_page
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import STORES
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.text.marking import Mark, Part, truncate

# ----------------------------------------------------------------------------------------------------------------------
# The dialogue of ``tune``: pairs on a terminal, one after the other, and what is answered.


#: What is typed, and what it says.
KEYS = {"y": COPY, "n": DIFFERENT, "s": SKIP}
_WORDS = {"yes": "y", "no": "n", "skip": "s", "quit": "q"}
_QUESTION = "Is the later page a copy? [y]es, [n]o, [s]kip, [q]uit: "


def ask(
    pairs: Sequence[AskedPair],
    answered: int,
    keep: Callable[[Mapping[str, Any], str], None],
    *,
    limit: int,
    coloured: bool,
) -> int:
    """Show pairs until all are answered, or the reader has enough; returns how many were.

    ``answered``: pairs before these. ``keep`` gets each answer at once. ``limit``: characters shown of a text; 0: all.
    """
    many = answered + len(pairs)
    for number, pair in enumerate(pairs):
        head = f"\n{'─' * 72}\nPair {answered + number + 1} of {many}\n"
        write(
            head + "".join(_side(*one, limit, coloured) for one in zip(("EARLIER", "LATER"), pair.sides, strict=True))
        )
        said = _answer()
        if said is None:
            return number
        keep(pair.row, said)
    return len(pairs)


def _answer() -> str | None:
    """What was answered; None at the end."""
    while True:
        write(_QUESTION)
        typed = sys.stdin.readline()
        word = typed.strip().lower()
        key = _WORDS.get(word, word)
        if key in KEYS:
            return KEYS[key]
        if key == "q" or not typed:
            write("\n")
            return None


def _side(when: str, side: AskedSide, limit: int, coloured: bool) -> str:
    parts = truncate(list(side.parts), limit) if limit else side.parts
    more = side.letters - sum(len(part.text) for part in parts)
    rest = f"… ({more:,} more characters)\n" if more > 0 else ""
    text = "".join(_show_part(part, coloured) for part in parts)
    return f"\n{when}: {line(side.title)}\n{line(side.url or side.id)}\n\n{text}\n{rest}\n"


def _show_part(part: Part, coloured: bool) -> str:
    """What both say is grey; without colours what one of them says stands in brackets."""
    shared, text = part.mark is Mark.SHARED, printable(part.text)
    if coloured:
        return f"\x1b[90m{text}\x1b[0m" if shared else text
    return text if shared else f"[[{text.rstrip()}]]{text[len(text.rstrip()) :]}"


# ----------------------------------------------------------------------------------------------------------------------
# ``scrapy neardup tune``: a threshold for one's own pages from a few pairs that one has labelled.


NAME = "tune"
HELP = "Find the threshold for your own pages: label some doubtful pairs, and see what each value would do."
EXAMPLES = """\
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
"""
#: Methods that are held against the chosen one, if nothing else is asked for.
_AGAINST = ("cascade", "minhash", "shingle", "simhash", "nshash", "segments")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("feed", metavar="FEED|STATE", help="a feed, or the URL of a state that keeps texts")
    parser.add_argument(
        "--method",
        metavar="NAME[:PARAMETER=VALUE,…]",
        help=f"one of {', '.join(METHODS)} (default: the project's, else cascade)",
    )
    parser.add_argument("--pairs", type=int, default=40, metavar="N", help="number of pairs to draw (default: 40)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed draws other pairs (default: 1)")
    parser.add_argument(
        "-o",
        dest="output",
        type=Path,
        default=Path("labels.jsonl"),
        metavar="FILE",
        help="file for the answers (default: %(default)s)",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the pairs as an HTML page, and ask nothing")
    parser.add_argument(
        "--labels",
        type=Path,
        action="append",
        metavar="FILE",
        help="read labels, and ask nothing; with --html, leave out labelled pairs; may be repeated",
    )
    parser.add_argument(
        "--cost", type=float, default=1.0, metavar="N", help="one wrong drop counts as N missed copies (default: 1)"
    )
    parser.add_argument(
        "--against",
        action="append",
        metavar="NAME[:…]",
        help=f"a method to compare with, or all, or none; may be repeated (default: {', '.join(_AGAINST)})",
    )
    parser.add_argument(
        "--limit", type=int, default=1500, metavar="N", help="characters to show of a text (default: 1500; 0: all)"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")


@dataclass(frozen=True, slots=True)
class _Material:
    """The pages, the candidates among them and their strata, and the method that is tuned."""

    documents: Spool
    tried: Thresholds
    found: list[Candidate]
    strata: list[Stratum]

    def row(self, place: int) -> dict[str, Any]:
        """The pair of a candidate as it is written."""
        pair = self.found[place].alike
        return pair_row(pair, self.documents[pair.a], self.documents[pair.b])

    def asked(self, place: int, stratum: Stratum) -> AskedPair:
        """The pair of a candidate as it is shown."""
        pair = self.found[place].alike
        one, other = self.documents[pair.a], self.documents[pair.b]
        row = {**pair_row(pair, one, other), "stratum": stratum.name, "stratum_size": stratum.size}
        return asked_pair(_show_document(one), _show_document(other), row)


def run(arguments: argparse.Namespace) -> int:
    """Ask, or write the page, or tell what the labels mean; 0."""
    _check(arguments)
    config = Config.from_settings(arguments.settings)
    name, parameters = method_spec(arguments.method) if arguments.method else (config.method, dict(config.parameters))
    tried = thresholds(name, parameters)
    if arguments.html:
        check()
    elif not arguments.labels and arguments.output.exists():
        read_answers(arguments.output)  # said before the feed is read, if it is another kind of file
    with _documents(arguments.feed, config) as documents, gram_file() as sets:
        found = candidates(documents, sets, tried, config.min_letters, progress)
        if not found:
            raise NearDupError(
                f"No page of {arguments.feed} is like an earlier one, so there is nothing to tune. Name a larger feed."
            )
        material = _Material(documents, tried, found, strata(found, tried))
        pairs = drawn(material.strata, tried, arguments.pairs, arguments.seed)
        if arguments.html:
            _write_page(arguments, config, [material.asked(*one) for one in pairs])
            return 0
        _tell(arguments, config, material, pairs)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.pairs < 1:
        raise SettingsError(f"--pairs is {arguments.pairs}. Give 1 or more pairs to label.")
    if arguments.limit < 0:
        raise SettingsError(f"--limit is {arguments.limit}. Give 0 (all) or more.")
    if not 0 < arguments.cost < 1e6:
        raise SettingsError(f"--cost is {arguments.cost:g}. Give more than 0: one wrong drop counts as so many misses.")


def _tell(arguments: argparse.Namespace, config: Config, material: _Material, pairs: list[tuple[int, Stratum]]) -> None:
    """What the labels mean; those that are missing are asked for first, unless files of labels are given."""
    if arguments.labels:
        labels = [one for path in arguments.labels for one in read_answers(path)]
    else:
        labels = _asked(arguments, material, pairs)
    against = _against(arguments.against, material.tried)
    asked = [place for place, _ in pairs]
    tell(
        compared(material.documents, material.found, material.strata, material.tried, labels, arguments.cost),
        Disagreement.of(material.documents, material.found, material.tried, against, asked, progress),
        config,
        as_data=arguments.json,
    )


def _asked(arguments: argparse.Namespace, material: _Material, pairs: list[tuple[int, Stratum]]) -> list[Label]:
    file = LabelFile(arguments.output)
    shown = [material.asked(*one) for one in pairs]
    known = [one for one in shown if (one.row["a"], one.row["b"]) in file.labels]
    left = [one for one in shown if (one.row["a"], one.row["b"]) not in file.labels]
    if known:
        write(f"{arguments.output} has answers to {len(known)} of {counted(len(shown), 'pair')}.\n")
    done = ask(left, len(known), file.add, limit=arguments.limit, coloured=is_coloured())
    if done < len(left):
        sys.stderr.write(f"{NAME}: {counted(len(left) - done, 'pair')} left. To go on, run the same command again.\n")
    return list(file.labels.values())


def _write_page(arguments: argparse.Namespace, config: Config, pairs: list[AskedPair]) -> None:
    """Write the page of those pairs that have no label yet."""
    path, given = arguments.html, arguments.labels or []
    known = {(one.a, one.b) for path in given for one in read_answers(path)}
    left = [one for one in pairs if (one.row["a"], one.row["b"]) not in known]
    if not left:
        raise NearDupError(
            f"All {counted(len(pairs), 'pair')} have labels. Draw others with --seed or --pairs, or leave --html out."
        )
    labels = _labels_of_page(given)
    command = _next(arguments, [*given, labels])
    with replace_file(path) as draft:
        draft.write_text(tuning_page(left, command, labels.name, config.lang), encoding="utf-8")
    more = f", without {counted(len(pairs) - len(left), 'pair')} that have labels" if len(left) < len(pairs) else ""
    write(
        f"{path}: {counted(len(left), 'pair')}{more}. Open it in a browser, save the labels at the end, and run\n"
        f"  {command}\n"
    )


def _labels_of_page(given: list[Path]) -> Path:
    """The name under which the page saves its labels: not one of these."""
    names = {path.name for path in given}
    numbers = (f"labels{f'-{number}' if number > 1 else ''}.jsonl" for number in range(1, len(names) + 2))
    return Path(next(name for name in numbers if name not in names))


def _next(arguments: argparse.Namespace, labels: list[Path]) -> str:
    """The command that reads the labels back."""
    method = ("--method", arguments.method) if arguments.method else ()
    read = [word for path in labels for word in ("--labels", str(path))]
    return " ".join(map(shell_word, ("scrapy", "neardup", NAME, arguments.feed, *method, *read)))


def _against(given: list[str] | None, tried: Thresholds) -> list[str]:
    names = [one for one in given or _AGAINST if one != "none"]
    if "all" in names:
        names = list(METHODS)
    return [one for one in dict.fromkeys(names) if one != tried.name]


@contextmanager
def _documents(name: str, config: Config) -> Iterator[Spool]:
    """The pages of a feed, or of a state that kept their texts."""
    if name.partition(":")[0] in STORES and "://" in name:
        with looked(name, config) as store, spooled(_kept(store)) as documents:
            if not len(documents):
                raise NearDupError(
                    f"The state at {store.location} keeps no texts, so tune cannot judge its pages. Name a feed with "
                    "the "
                    'texts, or crawl with NEARDUP_KEEP = "texts" first.'
                )
            yield documents
        return
    with opened_feed(config) as feed, spooled(progress(documents_of(feed, name), what="documents read")) as documents:
        check_read(NAME, feed, documents, name)
        yield documents


def _kept(store: PageStore) -> Iterator[Document]:
    """The pages of which the state has texts, in the order in which they came."""
    for record, evidence in with_evidence(store, progress):
        if evidence is not None and evidence.text:
            yield Document(record.url, evidence.title, evidence.text, url=record.url)


def _show_document(document: Document) -> tuple[str, str, str, str]:
    return document.id, document.title, document.url, document.page().text
