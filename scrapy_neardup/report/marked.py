"""A page with its parts marked: its own structure, without anything active."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import lxml.html

from scrapy_neardup.model import Page
from scrapy_neardup.page.blocks import visible_texts
from scrapy_neardup.page.html import parse_page
from scrapy_neardup.page.reading import Line, LineRole
from scrapy_neardup.report.html import remove_names, render, safe_html
from scrapy_neardup.report.words import ENGLISH, Words
from scrapy_neardup.untrusted import SENTENCE, TITLE, clean_line, clean_text


def render_marked_page(
    html: str, page: Page, lines: Sequence[Line], facts: Sequence[tuple[str, str]], words: Words = ENGLISH
) -> str:
    """Return one HTML file that loads and runs nothing. ``facts`` stand above the page."""
    from markupsafe import Markup

    roles = Counter(line.role for line in lines)
    values = {
        "title": clean_line(page.title or page.url, TITLE),
        "url": page.url,
        "facts": [(name, clean_line(value, 2 * SENTENCE)) for name, value in facts if value],
        "legend": [(role.value, words(f"role.{role.value}"), roles[role]) for role in LineRole if roles[role]],
        "unseen": [clean_text(line.text) for line in lines if line.role is LineRole.UNSEEN],
        "body": Markup(_marked_body(html, page.url, lines)),  # noqa: S704  # made safe there
        "language": words.language,
        "say": words,
    }
    return render("marked", values)


def _marked_body(html: str, url: str, lines: Sequence[Line]) -> str:
    """Return the body with each stretch of text in an element whose class is its role."""
    root = parse_page(html)
    if root is None:
        return ""
    remove_names(root)
    roles = _roles(lines)
    for element, behind in visible_texts(root):
        text = element.tail if behind else element.text
        if not text or text.isspace():
            continue
        spans = [_span(stretch, role) for role, stretch in _stretches(text, roles)]
        if behind:
            element.tail = None
            last = element
        else:
            element.text = None
            last = spans.pop(0)
            element.insert(0, last)
        for span in spans:
            last.addnext(span)
            last = span
    body = root.find("body")
    return safe_html(root if body is None else body, url)


def _roles(lines: Sequence[Line]) -> Iterator[LineRole]:
    """Return the role of each character that is no white space."""
    for line in lines:
        for text, role in line.spans():
            for char in text:
                if not char.isspace():
                    yield role


def _stretches(text: str, roles: Iterator[LineRole]) -> Iterator[tuple[LineRole, str]]:
    """Cut a text into stretches of one role. White space joins the stretch before it."""
    found: list[tuple[LineRole | None, str]] = []
    role = None
    for char in text:
        role = role if char.isspace() else next(roles, LineRole.OTHER)
        found.append((role, char))
    first = next(role for role, _ in found if role)
    for role, piece in groupby(found, lambda one: one[0] or first):
        yield role or first, "".join(char for _, char in piece)


def _span(text: str, role: LineRole) -> lxml.html.HtmlElement:
    span = lxml.html.Element("span", {"class": role.value})
    span.text = clean_text(text)  # lxml takes no control characters
    return span
