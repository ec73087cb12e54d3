"""A page that was taken apart, as lines for people, as plain data, and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy_neardup.commands.dissected import Dissected
from scrapy_neardup.commands.marking import shown
from scrapy_neardup.commands.wording import counted, facts, line
from scrapy_neardup.page.lines import Line, Role
from scrapy_neardup.report.marked import marked_page
from scrapy_neardup.text.marking import Mark, Part

#: Letters of the longest role.
_WIDTH = max(len(role.value) for role in Role)
#: As many pages of a site as are counted.
_MOST = 256


def as_lines(found: Dissected, location: str | None, why: str, *, coloured: bool) -> Iterator[str]:
    """What is known of the page, then its lines, each behind what it is; ``why`` there is no state at ``location``."""
    yield line(found.page.url) or "standard input"
    yield facts((name, line(value) or "(none)") for name, value in _facts(found, location, why)).rstrip("\n")
    yield ""
    for one in found.lines:
        stood = f" (on {one.pages:,} pages)" if one.pages else ""
        yield f"{one.role.value:<{_WIDTH}}  {_shown(one, coloured=coloured)}{stood}"
    if not found.lines:
        yield "It shows no text."


def as_data(found: Dissected, location: str | None, why: str) -> dict[str, Any]:
    """The same, for JSON."""
    page, reading = found.page, found.reading
    return {
        "url": page.url,
        "title": page.title,
        "headline": page.headline,
        "keywords": list(page.keywords),
        "description": page.description,
        "canonical": page.canonical or None,
        "site": page.site or None,
        "reader": page.reader,
        "why": reading.sentence(),
        "judged": not found.reason,
        "reason": found.reason or None,
        "letters": found.letters,
        "own_letters": found.own,
        "quoted_letters": found.quoted,
        "store": location,
        "why_no_store": why or None,
        "pages_of_site": found.noted if location else None,
        "text": page.text,
        "main": page.main,
        "lines": [_line(one) for one in found.lines],
    }


def as_html(found: Dissected, location: str | None, why: str) -> str:
    """The page itself with its parts marked; see ``report.marked``."""
    return marked_page(found.html, found.page, found.lines, list(_facts(found, location, why)))


def _facts(found: Dissected, location: str | None, why: str) -> Iterator[tuple[str, str]]:
    page = found.page
    yield "title", page.title
    yield "headline (h1)", " / ".join(page.headline.split("\n"))
    yield "keywords", ", ".join(page.keywords)
    yield "description", page.description
    yield "canonical", page.canonical
    yield "site", page.site
    yield "reader", f"{page.reader}: {found.reading.sentence()}"
    yield "judged", f"{found.judgement}."
    yield "state", _state(found, location, why)


def _state(found: Dissected, location: str | None, why: str) -> str:
    if location is None:
        return f"none, so nothing is known of boilerplate. {why}"
    noted = "no page" if not found.noted else counted(found.noted, "page")
    more = " or more" if found.noted >= _MOST else ""
    of_site = (
        f"of the site {found.page.site} it has counted {noted}{more}" if found.page.site else "the site is unknown"
    )
    left_out = sum(one.pages > 0 for one in found.lines)
    return f"{location}; {of_site}; {counted(left_out, 'line')} here with boilerplate."


def _shown(one: Line, *, coloured: bool) -> str:
    """A line in one line; where all of it is boilerplate, that has been said."""
    whole = one.role is Role.BOILERPLATE and not coloured
    return " ".join(shown([Part(one.text)] if whole else list(one.parts), coloured=coloured).split())


def _line(one: Line) -> dict[str, Any]:
    boilerplate = [part.text for part in one.parts if part.mark is Mark.BOILERPLATE]
    return {"role": one.role.value, "text": one.text, "boilerplate": boilerplate, "pages": one.pages or None}
