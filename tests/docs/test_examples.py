"""Every code block of the READMEs and the site runs, or is at least what its reader is meant to type."""

from __future__ import annotations

import argparse
import configparser
import json
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from scrapy_neardup.cli import NearDupCommand, make_parser
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.settings import SETTINGS, Config
from tests.crawl.engineless import article, crawl
from tests.docs.pages import ROOT, Block, blocks, pages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LANGUAGES = {"python", "sh", "text", "json", "jsonl", "yaml", "toml", "ini", "dockerfile", "html", "xml", "csv"}
#: What an example may import that the tests need not have.
OPTIONAL = ("pandas", "datasets", "datasketch", "scrapy_redis", "spidermon")
EXTRAS = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def test_each_block_names_its_language() -> None:
    for page in pages():
        assert [block.place for block in blocks(page) if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", [page for page in pages() if "/reference/" not in page])
def test_blocks_of_python_run_and_print_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    missing: list[str] = []
    for block in blocks(page):
        if block.marker == "output" and not missing:
            assert_printed(block, capsys.readouterr().out)
        if block.language != "python":
            continue
        code = compile(block.runnable, block.place, "exec")
        missing += [
            name
            for name in OPTIONAL
            if re.search(rf"import {name}\b|from {name}\b", block.code) and not find_spec(name)
        ]
        if block.is_settings:
            check_settings(block)
        elif not block.marker.startswith("not run") and not missing:
            exec(code, names)
    for one in names.values():
        load_settings(dict(getattr(one, "custom_settings", None) or {}))
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed, so the blocks from there on are compiled only")


def test_the_printed_method_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = [block.code for block in blocks("docs/en/guides/recipe.md") if "class FirstParagraph" in block.code]
    (tmp_path / "printed.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    method = make_method("printed.FirstParagraph", {})
    one, copy, other = (
        method.fingerprint(Page("http://a.example/", text=text)) for text in ("渡口\n开航", "渡口\n停航", "桥\n开航")
    )
    assert method.compare(one, copy.sketch, frozenset()).duplicate
    assert set(one.keys) & set(copy.keys)
    assert not method.compare(one, other.sketch, frozenset()).duplicate


def test_the_printed_filters_divide_items_among_feeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = [
        block for block in blocks("docs/en/guides/review.md") if "Filter" in block.code or "item_filter" in block.code
    ]
    given: dict[str, Any] = {}
    exec(printed[0].code, given)
    (tmp_path / "filters.py").write_text(printed[1].code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    feeds = {
        f"file://{tmp_path}/{name.split('-')[0]}": {**of, "item_filter": of["item_filter"].replace("myproject.", "")}
        for name, of in given["FEEDS"].items()
    }
    items = [article(1), article(1, 1), article(2)]
    crawl(items, NEARDUP_STORE="memory:", NEARDUP_POLICY=given["NEARDUP_POLICY"], FEEDS=feeds)
    written = [(tmp_path / name).read_text("utf-8").count("\n") for name in ("articles", "copies")]
    assert written == [2, 1]


def assert_printed(block: Block, printed: str) -> None:
    pattern = re.escape(block.code.strip()).replace("…", ".*?")
    assert re.fullmatch(pattern, printed.strip(), re.DOTALL), f"{block.place}: printed {printed!r}"


def check_settings(block: Block) -> None:
    settings: dict[str, Any] = {}
    exec(compile(block.code, block.place, "exec"), settings)
    load_settings({name: value for name, value in settings.items() if name.isupper()})


def load_settings(settings: dict[str, Any]) -> None:
    """Load those of this package; what others name must at least be there, if it is of this package."""
    own = {name: value for name, value in settings.items() if name in SETTINGS or name.startswith("NEARDUP_")}
    for name in ("NEARDUP_METHOD", "NEARDUP_EXTRACTOR"):
        if str(own.get(name, "")).startswith("myproject."):
            del own[name]
    Config.from_settings(own)
    for value in settings.values():
        for path in value if isinstance(value, dict) else ():
            if isinstance(path, str) and path.startswith("scrapy_neardup."):
                load_object(path)


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong, where the one of a terminal ends the process."""

    def error(self, message: str) -> Any:
        raise AssertionError(message)


@pytest.mark.parametrize("page", pages())
def test_printed_commands_are_accepted(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(page):
        if block.language != "sh":
            continue
        for words in block.commands():
            monkeypatch.setattr(sys, "argv", words)
            try:
                check_command(words)
            except (AssertionError, SystemExit) as error:
                pytest.fail(f"{block.place}: {' '.join(words)}: {error}")


def check_command(words: list[str]) -> None:
    if words[0] == "scrapy" and len(words) > 1 and not words[1].startswith("-"):
        command: Any = (
            NearDupCommand() if words[1] == "neardup" else import_module(f"scrapy.commands.{words[1]}").Command()
        )
        command.settings = Settings()
        parser = _Parser(conflict_handler="resolve")
        command.add_options(parser)
        given, rest = parser.parse_known_args(words[2:])
        if words[1] == "neardup" and rest:
            make_parser(rest[0]).parse_args(rest[1:])
            rest = []
        assert not [word for word in rest if word.startswith("-") and word != "-"], rest
        load_settings(dict(one.split("=", 1) for one in given.set))
    elif words[:2] == ["pip", "install"]:
        named = {extra for word in words for extras in re.findall(r"\[([\w,]+)\]", word) for extra in extras.split(",")}
        assert named <= set(EXTRAS), named - set(EXTRAS)


def test_blocks_of_data_are_well_formed() -> None:
    for page in pages():
        for block in blocks(page):
            if block.language == "json":
                json.loads(block.code)
            elif block.language == "jsonl":
                [json.loads(line) for line in block.code.splitlines()]
            elif block.language == "yaml":
                list(yaml.safe_load_all(block.code))
            elif block.language == "toml":
                tomllib.loads(block.code)
            elif block.language == "ini" and re.search(r"^\[", block.code, re.MULTILINE):  # redis.conf has no sections
                configparser.ConfigParser(interpolation=None).read_string(block.code)
