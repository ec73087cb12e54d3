"""What two pages can be compared from: an HTML file, a text, a document of a corpus, a page of the state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from scrapy_neardup.commands.bounded import read_bounded
from scrapy_neardup.config import Config
from scrapy_neardup.errors import NearDupError, PageError
from scrapy_neardup.evaluation.documents import is_text, read_documents
from scrapy_neardup.inputs.documents import HTML
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import decode_body
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.stores import Record, Store

_URL = re.compile(r"[a-z][a-z0-9+.-]*://|text:[0-9a-f]{16}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two pages, with the name that it was asked for by: a ``page``, or a ``record`` of the state, or both.

    A record is what is compared by, if there is one; the page beside it is what the state tells of it.
    """

    name: str
    page: Page | None = None
    record: Record | None = None

    @property
    def site(self) -> str:
        """Whose page it is, empty where that is not known."""
        return self.page.site if self.page else site_of(self.record.url) if self.record else ""


def read_page(name: str, config: Config, *, or_url: bool = False) -> Page | None:
    """The page of a file, or of a document that is written FILE#ID; None for what looks like a URL.

    ``or_url``: whatever is no file is taken for a URL, as that of an item may be any string. Raises NearDupError if
    there is no such file or document, or no page can be made of it.
    """
    if _URL.match(name):
        return None
    if _exists(name):
        return _from_file(Path(name), config)
    for at, char in enumerate(name):
        if char == "#" and at and _exists(name[:at]):
            return _from_many(Path(name[:at]), name[at + 1 :])
    if or_url:
        return None
    raise NearDupError(
        f"{name} does not exist. Name a file of HTML (.html, .htm) or text (.txt), one document in JSON lines "
        "(FILE#ID), or the URL of a page in the state."
    )


def read_side(url: str, store: Store) -> Side:
    """What the state holds of a URL, with its text if that was kept; raises NearDupError if nothing can be compared."""
    record = store.find(url)
    if record is None:
        raise NearDupError(
            f"The state at {store.location} has no page {url}. Write the URL as crawled, or name a file."
        )
    kept = store.evidence(record.id)
    page = Page(record.url, kept.title, text=kept.text, site=site_of(record.url)) if kept and kept.text else None
    compared = bool(record.sketch) and not record.is_light
    if compared or page:
        return Side(url, page, record if compared else None)
    if record.former:
        raise NearDupError(
            f"The state has no fingerprint of {url} by this method, because it was migrated and the page has not come "
            "again since. Name a file, or run: scrapy neardup migrate --from FEED"
        )
    original = store.record(record.original)
    whose = (
        f" of {original.url}, similarity {record.similarity:.2f}" if original else " of a page no longer in the state"
    )
    raise NearDupError(
        f"The state has no text of {url}. It knows only that it is a copy{whose}. Compare it with its original, name "
        'a file with its text, or set NEARDUP_KEEP = "texts" before the next crawl.'
    )


def _from_file(path: Path, config: Config) -> Page:
    if path.name.lower().endswith(HTML):
        return _from_html(path, config)
    if path.is_file() and is_text(path):
        return next(read_documents(path)).page()
    raise NearDupError(
        f"{path} is neither HTML (.html, .htm) nor text (.txt). For JSON lines, name a document: {path}#ID."
    )


def _from_html(path: Path, config: Config) -> Page:
    """The page as a crawl would extract it; which site's it is, is not known."""
    try:
        html = decode_body(path.read_bytes())
        url = path.absolute().as_uri()
        return read_bounded(html, url, config)
    except OSError as error:
        raise NearDupError(f"{path} cannot be read: {error}. Check the file.") from None
    except PageError as error:
        raise NearDupError(f"{path} has no readable page: {error} ({error.reason}). Name another file.") from None


def _from_many(path: Path, id: str) -> Page:
    first = ""
    for document in read_documents(path):
        if document.id == id:
            return document.page()
        first = first or document.id
    example = f", for example {path}#{first}" if first else ""
    raise NearDupError(f"{path} has no document with the id {id!r}. Name one that exists{example}.")


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or with a character that no name can have
        return False
