"""The reference pages, as Markdown made from the code: nothing in them is written twice.

Descriptions are ``#:`` comments above fields and constants, docstrings, and help texts of the parsers. Chinese ones are
in ``docs/zh/reference.json``, by the English text. A missing one stays English, and a test names it.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any

from sphinx.pycode import ModuleAnalyzer

from scrapy_neardup import Deduplicator, DuplicatePage, Page, UnchangedPage, Verdict, errors
from scrapy_neardup.cli import COMMANDS, EXIT_CODES, load
from scrapy_neardup.crawl import stats
from scrapy_neardup.files import FORMATS
from scrapy_neardup.files.compression import PACKINGS
from scrapy_neardup.files.writers import WRITERS
from scrapy_neardup.methods import METHODS, Method
from scrapy_neardup.model import Kind, Match, Outcome
from scrapy_neardup.report.words import Words
from scrapy_neardup.settings import SETTINGS, Config

DOCS = Path(__file__).parents[1]
#: Names in the form of settings that the package or its tests read from the environment.
ENVIRONMENT = {"NEARDUP_PURE", "NEARDUP_TEST_BROWSER"}


class Catalogue:
    """Descriptions in the language of a page; ``asked`` collects every English text that was asked for."""

    def __init__(self, texts: Mapping[str, str], language: str = "en") -> None:
        self.texts = texts
        self.language = language
        self.asked: dict[str, None] = {}

    @classmethod
    def of(cls, language: str) -> Catalogue:
        """The catalogue of a language: ``docs/LANGUAGE/reference.json``, empty for English."""
        path = DOCS / language / "reference.json"
        return cls(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}, language)

    def __call__(self, text: str) -> str:
        """A description; its key is the English text with single spaces."""
        key = " ".join(_plain(text).split())
        if re.search(r"[A-Za-z]{2}", key):
            self.asked[key] = None
        return self.texts.get(key, key)


@dataclass(frozen=True)
class Target:
    """Where the reference describes a name."""

    page: str
    anchor: str


# -- names ------------------------------------------------------------------------------------------------------------


def stat_names() -> dict[str, str]:
    """Each stat with the comment that describes it, in the order of the module."""
    described = _comments("scrapy_neardup.crawl.stats")
    return {value: described[name] for name, value in vars(stats).items() if name.isupper() and isinstance(value, str)}


def unknown_name(text: str) -> str:
    """Return a name in a text that the package does not have; empty if all names exist."""
    for name in re.findall(r"\bNEARDUP_[A-Z_]+\b", text):
        if name not in SETTINGS and name not in ENVIRONMENT and not _is_prefix(name, text):
            return f"setting {name}"
    for name in re.findall(r"(?<![\w/.-])neardup/[a-z_/]+", text):
        if not _is_stat(name.rstrip("/")):
            return f"stat {name}"
    for name in re.findall(r"\bscrapy neardup ([a-z]+)", text):
        if name not in COMMANDS:
            return f"command {name}"
    return ""


def _is_prefix(name: str, text: str) -> bool:
    """Whether a text means a family of settings, such as ``NEARDUP_MAX_…``."""
    return re.search(rf"{name}[*…]", text) is not None and any(one.startswith(name) for one in SETTINGS)


def _is_stat(name: str) -> bool:
    families = {
        "neardup/kind": {one.value for one in Kind},
        "neardup/unjudged": set[str](errors.REASONS),
        "neardup/extraction": {"article", "prose", "none", "extractor"},
    }
    family, _, last = name.rpartition("/")
    return (
        name in stat_names()
        or name in families
        or last in families.get(family, ())
        or (family == "neardup" and last in {outcome.value for outcome in Outcome})
        or any(one.startswith(f"{name}/") for one in stat_names())
    )


def target(text: str) -> Target | None:
    """Where the reference describes what a piece of code names; None if it names nothing of it."""
    if setting := re.match(r"(DROP_DUPLICATES|NEARDUP_[A-Z_]+)\b", text):
        return Target("reference/settings", _anchor("setting", setting[1])) if setting[1] in SETTINGS else None
    if command := re.match(r"scrapy neardup ([a-z]+)\b", text):
        return Target("reference/commands", _anchor("command", command[1])) if command[1] in COMMANDS else None
    if re.fullmatch(r"neardup/[a-z_/]+", text) and _is_stat(text):
        return Target("reference/stats", "")
    return None


# -- sections ---------------------------------------------------------------------------------------------------------


def settings_section(words: Catalogue) -> str:
    """All settings: a table to look over, then each with its default, values and description."""
    described = _comments("scrapy_neardup.settings", "Config")
    defaults = {one.name: _default(one) for one in fields(Config)}
    rows, parts = [], []
    for name, (field, _) in SETTINGS.items():
        meaning = words(described[field])
        shown = _shown(defaults[field])
        anchor = _anchor("setting", name)
        rows.append((f"[`{name}`](#{anchor})", _first_sentence(meaning)))
        valid = _valid_values(name)
        values = f"<br>{words('Values')}: {_values(valid, words)}" if valid else ""
        parts.append(f"({anchor})=\n### `{name}`\n\n{meaning}\n\n{words('Default')}: {shown}{values}\n")
    head = (words("Setting"), words("Meaning"))
    return f"{_table(head, rows)}\n\n## {words('Each setting')}\n\n" + "\n".join(parts)


def stats_section(words: Catalogue) -> str:
    """All stats."""
    verdicts = [(stats.verdict(outcome.value), words("Pages with this verdict.")) for outcome in Outcome]
    families = [
        ("neardup/unjudged/REASON", words("Pages without a verdict, by reason.")),
        ("neardup/kind/KIND", words("Pages that resemble an earlier one, by kind.")),
        ("neardup/extraction/READER", words("Pages of HTML, by how their text was found.")),
    ]
    own = [(name, words(text)) for name, text in stat_names().items()]
    unjudged = stats.verdict(Outcome.UNJUDGED.value)
    rows = [own[0], *(row for row in verdicts if unjudged not in row[0]), *families, *own[1:]]
    head = (words("Stat"), words("Counts"), words("Type"))
    kinds = {name: words("gauge" if name in stats.GAUGES else "counter") for name, _ in rows}
    return _table(head, [(f"`{name}`", text, kinds[name]) for name, text in rows])


def verdicts_section(words: Catalogue) -> str:
    """The verdicts."""
    return _members(words, Outcome, "Verdict")


def kinds_section(words: Catalogue) -> str:
    """The kinds, with their default policy."""
    described = _comments("scrapy_neardup.model", "Kind")
    policy = Config().policy
    rows = [(f"`{one.value}`", words(described[one.name]), f"`{policy[one]}`") for one in Kind]
    return _table((words("Outcome"), words("Meaning"), words("Default policy")), rows)


def reasons_section(words: Catalogue) -> str:
    """Why pages are not judged, in the words of the report."""
    said = Words(words.language)
    return _table((words("Reason"), words("Meaning")), [(f"`{one}`", said(f"reason.{one}")) for one in errors.REASONS])


def exit_codes_section(words: Catalogue) -> str:
    """The exit codes of all commands."""
    return _table(
        (words("Exit code"), words("Meaning")), [(f"`{one}`", words(text)) for one, text in EXIT_CODES.items()]
    )


def commands_section(words: Catalogue) -> str:
    """All commands, from their parsers."""
    rows = [(f"[`{name}`](#{_anchor('command', name)})", words(_escaped(help))) for name, (_, help) in COMMANDS.items()]
    listed = _table((words("Command"), words("Meaning")), rows)
    return "\n\n".join((listed, *(_command(name, words) for name in COMMANDS)))


def methods_section(words: Catalogue) -> str:
    """All methods with their parameters."""
    names = sorted(METHODS, key=lambda name: (name != "cascade", name))
    rows = [
        (f"[`{name}`](#{_anchor('method', name)})", words(_summary(inspect.getdoc(METHODS[name]) or "")))
        for name in names
    ]
    listed = _table((words("Method"), words("Meaning")), rows)
    return "\n\n".join((listed, *(_method(name, METHODS[name], words) for name in names)))


def formats_read_section(words: Catalogue) -> str:
    """The formats that are read."""
    rows = []
    for name, one in FORMATS.items():
        rows.append((f"`{name}`", " ".join(f"`{end}`" for end in one.suffixes), words(one.description)))
    head = (words("Format"), words("File names"), words("What is read"))
    return f"{_table(head, rows)}\n\n{words('Packed files are unpacked:')} {', '.join(f'`{end}`' for end in PACKINGS)}."


def formats_written_section(words: Catalogue) -> str:
    """The formats that are written."""
    rows = [(f"`{name}`", words(_summary(inspect.getdoc(writer)))) for name, writer in WRITERS.items()]
    return _table((words("Format"), words("What is written")), rows)


def api_section(words: Catalogue) -> str:
    """The Python API: what ``scrapy_neardup`` exports, and the errors."""
    parts = [_class(one, words) for one in (Deduplicator, Verdict, Match, Page, DuplicatePage, UnchangedPage)]
    found = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, errors.NearDupError)]
    rows = [(f"`{one.__name__}`", words(_summary(inspect.getdoc(one)))) for one in found]
    parts.append(f"## {words('Errors')}\n\n{_table((words('Error'), words('Meaning')), rows)}")
    return "\n\n".join(parts)


#: Makers of the text behind ``<!-- generated: NAME -->`` in a page.
SECTIONS: dict[str, Callable[[Catalogue], str]] = {
    "settings": settings_section,
    "stats": stats_section,
    "verdicts": verdicts_section,
    "kinds": kinds_section,
    "reasons": reasons_section,
    "exit-codes": exit_codes_section,
    "commands": commands_section,
    "methods": methods_section,
    "formats-read": formats_read_section,
    "formats-written": formats_written_section,
    "api": api_section,
}


def all_texts() -> list[str]:
    """Every English text of the reference, in the order in which the pages show them."""
    words = Catalogue({})
    for section in SECTIONS.values():
        section(words)
    return list(words.asked)


# -- settings ---------------------------------------------------------------------------------------------------------


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _shown(value: Any) -> str:
    """A default as it would be written in settings.py; a dash where leaving the setting out means something else."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, Mapping):
        value = {getattr(key, "value", key): one for key, one in value.items()}
    if value is None or value == "" or is_dataclass(value):
        return "–"  # the description says what happens then
    return f"`{json.dumps(value) if isinstance(value, (str, dict)) else value}`"


