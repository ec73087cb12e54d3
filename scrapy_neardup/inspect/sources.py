"""Pages that a user names: files, documents of a corpus, URLs of a state; and whether they can be judged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from scrapy_neardup.errors import AnyReason, ExtractionError, NearDupError, PageError
from scrapy_neardup.files import HTML, find_format
from scrapy_neardup.files.compression import open_packed
from scrapy_neardup.files.entry import BOM, decode_utf8, file_errors
from scrapy_neardup.lab.documents import DocumentReader
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.extraction import PageContent, decode_body
from scrapy_neardup.page.limits import limit_page
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.sentences import why_unjudged
from scrapy_neardup.untrusted import shell_word

_URL = re.compile(r"[a-z][a-z0-9+.-]*://|text:[0-9a-f]{16}$", re.IGNORECASE)


def read_html(html: str, url: str, config: Config) -> Page:
    """Read HTML as a crawl would; raises ExtractionError if it has no page, or a larger one than the limits allow."""
    with config.open_source() as source:
        answer = source.read_content(PageContent(url, html))
    if not isinstance(answer, Page):
        assert answer is not None
        raise answer
    return limit_text(answer, config)


def limit_text(page: Page, config: Config) -> Page:
    """Return the part of the page that is judged; raises ExtractionError if its text is too long."""
    page = limit_page(page, config.max_text)
    if page.unread:
        raise ExtractionError(page.unread, f"its text has more than {config.max_text:,} characters (NEARDUP_MAX_TEXT)")
    return page


def fingerprint_page(
    method: Method, page: Page, min_letters: int, store: PageStore | None
) -> tuple[Fingerprint | None, AnyReason]:
    """Return the fingerprint of a page, if it has enough text for one, and the reason if it cannot be judged.

    ``store`` knows boilerplate. Raises LexiconNeeded if the method cannot read the page.
    """
    if reason := why_unjudged(page.text, min_letters):
        return None, reason
    fingerprint = method.for_state(page, store.on_site(page.site) if store else None)
    return fingerprint, fingerprint.why_unjudged(min_letters)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two pages to compare, under the name that the user gave it: a page, a record of a state, or both.

    With both, the record is compared, and the page shows its text.
    """

    name: str
    page: Page | None = None
    record: Record | None = None

    @property
    def site(self) -> str:
        """The site of the page; empty if unknown."""
        return self.page.site if self.page else site_of(self.record.url) if self.record else ""


def read_page(name: str, config: Config, *, or_url: bool = False) -> Page | None:
    """Read a page from a file, or a document from ``FILE#ID``; return None for a URL.

    ``or_url``: a name that is no file is a URL, because the URL of an item may be any string. Raises NearDupError if
    the file or document does not exist or has no page.
    """
    if _URL.match(name):
        return None
    if _exists(name):
        return _read_file(Path(name), config)
    for at, char in enumerate(name):
        if char == "#" and at and _exists(name[:at]):
            return _read_document(Path(name[:at]), name[at + 1 :], config)
    if or_url:
        return None
    raise NearDupError(
        f"{name} does not exist. Name a file of HTML (.html, .htm) or text (.txt), one document in JSON lines "
        "(FILE#ID), or the URL of a page in the state."
    )


def find_side(url: str, store: PageStore) -> Side:
    """Return the page of a URL in the state; raises NearDupError if the state has nothing to compare it by."""
    record = store.find(url)
    if record is None:
        raise NearDupError(
            f"The state at {store.location} has no page {url}. Write the URL as crawled, or name a file."
        )
    kept = store.evidence(record.id)
    page = Page(record.url, kept.title, text=kept.text, site=site_of(record.url)) if kept and kept.text else None
    is_comparable = bool(record.sketch) and not record.is_light
    if is_comparable or page:
        return Side(url, page, record if is_comparable else None)
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
        f"The state has no text of {url}. It knows only that it is a copy{whose}; for the recorded verdict run: "
        f"scrapy neardup explain {shell_word(url)}. To compare it, name a file with its text, or set NEARDUP_KEEP = "
        '"texts" before the next crawl.'
    )


def _read_file(path: Path, config: Config) -> Page:
    if not path.name.lower().endswith(HTML):
        if path.is_file() and find_format(str(path), default="jsonl") == "text":
            return _read_text(path)
        raise NearDupError(
            f"{path} is neither HTML (.html, .htm) nor text (.txt). For JSON lines, name a document: {path}#ID."
        )
    try:
        return read_html(decode_body(path.read_bytes()), path.absolute().as_uri(), config)
    except OSError as error:
        raise NearDupError(f"{path} cannot be read: {error}. Check the file.") from None
    except PageError as error:
        raise NearDupError(f"{path} has no readable page: {error} ({error.reason}). Name another file.") from None


def _read_text(path: Path) -> Page:
    with file_errors(str(path)), open_packed(path) as file:
        raw = file.read()
    try:
        return Page(path.name, text=decode_utf8(raw.removeprefix(BOM)))
    except ValueError as error:
        raise NearDupError(f"{path} is {error}. Convert it to UTF-8.") from None


def _read_document(path: Path, id: str, config: Config) -> Page:
    first = ""
    with config.open_source(hashes_items=False) as source:
        for page in DocumentReader(source).read(path):
            if page.url == id:
                return page
            first = first or page.url
    example = f", for example {path}#{first}" if first else ""
    raise NearDupError(f"{path} has no document with the id {id!r}. Name one that exists{example}.")


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # a name that is too long or has a NUL
        return False


#: Characters that stay as they are in a URL. The percent sign is one, so nothing is encoded twice.
_SAFE = "%/:=&?~#+!$,;'@()*[]"


def near_urls(store: PageStore, url: str) -> list[str]:
    """Return up to five URLs of the state that differ from this one only in spelling."""
    return list(islice((other for other in spellings(url) if store.find(other) is not None), 5))


def spellings(url: str) -> list[str]:
    """Return other spellings of a URL: scheme, ``www.``, last slash, fragment, percent-encoding, case of the host.

    >>> spellings("https://a.example/b/")[:3]
    ['https://a.example/b', 'https://www.a.example/b/', 'https://www.a.example/b']
    """
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
    except ValueError:  # an open bracket
        return []
    host = parts.netloc.lower()
    hosts = host, host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    schemes = parts.scheme, "http" if parts.scheme == "https" else "https"
    plain, quoted = (parts.path, parts.query), partial(quote, safe=_SAFE, errors="surrogatepass")
    paths = plain, tuple(map(quoted, plain)), tuple(map(unquote, plain))
    found = [
        urlunsplit((scheme, host, other, query, fragment))
        for scheme, host, (path, query), fragment in product(schemes, hosts, paths, (parts.fragment, ""))
        for other in (path, path.rstrip("/") if path.endswith("/") else f"{path}/")
    ]
    return [one for one in dict.fromkeys(found) if one != url]
