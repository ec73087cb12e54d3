"""Cells that a spreadsheet runs: a table is opened by whoever trusts it, and pages have filled in its cells.

Excel, LibreOffice and the like take a cell of a CSV file for a formula if it begins as one, quoted or not; such a
formula can send what stands in other cells to somebody, or start a program. The cure is that of OWASP ("CSV
Injection"): an apostrophe before it makes it a text. It stays in the file, though, so a program that reads the table
gets another value than was there; which is why it must be asked for. Numbers are left as they are: they run nothing.
"""

from __future__ import annotations

import re
from typing import Any

#: So a formula begins, by characters of full width too; a tab or the end of a line before one may be skipped.
_FORMULA = re.compile("[=+\\-@\\t\\r\\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*([eE][+-]?\d+)?")


def is_formula(cell: Any) -> bool:
    """Whether a spreadsheet may run the cell.

    >>> [is_formula(cell) for cell in ("=1+1", "@sum", "-1+2", "-12.5", -12.5, "渡口")]
    [True, True, True, False, False, False]
    """
    return isinstance(cell, str) and _FORMULA.match(cell) is not None and _NUMBER.fullmatch(cell) is None


def as_text(cell: Any) -> Any:
    """The cell, with an apostrophe before what is a formula.

    >>> as_text("=HYPERLINK(A1)"), as_text(7)
    ("'=HYPERLINK(A1)", 7)
    """
    return f"'{cell}" if is_formula(cell) else cell
