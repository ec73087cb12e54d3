"""The commands ``scrapy neardup …``.

Scrapy imports this module for every command line, so it imports the module of a command only when it is needed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.commands import ScrapyCommand

from scrapy_neardup.errors import NearDupError

if TYPE_CHECKING:
    from scrapy_neardup.cli.command import Command

#: The module of each command, and its line in the help, in the order of the help. Its function is NAME_command.
COMMANDS = {
    "dedup": ("dedup", "Drop or tag near-duplicates in files: feeds, CSV, Parquet, HTML folders, web archives."),
    "batch": ("batch", "Judge archives larger than memory, on all cores or on Spark; the run can go on later."),
    "report": ("contents", "Write a report on a state as one HTML file: kinds, sites, groups, texts side by side."),
    "explain": ("contents", "Show what the state knows about a page: verdict, original, evidence, group."),
    "stats": ("contents", "Count the contents of a state: pages, originals, copies by kind, groups, sites, size."),
    "dropped": ("contents", "List pages that were dropped as copies: in the last crawl, since a time, of a site."),
    "keep": ("verdicts", "Mark a page as no copy: it passes in the next crawl and from then on."),
    "copy": ("verdicts", "Mark a page as a copy of another one, to be dropped when it comes again."),
    "judgements": ("verdicts", "List manual verdicts (keep, copy), also as labels for 'evaluate'."),
    "compare": ("pages", "Explain the verdict on two pages: features with weights, deciding rule, common text."),
    "extract": ("pages", "Show the text of a page that would be judged: its reader, the reason, its boilerplate."),
    "forget": ("states", "Remove pages from a state, so that they are judged as if never seen."),
    "check": ("states", "Check every row of a state, or make a repaired copy of it."),
    "export": ("states", "Copy a state, also during a crawl: a backup, or a way to another machine or store."),
    "merge": ("states", "Add the pages of other states to a state."),
    "migrate": ("states", "Convert a state to the current method, parameters and versions."),
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
    found: Command = getattr(import_module(f"{__name__}.{COMMANDS[name][0]}"), f"{name}_command")
    return found


def make_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    found = load(name)
    parser = argparse.ArgumentParser(
        prog=f"scrapy neardup {name}",
        description=COMMANDS[name][1],
        epilog=found.examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    found.add_arguments(parser)
    return parser


class NearDupCommand(ScrapyCommand):
    """``scrapy neardup``, inside and outside of projects.

    Scrapy's parser takes Scrapy's own options, which may stand before and after a command's name. It leaves everything
    else to the parser of the command.
    """

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "<command> [options]"

    def short_desc(self) -> str:
        return "Remove near-duplicates from files, inspect the state of a crawl, measure methods"

    def long_desc(self) -> str:
        return f"{self.short_desc()}\n{list_commands()}\nRun scrapy neardup <command> --help for details."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add Scrapy's options, and two of ours."""
        super().add_options(parser)
        parser.add_argument("-h", "--help", action="store_true")
        parser.add_argument("--version", action="store_true")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run a command, or list them all, and leave the exit code for Scrapy."""
        name, *words = args or [""]
        if name in COMMANDS:
            parser = make_parser(name)
            if opts.help:
                parser.print_help()
            else:
                self.exitcode = _run(name, parser.parse_args(words), self.settings)
        elif name:
            sys.stderr.write(f"scrapy neardup: There is no command {name!r}. Choose one of: {', '.join(COMMANDS)}.\n")
            self.exitcode = 2
        elif opts.version:
            sys.stdout.write(describe_versions())
        else:
            sys.stdout.write(f"Usage: scrapy neardup {self.syntax()}\n\n{self.long_desc()}\n")
            self.exitcode = 0 if opts.help else 2


def describe_versions() -> str:
    """Return versions, the kind of states, and whether the kernels are compiled."""
    from scrapy_neardup.hashing import compiled

    state = "LevelDB" if find_spec("plyvel") else "SQLite, because plyvel is not installed"
    return (
        f"scrapy-neardup {version('scrapy-neardup')}, Scrapy {version('scrapy')}, {platform.python_implementation()} "
        f"{platform.python_version()} on {platform.system()} {platform.machine()}\n"
        f"{compiled.sentence()}\nStates are {state}.\n"
    )


def _run(name: str, arguments: argparse.Namespace, settings: Any) -> int:
    """Run a command, with the settings of a spider if one is named, and return the exit code of the process."""
    from scrapy_neardup.cli.opening import config_of

    try:
        code = load(name).run(arguments, config_of(arguments, settings))
        sys.stdout.flush()
    except NearDupError as error:
        sys.stderr.write(f"scrapy neardup {name}: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:  # of standard output; a file or a state raises a NearDupError
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
        if isinstance(error, BrokenPipeError):  # as in: … | head
            return 141
        sys.stderr.write(f"scrapy neardup {name}: The output cannot be written: {error}. Make room, and try again.\n")
        return 2
    return code