def _valid_values(name: str) -> str:
    """What a setting may be, in the words of the error for a value that it cannot be; empty if any text is right."""
    try:
        SETTINGS[name][1](name, object())
    except errors.SettingsError as error:
        found = re.search(r"(?:Set it to|Give) (?:one of: )?(.+?)\.(?: |$)", str(error))
        return found[1] if found else ""
    return ""


def _values(valid: str, words: Catalogue) -> str:
    """Names as code, anything else in the language of the page."""
    if re.fullmatch(r"[\w]*(?:(?:, | or )\w+)+", valid):
        return ", ".join(f"`{one}`" if one else '`""`' for one in re.split(r", | or ", valid))
    return words(_escaped(valid))


# -- commands ---------------------------------------------------------------------------------------------------------


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command, without the options of Scrapy."""
    made = argparse.ArgumentParser(
        prog=f"scrapy neardup {name}", formatter_class=partial(argparse.HelpFormatter, width=96), allow_abbrev=False
    )
    load(name).add_arguments(made)
    return made


def _command(name: str, words: Catalogue) -> str:
    command, parser = load(name), parser_of(name)
    usage = parser.format_usage().removeprefix("usage: ")
    parts = [f"({_anchor('command', name)})=\n## `{name}`", words(_escaped(COMMANDS[name][1])), f"```text\n{usage}```"]
    for group in parser._action_groups:
        actions = [one for one in group._group_actions if one.help != argparse.SUPPRESS and one.dest != "help"]
        if not actions:
            continue
        if group.description:
            parts.append(words(group.description))
        rows = [(_flags(one), words(_help(one, parser))) for one in actions]
        parts.append(_table((words("Argument"), words("Meaning")), rows))
    parts += _epilog(command.examples, words)
    return "\n\n".join(parts)


def _flags(action: argparse.Action) -> str:
    shown = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    value = "" if action.nargs == 0 else shown
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(
        f"`{flag} {value}`" if value and not action.choices else f"`{flag}`" for flag in action.option_strings
    )


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    if action.choices and not action.metavar:
        text += f" ({', '.join(map(str, action.choices))})"
    return _escaped(text)


def _epilog(text: str, words: Catalogue) -> list[str]:
    """The parts of an epilog: prose is reflowed, examples and tables stay as they are."""
    parts: list[str] = []
    for block in re.split(r"^(?=\S.*:$)", text.strip("\n"), flags=re.MULTILINE):
        if not block.strip():
            continue
        head, _, body = block.partition("\n")
        parts.append(f"**{words(head[0].upper() + head[1:].rstrip(chr(58)))}**")
        if head == "examples:":
            parts.append(f"```sh\n{inspect.cleandoc(body)}\n```")
            continue
        for paragraph in re.split(r"\n\s*\n", body.strip("\n")):
            lines = [line.removeprefix("  ") for line in paragraph.splitlines()]
            is_prose = not any(re.match(r"[\s{]", line) or re.search(r"\S\s{2,}\S", line) for line in lines)
            parts.append(words(_escaped(" ".join(lines))) if is_prose else "```text\n" + "\n".join(lines) + "\n```")
    return parts


def _escaped(text: str) -> str:
    """Plain text of a terminal as Markdown: names as code, and nothing else with a meaning."""
    text = re.sub(r"([\\*_<>\[\]`|])", r"\\\1", text)
    return re.sub(
        r"(?<![\w\\-])(--[a-z][a-z-]+|(?:NEARDUP\\_|DROP\\_)[A-Z\\_]*[A-Z])(?![\w-])",
        lambda name: "`" + name[1].replace("\\", "") + "`",
        text,
    )


# -- methods ----------------------------------------------------------------------------------------------------------


def _method(name: str, method: type[Method], words: Catalogue) -> str:
    parts = [f"({_anchor('method', name)})=\n## `{name}`", *_prose(inspect.getdoc(method) or "", words)]
    kind = method.parameters_type
    described: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        described.update(_comments(base.__module__, base.__name__))
    rows = []
    for one in fields(kind):
        if one.name not in described:
            raise ValueError(f"{kind.__name__}.{one.name} has no comment that begins with #:")
        rows.append((f"`{one.name}`", _shown(one.default), _limits(one, words), words(described[one.name])))
    head = (words("Parameter"), words("Default"), words("Values"), words("Meaning"))
    return "\n\n".join((*parts, _table(head, rows)))


def _limits(field: Field[Any], words: Catalogue) -> str:
    if limits := field.metadata.get("limits"):
        return (
            f"{limits[0]:g} {words('to')} {limits[1]:,}"
            if isinstance(limits[1], int)
            else f"{limits[0]:g} {words('to')} {limits[1]:g}"
        )
    if choices := field.metadata.get("choices"):
        return ", ".join(f"`{one}`" for one in choices)
    return words("a file") if field.metadata.get("file") else ""


# -- Python API -------------------------------------------------------------------------------------------------------


def _class(one: type, words: Catalogue) -> str:
    parts = [f"({_anchor('class', one.__name__)})=\n## `{one.__name__}`", _signature(one.__name__, one)]
    parts += _prose(inspect.getdoc(one) or "", words)
    for name, member in vars(one).items():
        found = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.getdoc(found):
            continue
        if isinstance(found, property):
            parts.append(f"### `{one.__name__}.{name}`")
        elif inspect.isfunction(found):
            parts += [f"### `{one.__name__}.{name}()`", _signature(name, found)]
        else:
            continue
        parts += _prose(inspect.getdoc(found) or "", words)
    return "\n\n".join(parts)


class _Bare(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(name: str, one: Any) -> str:
    """A block with the call and its parameters, one a line where they are many."""
    found = inspect.signature(one)
    given = [
        each.replace(annotation=_Bare(each.annotation) if isinstance(each.annotation, str) else each.annotation)
        for each in found.parameters.values()
        if each.name not in ("self", "cls")
    ]
    back = found.return_annotation
    is_told = isinstance(back, str) and not inspect.isclass(one)
    shown = str(found.replace(parameters=given, return_annotation=_Bare(back) if is_told else found.empty))
    if len(name + shown) > 88:
        inner, _, end = shown[1:].rpartition(")")
        shown = "(\n" + "".join(f"    {each},\n" for each in re.split(r", (?=\*|\w+[:=]|\w+$)", inner)) + f"){end}"
    return f"```python\n{name}{shown}\n```"


# -- Markdown ---------------------------------------------------------------------------------------------------------


@cache
def _comments(module: str, of: str = "") -> Mapping[str, str]:
    """The ``#:`` comments above the constants of a module, or above the fields of one of its classes."""
    found = ModuleAnalyzer.for_module(module).find_attr_docs()
    return {name: "\n".join(lines).strip() for (owner, name), lines in found.items() if owner == of}


