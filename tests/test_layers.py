"""The order of the modules: each imports only those above it, and Scrapy comes in late."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import scrapy_neardup

ROOT = Path(scrapy_neardup.__file__).parent
NAME = scrapy_neardup.__name__
#: From the top, where nothing is imported, to the bottom; a package stands for all its modules.
ORDER = [
    "errors",
    "atomic",
    "model",
    "hashing",
    "text",
    "page",
    "inputs",
    "methods",
    "stores",
    "judging",
    "states",
    "report",
    "evaluation",
    "config",
    "outputs",
    "crawl",
    "commands",
]
#: Pairs that know nothing of each other, whatever the order says.
STRANGERS = [{"methods", "stores"}]
#: From here on Scrapy and Twisted may be imported.
SCRAPY_FROM = "outputs"
CRAWLING = {"scrapy", "twisted"}
FILES = sorted(ROOT.rglob("*.py"))
MODULES = [file for file in FILES if file != ROOT / "__init__.py"]


def dotted(file: Path) -> list[str]:
    """A file's module, below the package: text/words.py is text, words; the package's own file is empty."""
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def layer(parts: list[str]) -> str:
    return parts[0] if parts else ""


def imported(file: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports, wherever in it that stands."""
    package = [NAME, *(dotted(file) if file.name == "__init__.py" else dotted(file)[:-1])]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def own_layer(name: str) -> str | None:
    """The layer that an imported name belongs to; None for a module of others, empty for the package's own names."""
    package, _, rest = name.partition(".")
    if package != NAME:
        return None
    first = rest.partition(".")[0]
    return first if (ROOT / first).is_dir() or (ROOT / f"{first}.py").is_file() else ""


def test_the_files_are_found() -> None:
    assert len(FILES) > len(ORDER)
    assert {"judging", "config"} <= {own_layer(name) for _, name in imported(ROOT / "crawl/session.py")}
    assert own_layer("scrapy_neardup.text.words") == "text"
    assert own_layer("scrapy.text") is None


def test_every_module_has_its_place_in_the_order() -> None:
    there = {layer(dotted(file)) for file in FILES} - {""}
    missing, gone = sorted(there - set(ORDER)), sorted(set(ORDER) - there)
    assert not missing, f"Say in ORDER of this test where {', '.join(missing)} stands among the other modules."
    assert not gone, f"ORDER of this test names {', '.join(gone)}, which is not in the package."


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_module_imports_only_those_above_it(file: Path) -> None:
    own = layer(dotted(file))
    assert own in ORDER, f"Say in ORDER of this test where {own} stands among the other modules."
    for line, name in imported(file):
        other = own_layer(name)
        if other is None or other == own:
            continue
        place = f"{file.relative_to(ROOT).as_posix()}:{line}"
        assert other, f"{place} imports {name} from the package itself; import it from the module where it lives."
        assert other in ORDER, f"{place} imports {other}, which has no place in ORDER of this test."
        assert ORDER.index(other) < ORDER.index(own), f"{place}: {own} imports {other}, which stands below it."
        assert {own, other} not in STRANGERS, f"{place}: {own} and {other} must not know each other."


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_scrapy_is_imported_only_from_its_place_on(file: Path) -> None:
    own = layer(dotted(file))
    may = own in ORDER and ORDER.index(own) >= ORDER.index(SCRAPY_FROM)
    for line, name in imported(file):
        assert may or name.partition(".")[0] not in CRAWLING, (
            f"{file.relative_to(ROOT).as_posix()}:{line} imports {name}; only {SCRAPY_FROM} and below may."
        )


def test_the_package_imports_none_of_its_modules_by_itself() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {getattr(node, "module", "") for node in top} <= {"__future__", "typing"}


@pytest.mark.parametrize("module", ["", *(f".{name}" for name in ORDER[: ORDER.index(SCRAPY_FROM)])])
def test_modules_above_scrapy_are_used_without_it(module: str) -> None:
    code = (
        f"import sys, {NAME}{module};"
        f"print(*sorted({{name.partition('.')[0] for name in sys.modules}} & set({sorted(CRAWLING)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_importing_the_pipeline_does_import_scrapy() -> None:
    code = f"import sys, {NAME}.crawl.pipeline; print('scrapy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True"]


def test_the_public_names_are_few_and_each_is_there() -> None:
    names = scrapy_neardup.__all__
    assert 0 < len(names) <= 8
    assert len(set(names)) == len(names)
    for name in names:
        found = getattr(scrapy_neardup, name)
        assert found.__name__ == name
        assert found.__module__.startswith(f"{NAME}.")


def test_another_name_is_refused_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'scrapy_neardup' has no attribute 'Detectr'"):
        _ = scrapy_neardup.Detectr
