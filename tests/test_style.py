"""Everything public has a docstring, and no two classes have one name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import scrapy_neardup
from tests.test_layers import tree

PACKAGE = Path(scrapy_neardup.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
#: A property of so many lines says by its name what it is.
SMALL = 2


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Class:
    """A class of the package: what it is derived from, and which of its methods say what they are for."""

    bases: tuple[str, ...]
    documented: frozenset[str]


def classes() -> dict[str, Class]:
    found = {}
    for file in FILES:
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ClassDef):
                bases = tuple(ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases)
                found[node.name] = Class(bases, frozenset(one.name for one in definitions(node) if says(one)))
    return found


def definitions(node: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """Classes and functions of a module or class, also those under a condition, but none inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
        elif isinstance(child, (ast.If, ast.Try)):
            yield from definitions(child)  # type: ignore[arg-type]


def says(node: ast.Module | Definition) -> bool:
    return bool((ast.get_docstring(node) or "").strip())


def is_small_property(node: Definition) -> bool:
    if isinstance(node, ast.ClassDef):
        return False
    decorators = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
    return bool(decorators & {"property", "cached_property", "setter"}) and len(node.body) <= SMALL


def is_documented_above(name: str, bases: tuple[str, ...], known: dict[str, Class]) -> bool:
    """Whether a base class says what the method is for; that of another package is taken to do so."""
    for base in bases:
        if base in ("object", "ABC", "Enum", "Exception", "Generic", "Protocol"):
            continue
        if base not in known or name in known[base].documented:
            return True
        if is_documented_above(name, known[base].bases, known):
            return True
    return False


def silent(tree: ast.Module, known: dict[str, Class], module: str = "module") -> Iterator[str]:
    """The public names of a module that should say what they are for and do not."""
    if not says(tree):
        yield module
    for one in definitions(tree):
        if one.name.startswith("_"):
            continue
        if not says(one):
            yield f"{module}: {one.name}"
        if isinstance(one, ast.ClassDef):
            bases = known[one.name].bases if one.name in known else ()
            for method in definitions(one):
                if method.name.startswith("_") or says(method) or is_small_property(method):
                    continue
                if not is_documented_above(method.name, bases, known):
                    yield f"{module}: {one.name}.{method.name}"


def test_everything_public_has_a_docstring() -> None:
    known = classes()
    assert {"Detector", "Page", "Method", "PageStore"} <= set(known)
    found: list[str] = []
    for file in FILES:
        found += silent(tree(file), known, file.relative_to(PACKAGE).as_posix())
    assert not found, "Without a docstring:\n" + "\n".join(found)


def test_no_two_classes_that_others_use_have_one_name() -> None:
    trees = [tree(file) for file in FILES]
    found = Counter(one.name for tree in trees for one in definitions(tree) if isinstance(one, ast.ClassDef))
    twice = sorted(name for name, many in found.items() if many > 1 and not name.startswith("_"))
    assert not twice, f"Two things of one name: {', '.join(twice)}"
