"""A report as one HTML file that loads nothing: report.html with report.css and report.js inside.

The template escapes strings of pages, or the script inserts them as text. The policy allows no other script.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any

from scrapy_neardup.report import formats
from scrapy_neardup.report.charts import draw_kinds, draw_similarities, draw_times
from scrapy_neardup.report.data import CopyLine, MarkedText, PageLine, Report, Similarities, SiteFlow
from scrapy_neardup.report.figures import GONE, NO_SITE, OTHERS
from scrapy_neardup.report.gather import PAGES_OF_GROUP
from scrapy_neardup.report.html import filled_in, policy, text_of, this_one
from scrapy_neardup.report.words import Words
from scrapy_neardup.text.marking import Mark
from scrapy_neardup.untrusted import link

if TYPE_CHECKING:
    from markupsafe import Markup

#: Characters that end a script or an attribute, or a line of a script but not of JSON.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
#: Rows that the table shows without JavaScript, and adds per step with it.
ROWS = 50
#: English words of the data where there is no site.
_NO_SITES = {NO_SITE: "site.none", GONE: "site.gone", OTHERS: "site.others"}
#: Words for the script, besides those below "kind".
_SCRIPTED = (
    *("theme.light", "theme.dark", "kind", "csv.title", "pair.chosen", "pair.copy", "pair.likeness", "pair.first"),
    *("pair.later", "pair.no_text", "pair.both_say", "pair.nothing", "pair.left_out", "text.cut", "text.cut_more"),
    *("copies.of", "copies.compare", "copies.group", "copies.gone", "copies.found", "copies.where", "copies.pair"),
    *("copies.first_seen", "copies.similarity", "copies.copy", "copies.its_site", "copies.copy_title"),
    *("copies.original", "copies.original_site", "copies.original_title"),
)


def page(report: Report, language: str = "") -> str:
    """Return the report as HTML, in its own language unless another one is named.

    Equal data gives equal HTML under equal library versions.
    """
    from markupsafe import Markup

    words = Words(language or report.language)
    script = text_of("report.js")
    data = {
        "language": words.language,
        "words": {name: words.pattern(name) for name in (*_SCRIPTED, *words.below("kind"))},
        "rows": _rows(report, words),
    }
    values = {
        "report": report,
        "totals": report.totals,
        "language": words.language,
        "words": words,
        "say": partial(_said, words),
        "charts": {
            name: (Markup(chart.wide), Markup(chart.narrow))  # noqa: S704  # made of numbers and names of ours
            for name, chart in (
                ("kinds", draw_kinds(report, words)),
                ("times", draw_times(report.times, words)),
                ("similarities", draw_similarities(report.similarities, words)),
            )
        },
        "style": Markup(text_of("report.css")),  # noqa: S704  # a file of ours
        "script": Markup(script),  # noqa: S704  # likewise
        "policy": policy(scripts=this_one(script), styles="'unsafe-inline'"),
        "bins": _bins(report.similarities),
        "flows": flows(report.flow),
        "group_pages": PAGES_OF_GROUP,
        "group_ids": {group.similar_id for group in report.groups},
        "pair_places": _pair_places(report),
        "static_rows": ROWS,
        "with_texts": sum(pair.has_texts for pair in report.pairs),
        "data": Markup(as_data(data)),  # noqa: S704  # escaped there
        "shared": Mark.SHARED,
    }
    filters: dict[str, Callable[..., Any]] = {
        "number": formats.format_number,
        "short": partial(formats.format_short, language=words.language),
        "percent": partial(formats.format_percent, language=words.language),
        "size": formats.format_size,
        "minute": formats.format_minute,
        "start": formats.format_start,
        "unit": partial(formats.format_unit, words=words),
        "link": link,
        "heat": _heat,
        "split_tail": _split_tail,
        "site": partial(_site, words=words),
    }
    return filled_in("report.html", filters, values)


def _said(words: Words, name: str, many: int | None = None, /, **values: object) -> Markup:
    """Return words as HTML: `` ` `` marks code, values are escaped."""
    from markupsafe import Markup, escape

    parts = str(escape(words.pattern(name, many))).split("`")
    pattern = "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
    number = {} if many is None else {"many": formats.format_number(many)}
    return Markup(pattern).format(**number, **values)  # noqa: S704  # escaped above


