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
from collections.abc import Callable
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
    "brake",
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
        self._commands: dict[str, tuple[SubCommand, argparse.ArgumentParser]] = {}

    def syntax(self) -> str:
        """What follows ``scrapy neardup`` in the line of usage."""
        return "<command> [options]"

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Remove near-duplicates from files; look into the state of a crawl; measure methods"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """A parser for each command; Scrapy's own options are taken before and after a command's name."""
        super().add_options(parser)
        commands = parser.add_subparsers(title="Commands", prog="scrapy neardup", dest="neardup", metavar="<command>")
        for name in COMMANDS:
            module = load(name)
            own = commands.add_parser(
                module.NAME,
                help=module.HELP,
                description=module.HELP,
                epilog=module.EXAMPLES,
                formatter_class=argparse.RawDescriptionHelpFormatter,
                conflict_handler="resolve",
                allow_abbrev=False,
            )
            super().add_options(cast(argparse.ArgumentParser, _Hidden(own)))
            module.add_arguments(own)
            self._commands[module.NAME] = module, own

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the command that was asked for, or list them all; the exit code is left for Scrapy."""
        if opts.neardup is None:
            listed = "".join(f"  {name:<12} {module.HELP}\n" for name, (module, _) in self._commands.items())
            more = "scrapy neardup <command> --help says more about one."
            sys.stdout.write(f"Usage: scrapy neardup {self.syntax()}\n\nCommands:\n{listed}\n{more}\n")
            self.exitcode = 2
            return
        module, parser = self._commands[opts.neardup]
        if args:
            parser.error(f"unrecognized arguments: {' '.join(args)}")
        opts.settings = self.settings
        self.exitcode = _guarded(module.NAME, partial(_run, module), opts)


def _run(module: SubCommand, arguments: argparse.Namespace) -> int:
    """Run a command, with the settings of a spider if one is named."""
    if getattr(arguments, "spider", None):
        settings_of = import_module(f"{__name__}.spiders").settings_of
        arguments.settings = settings_of(arguments.settings, arguments.spider)
    return module.run(arguments)


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
