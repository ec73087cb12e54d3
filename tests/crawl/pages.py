"""The site of the crawl tests: articles of the example project in a plain template, served from this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ARTICLES = Path(__file__).parents[2] / "example_project" / "site" / "articles"


def article(slug: str) -> tuple[str, list[str]]:
    title, _, _, _, *rest = (ARTICLES / f"{slug}.txt").read_text(encoding="utf-8").split("\n")
    return title, [line for line in rest if line.strip()]


def text(slug: str) -> str:
    return "\n".join(article(slug)[1])


def html(slug: str, extra: str = "") -> str:
    """A page that holds the article; ``extra`` is a further paragraph."""
    title, paragraphs = article(slug)
    body = "".join(f"<p>{paragraph}</p>" for paragraph in [*paragraphs, *([extra] if extra else [])])
    return f"<html><head><title>{title}</title></head><body><article>{body}</article></body></html>"


def with_items(page: str, items: Iterable[dict[str, Any]]) -> str:
    """The page, of which ``PathSpider`` yields these items."""
    return f"{page}<!-- items {json.dumps([*items])} -->"


Content = dict[str, "str | tuple[bytes, str]"]


@contextmanager
def serve(content: Content) -> Iterator[str]:
    """Serve path -> HTML (or body and content type); yields the site's address. What is put in later is served too."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = content.get(self.path)
            if found is None:
                self.send_error(404)
                return
            body, kind = found if isinstance(found, tuple) else (found.encode(), "text/html; charset=utf-8")
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
