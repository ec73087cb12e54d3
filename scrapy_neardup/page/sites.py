"""Whose page a URL is: what pages of one publisher have in common is no evidence of copying."""

from __future__ import annotations

from urllib.parse import unquote_plus, urlsplit

#: Hosts on which many accounts publish, and the parameter of the query that tells them apart.
_ACCOUNTS = {"mp.weixin.qq.com": "__biz"}


def site_of(url: str) -> str:
    """The host without ``www.``, and where one host carries many accounts the account; empty for no URL.

    >>> site_of("https://www.daybook.example/ferry"), site_of("https://mp.weixin.qq.com/s?__biz=MzA5&mid=2")
    ('daybook.example', 'mp.weixin.qq.com MzA5')
    """
    if "/" not in url:  # a name that is no URL
        return ""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.").rstrip(".")
    except ValueError:  # a bracket that is not closed
        return ""
    name = _ACCOUNTS.get(host)
    account = _parameter(parts.query, name) if name else ""
    return f"{host} {account}" if account else host


def _parameter(query: str, name: str) -> str:
    """The first value of a parameter, as ``parse_qs`` has it, which takes all others apart as well; empty without one.

    >>> _parameter("a=1&__biz=&__biz=MzA5%3D&__biz=2", "__biz")
    'MzA5='
    """
    for part in query.split("&"):
        found, _, value = part.partition("=")
        if value and unquote_plus(found) == name:
            return unquote_plus(value)
    return ""
