"""The order of the modules: each imports only those above it, and Scrapy comes in late."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import scrapy_neardup

ROOT = Path(scrapy_neardup.__file__).parent
NAME = scrapy_neardup.__name__
#: From the top, where nothing is imported, to the bottom; a package stands for all its modules.
ORDER = [
    *("fast_dataclass", "untrusted", "errors", "atomic", "model", "hashing", "text", "page"),
    *("files", "methods", "workers", "kv", "state", "server", "judge", "maintenance"),
    *("report", "settings", "batch", "deduplicator", "inspect", "crawl", "cli"),
]
#: Pairs that know nothing of each other, whatever the order says.
STRANGERS = [{"methods", "state"}, {"methods", "kv"}]
#: From here on Scrapy and Twisted may be imported.
SCRAPY_FROM = "crawl"
CRAWLING = {"scrapy", "twisted"}
#: Files that stand loose on the top level, and rooms: files and folders there, without those that hold no code.
MOST_LOOSE, MOST_ROOMS = 8, 25
#: Each module by its dotted name.
FILES = {".".join((NAME, *file.relative_to(ROOT).with_suffix("").parts)): file for file in sorted(ROOT.rglob("*.py"))}
MODULES = {name.removesuffix(".__init__"): file for name, file in FILES.items()}


def room(name: str) -> str:
    """The place in ``ORDER`` that a module of this package belongs to; empty for the package itself."""
    return name.partition(".")[2].partition(".")[0]


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imported(module: str) -> list[tuple[str, str]]:
    """Place and full name of everything that a module imports, wherever in it that stands; all imports are absolute."""
    file, found = MODULES[module], list[tuple[str, str]]()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found += [(f"{file}:{node.lineno}", alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}:{node.lineno}: import it by its full name"
            found += [(f"{file}:{node.lineno}", f"{node.module}.{alias.name}") for alias in node.names]
    return found


def module_of(name: str) -> str:
    """The module of this package that an imported name is or stands in; empty for another one."""
    while name not in MODULES and name:
        name = name.rpartition(".")[0]
    return name


def is_early(module: str) -> bool:
    """Whether a module stands above the place where Scrapy comes in."""
    return not room(module) or ORDER.index(room(module)) < ORDER.index(SCRAPY_FROM)


def test_every_module_has_its_place_in_the_order() -> None:
    assert len(MODULES) > len(ORDER)
    assert {room(module) for module in MODULES} - {""} == set(ORDER), "say in ORDER of this test where they stand"


def test_a_module_imports_only_those_above_it_and_scrapy_from_its_place_on() -> None:
    wrong = []
    for module in MODULES:
        own = room(module)
        for place, name in imported(module):
            other = room(module_of(name))
            if name.partition(".")[0] in CRAWLING and is_early(module):
                wrong.append(f"{place} imports {name}; only {SCRAPY_FROM} and below may.")
            if not own or not module_of(name) or other == own:
                continue
            if not other or ORDER.index(other) > ORDER.index(own) or {own, other} in STRANGERS:
                wrong.append(f"{place}: {own} must not import {name}.")
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Neither when they are loaded nor later, in a function: what needs each other belongs together."""
    graph = {own: {module_of(name) for _, name in imported(own)} - {own, ""} for own in MODULES}
    assert f"{NAME}.settings" in graph[f"{NAME}.crawl.pipeline"]
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_no_two_classes_that_others_use_have_one_name() -> None:
    found = Counter(node.name for module in MODULES for node in tree(module).body if isinstance(node, ast.ClassDef))
    assert not [name for name, many in found.items() if many > 1 and not name.startswith("_")]


def test_few_files_stand_loose_and_the_rooms_are_few() -> None:
    loose = {name for name in ORDER if (ROOT / f"{name}.py").is_file()}
    assert len(loose) < MOST_LOOSE, f"{len(loose)} files stand loose: {', '.join(loose)}"
    assert len(ORDER) < MOST_ROOMS, f"too many rooms: {', '.join(ORDER)}"


def modules_after(imports: list[str]) -> set[str]:
    """The modules of a new process that has imported these."""
    code = f"import sys, importlib; [importlib.import_module(name) for name in {imports!r}]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.slow
def test_scrapy_and_redis_are_imported_where_they_are_needed_and_the_package_imports_no_module() -> None:
    """The libraries of early modules do not import Scrapy either."""
    early = [module for module in MODULES if is_early(module)]
    assert f"{NAME}.settings" in early
    assert not modules_after(early) & CRAWLING
    found = modules_after([f"{NAME}.crawl.pipeline"])
    assert "scrapy" in found
    assert not {f"{NAME}.server.store", f"{NAME}.judge.remote", "redis"} & found
    assert not {name for name in modules_after([NAME]) if name.startswith(f"{NAME}.")}


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
