"""What a state knows of a page or a site."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import product
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from scrapy_neardup.judge.former import former_method
from scrapy_neardup.judge.manual_verdicts import ManualVerdict, find_manual_verdict
from scrapy_neardup.judge.matching import Matching, filed_fingerprint
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Kind, Likeness
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.history import decisions_of
from scrapy_neardup.state.pages import PageStore, stands_for
from scrapy_neardup.state.recipe import PARAMETERS, is_method_of
from scrapy_neardup.state.record import Record


@dataclass(frozen=True, slots=True)
class Known:
    """A page of the state with its group.

    ``last_seen``: seconds since 1970. ``standing``: the page that stands for the group, None if it is gone. ``like``:
    the page that an original is an excerpt of, or whose title it shares. ``size``: pages of the group in the state;
    ``newest``: some of them. ``said``: the manual verdict. ``title``: the title of ``original`` or ``like``, if it was
    kept.
    """

    record: Record
    evidence: Evidence | None
    last_seen: int
    standing: Record | None
    like: Record | None
    size: int
    newest: tuple[tuple[Record, Evidence | None], ...]
    said: ManualVerdict | None = None
    title: str = ""

    @property
    def is_copy(self) -> bool:
        """Whether the page is a copy of an earlier one. Its item was dropped unless it was delivered."""
        return self.record.original != self.record.id

    @property
    def original(self) -> Record | None:
        """The other page that stands for the group; for an original, the better page that replaced it."""
        other = self.standing is not None and self.standing.id != self.record.id
        return self.standing if other and self.record.similarity > 0 else None

    @property
    def original_is_gone(self) -> bool:
        """Whether nothing stands for the group of this copy."""
        return self.is_copy and self.standing is None

    @property
    def is_superseded(self) -> bool:
        """Whether a better page replaced it."""
        return self.original is not None and (self.record.leads or not self.is_copy)

    @property
    def verdict(self) -> Kind:
        """The verdict at crawl time; for an updated page, the verdict on its last version."""
        if self.is_copy:
            return Kind.BETTER if self.record.leads else Kind.DUPLICATE
        return Kind.UNIQUE if self.record.is_original else Kind.UNJUDGED

    @property
    def was_delivered(self) -> bool:
        """Whether its item came through. The policy lets some copies pass."""
        return not self.is_copy or self.record.delivered

    @property
    def similarity(self) -> float:
        """Similarity to its original or to the page it resembles, as exact as the record keeps it."""
        kept = self.evidence and self.evidence.similarity
        return kept or (round(self.record.similarity, 4) if self.is_copy else 0.0)


def known(store: PageStore, found: Sequence[Record], limit: int = 20, watch: Watch = unwatched) -> list[Known]:
    """Describe these records, with the newest ``limit`` pages of each group. Reads all records once."""
    newest: dict[int, deque[Record]] = {one.original: deque(maxlen=limit) for one in found if one.similarity > 0}
    sizes = dict.fromkeys(newest, 0)
    if newest:
        for record in watch(store.records(), store.pages):
            if record.original in newest:
                sizes[record.original] += 1
                newest[record.original].append(record)
    return [_known(store, one, sizes.get(one.original, 1), newest.get(one.original, deque())) for one in found]


def _known(store: PageStore, record: Record, size: int, newest: deque[Record]) -> Known:
    evidence = store.evidence(record.id)
    other = record.original if record.original != record.id else evidence.like if evidence else 0
    of_other = store.evidence(other) if other else None
    return Known(
        record,
        evidence,
        store.last_seen(record.url),
        stands_for(store, record),
        store.record(evidence.like) if evidence and evidence.like else None,
        size,
        tuple((one, store.evidence(one.id)) for one in reversed(newest)),
        find_manual_verdict(store, record.url),
        of_other.title if of_other else "",
    )


@dataclass(frozen=True, slots=True)
class KnownSite:
    """Counts of a site: ``pages``, at most 256, and the share of its last pages that repeat one template."""

    name: str
    pages: int
    forms: float

    @classmethod
    def of(cls, store: PageStore, site: str) -> KnownSite:
        """Read the counts."""
        counts = store.on_site(site)
        return cls(site, counts.pages(), counts.forms())


@dataclass(frozen=True, slots=True)
class Nearest:
    """The original that a page resembles most now, with the comparison and what decides it.

    ``is_copy``: whether the page would be a copy of it. ``came_first``: whether that original is older than the page.
    """

    original: Record
    title: str
    comparison: Comparison
    decision: str
    is_copy: bool
    came_first: bool


def nearest(store: PageStore, record: Record, method: Method, also_copies: Set[Likeness]) -> Nearest | None:
    """Find the nearest original of an original; None if no page shares a distinctive key with it."""
    common, best, _ = Matching(method, store, also_copies).nearest(record)
    if best is None:
        return None
    evidence = store.evidence(best.original.id)
    comparison = best.comparison
    return Nearest(
        best.original,
        evidence.title if evidence else "",
        comparison,
        method.decision(filed_fingerprint(record, store), best.compared.sketch, common),
        comparison.is_copy(also_copies),
        best.original.id < record.id,
    )


def method_of(store: PageStore, own: Method) -> Method | None:
    """Return the method of a state: ``own`` if the recipe fits, else the recipe's method if it is built in."""
    if is_method_of(store.recipe, own.recipe()):
        return own.with_hashes(store.hashes)
    parameters = {**store.recipe.get(PARAMETERS, {}), **decisions_of(store)}
    method = former_method({**store.recipe, PARAMETERS: parameters})
    return method and method.with_hashes(store.hashes)


