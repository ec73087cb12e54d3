"""``scrapy neardup judgements``: what was said of pages by hand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import add_output, check_output, counted, iso, line, put
from scrapy_neardup.judge.manual_verdicts import ManualVerdict, Opinion, judgements
from scrapy_neardup.settings import Config

NAME = "judgements"
HELP = "List manual verdicts (keep, copy), or write them as labels for 'evaluate'."
EXAMPLES = """\
list:
  Verdicts given with 'keep' and 'copy', the oldest first: {"url": "https://…", "said": "keep", "other": "https://…",
  "when": "2025-…"}. For "copy", other is the original. For "keep", it is the page that url is no copy of, or null.

labels (-o):
  One label per pair: {"a": "https://…", "b": "https://…", "label": "different", "jaccard": 0, "containment": 0}, or
  "copy" with 1. The figures stand for the verdict. Give the file to 'evaluate' with --pairs, together with a corpus
  whose ids are these URLs.

examples:
  scrapy neardup judgements
  scrapy neardup judgements -o labels.jsonl
  scrapy neardup judgements --json | grep mirror.example
"""

_NOUN = "manual verdicts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_store(parser)
    add_output(parser, _NOUN)


def run(arguments: argparse.Namespace) -> int:
    """List them; 0."""
    check_output(arguments)
    with looked(arguments.store, Config.from_settings(arguments.settings)) as store:
        said = sorted(judgements(store), key=lambda one: (one.when, one.url))
    pairs = [one for one in said if one.other]
    put(arguments, _labels(pairs) if arguments.output else map(_as_data, said), _as_text, _NOUN)
    if arguments.output and (rest := len(said) - len(pairs)):
        sys.stderr.write(f"{counted(rest, 'more manual verdict')} without a known original, so not a pair.\n")
    elif not said:
        sys.stderr.write("This state has no manual verdicts.\n")
    return 0


def _labels(pairs: list[Opinion]) -> Iterator[dict[str, Any]]:
    for one in pairs:
        is_copy = one.said is ManualVerdict.COPY
        figure = int(is_copy)
        label = "copy" if is_copy else "different"
        yield {"a": one.other, "b": one.url, "label": label, "jaccard": figure, "containment": figure}


def _as_data(one: Opinion) -> dict[str, Any]:
    return {"url": one.url, "said": one.said.value, "other": one.other or None, "when": iso(one.when)}


def _as_text(one: dict[str, Any]) -> str:
    what = "no copy of" if one["said"] == ManualVerdict.KEEP.value else "a copy of"
    other = f"    {what} {line(one['other'])}\n" if one["other"] else ""
    return f"{one['when']}  {one['said']}  {line(one['url'])}\n{other}"
