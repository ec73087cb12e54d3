"""The commands ``scrapy neardup …``.

Scrapy imports this module for every command line, so it imports the module of a command only when it is needed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, cast

from scrapy.commands import ScrapyCommand

from scrapy_neardup.errors import NearDupError

if TYPE_CHECKING:
    from scrapy_neardup.cli.command import Command

#: The module of each command, and its line in the help, in the order of the help.
COMMANDS = {
    "dedup": ("dedup", "Drop or tag near-duplicates in files: feeds, CSV, Parquet, HTML folders, web archives."),
    "batch": ("batch", "Judge archives larger than memory, on all cores or on Spark; the run can go on later."),
    "report": (
        "report",
        "Write a report on a state as one HTML file: totals, kinds, sites, groups, texts side by side.",
    ),
    "explain": ("contents", "Show what the state knows about a page: verdict, original, evidence, group."),
    "stats": ("contents", "Count the contents of a state: pages, originals, copies by kind, groups, sites, size."),
    "groups": ("contents", "List the groups of a state, the largest first: each original with its copies."),
    "dropped": ("contents", "List pages that were dropped as copies: in the last crawl, since a time, of a site."),
    "keep": ("verdicts", "Mark a page as no copy: it passes in the next crawl and from then on."),
    "copy": ("verdicts", "Mark a page as a copy of another one, to be dropped when it comes again."),
    "judgements": ("verdicts", "List manual verdicts (keep, copy), or write them as labels for 'evaluate'."),
    "compare": ("pages", "Explain the verdict on two pages: features with weights, deciding rule, common text."),
    "extract": ("pages", "Show the text of a page that would be judged: its reader, the reason, its boilerplate."),
    "forget": ("forget", "Remove pages from a state, so that they are judged as if never seen."),
    "expire": (
        "forget",
        "Forget old pages at once, by NEARDUP_TTL and NEARDUP_MAX_PAGES, not bit by bit as a crawl does.",
    ),
    "compact": ("forget", "Shrink the files of a state after pages were forgotten."),
    "check": ("check", "Check every row of a state, or make a repaired copy of it."),
    "export": ("exchange", "Write the state to one file: a backup, or a way to another machine or store."),
    "import": ("exchange", "Make a new state from a file written by 'export'."),
    "merge": ("exchange", "Add the pages of other states, or of exported files, to a state."),
    "migrate": ("migrate", "Convert a state to the current method, parameters and versions."),
    "evaluate": ("measure", "Score methods on pairs that you labelled: wrong drops, missed copies, time and size."),
}

#: The groups of the help, each with its first command. The groups follow the order of ``COMMANDS``.
GROUPS = {
    "dedup": "Files",
    "report": "Look at a crawl",
    "keep": "Correct a verdict",
    "compare": "Explain a verdict",
    "forget": "Look after a state",
    "evaluate": "Measure methods",
}

#: The meaning of each exit code.
EXIT_CODES = {
    0: "The command succeeded.",
    1: "The answer is not the wanted one: a page is not in the state, a record is malformed, a check found damage.",
    2: "An argument, setting, file or state is wrong. The message on standard error says what to do.",
    130: "The command was interrupted with Ctrl-C.",
    141: "The reader of the output closed the pipe, as in `… | head`.",
}


def list_commands() -> str:
    """Return the commands with a line each, in groups."""
    parts = []
    for name, (_, help) in COMMANDS.items():
        if name in GROUPS:
            parts.append(f"\n{GROUPS[name]}:\n")
        parts.append(f"  {name:<12} {help}\n")
    return "".join(parts)


def load(name: str) -> Command:
    """Import the module of a command, and return the command."""
    from scrapy_neardup.cli.command import Command

    found = vars(import_module(f"{__name__}.{COMMANDS[name][0]}")).values()
    return next(one for one in found if isinstance(one, Command) and one.name == name)


class NearDupCommand(ScrapyCommand):
    """``scrapy neardup``, inside and outside of projects."""

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def __init__(self) -> None:
        super().__init__()
        self._parsers: dict[str, _LazyParser] = {}

    def syntax(self) -> str:
        """Return what follows ``scrapy neardup`` in the usage."""
        return "<command> [options]"

    def short_desc(self) -> str:
        """Return the line for Scrapy's list of commands."""
        return "Remove near-duplicates from files, inspect the state of a crawl, measure methods"

    def long_desc(self) -> str:
        """Return the text above the options in the help."""
        return f"{self.short_desc()}\n{list_commands()}\nRun scrapy neardup <command> --help for details."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add a parser for each command. Scrapy's own options may stand before and after a command's name."""
        super().add_options(parser)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--version", action="store_true", help="print versions, and what is in use here")
        commands = parser.add_subparsers(
            prog="scrapy neardup", dest="neardup", help=argparse.SUPPRESS, parser_class=_LazyParser
        )
        for name, (_, help) in COMMANDS.items():
            self._parsers[name] = commands.add_parser(name, description=help, fill=partial(self._fill, name))

    def _fill(self, name: str, parser: argparse.ArgumentParser) -> None:
        command = load(name)
        parser.epilog = command.examples
        super().add_options(cast(argparse.ArgumentParser, _HiddenOptions(parser)))
        command.add_arguments(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run a command, or list them all, and leave the exit code for Scrapy."""
        if opts.neardup is None:
            if opts.version:
                sys.stdout.write(describe_versions())
                return
            sys.stdout.write(f"Usage: scrapy neardup {self.syntax()}\n\n{self.long_desc()}\n")
            self.exitcode = 2
            return
        if args:
            self._parsers[opts.neardup].error(f"unrecognized arguments: {' '.join(args)}")
        opts.settings = self.settings
        self.exitcode = _run(load(opts.neardup), opts)


