"""The article's title without the name of the site."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from scrapy_neardup.text.normalize import letters, normalize

# A hyphen or dash separates only between spaces, or before the name of a Chinese site; bars and underscores always do.
# The Chinese double dash belongs to a headline, and so does a dash between two years or scores. White space is tried
# from its beginning only: trying each character would take quadratic time.
_SEPARATOR = re.compile(
    r"(?:(?<!\s)\s+)?[_|｜»]+\s*"
    r"|(?<!\s)(?!(?:(?<=\d{4})\s+[-–—]\s+\d{4}|(?<=(?<!\d)\d)\s+[-–—]\s+\d)(?!\w))\s+[-–—·:]\s+"
    r"|(?:(?<!\s)\s+)?(?<![-–—])[-–—](?=[^-–—_|]{1,12}(?:网|报|频道|中心|社区|论坛|在线|门户|资讯|新闻)$)"
)
#: Most titles have none of these characters: a fast check.
_MAY_SEPARATE = re.compile(r"[_|｜»\-–—·:]")


def article_title(title: str, site_name: str = "", headings: Iterable[str] = ()) -> str:
    """Return the part of a title that names the article, but never the site's name; ``headings``: of the page.

    >>> article_title("用人单位隐匿加班证据应担责_新闻中心_新浪网")
    '用人单位隐匿加班证据应担责'
    >>> article_title("Ferry - The Daybook", "The Daybook"), article_title("Ferry - The Daybook", "", ["Ferry"])
    ('Ferry', 'Ferry')
    """
    parts = title_parts(title)
    own = [part for part in parts if part.casefold() != site_name.strip().casefold()] or parts
    if len(own) == 1 or own[:1] != parts[:1]:
        return longest_part(own)
    return main_part(own, *([letters(normalize(one)) for one in some] for some in (own, headings)))


def main_part(parts: Sequence[str], lines: Sequence[str], headings: Iterable[str]) -> str:
    """Return the longest part of a title, or the first one, however short, if it is a heading of the page.

    A heading before another part's may name the site. ``lines``: the letters of each part. ``headings``: their letters.

    >>> main_part(["Ferry", "The Daybook"], ["ferry", "thedaybook"], ["thedaybook", "ferry"])
    'Ferry'
    """
    headed = [one for one in headings if one and one in lines]
    return parts[0] if headed and headed[-1] == lines[0] else longest_part(parts)


def longest_part(parts: Sequence[str]) -> str:
    """Return the longest of the parts of a title, the first of equals; an empty string of none."""
    return parts[0] if len(parts) == 1 else max(parts, key=len, default="")


def title_parts(title: str) -> list[str]:
    """Split a title at its separators into headline, section and name of the site.

    >>> title_parts("用人单位隐匿加班证据应担责_新闻中心_新浪网")
    ['用人单位隐匿加班证据应担责', '新闻中心', '新浪网']
    >>> title_parts("Season 2025 - 2026 opens - The Daybook")
    ['Season 2025 - 2026 opens', 'The Daybook']
    """
    parts = _SEPARATOR.split(title) if _MAY_SEPARATE.search(title) else (title,)
    return [part for part in map(str.strip, parts) if part]
