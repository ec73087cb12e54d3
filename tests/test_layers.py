"""The order of the modules: each imports only those above it, and Scrapy comes in late."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import scrapy_neardup

ROOT = Path(scrapy_neardup.__file__).parent
NAME = scrapy_neardup.__name__
#: From the top, where nothing is imported, to the bottom; a package stands for all its modules.
ORDER = [
    "fast_dataclass",
    "untrusted",
    "errors",
    "ages",
    "atomic",
    "model",
    "hashing",
    "text",
    "page",
    "files",
    "methods",
    "workers",
    "kv",
    "state",
    "server",
    "judge",
    "maintenance",
    "report",
    "lab",
    "settings",
    "batch",
    "deduplicator",
    "inspect",
    "crawl",
    "cli",
]
#: Pairs that know nothing of each other, whatever the order says.
STRANGERS = [{"methods", "state"}, {"methods", "kv"}]
#: From here on Scrapy and Twisted may be imported.
SCRAPY_FROM = "crawl"
CRAWLING = {"scrapy", "twisted"}
#: Files that stand loose on the top level, and rooms: files and folders there, without those that hold no code.
MOST_LOOSE, MOST_ROOMS = 9, 27
FILES = sorted(ROOT.rglob("*.py"))
MODULES = [file for file in FILES if file != ROOT / "__init__.py"]


def dotted(file: Path) -> list[str]:
    """A file's module, below the package: text/words.py is text, words; the package's own file is empty."""
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def layer(parts: list[str]) -> str:
    return parts[0] if parts else ""


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imported(file: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports, wherever in it that stands."""
    package = [NAME, *(dotted(file) if file.name == "__init__.py" else dotted(file)[:-1])]
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def module_of(name: str, modules: Collection[str]) -> str:
    """The module that an imported name is or stands in; empty if that is none of these."""
    while name not in modules and name:
        name = name.rpartition(".")[0]
    return name


def circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Return one circle, as modules that the next one imports; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def misplaced(file: Path) -> Iterator[str]:
    """Imports of a file against the order, each with its line and its fault."""
    own = layer(dotted(file))
    for line, name in imported(file):
        other = own_layer(name)
        if other is None or other == own:
            continue
        place = f"{file.relative_to(ROOT).as_posix()}:{line}"
        if not other:
            yield f"{place} imports {name} from the package itself; import it from the module where it lives."
        elif other not in ORDER or own not in ORDER:
            yield f"{place}: say in ORDER of this test where {own} and {other} stand among the other modules."
        elif ORDER.index(other) > ORDER.index(own):
            yield f"{place}: {own} imports {other}, which stands below it."
        elif {own, other} in STRANGERS:
            yield f"{place}: {own} and {other} must not know each other."


def crawling(file: Path) -> Iterator[str]:
    """Imports of Scrapy and Twisted in a file above their place."""
    if not is_early(file):
        return
    for line, name in imported(file):
        if name.partition(".")[0] in CRAWLING:
            yield f"{file.relative_to(ROOT).as_posix()}:{line} imports {name}; only {SCRAPY_FROM} and below may."


def own_layer(name: str) -> str | None:
    """The layer that an imported name belongs to; None for a module of others, empty for the package's own names."""
    package, _, rest = name.partition(".")
    if package != NAME:
        return None
    first = rest.partition(".")[0]
    return first if (ROOT / first).is_dir() or (ROOT / f"{first}.py").is_file() else ""


def test_every_module_has_its_place_in_the_order() -> None:
    assert len(FILES) > len(ORDER)
    assert {"judge", "settings"} <= {own_layer(name) for _, name in imported(ROOT / "crawl/session.py")}
    assert own_layer("scrapy_neardup.text.words") == "text"
    assert own_layer("scrapy.text") is None
    there = {layer(dotted(file)) for file in FILES} - {""}
    missing, gone = sorted(there - set(ORDER)), sorted(set(ORDER) - there)
    assert not missing, f"Say in ORDER of this test where {', '.join(missing)} stands among the other modules."
    assert not gone, f"ORDER of this test names {', '.join(gone)}, which is not in the package."


def test_a_module_imports_only_those_above_it_and_scrapy_from_its_place_on() -> None:
    found = [wrong for file in MODULES for wrong in misplaced(file)]
    assert not found, "\n".join(["Against the order:", *found])
    found = [wrong for file in FILES for wrong in crawling(file)]
    assert not found, "\n".join(["Too early:", *found])


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Neither when they are loaded nor later, in a function: what needs each other belongs together."""
    modules = {".".join([NAME, *dotted(file)]): file for file in FILES}
    graph = {own: {module_of(name, modules) for _, name in imported(file)} for own, file in modules.items()}
    graph = {own: needed - {own, ""} for own, needed in graph.items()}
    assert f"{NAME}.settings" in graph[f"{NAME}.crawl.pipeline"]
    assert circle(graph) == []


def test_few_files_stand_loose_and_the_rooms_are_few() -> None:
    loose = sorted(file.name for file in ROOT.glob("*.py"))
    folders = sorted({file.relative_to(ROOT).parts[0] for file in FILES if file.parent != ROOT})
    assert len(loose) <= MOST_LOOSE, f"{len(loose)} files stand loose: {', '.join(loose)}"
    assert len(loose) + len(folders) <= MOST_ROOMS, f"too many rooms: {', '.join([*loose, *folders])}"


def test_the_package_imports_none_of_its_modules_by_itself() -> None:
    top = [node for node in tree(ROOT / "__init__.py").body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {getattr(node, "module", "") for node in top} <= {"__future__", "typing"}


@pytest.mark.slow
def test_modules_above_scrapy_are_used_without_it() -> None:
    """The libraries that they import do not import it either."""
    early = [".".join([NAME, *dotted(file)]) for file in FILES if is_early(file)]
    assert f"{NAME}.settings" in early
    code = (
        f"import sys, importlib; [importlib.import_module(name) for name in {early!r}];"
        f"print(*sorted({{name.partition('.')[0] for name in sys.modules}} & set({sorted(CRAWLING)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def is_early(file: Path) -> bool:
    """Whether a file stands above the place where Scrapy comes in."""
    own = layer(dotted(file))
    return not own or ORDER.index(own) < ORDER.index(SCRAPY_FROM)


@pytest.mark.slow
def test_importing_the_pipeline_does_import_scrapy_and_nothing_of_a_state_on_a_server() -> None:
    wanted = f"'scrapy', '{NAME}.server.store', '{NAME}.judge.remote'"
    code = f"import sys, {NAME}.crawl.pipeline; print(*(name in sys.modules for name in ({wanted})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "False", "False"]


def test_the_public_names_are_few_and_others_refused() -> None:
    names = scrapy_neardup.__all__
    assert 0 < len(names) <= 8
    assert len(set(names)) == len(names)
    for name in names:
        found = getattr(scrapy_neardup, name)
        assert found.__name__ == name
        assert found.__module__.startswith(f"{NAME}.")
    with pytest.raises(AttributeError, match="module 'scrapy_neardup' has no attribute 'Detectr'"):
        _ = scrapy_neardup.Detectr
