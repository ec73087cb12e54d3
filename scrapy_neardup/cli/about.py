"""``scrapy neardup --version`` and ``--completion``."""

from __future__ import annotations

import argparse
import pkgutil
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.util import find_spec

import scrapy.commands

from scrapy_neardup.hashing import compiled

#: For bash, and for zsh with bashcompinit. Each place is completed from a list of words, else from the files.
_SCRIPT = """\
# In bash: eval "$(scrapy neardup --completion)"; in zsh run first: autoload -U bashcompinit; bashcompinit
_scrapy_neardup() {
    local words=""
    case "$COMP_CWORD ${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
%s
    esac
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _scrapy_neardup scrapy
"""


def describe_versions() -> str:
    """Return versions, the kind of states, and whether the kernels are compiled."""
    state = "LevelDB" if find_spec("plyvel") else "SQLite, because plyvel is not installed"
    return (
        f"scrapy-neardup {version('scrapy-neardup')}, Scrapy {version('scrapy')}, {platform.python_implementation()} "
        f"{platform.python_version()} on {platform.system()} {platform.machine()}\n"
        f"{compiled.sentence()}\nStates are {state}.\n"
    )


def make_completion(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """Return a script that completes the commands and their options."""
    own = sorted(module.name for module in pkgutil.iter_modules(scrapy.commands.__path__))
    cases = [_case("1 *", ["neardup", *own]), _case("2 neardup *", [*parsers, "--help", "--version"])]
    for name, parser in parsers.items():
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        cases.append(_case(f"* neardup {name}", (flag for action in shown for flag in action.option_strings)))
    return _SCRIPT % "\n".join(cases)


def _case(pattern: str, words: Iterable[str]) -> str:
    escaped = pattern.replace(" ", "\\ ")
    return f'        {escaped}) words="{" ".join(words)}" ;;'