class _LazyParser(argparse.ArgumentParser):
    """The parser of a command. It loads the command's module when it parses, because all modules take 0.2 seconds."""

    def __init__(self, *, fill: Callable[[argparse.ArgumentParser], None], **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=formatter, conflict_handler="resolve", allow_abbrev=False, **options)
        self._fill: Callable[[argparse.ArgumentParser], None] | None = fill

    def fill(self) -> None:
        """Add the options of the command, once."""
        if self._fill is not None:
            fill, self._fill = self._fill, None
            fill(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.fill()
        return super().parse_known_args(args, namespace)


class _HiddenOptions:
    """Adds Scrapy's options to a parser without help, and without defaults.

    A default would replace a value that stands before the command's name.
    """

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser

    def add_argument_group(self, **_: Any) -> _HiddenOptions:
        return self

    def add_argument(self, *flags: str, **options: Any) -> None:
        self._parser.add_argument(*flags, **{**options, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS})


def describe_versions() -> str:
    """Return versions, the kind of states, and whether the kernels are compiled."""
    from scrapy_neardup.hashing import compiled

    state = "LevelDB" if find_spec("plyvel") else "SQLite, because plyvel is not installed"
    return (
        f"scrapy-neardup {version('scrapy-neardup')}, Scrapy {version('scrapy')}, {platform.python_implementation()} "
        f"{platform.python_version()} on {platform.system()} {platform.machine()}\n"
        f"{compiled.sentence()}\nStates are {state}.\n"
    )


def _run(command: Command, arguments: argparse.Namespace) -> int:
    """Run a command, with the settings of a spider if one is named, and return the exit code of the process."""
    try:
        if getattr(arguments, "spider", None):
            settings_of = import_module(f"{__name__}.opening").settings_of
            arguments.settings = settings_of(arguments.settings, arguments.spider)
        code = command.run(arguments)
        sys.stdout.flush()
    except NearDupError as error:
        sys.stderr.write(f"scrapy neardup {command.name}: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as in: … | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
        return 141
    return code
