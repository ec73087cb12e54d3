"""URLs of states on a Redis server, and what of them may be shown: never a password."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote

#: A state is named in its URL, as many have room on one server.
DEFAULT_STATE = "neardup"
_STATE = re.compile(r"[^\s{}\x00-\x1f\x7f-\x9f]{1,64}")
#: Files that TLS needs, under the names that redis-py has for them.
_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
#: What stands between the scheme and the host of a URL, if it names a user or a password.
_USER = re.compile(r"(?<=//)[^/?#]*@")


class ServerLocation(str):
    """A location as it may be shown and compared; with it goes what opens it, which is not shown.

    A plain string that looks the same opens the same state where no password is asked for.
    """

    __slots__ = ("options",)
    options: dict[str, Any]


def without_password(url: str) -> str:
    """A URL as it may be shown: without user and password, wherever somebody has put an ``@``.

    >>> without_password("redis://crawler:s3cret@cache.example:6379/0?state=news")
    'redis://cache.example:6379/0?state=news'
    >>> without_password("leveldb:///data/state"), without_password("redis://:p@ss@host"), without_password("memory:")
    ('leveldb:///data/state', 'redis://host', 'memory:')
    """
    return _USER.sub("", url)


def read_server(parts: SplitResult, *, tls: bool) -> ServerLocation:
    """The location in redis://[user:password@]host[:port][/database][?state=name], or rediss:// with TLS.

    Raises ValueError that goes on after the URL: "which …".
    """
    form = f"{parts.scheme}://host:6379/0?state=name"
    try:
        host, port = parts.hostname, parts.port or 6379
    except ValueError:
        raise ValueError(f"which has no port that can be; write {form}") from None
    if not host:
        raise ValueError(f"which names no server; write {form}")
    path = parts.path.strip("/") or "0"
    if not (path.isascii() and path.isdigit()):
        raise ValueError(f"which names no database by its number; write {form}")
    said = _query(parts, ("state", *(_TLS if tls else ())), form)
    state = said.pop("state", DEFAULT_STATE)
    options = {"host": host, "port": port, "db": int(path), **_user(parts), **said, "ssl": tls}
    shown = f"[{host}]" if ":" in host else host
    return _location(f"{parts.scheme}://{shown}:{port}/{int(path)}?state={quote(state)}", state, options)


def read_socket(parts: SplitResult) -> ServerLocation:
    """The location in unix://[user:password@]/path/of/the.sock[?db=0&state=name]; ValueError as above."""
    form = "unix:///path/of/the.sock?state=name"
    if not parts.path.strip("/") or parts.hostname:
        raise ValueError(f"which names no absolute path of a socket; write {form}")
    said = _query(parts, ("state", "db"), form)
    database = said.get("db", "0")
    if not (database.isascii() and database.isdigit()):
        raise ValueError(f"which names no database by its number; write {form}&db=0")
    state = said.get("state", DEFAULT_STATE)
    options = {"path": unquote(parts.path), "db": int(database), **_user(parts)}
    return _location(f"unix://{parts.path}?db={int(database)}&state={quote(state)}", state, options)


def _query(parts: SplitResult, known: tuple[str, ...], form: str) -> dict[str, str]:
    said = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(said.keys() - set(known)):
        raise ValueError(f"in which nobody knows {', '.join(unknown)}; after the ? may stand {', '.join(known)}")
    if parts.fragment:
        raise ValueError(f"which goes on behind a #; in a password write %23; the form is {form}")
    if not _STATE.fullmatch(said.get("state", DEFAULT_STATE)):
        raise ValueError("whose state has no name that can be: up to 64 characters without spaces and braces")
    return said


def _user(parts: SplitResult) -> dict[str, str]:
    found = {"username": parts.username, "password": parts.password}
    return {name: unquote(value) for name, value in found.items() if value}


def _location(shown: str, state: str, options: dict[str, Any]) -> ServerLocation:
    location = ServerLocation(shown)
    location.options = {**options, "state": state}
    return location