def as_data(data: Any) -> str:
    r"""Return JSON that is safe in a script element.

    >>> as_data(["</script>", "a&b"])
    '["\\u003c/script\\u003e","a\\u0026b"]'
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def flows(flow: SiteFlow) -> list[tuple[str, str, int]]:
    """List who copies from whom: site of the copies, site of the originals, count.

    The largest come first; sums of several sites come last.

    >>> flows(SiteFlow(("a", "b"), ("c", "d"), ((0, 2), (3, 1))))
    [('b', 'c', 3), ('a', 'd', 2), ('b', 'd', 1)]
    """
    cells = [
        (row, column, count)
        for row, counts in zip(flow.rows, flow.cells, strict=True)
        for column, count in zip(flow.columns, counts, strict=True)
        if count
    ]
    return sorted(cells, key=lambda cell: (not _NO_SITES.keys().isdisjoint(cell[:2]), -cell[2]))


def _pair_places(report: Report) -> dict[tuple[str, str], int]:
    """Return the pairs that the page shows, by both URLs."""
    return {(pair.page.url, pair.original.url): at for at, pair in reversed(list(enumerate(report.pairs))) if pair.copy}


def _rows(report: Report, words: Words) -> list[list[Any]]:
    """Return the rows of the table for report.js.

    Time, kind, similarity; page and original, four values each; then the place of their pair or -1, the name of a shown
    group, containment, and their texts or else shared sentences.
    """
    places = _pair_places(report)
    groups = {group.similar_id for group in report.groups}
    return [
        [
            *(one.page.seen, one.page.kind, one.page.similarity, *_named(one.page, words)),
            *_named(one.original, words),
            places.get((one.page.url, one.original.url), -1) if one.original else -1,
            one.similar_id if one.similar_id in groups else "",
            one.containment,
            _sides(one, is_there=one.original is not None and (one.page.url, one.original.url) in places),
        ]
        for one in report.copies
    ]


def _sides(one: CopyLine, *, is_there: bool) -> list[Any]:
    """Return the time of the original, shared sentences and both texts; nothing if the pair is shown or gone."""
    if is_there or one.original is None:
        return []
    texts = [_marked(text) for text in one.texts if text is not None]
    return [one.original.seen, one.shared, *texts]


def _marked(text: MarkedText) -> list[Any]:
    """Return letters in all, hidden sentences, whether it is cut, and its parts; shared parts are lists."""
    parts = [[part.text] if part.mark is Mark.SHARED else part.text for part in text.parts]
    return [text.letters, text.hidden, text.is_cut, parts]


def _named(page: PageLine | None, words: Words) -> tuple[str, str, bool, str]:
    """Return title, URL, whether that may be a link, and site; nothing for a page that is gone."""
    return (page.title, page.url, bool(link(page.url)), _site(page.site, words)) if page else ("", "", False, "")


def _site(name: str, words: Words) -> str:
    return words(_NO_SITES[name]) if name in _NO_SITES else name


def _bins(found: Similarities) -> list[tuple[float, int, int]]:
    """Return the non-empty bins: lower bound, copies, pages that passed."""
    counts = list(zip(found.copies, found.passed, strict=True))
    return [(at / len(counts), *pages) for at, pages in enumerate(counts) if any(pages)]


def _heat(count: int, most: int) -> str:
    """Return the strength of a cell's colour in [0, 1]: the square root, so that small counts differ from none.

    >>> _heat(0, 9), _heat(4, 16), _heat(9, 9)
    ('0.00', '0.50', '1.00')
    """
    return f"{sqrt(count / most) if most else 0:.2f}"


#: Characters at the end of a URL that always show; shorter URLs are not cut.
_TAIL, _LONG = 12, 28


def _split_tail(url: str) -> tuple[str, str]:
    """Split a URL: the browser may shorten the first part. A copied URL is whole.

    >>> _split_tail("https://ferry.example/2025/06/17/the-first-boat-was-empty-and-nobody-knew-why.html")
    ('https://ferry.example/2025/06/17/the-first-boat-was-empty-and-nobody-k', 'new-why.html')
    >>> _split_tail("https://ferry.example/")
    ('https://ferry.example/', '')
    """
    return (url[:-_TAIL], url[-_TAIL:]) if len(url) > _LONG else (url, "")
