"""Pages that a user names: documents of files, URLs of a state; and whether they can be judged."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from scrapy_neardup.errors import AnyReason, NearDupError, PageError
from scrapy_neardup.files import Entry, Skipped, read_input
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.records import RecordReader
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.untrusted import shell_word

_URL = re.compile(r"[a-z][a-z0-9+.-]*://|text:[0-9a-f]{16}$", re.IGNORECASE)


def fingerprint_page(
    method: Method, page: Page, policy: Policy, store: PageStore | None
) -> tuple[Fingerprint | None, AnyReason]:
    """Return the fingerprint of a page, if it has enough text for one, and the reason if it cannot be judged.

    ``store`` knows boilerplate. Raises LexiconNeeded if the method cannot read the page.
    """
    if reason := policy.why_unjudged(page.text):
        return None, reason
    fingerprint = method.for_state(page, store.on_site(page.site) if store else None)
    return fingerprint, fingerprint.why_unjudged(policy.min_letters)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two pages to compare, under the name that the user gave it: a page, a record of a state, or both.

    With both, the record is compared, and the page shows its text.
    """

    name: str
    page: Page | None = None
    record: Record | None = None


def read_page(name: str, config: Config, *, or_url: bool = False) -> Page | None:
    """Read the only document of ``FILE``, or the document ``FILE#ID``; return None for a URL.

    ``or_url``: a name that is no file is a URL, because the URL of an item may be any string. Raises NearDupError if
    the file or document does not exist or has no page.
    """
    if _URL.match(name):
        return None
    ends = [len(name), *(at for at, char in enumerate(name) if char == "#" and at)]
    end = next((end for end in ends if os.path.exists(name[:end])), None)  # noqa: PTH110  # a Path refuses long names and NUL
    if end is not None:
        return _read_document(name[:end], name[end + 1 :] if end < len(name) else None, config)
    if or_url:
        return None
    raise NearDupError(
        f"{name} does not exist. Name a file of HTML or text, a document of another file (FILE#ID), or the URL of a "
        "page in the state."
    )


def _read_document(path: str, id: str | None, config: Config) -> Page:
    first: Page | None = None
    left_out, such = Counter[str](), ""
    with config.open_source(hashes_items=False) as source:
        for page in read_documents(path, source, left_out):
            if page.url in (id, f"{path}#{id}"):  # its id, or its place
                return page
            if id is None and first is not None:
                raise NearDupError(f"{path} has several documents. Name one, for example {such}.")
            if first is None:
                first, such = page, page.url if page.url.startswith(path) else f"{path}#{page.url}"
    if first is None:
        why = ", ".join(left_out) or "it is empty"
        raise NearDupError(f"{path} has no readable page ({why}). Name another file.")
    if id is not None:
        raise NearDupError(f"{path} has no document with a text and the id {id!r}. Name another one, such as {such}.")
    return first


def read_documents(file: str, source: PageSource, left_out: Counter[str], id_field: str = "id") -> Iterator[Page]:
    """Yield the documents of a file, a folder or standard input (``-``).

    ``source`` makes the pages of records, ``id_field`` names them: see ``RecordReader``. Of several records with one
    name the first counts. ``left_out`` counts the others by reason. Raises NearDupError if the rest of a file is
    unreadable.
    """
    reader, seen = RecordReader(source, id_field), set[str]()
    for entry in read_input(file):
        if not isinstance(entry, Entry):
            left_out[entry.why if isinstance(entry, Skipped) else "malformed"] += 1
            continue
        name = reader.name(entry)
        if name in seen:
            left_out["another version of a page"] += 1
            continue
        seen.add(name)
        try:
            page = reader.read(reader.draft(entry, name), name)
        except PageError as error:
            page = Page(name, unread=error.reason)
        if page.unread:
            left_out[page.unread] += 1
        else:
            yield page


def find_side(url: str, store: PageStore) -> Side:
    """Return the page of a URL in the state; raises NearDupError if the state has nothing to compare it by."""
    record = store.find(url)
    if record is None:
        raise NearDupError(f"The state at {store.location} has no page {url}. Write it as crawled, or name a file.")
    kept = store.evidence(record.id)
    page = Page(record.url, kept.title, text=kept.text, site=site_of(record.url)) if kept and kept.text else None
    is_comparable = bool(record.sketch) and not record.is_light
    if is_comparable or page:
        return Side(url, page, record if is_comparable else None)
    raise NearDupError(
        f"The state has neither a fingerprint nor a text of {url}. Its recorded verdict: scrapy neardup explain "
        f'{shell_word(url)}. To compare it, name a file with its text, or set NEARDUP_KEEP = "texts" before the next '
        "crawl."
    )
