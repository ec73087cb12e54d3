"""A report as one HTML file that loads nothing: report.html filled in, with report.css and report.js inside.

All that comes from pages is escaped by the template, or is data that the script puts in as text; the policy in its head
lets no other script run, and nothing be loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import sqrt
from typing import Any

from scrapy_neardup.report import charts, formats
from scrapy_neardup.report.clean import link
from scrapy_neardup.report.data import CopyLine, PageLine, Report, Similarities
from scrapy_neardup.report.gather import PAGES_OF_GROUP
from scrapy_neardup.report.template import check_template, filled_in, policy, text_of, this_one
from scrapy_neardup.text.marking import Mark

#: What ends a script or an attribute, and what is an end of line for a script but not for JSON.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def check() -> None:
    """Raise NearDupError if a library is missing that a report is made with."""
    check_template()
    charts.check()


def page(report: Report) -> str:
    """The report as HTML; the same for the same data, under the same versions of the libraries."""
    from markupsafe import Markup

    filters = {name: getattr(formats, name) for name in ("number", "short", "percent", "size", "moment", "full")}
    script = text_of("report.js")
    values = {
        "report": report,
        "totals": report.totals,
        "charts": {
            name: (Markup(chart.wide), Markup(chart.narrow))  # noqa: S704  # made of numbers and names of ours
            for name, chart in (
                ("kinds", charts.kinds(report)),
                ("times", charts.times(report.times)),
                ("similarities", charts.similarities(report.similarities)),
            )
        },
        "style": Markup(text_of("report.css")),  # noqa: S704  # a file of ours
        "script": Markup(script),  # noqa: S704  # likewise
        "policy": policy(scripts=this_one(script), styles="'unsafe-inline'"),
        "bins": _bins(report.similarities),
        "group_pages": PAGES_OF_GROUP,
        "with_texts": sum(pair.has_texts for pair in report.pairs),
        "copies": Markup(as_data(_rows(report.copies))),  # noqa: S704  # escaped there
        "shared": Mark.SHARED,
    }
    return filled_in("report.html", {**filters, "link": link, "heat": _heat}, values)


def as_data(data: Any) -> str:
    """JSON that can stand in a script element, whatever strings it holds.

    >>> as_data(["</script>", "a&b"])
    '["\\\\u003c/script\\\\u003e","a\\\\u0026b"]'
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def _rows(copies: Iterable[CopyLine]) -> list[list[Any]]:
    """The rows of the table as report.js takes them: when, kind, similarity, then the page and its original."""
    return [
        [one.page.seen, one.page.kind, one.page.similarity, *_named(one.page), *_named(one.original)] for one in copies
    ]


def _named(page: PageLine | None) -> tuple[str, str, bool, str]:
    """Title, URL, whether that may be a link, site; of a page that is gone nothing."""
    return (page.title, page.url, bool(link(page.url)), page.site) if page else ("", "", False, "")


def _bins(found: Similarities) -> list[tuple[float, int, int]]:
    """Where a bin begins, its copies, its pages that passed; those that are not empty."""
    counts = list(zip(found.copies, found.passed, strict=True))
    return [(at / len(counts), *pages) for at, pages in enumerate(counts) if any(pages)]


def _heat(count: int, most: int) -> str:
    """How strong the colour of a cell is, in [0, 1]: the root, so that small counts can be told from none.

    >>> _heat(0, 9), _heat(4, 16), _heat(9, 9)
    ('0.00', '0.50', '1.00')
    """
    return f"{sqrt(count / most) if most else 0:.2f}"
