"""Pages that were written to hold up a crawl: it goes on, their items pass, and the next one does not read them."""

from __future__ import annotations

from tests.crawl.conftest import Crawl, Site
from tests.crawl.pages import html

#: A tag of so many attributes takes 200 s; a text of so many characters is not judged; so many tags are not parsed.
WIDE = html("bridge-zh").replace("</article>", f"<p{''.join(f' a{n}' for n in range(200_000))}></article>")
LONG = html("tea-zh").replace("</article>", f"<p>{'渡口停航七个月后今天重新开航。' * 40_000}</article>")
TAGS = html("kelp-en").replace("</article>", "<p>" * 100_001)
#: May take long, and does not.
LARGE = html("metro-zh").replace("</article>", f"<p>{'<br>' * 9_000}</article>")
ORDINARY = ["goats-en", "snow-zh", "tram-en", "honey-zh"]
PATHS = ["/wide", "/goats-en", "/snow-zh", "/long", "/tags", "/large", "/tram-en", "/honey-zh"]


def test_all_items_pass_and_ordinary_pages_are_judged(site: Site, crawl: Crawl) -> None:
    site.content |= {"/wide": WIDE, "/long": LONG, "/tags": TAGS, "/large": LARGE}
    site.content |= {f"/{slug}": html(slug) for slug in ORDINARY}
    result = crawl(PATHS, CONCURRENT_REQUESTS=8, NEARDUP_STORE="memory:", NEARDUP_MAX_SECONDS=2)
    assert sorted(result.paths) == sorted(PATHS)
    before = result.paths[: result.paths.index("/wide")]  # all of them, where the machine has nothing else to do
    assert set(before) & {f"/{slug}" for slug in ORDINARY}, "they wait for the page that takes 2 s"
    assert [result.count(stat) for stat in ("unique", "unjudged/too_slow", "unjudged/too_large")] == [5, 1, 2]
    assert result.count("apart") == 2, "the others are known for what they are, or read at once"
    assert result.log.count(f"unjudged (too_slow): {site.base}/wide passes. Reading the page took longer") == 1
    for path in ("/long", "/tags"):
        assert result.log.count(f"unjudged (too_large): {site.base}{path} passes") == 1
    assert "Traceback" not in result.log
