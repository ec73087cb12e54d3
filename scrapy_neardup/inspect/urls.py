"""URLs that differ only in spelling."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from scrapy_neardup.state.pages import PageStore

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
        schemes = parts.scheme, "http" if parts.scheme == "https" else "https"
        given = parts.path, parts.query
        encoded = dict.fromkeys([given, *zip(*(_encodings(one) for one in given), strict=True)])
        found = [
            urlunsplit((scheme, host, other, query, fragment))
            for scheme, host, (path, query), fragment in product(
                schemes, _hosts(parts), encoded, dict.fromkeys((parts.fragment, ""))
            )
            for other in (path, path.rstrip("/") if path.endswith("/") else f"{path}/")
        ]
    except ValueError:  # half a bracket, a port that is none
        return []
    return [one for one in dict.fromkeys(found) if one != url]


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


def _encodings(text: str) -> list[str]:
    quoted = quote(text, safe=_SAFE, errors="surrogatepass")
    return [quoted, unquote(text), _recase(text, str.upper), _recase(text, str.lower), _recase(quoted, str.lower)]


def _recase(text: str, change: Callable[[str], str]) -> str:
    return _HEX.sub(lambda found: change(found[0]), text)
