"""A digest of our readers' results on a few sample pages, which identifies the readers beside their version.

``text.samples`` gives the reason for digests. The pages hold the cases on which readers differ: menus, teasers,
bylines, captions, lists, quotes, code, comments, a forum thread, an almost empty page and broken tags. The digest
covers all judged text and the version of our own reader. Data tables are left out: few articles have one, and
versions that read everything else alike differ in their place.

An extractor of the user (NEARDUP_EXTRACTOR) is not tried, as it may know one site alone. Its name and ``__version__``
identify it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from scrapy_neardup.page.extraction import VERSION, extract
from scrapy_neardup.text.samples import digest

#: The pages in ``page/sample_pages``, without the line end that each file has.
PAGES = tuple(
    path.read_text(encoding="utf-8").removesuffix("\n")
    for path in sorted(Path(__file__).with_name("sample_pages").glob("*.html"))
)


@cache
def reader_sample() -> str:
    """Return the digest of all sample pages. It takes some ten milliseconds per page."""
    found = [str(VERSION)]
    for number, html in enumerate(PAGES):
        page = extract(html, f"https://sample{number}.example/news/page.html", max_html=len(html))
        about = (page.title, *page.keywords, page.description, page.canonical, page.headline, page.reader)
        found += [*about, page.main, page.text]
    return digest(found)
