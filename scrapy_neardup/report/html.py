"""Templates, and the body of a page made safe to show."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import lxml.html
from lxml import etree
from lxml_html_clean import Cleaner

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.page.blocks import INLINE, is_hidden
from scrapy_neardup.page.urls import absolute_url
from scrapy_neardup.untrusted import clean_text, escape_json, link

#: Characters that end a script or an attribute.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def check_template() -> None:
    """Raise NearDupError if the template library is missing."""
    if find_spec("jinja2") is None:
        raise NearDupError("Reports need Jinja2. Run: pip install 'scrapy-neardup[report]'")


def render(
    name: str,
    values: Mapping[str, Any],
    filters: Mapping[str, Callable[..., Any]] | None = None,
    data: Any = None,
    *,
    inline_styles: bool = False,
) -> str:
    """Fill in the template ``name``.html with ``name``.css; with ``data``, also with that and ``name``.js.

    Values are escaped unless they are Markup. The policy of the page allows this style and script alone, and loads
    nothing; ``inline_styles`` allows attributes of style.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    style, script = read_file(f"{name}.css"), "" if data is None else read_file(f"{name}.js")
    styles, scripts = "'unsafe-inline'" if inline_styles else _digest(style), _digest(script) if script else "'none'"
    environment = Environment(
        loader=FunctionLoader(read_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({"link": link, **(filters or {})})
    ours = {
        "style": Markup(style),  # noqa: S704  # a file of ours
        "script": Markup(script),  # noqa: S704  # likewise
        "data": Markup(pack_data(data)),  # noqa: S704  # escaped there
        "policy": f"default-src 'none'; script-src {scripts}; style-src {styles}; base-uri 'none'; form-action 'none'",
    }
    return environment.get_template(f"{name}.html").render({**ours, **values}).lstrip()


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
    """Name a script or style for a policy.

    >>> _digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"


# A page comes from a stranger. Only elements and attributes of two lists remain, links lead to http and https alone,
# and invisible text goes.
# fmt: off
_ELEMENTS = frozenset((
    "a", "abbr", "address", "article", "aside", "b", "bdi", "bdo", "blockquote", "br", "caption", "cite", "code", "col",
    "colgroup", "dd", "del", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "footer", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hr", "i", "ins", "kbd", "li", "main", "nav", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s",
    "samp", "section", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "time",
    "tr", "u", "ul", "var", "wbr",
))
# fmt: on
#: Attributes to keep. ``class`` exists only after ``remove_names``.
_ATTRIBUTES = frozenset(("class", "colspan", "dir", "href", "lang", "rowspan", "start"))

_cleaner = Cleaner(
    scripts=True,
    javascript=True,
    comments=True,
    style=True,
    inline_style=True,
    links=True,
    meta=True,
    page_structure=True,
    processing_instructions=True,
    embedded=True,
    frames=True,
    forms=True,
    annoying_tags=True,
    remove_unknown_tags=False,
    allow_tags=_ELEMENTS,
    safe_attrs_only=True,
    safe_attrs=_ATTRIBUTES,
)


def remove_names(body: lxml.html.HtmlElement) -> None:
    """Remove the names by which styles find elements, so that the page cannot imitate our elements."""
    etree.strip_attributes(body, "class", "id")


def safe_html(body: lxml.html.HtmlElement, url: str) -> str:
    """Return the body as HTML; ``url`` is the base of its links. The tree changes."""
    if is_hidden(body, body.keys()):
        return ""
    for element in body.iter():  # lxml moves no text that holds control characters
        element.text, element.tail = clean_text(element.text or ""), clean_text(element.tail or "")
    for element in [one for one in body.iterdescendants() if is_hidden(one, one.keys())]:
        element.drop_tree()
    body.tag = "div"
    for element in body.iterdescendants():
        if element.tag not in _ELEMENTS:  # as a line, or in one, it keeps its place
            element.tag = "span" if element.tag in INLINE else "div"
    _cleaner(body)
    body.rewrite_links(lambda to: link(absolute_url(url, to)) or None, resolve_base_href=False)
    return clean_text(lxml.html.tostring(body, encoding="unicode", with_tail=False))
