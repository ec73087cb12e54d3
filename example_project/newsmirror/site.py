"""The made-up news sites: their pages, rendered from site/, and the extension that serves them."""

from __future__ import annotations

import json
import re
import threading
from functools import cache
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import NamedTuple, TypedDict

from scrapy import signals
from scrapy.crawler import Crawler

SITE = Path(__file__).resolve().parent.parent / "site"

# The looks of the sites also differ in how a client learns the encoding: from a meta tag alone
# (morning, county), from an old gb2312 declaration alone (portal), from the HTTP header alone
# (daybook).
TEMPLATES = {
    "morning": ("utf-8", "text/html"),
    "county": ("utf-8", "text/html"),
    "portal": ("gbk", "text/html"),
    "daybook": ("utf-8", "text/html; charset=utf-8"),
}

INDEX = Template(
    """<!DOCTYPE html>
<html lang="zh">
<head><meta charset="utf-8"><title>Index</title></head>
<body>
<ol>
$links
</ol>
</body>
</html>
"""
)

# Stands for every photograph: a grey box, so that the site needs no image files.
PHOTO = (
    '<p><img alt="" width="640" height="400" src="data:image/svg+xml,'
    "%3Csvg xmlns='http://www.w3.org/2000/svg'%3E"
    "%3Crect width='100%25' height='100%25' fill='gray'/%3E%3C/svg%3E\"></p>"
)


class Page(TypedDict):
    """One entry of site/pages.json."""

    path: str
    template: str
    article: str
    family: str
    made: str
    verdict: str
    kind: str | None
    original: str | None
    note: str


class Article(NamedTuple):
    """One file of site/articles; a paragraph that reads [photo] stands for a photograph."""

    title: str
    keywords: str
    description: str
    paragraphs: tuple[str, ...]


def load_pages() -> list[Page]:
    """Return the entries of site/pages.json, which are in crawl order."""
    pages: list[Page] = json.loads((SITE / "pages.json").read_text("utf-8"))
    return pages


@cache
def load_article(slug: str) -> Article:
    """Read site/articles/<slug>.txt: title, keywords, description, empty line, paragraphs."""
    title, keywords, description, *rest = (SITE / "articles" / f"{slug}.txt").read_text("utf-8").splitlines()
    paragraphs = re.split(r"\n{2,}", "\n".join(rest).strip())
    return Article(title, keywords, description, tuple(text for text in paragraphs if text))


@cache
def load_template(name: str) -> Template:
    """Read site/templates/<name>.html."""
    return Template((SITE / "templates" / f"{name}.html").read_text("utf-8"))


def render(page: Page) -> tuple[bytes, str]:
    """Return the body and the Content-Type header of one page.

    Nothing but the article and the template goes in, so mirrors are equal byte for byte.
    """
    article = load_article(page["article"])
    encoding, content_type = TEMPLATES[page["template"]]
    html = load_template(page["template"]).substitute(
        lang="zh" if page["article"].endswith("-zh") else "en",
        title=escape(article.title),
        keywords=escape(article.keywords),
        description=escape(article.description),
        body="\n".join(PHOTO if text == "[photo]" else f"<p>{escape(text)}</p>" for text in article.paragraphs),
    )
    return html.encode(encoding), content_type


def render_all() -> dict[str, tuple[bytes, str]]:
    """Return the body and the Content-Type header of the index and of every page, by path."""
    pages = load_pages()
    links = "\n".join(
        f'<li><a href="{url_of(page["path"])}">{escape(load_article(page["article"]).title)}</a></li>' for page in pages
    )
    index = INDEX.substitute(links=links).encode("utf-8"), "text/html; charset=utf-8"
    return {"/index.html": index} | {page["path"]: render(page) for page in pages}


def url_of(path: str) -> str:
    """The address of a page: each template is a site of its own.

    >>> url_of("/morning/0001.html")
    'http://morning.example/0001.html'
    """
    _, template, name = path.split("/")
    return f"http://{template}.example/{name}"


class LocalSite:
    """Scrapy extension that serves the sites as a proxy on 127.0.0.1 while the crawl lasts: their hosts need no DNS."""

    def __init__(self, port: int) -> None:
        """Bind the port and serve from a daemon thread at once."""
        rendered = {url_of(path) if path != "/index.html" else path: page for path, page in render_all().items()}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body, content_type = rendered.get(self.path, (b"", ""))
                self.send_response(200 if body else 404)
                if content_type:
                    self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Keep the crawl's log free of one line per request."""

        try:
            self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise RuntimeError(
                f"The example site cannot listen on 127.0.0.1:{port} ({error.strerror}). "
                "Set NEWSMIRROR_PORT to a free port, for example: "
                f"scrapy crawl mirror -s NEWSMIRROR_PORT={port + 1}"
            ) from error
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LocalSite:
        """Start the site and have it stopped when the spider closes."""
        site = cls(crawler.settings.getint("NEWSMIRROR_PORT"))
        crawler.signals.connect(site.stop, signal=signals.spider_closed)
        return site

    def stop(self) -> None:
        """Stop serving and free the port."""
        self.server.shutdown()
        self.server.server_close()
