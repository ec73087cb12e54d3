"""The commands ``scrapy neardup …``; each is a module beside this one and a line in ``COMMANDS``.

A module of a command holds

    NAME, HELP          what is typed, and what it does in a line
    EXAMPLES            shown below the help, as it stands
    add_arguments       adds its options to a parser
    run                 does it; returns the exit code: 0, or 1 if the answer is not the wanted one; what it is
                        called with holds its options, and as ``settings`` those of Scrapy: the project's, if any

Scrapy imports this module for whatever command it is asked for, so the others are imported only when they are needed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from keyword import iskeyword
from typing import Any, ClassVar, Protocol, cast

from scrapy.commands import ScrapyCommand

from scrapy_neardup.errors import NearDupError

#: In the order in which they are listed.
COMMANDS = (
    "dedup",
    "report",
    "explain",
    "stats",
    "groups",
    "dropped",
    "keep",
    "copy",
    "judgements",
    "compare",
    "extract",
    "forget",
    "expire",
    "compact",
    "check",
    "export",
    "import",
    "merge",
    "migrate",
    "tune",
    "pairs",
    "evaluate",
    "robustness",
    "collisions",
    "lexicon",
)

#: What the exit code of a command tells.
EXIT_CODES = {
    0: "The command succeeded.",
    1: "The answer is not the wanted one: a page is not in the state, a record is malformed, a check found damage.",
    2: "An argument, setting, file or state is wrong. The message on standard error says what to do.",
    130: "The command was interrupted with Ctrl-C.",
    141: "The reader of the output closed the pipe, as in `… | head`.",
}


def load(name: str) -> SubCommand:
    """The module of a command; one whose name is a word of Python has an underscore behind it."""
    return cast(SubCommand, import_module(f"{__name__}.{name}_" if iskeyword(name) else f"{__name__}.{name}"))


class SubCommand(Protocol):
    """What a module of a command holds."""

    NAME: str
    HELP: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options to its parser."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it and return the exit code; raises NearDupError where that is the user's to mend."""


class NearDupCommand(ScrapyCommand):
    """``scrapy neardup``: a group of commands around near-duplicates, inside and outside of projects."""

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def __init__(self) -> None:
        super().__init__()
        self._parsers: dict[str, argparse.ArgumentParser] = {}

    def syntax(self) -> str:
        """What follows ``scrapy neardup`` in the line of usage."""
        return "<command> [options]"

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Remove near-duplicates from files, inspect the state of a crawl, measure methods"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """A parser for each command; Scrapy's own options are taken before and after a command's name."""
        super().add_options(parser)
        commands = parser.add_subparsers(
            title="Commands", prog="scrapy neardup", dest="neardup", metavar="<command>", parser_class=_OnDemand
        )
        listed = () if is_one_asked_for(sys.argv[1:]) else COMMANDS
        for name in COMMANDS:
            help: dict[str, Any] = {"help": load(name).HELP} if name in listed else {}
            self._parsers[name] = commands.add_parser(name, fill=partial(self._fill, name), **help)

    def _fill(self, name: str, parser: argparse.ArgumentParser) -> None:
        """Give a command's parser its options."""
        module = load(name)
        parser.description, parser.epilog = module.HELP, module.EXAMPLES
        super().add_options(cast(argparse.ArgumentParser, _Hidden(parser)))
        module.add_arguments(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the command that was asked for, or list them all; the exit code is left for Scrapy."""
        if opts.neardup is None:
            listed = "".join(f"  {name:<12} {load(name).HELP}\n" for name in COMMANDS)
            more = "Run scrapy neardup <command> --help for details."
            sys.stdout.write(f"Usage: scrapy neardup {self.syntax()}\n\nCommands:\n{listed}\n{more}\n")
            self.exitcode = 2
            return
        if args:
            self._parsers[opts.neardup].error(f"unrecognized arguments: {' '.join(args)}")
        module = load(opts.neardup)
        opts.settings = self.settings
        self.exitcode = _guarded(module.NAME, partial(_run, module), opts)


def _run(module: SubCommand, arguments: argparse.Namespace) -> int:
    """Run a command, with the settings of a spider if one is named."""
    if getattr(arguments, "spider", None):
        settings_of = import_module(f"{__name__}.spiders").settings_of
        arguments.settings = settings_of(arguments.settings, arguments.spider)
    return module.run(arguments)


def is_one_asked_for(arguments: Sequence[str]) -> bool:
    """Whether a line names a command, so that the help of the others is not wanted.

    >>> is_one_asked_for(["neardup", "dedup", "--help"]), is_one_asked_for(["neardup", "--help", "dedup"])
    (True, False)
    """
    first = next((one for one in arguments if one in (*COMMANDS, "-h", "--help")), "")
    return first in COMMANDS


class _OnDemand(argparse.ArgumentParser):
    """The parser of a command, which is filled when the command was named: to load all modules takes a fifth second."""

    def __init__(self, *, fill: Callable[[argparse.ArgumentParser], None], **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=formatter, conflict_handler="resolve", allow_abbrev=False, **options)
        self._fill: Callable[[argparse.ArgumentParser], None] | None = fill

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Fill it, and parse."""
        if self._fill is not None:
            fill, self._fill = self._fill, None
            fill(self)
        return super().parse_known_args(args, namespace)


class _Hidden:
    """Scrapy's options for a command's own parser: taken, not listed, and without defaults.

    A default would replace what was given before the command's name.
    """

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser

    def add_argument_group(self, **_: Any) -> _Hidden:
        return self

    def add_argument(self, *flags: str, **options: Any) -> None:
        self._parser.add_argument(*flags, **{**options, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS})


def _guarded(name: str, run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """The exit code of a command: 2 after an error in words, else what a shell expects of one that was stopped."""
    try:
        code = run(arguments)
        sys.stdout.flush()
    except NearDupError as error:
        sys.stderr.write(f"scrapy neardup {name}: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as in: … | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
        return 141
    return code
