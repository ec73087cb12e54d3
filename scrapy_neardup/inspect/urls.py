"""URLs that differ only in spelling."""

from __future__ import annotations

import re
from itertools import islice, product
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from scrapy_neardup.state.pages import PageStore

#: Characters that stay as they are in a URL. The percent sign is one, so nothing is encoded twice.
_SAFE = "%/:=&?~#+!$,;'@()*[]"
_HEX = re.compile("%[0-9a-fA-F]{2}")


def near_urls(store: PageStore, url: str) -> list[str]:
    """Return up to five URLs of the state that differ from this one only in spelling."""
    return list(islice((other for other in spellings(url) if store.find(other) is not None), 5))


def spellings(url: str) -> list[str]:
    """Return other spellings of a URL: scheme, ``www.``, port, last slash, fragment, escapes, case of the host.

    >>> spellings("https://a.example/b/")[:3]
    ['https://a.example/b', 'https://www.a.example/b/', 'https://www.a.example/b']
    >>> "http://xn--fsqu00a.example/%E6%96%B0" in spellings("http://例子.example/新#top")
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
    except ValueError:  # an open bracket, or a port that is no number
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
    upper = _HEX.sub(lambda found: found[0].upper(), text)
    return [quoted, unquote(text), upper, *(_HEX.sub(lambda found: found[0].lower(), one) for one in (text, quoted))]
