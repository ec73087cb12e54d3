"""One article at several addresses of a site that nobody knows yet, and articles that change by a counter."""

from __future__ import annotations

from tests.build import BAKERY, story
from tests.crawl.conftest import Crawl, Site

SECRET = "one for all these crawls"
MENU = "".join(f"<a href='/{name}'>{name}</a> " for name in ("Home", "News", "Sport", "Weather", "Imprint"))


def page(title: str, sentences: list[str], teasers: int = 0, views: str = "") -> str:
    """A page with a menu, an article, and teasers that change with each response."""
    article = f"<article><h1>{title}</h1>{views}" + "".join(f"<p>{one}.</p>" for one in sentences) + "</article>"
    others = "".join(
        f"<p><a href='/{teasers}/{n}'>What else happened on day {teasers * n}</a></p>" for n in range(1, 5)
    )
    head = f"<html><head><title>{title} - Daily</title></head>"
    return f"{head}<body><nav>{MENU}</nav>{article}<aside>{others}</aside><footer>Daily Ltd.</footer></body></html>"


def test_the_same_article_at_another_address_is_a_copy_from_the_first_page_of_a_site_on(
    site: Site, crawl: Crawl
) -> None:
    title, printed = "Two sisters buy the bakery", "".join(f"<p>{one}.</p>" for one in BAKERY)
    addresses = [
        "/article/13.html",
        "/article/13.html?utm_source=x",
        *(f"/article/13.html?session={n}" for n in range(10)),
    ]
    site.content |= {path: page(title, BAKERY, teasers) for teasers, path in enumerate(addresses)}
    site.content["/print/article/13.html"] = (
        f"<html><head><title>{title} - Daily</title></head><body><h1>{title}</h1>{printed}</body></html>"
    )
    # The query alone makes no copy: another article stands behind another number.
    others = {f"/show?id={n}": page(f"Notice {n}", story(n, 8)) for n in (5, 6)}
    site.content |= others
    result = crawl([*addresses, "/print/article/13.html", *others])
    assert result.paths == ["/article/13.html", *others]
    assert result.count("duplicate") == 12


def test_a_counter_delivers_no_article_twice_and_the_log_names_the_site(site: Site, crawl: Crawl) -> None:
    titles = {f"/{n}": f"Notice {n}" for n in range(25)}
    for views in (44, 145):
        for n, (path, title) in enumerate(titles.items()):
            site.content[path] = page(title, story(n, 30), views=f"<p>{views + n} views</p>")
        result = crawl([*titles], NEARDUP_SECRET=SECRET)
    assert result.items == []
    assert result.count("minor_update") == 25
    assert result.count("suspicious_drops/minor_updates") == 1
    assert "of 127.0.0.1 differ from their delivered text by a few letters" in result.log
    assert result.stats["item_dropped_reasons_count/UnchangedPage"] == 25
    tagged = crawl(["/3"], NEARDUP_SECRET=SECRET, NEARDUP_POLICY={"minor_update": "tag"})
    assert [item["neardup"]["verdict"] for item in tagged.items] == ["minor_update"]
    assert crawl(["/3"], NEARDUP_SECRET=SECRET).count("unchanged") == 1
