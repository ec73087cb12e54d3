"""The commands ``scrapy neardup …``.

Scrapy imports this module for every command line, so it imports the module of a command only when it is needed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, cast

from scrapy.commands import ScrapyCommand

from scrapy_neardup.errors import NearDupError

if TYPE_CHECKING:
    from scrapy_neardup.cli.command import Command

#: The module of each command, in the order of the help.
COMMANDS = {
    "dedup": "dedup",
    "report": "report",
    "explain": "explain",
    "stats": "stats",
    "groups": "groups",
    "dropped": "dropped",
    "keep": "verdicts",
    "copy": "verdicts",
    "judgements": "verdicts",
    "compare": "compare",
    "extract": "extract",
    "forget": "forget",
    "expire": "forget",
    "compact": "forget",
    "check": "check",
    "export": "exchange",
    "import": "exchange",
    "merge": "exchange",
    "migrate": "migrate",
    "tune": "tune",
    "pairs": "pairs",
    "evaluate": "evaluate",
    "robustness": "robustness",
    "collisions": "collisions",
    "lexicon": "lexicon",
}

#: What the exit code of a command tells.
EXIT_CODES = {
    0: "The command succeeded.",
    1: "The answer is not the wanted one: a page is not in the state, a record is malformed, a check found damage.",
    2: "An argument, setting, file or state is wrong. The message on standard error says what to do.",
    130: "The command was interrupted with Ctrl-C.",
    141: "The reader of the output closed the pipe, as in `… | head`.",
}


def load(name: str) -> Command:
    """Import the module of a command, and return the command."""
    from scrapy_neardup.cli.command import Command

    found = vars(import_module(f"{__name__}.{COMMANDS[name]}")).values()
    return next(one for one in found if isinstance(one, Command) and one.name == name)


class NearDupCommand(ScrapyCommand):
    """``scrapy neardup``, inside and outside of projects."""

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def __init__(self) -> None:
        super().__init__()
        self._parsers: dict[str, argparse.ArgumentParser] = {}

    def syntax(self) -> str:
        """Return what follows ``scrapy neardup`` in the usage."""
        return "<command> [options]"

    def short_desc(self) -> str:
        """Return the line for Scrapy's list of commands."""
        return "Remove near-duplicates from files, inspect the state of a crawl, measure methods"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add a parser for each command. Scrapy's own options may stand before and after a command's name."""
        super().add_options(parser)
        commands = parser.add_subparsers(
            title="Commands", prog="scrapy neardup", dest="neardup", metavar="<command>", parser_class=_LazyParser
        )
        listed = () if names_command(sys.argv[1:]) else COMMANDS
        for name in COMMANDS:
            help: dict[str, Any] = {"help": load(name).help} if name in listed else {}
            self._parsers[name] = commands.add_parser(name, fill=partial(self._fill, name), **help)

    def _fill(self, name: str, parser: argparse.ArgumentParser) -> None:
        command = load(name)
        parser.description, parser.epilog = command.help, command.examples
        super().add_options(cast(argparse.ArgumentParser, _HiddenOptions(parser)))
        command.add_arguments(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run a command, or list them all, and leave the exit code for Scrapy."""
        if opts.neardup is None:
            listed = "".join(f"  {name:<12} {load(name).help}\n" for name in COMMANDS)
            more = "Run scrapy neardup <command> --help for details."
            sys.stdout.write(f"Usage: scrapy neardup {self.syntax()}\n\nCommands:\n{listed}\n{more}\n")
            self.exitcode = 2
            return
        if args:
            self._parsers[opts.neardup].error(f"unrecognized arguments: {' '.join(args)}")
        opts.settings = self.settings
        self.exitcode = _run(load(opts.neardup), opts)


def names_command(arguments: Sequence[str]) -> bool:
    """Whether a command line names a command before any request for help.

    >>> names_command(["neardup", "dedup", "--help"]), names_command(["neardup", "--help", "dedup"])
    (True, False)
    """
    first = next((one for one in arguments if one in (*COMMANDS, "-h", "--help")), "")
    return first in COMMANDS


class _LazyParser(argparse.ArgumentParser):
    """The parser of a command. It loads the command's module when it parses, because all modules take 0.2 seconds."""

    def __init__(self, *, fill: Callable[[argparse.ArgumentParser], None], **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=formatter, conflict_handler="resolve", allow_abbrev=False, **options)
        self._fill: Callable[[argparse.ArgumentParser], None] | None = fill

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._fill is not None:
            fill, self._fill = self._fill, None
            fill(self)
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
