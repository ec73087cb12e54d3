"""``scrapy neardup judgements``: list the manual verdicts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from scrapy_neardup.cli.opening import add_store, snapshot_state
from scrapy_neardup.cli.options import config_of
from scrapy_neardup.cli.output import (
    add_list_options,
    check_list_options,
    format_count,
    format_time,
    to_line,
    warn,
    write_list,
)
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict, manual_verdicts

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
    """Add the options."""
    add_store(parser)
    add_list_options(parser, _NOUN)


def run(arguments: argparse.Namespace) -> int:
    """List the manual verdicts, or write labels."""
    check_list_options(arguments)
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        opinions = sorted(manual_verdicts(store), key=lambda one: (one.when, one.url))
    pairs = [one for one in opinions if one.other]
    write_list(arguments, _labels(pairs) if arguments.output else map(_as_data, opinions), _as_text, _NOUN)
    if arguments.output and (rest := len(opinions) - len(pairs)):
        warn(f"{format_count(rest, 'more manual verdict')} without a known original, so not a pair.")
    elif not opinions:
        warn("This state has no manual verdicts.")
    return 0


def _labels(pairs: list[ManualVerdict]) -> Iterator[dict[str, Any]]:
    for one in pairs:
        is_copy = one.kind is ManualKind.COPY
        label, figure = ("copy", 1) if is_copy else ("different", 0)
        yield {"a": one.other, "b": one.url, "label": label, "jaccard": figure, "containment": figure}


def _as_data(one: ManualVerdict) -> dict[str, Any]:
    return {"url": one.url, "said": one.kind.value, "other": one.other or None, "when": format_time(one.when)}


def _as_text(one: dict[str, Any]) -> str:
    relation = "no copy of" if one["said"] == ManualKind.KEEP.value else "a copy of"
    other = f"    {relation} {to_line(one['other'])}\n" if one["other"] else ""
    return f"{one['when']}  {one['said']}  {to_line(one['url'])}\n{other}"
