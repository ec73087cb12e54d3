"""URLs of pages, and the site of a URL: text that the pages of one site share is no evidence of copying."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urljoin, urlsplit

#: Hosts with many accounts, and the query parameter that names the account.
_ACCOUNTS = {"mp.weixin.qq.com": "__biz"}
#: The host of nearly all URLs, in a fifth of the time of ``urlsplit``.
_PLAIN_HOST = re.compile(r"https?://(?:www\.)?((?!www\.)[a-z0-9-]+(?:\.[a-z0-9-]+)+)/")


def site_of(url: str) -> str:
    """Return the host without ``www.``, plus the account on hosts with many accounts. Empty for a name that is no URL.

    >>> site_of("https://www.daybook.example/ferry"), site_of("https://mp.weixin.qq.com/s?__biz=MzA5&mid=2")
    ('daybook.example', 'mp.weixin.qq.com MzA5')
    """
    plain = _PLAIN_HOST.match(url)
    if plain and plain[1] not in _ACCOUNTS:
        return plain[1]
    if "/" not in url:
        return ""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.").rstrip(".")
    except ValueError:  # an open bracket
        return ""
    account = parse_qs(parts.query).get(_ACCOUNTS[host], [""])[0] if host in _ACCOUNTS else ""
    return f"{host} {account}" if account else host


def plain_url(url: str) -> str:
    """Return a URL without scheme, fragment and final slash.

    >>> plain_url("https://a.example/1/#top")
    'a.example/1'
    """
    return url.partition("#")[0].partition("://")[2].rstrip("/") or url


def absolute_url(url: str, link: str) -> str:
    """Resolve a link of the page at ``url``. Empty if the result is not http or https.

    >>> absolute_url("https://a.example/b/", "../ferry"), absolute_url("https://a.example/", "javascript:alert(1)")
    ('https://a.example/ferry', '')
    """
    if not link:
        return ""
    try:
        joined = urljoin(url, link.strip())
    except ValueError:
        return ""
    return joined if joined.startswith(("http://", "https://")) else ""
