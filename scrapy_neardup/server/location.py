"""URLs of states on a Redis server. Messages never show a password."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote

from scrapy_neardup.errors import StoreError

#: The name of a state; a server has room for many.
DEFAULT_STATE = "neardup"
_STATE = re.compile(r"[^\s{}\x00-\x1f\x7f-\x9f]{1,64}")
#: Files for TLS, as redis-py names them.
_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


class ServerLocation(str):
    """A location to show and compare, with the hidden ``options`` that open it.

    An equal plain string opens the same state if no password is needed.
    """

    __slots__ = ("options",)
    options: dict[str, Any]


def need_redis(named_by: str) -> None:
    """Raise StoreError that names the extra if redis-py is not installed."""
    try:
        import redis  # noqa: F401
    except ImportError as error:
        raise StoreError(
            "A state on a Redis server needs redis-py. Run: pip install 'scrapy-neardup[redis]', or set "
            f"{named_by} to leveldb:///path or sqlite:///path."
        ) from error


#: What follows the scheme of a URL: for one server, with Sentinels, and in a cluster.
_FORMS = {
    "": "host:6379/0?state=name",
    "sentinel": "host:26379,host:26379/service/0?state=name",
    "cluster": "host:6379,host:6379?state=name",
}


def read_url(parts: SplitResult) -> ServerLocation:
    """Return the location that a URL names. The message of the ValueError goes on after the URL.

    redis://[user:password@]host[:port][/database][?state=name], or rediss:// with TLS;
    redis+sentinel://[user:password@]host[:port][,host…]/service[/database][?state=name&sentinel_password=…];
    redis+cluster://[user:password@]host[:port][,host…][?state=name];
    unix://[user:password@]/path/of/the.sock[?db=0&state=name]
    """
    scheme, _, kind = parts.scheme.partition("+")
    if scheme == "unix":
        return _read_socket(parts)
    form = f"{parts.scheme}://{_FORMS[kind]}"
    hosts = _hosts(parts, 26379 if kind == "sentinel" else 6379, form)
    known = ("state", "sentinel_password") if kind == "sentinel" else ("state",)
    query = _query(parts, (*known, *(_TLS if scheme == "rediss" else ())), form)
    state = query.pop("state", DEFAULT_STATE)
    shown, path = f"{parts.scheme}://{_shown(hosts)}", parts.path.strip("/")
    if kind == "sentinel":
        service, _, path = path.partition("/")
        if not (service := unquote(service)) or not service.isprintable():
            raise ValueError(f"which lacks the service name of the master at the Sentinels. Write {form}")
        options: dict[str, Any] = {"sentinels": hosts, "service": service, "db": _database(path, form)}
        shown += f"/{quote(service, safe='')}/{options['db']}"
    elif kind == "cluster":
        if _database(path, form):
            raise ValueError(f"but a cluster has only database 0. Write {form}")
        options = {"nodes": hosts}
    elif len(hosts) > 1:
        raise ValueError(
            "which names several servers. For a cluster write redis+cluster://host:6379,host:6379?state=name, for one "
            f"server {form}"
        )
    else:
        options = {"host": hosts[0][0], "port": hosts[0][1], "db": _database(path, form)}
        shown += f"/{options['db']}"
    options |= {**_user(parts), **query, "ssl": scheme == "rediss"}
    return _location(f"{shown}?state={quote(state)}", state, options)


def _read_socket(parts: SplitResult) -> ServerLocation:
    form = "unix:///path/of/the.sock?state=name"
    if not parts.path.strip("/") or parts.hostname:
        raise ValueError(f"which names no absolute path of a socket. Write {form}")
    query = _query(parts, ("state", "db"), form)
    database = _database(query.get("db", ""), f"{form}&db=0")
    state = query.get("state", DEFAULT_STATE)
    options = {"unix_socket_path": unquote(parts.path), "db": database, **_user(parts)}
    return _location(f"unix://{parts.path}?db={database}&state={quote(state)}", state, options)


def _hosts(parts: SplitResult, port: int, form: str) -> list[tuple[str, int]]:
    """Return the hosts of a URL, separated by commas, each with its port."""
    found = []
    for one in parts.netloc.rpartition("@")[2].split(","):
        try:
            named = SplitResult("", one, "", "", "")
            host, at = named.hostname, named.port or port
        except ValueError:
            raise ValueError(f"which has no valid port. Write {form}") from None
        if not host:
            raise ValueError(f"which names no server. Write {form}")
        found.append((host, at))
    return found


def _shown(hosts: list[tuple[str, int]]) -> str:
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts)


def _database(number: str, form: str) -> int:
    number = number or "0"
    if not (number.isascii() and number.isdigit()):
        raise ValueError(f"which names no database by number. Write {form}")
    return int(number)


def _query(parts: SplitResult, known: tuple[str, ...], form: str) -> dict[str, str]:
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(query.keys() - set(known)):
        raise ValueError(f"which has an unknown option {', '.join(unknown)}. Use one of: {', '.join(known)}")
    if parts.fragment:
        raise ValueError(f"which has a #. Write %23 for it in a password. The form is {form}")
    if not _STATE.fullmatch(query.get("state", DEFAULT_STATE)):
        raise ValueError("whose state has no valid name. Use up to 64 characters without spaces and braces")
    return query


def _user(parts: SplitResult) -> dict[str, str]:
    found = {"username": parts.username, "password": parts.password}
    return {name: unquote(value) for name, value in found.items() if value}


def _location(shown: str, state: str, options: dict[str, Any]) -> ServerLocation:
    location = ServerLocation(shown)
    location.options = {**options, "state": state}
    return location
