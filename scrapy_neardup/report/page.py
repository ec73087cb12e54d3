"""A report as one HTML file that loads nothing: report.html with report.css and report.js inside.

The template escapes strings of pages, or the script inserts them as text. The policy allows no other script.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Set
from functools import partial
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from scrapy_neardup.report.data import GONE, NO_SITE, MarkedText, PageLine, PagePair, Report
from scrapy_neardup.report.gather import PAGES_OF_GROUP
from scrapy_neardup.report.words import Words, format_minute, format_percent, format_size
from scrapy_neardup.text.marking import Mark
from scrapy_neardup.untrusted import escape_json, link

if TYPE_CHECKING:
    from markupsafe import Markup

#: English words of the data where there is no site.
_NO_SITES = {NO_SITE: "site.none", GONE: "site.gone"}


def render_report(report: Report, language: str = "en") -> str:
    """Return the report as HTML. Equal data gives equal HTML under equal library versions."""
    words = Words(language)
    #: The pairs that the page shows, by both URLs; of equal ones the first.
    pairs = reversed([*enumerate(report.pairs)])
    places = {(pair.page.url, pair.original.url): at for at, pair in pairs if pair.copy and pair.original}
    groups = {group.similar_id for group in report.groups}
    values = {
        "report": report,
        "totals": report.totals,
        "share": report.totals.copies / max(report.totals.pages, 1),
        "language": words.language,
        "words": words,
        "say": partial(_say, words),
        "group_pages": PAGES_OF_GROUP,
        "with_texts": sum(pair.has_texts for pair in report.pairs),
        "shared": Mark.SHARED,
    }
    filters = {
        "link": link,
        "number": "{:,}".format,
        "percent": partial(format_percent, language=words.language),
        "size": format_size,
        "minute": format_minute,
        "split_tail": _split_tail,
        "site": partial(_site, words=words),
    }
    data = {
        "language": words.language,
        "words": words.quoted_in(read_file("report.js")) | words.below("kind"),
        "rows": [_row(one, places, groups, words) for one in report.copies],
    }
    return _fill_template(values, filters, data)


#: Characters that end a script or an attribute.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def _fill_template(values: Mapping[str, Any], filters: Mapping[str, Any], data: Any) -> str:
    """Fill in report.html, with report.css, report.js and its ``data`` inside.

    Values are escaped unless they are Markup. The policy of the page allows only this script, and loads nothing.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    script = read_file("report.js")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(filters)
    ours = {
        "style": Markup(read_file("report.css")),  # noqa: S704  # a file of ours
        "script": Markup(script),  # noqa: S704  # likewise
        "data": Markup(pack_data(data)),  # noqa: S704  # escaped there
        "policy": f"default-src 'none'; script-src {_digest(script)}; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'",
    }
    return environment.from_string(read_file("report.html")).render({**ours, **values}).lstrip()


def read_file(name: str) -> str:
    """Read a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def pack_data(data: Any) -> str:
    r"""Return JSON that is safe in a script element.

    >>> pack_data(["</script>", "a&b"])
    '["\\u003c/script\\u003e","a\\u0026b"]'
    """
    return escape_json(json.dumps(data, ensure_ascii=False, separators=(",", ":"))).translate(_ESCAPES)


def _digest(code: str) -> str:
    """Name a script for a policy.

    >>> _digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"


def _say(words: Words, name: str, many: int | None = None, /, **values: object) -> Markup:
    """Return words as HTML: `` ` `` marks code, values are escaped."""
    from markupsafe import Markup, escape

    parts = str(escape(words.pattern(name, many))).split("`")
    pattern = "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
    number = {} if many is None else {"many": f"{many:,}"}
    return Markup(pattern).format(**number, **values)  # noqa: S704  # escaped above


def _row(one: PagePair, places: Mapping[tuple[str, str], int], groups: Set[str], words: Words) -> list[Any]:
    """Return the row of a copy for report.js.

    Time, kind, similarity; page and original, four values each; then the place of their pair or -1, the name of a shown
    group, containment. At last, unless the pair is shown or gone: time of the original, shared sentences, both texts.
    """
    page, original = one.page, one.original
    place = places.get((page.url, original.url), -1) if original else -1
    sides: list[Any] = []
    if original is not None and place < 0:
        sides = [original.seen, one.shared, *(_pack_text(text) for text in one.texts if text is not None)]
    return [
        *(page.seen, page.kind, page.similarity, *_named(page, words), *_named(original, words)),
        *(place, one.similar_id if one.similar_id in groups else "", one.containment, sides),
    ]


def _pack_text(text: MarkedText) -> list[Any]:
    """Return letters in all, hidden sentences, whether it is cut, and its parts; shared parts are lists."""
    parts = [[part.text] if part.mark is Mark.SHARED else part.text for part in text.parts]
    return [text.letters, text.hidden, text.is_cut, parts]


def _named(page: PageLine | None, words: Words) -> tuple[str, str, bool, str]:
    """Return title, URL, whether that may be a link, and site; nothing for a page that is gone."""
    return (page.title, page.url, bool(link(page.url)), _site(page.site, words)) if page else ("", "", False, "")


def _site(name: str, words: Words) -> str:
    return words(_NO_SITES[name]) if name in _NO_SITES else name


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
