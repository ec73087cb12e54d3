"""A page that was taken apart, as lines for people, as plain data, and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy_neardup.commands.dissected import Dissected
from scrapy_neardup.commands.marking import shown
from scrapy_neardup.commands.wording import facts, line
from scrapy_neardup.page.lines import Line, Role
from scrapy_neardup.page.reading import Reading
from scrapy_neardup.report.clean import SENTENCE
from scrapy_neardup.report.figures import language_of
from scrapy_neardup.report.marked import marked_page
from scrapy_neardup.report.words import ENGLISH, Words
from scrapy_neardup.text.marking import Mark, Part

#: Letters of the longest role.
_WIDTH = max(len(role.value) for role in Role)
#: As many pages of a site as are counted.
_MOST = 256


def as_lines(found: Dissected, location: str | None, why: str, *, coloured: bool) -> Iterator[str]:
    """What is known of the page, then its lines, each behind what it is; ``why`` there is no state at ``location``."""
    yield line(found.page.url) or "standard input"
    yield facts((name, line(value) or "(none)") for name, value in _facts(found, location, why, ENGLISH)).rstrip("\n")
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
        "why": _why(reading, ENGLISH),
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


def as_html(found: Dissected, location: str | None, why: str, language: str = "") -> str:
    """The page itself with its parts marked, in its own language unless another is named; see ``report.marked``."""
    page = found.page
    words = Words(language or language_of([(page.title or page.text[:SENTENCE], page.url)]))
    return marked_page(found.html, page, found.lines, list(_facts(found, location, why, words)), words)


def _facts(found: Dissected, location: str | None, why: str, words: Words) -> Iterator[tuple[str, str]]:
    page = found.page
    values = {
        "title": page.title,
        "headline": " / ".join(page.headline.split("\n")),
        "keywords": ", ".join(page.keywords),
        "description": page.description,
        "canonical": page.canonical,
        "site": page.site,
        "reader": f"{page.reader}: {_why(found.reading, words)}",
        "judged": _judgement(found, words),
        "state": _state(found, location, why, words),
    }
    yield from ((words(f"fact.{name}"), value) for name, value in values.items())


def _why(reading: Reading, words: Words) -> str:
    """Why the page was read in this way."""
    name, numbers = reading.explanation()
    shown = {key: f"{value:.0%}" if isinstance(value, float) else f"{value:,}" for key, value in numbers.items()}
    letters = {"letters": words("letters", int(numbers["letters"]))} if "letters" in numbers else {}
    return words(f"reading.{name}", **{**shown, **letters})


def _judgement(found: Dissected, words: Words) -> str:
    """What a crawl would do, before it looks for earlier pages."""
    if found.reason:
        why = found.why if words.language == ENGLISH.language else words(f"reason.{found.reason}")
        return words("judged.no", reason=found.reason, why=why)
    letters = words("letters", found.letters)
    if found.own is None or found.own >= found.letters:
        return words("judged.yes", letters=letters)
    rest = max(0, found.letters - found.own - found.quoted)
    left_out = [words("judged.quotes", found.quoted)] if found.quoted else []
    left_out += [words("judged.boilerplate", rest)] if rest or not left_out else []
    return words("judged.part", own=f"{found.own:,}", letters=letters, left_out=words("comma").join(left_out))


def _state(found: Dissected, location: str | None, why: str, words: Words) -> str:
    if location is None:
        return words("marked.no_state", why=why)
    lines = words("marked.lines", sum(one.pages > 0 for one in found.lines))
    if not found.page.site:
        return words("marked.state_without_site", location=location, lines=lines)
    pages = words("pages", found.noted)
    pages = words("marked.or_more", pages=pages) if found.noted >= _MOST else pages
    return words("marked.state", location=location, site=found.page.site, pages=pages, lines=lines)


def _shown(one: Line, *, coloured: bool) -> str:
    """A line in one line; where all of it is boilerplate, that has been said."""
    whole = one.role is Role.BOILERPLATE and not coloured
    return " ".join(shown([Part(one.text)] if whole else list(one.parts), coloured=coloured).split())


def _line(one: Line) -> dict[str, Any]:
    boilerplate = [part.text for part in one.parts if part.mark is Mark.BOILERPLATE]
    return {"role": one.role.value, "text": one.text, "boilerplate": boilerplate, "pages": one.pages or None}