def _members(words: Catalogue, kind: type[Enum], head: str) -> str:
    described = _comments(kind.__module__, kind.__name__)
    return _table((words(head), words("Meaning")), [(f"`{one.value}`", words(described[one.name])) for one in kind])


def _prose(doc: str, words: Catalogue) -> list[str]:
    """The paragraphs and list items of a docstring, without its examples; a table stays as it is."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", doc.strip()):
        if paragraph.startswith("==="):
            parts.append(f"```text\n{_plain(paragraph)}\n```")
        elif not paragraph.lstrip().startswith(">>>"):
            items = re.split(r"^(?:\* )", paragraph, flags=re.MULTILINE)
            parts += [f"* {words(one)}" for one in items[1:]] if paragraph.startswith("* ") else [words(paragraph)]
    return parts


def _summary(doc: str | None) -> str:
    """The first paragraph of a docstring."""
    return re.split(r"\n\s*\n", (doc or "").strip())[0]


def _plain(doc: str) -> str:
    """reStructuredText of a docstring as Markdown."""
    return doc.replace("``", "`")


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s|(?<=。)", text, maxsplit=1)[0]


def _anchor(kind: str, name: str) -> str:
    return f"{kind}-{name.lower().replace('_', '-')}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def row(cells: Iterable[str]) -> str:
        return "| " + " | ".join(_cell(one) for one in cells) + " |"

    head = list(head)
    return "\n".join([row(head), "|" + " --- |" * len(head), *(row(one) for one in rows)])


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(_plain(text).split()))
