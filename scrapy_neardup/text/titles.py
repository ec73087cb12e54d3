"""The article's title without the name of the site that carries it."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A hyphen or dash separates only between spaces, or before what a Chinese site calls itself; the bars and
# the underscore always do. The Chinese double dash is part of a headline. A run of white space is tried from its
# beginning alone: from each of its characters would take time quadratic in its length.
_SEPARATOR = re.compile(
    r"(?:(?<!\s)\s+)?[_|｜»]+\s*|(?<!\s)\s+[-–—·:]\s+"
    r"|(?:(?<!\s)\s+)?(?<![-–—])[-–—](?=[^-–—_|]{1,12}(?:网|报|频道|中心|社区|论坛|在线|门户|资讯|新闻)$)"
)
#: What a separator holds: most titles have none, which is told in a quarter of the time.
_MAY_SEPARATE = re.compile(r"[_|｜»\-–—·:]")


def article_title(title: str, site_name: str = "") -> str:
    """The longest part of a title between separators, the first of equals; the site's own name never.

    >>> article_title("用人单位隐匿加班证据应担责_新闻中心_新浪网")
    '用人单位隐匿加班证据应担责'
    >>> article_title("Ferry back in service - The Daybook", "The Daybook")
    'Ferry back in service'
    """
    parts = title_parts(title)
    own = [part for part in parts if part.casefold() != site_name.strip().casefold()] or parts
    return longest_part(own)


def longest_part(parts: Sequence[str]) -> str:
    """The longest of the parts of a title, the first of equals; of none an empty one."""
    return max(parts, key=len, default="")


def title_parts(title: str) -> list[str]:
    """What stands between the separators of a title: a headline, a section, the name of a site.

    >>> title_parts("用人单位隐匿加班证据应担责_新闻中心_新浪网")
    ['用人单位隐匿加班证据应担责', '新闻中心', '新浪网']
    """
    found = _SEPARATOR.split(title) if _MAY_SEPARATE.search(title) else (title,)
    return [part for part in map(str.strip, found) if part]
