"""No two classes have one name. Ruff checks the rest of the style."""

from __future__ import annotations

import ast
from collections import Counter

from tests.test_layers import FILES, tree


def test_no_two_classes_that_others_use_have_one_name() -> None:
    found = Counter(node.name for file in FILES for node in tree(file).body if isinstance(node, ast.ClassDef))
    twice = sorted(name for name, many in found.items() if many > 1 and not name.startswith("_"))
    assert not twice, f"Two things of one name: {', '.join(twice)}"