#: Characters that stay as they are in a URL. The percent sign is one, so nothing is encoded twice.
_SAFE = "%/:=&?~#+!$,;'@()*[]"
_HEX = re.compile("%[0-9a-fA-F]{2}")


def near_urls(store: PageStore, url: str, limit: int = 5) -> list[str]:
    """Return URLs of the state that differ from this one only in spelling."""
    found: list[str] = []
    for other in variants(url):
        if len(found) < limit and store.find(other) is not None:
            found.append(other)
    return found


def variants(url: str) -> list[str]:
    """Return other spellings of a URL: scheme, ``www.``, port, last slash, fragment, percent-encoding, case of the
    host.

    >>> variants("https://a.example/b/")[:3]
    ['https://a.example/b', 'https://www.a.example/b/', 'https://www.a.example/b']
    >>> "http://xn--fsqu00a.example/%E6%96%B0" in variants("http://例子.example/新#top")
    True
    """
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        ways = product(_schemes(parts), _hosts(parts), _encodings(parts), _fragments(parts))
        found = [
            urlunsplit((scheme, host, other, query, fragment))
            for scheme, host, (path, query), fragment in ways
            for other in _slashes(path)
        ]
    except ValueError:  # half a bracket, a port that is none
        return []
    return [one for one in dict.fromkeys(found) if one != url]


def _schemes(parts: SplitResult) -> list[str]:
    return [parts.scheme, "http" if parts.scheme == "https" else "https"]


def _hosts(parts: SplitResult) -> list[str]:
    host = parts.hostname or ""
    names = [host, host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"]
    port = f":{parts.port}" if parts.port else ""
    plain = [parts.netloc, *names] if port in ("", ":80", ":443") else [parts.netloc]
    found = [*plain, *(f"{name}{port}" for name in names)]
    return list(dict.fromkeys(one for name in found for one in (name, _ascii(name))))


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _slashes(path: str) -> list[str]:
    return [path, path.rstrip("/") if path.endswith("/") else f"{path}/"]


def _encodings(parts: SplitResult) -> list[tuple[str, str]]:
    given = parts.path, parts.query
    found = [given, *zip(*(list(_ways(one)) for one in given), strict=True)]
    return [(path, query) for path, query in dict.fromkeys(found)]


def _ways(text: str) -> Iterator[str]:
    yield quote(text, safe=_SAFE, errors="surrogatepass")
    yield unquote(text)
    yield _HEX.sub(lambda found: found[0].upper(), text)
    yield _HEX.sub(lambda found: found[0].lower(), text)
    yield _HEX.sub(lambda found: found[0].lower(), quote(text, safe=_SAFE, errors="surrogatepass"))


def _fragments(parts: SplitResult) -> list[str]:
    return list(dict.fromkeys([parts.fragment, ""]))
