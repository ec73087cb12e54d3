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
#: What stands between the scheme and the host of a URL, if it names a user or a password; and one for Sentinels.


class ServerLocation(str):
    """A location as it may be shown and compared; with it goes what opens it, which is not shown.

    A plain string that looks the same opens the same state where no password is asked for.
    """

    __slots__ = ("options",)
    options: dict[str, Any]


def read_url(parts: SplitResult) -> ServerLocation:
    """The location in the URL of a state on a server, of any kind; raises ValueError that goes on after the URL."""
    scheme, _, way = parts.scheme.partition("+")
    if way == "sentinel":
        return _read_sentinels(parts, tls=scheme == "rediss")
    if way == "cluster":
        return _read_cluster(parts, tls=scheme == "rediss")
    return _read_socket(parts) if scheme == "unix" else _read_server(parts, tls=scheme == "rediss")


def _read_server(parts: SplitResult, *, tls: bool) -> ServerLocation:
    """redis://[user:password@]host[:port][/database][?state=name], or rediss:// with TLS."""
    form = f"{parts.scheme}://host:6379/0?state=name"
    (host, port), *others = _hosts(parts, 6379, form)
    if others:
        raise ValueError(
            "which names several servers. For a cluster write redis+cluster://host:6379,host:6379?state=name, for one "
            f"server {form}"
        )
    database = _database(parts.path.strip("/"), form)
    said = _query(parts, ("state", *(_TLS if tls else ())), form)
    state = said.pop("state", DEFAULT_STATE)
    options = {"host": host, "port": port, "db": database, **_user(parts), **said, "ssl": tls}
    return _location(f"{parts.scheme}://{_shown([(host, port)])}/{database}?state={quote(state)}", state, options)


def _read_sentinels(parts: SplitResult, *, tls: bool) -> ServerLocation:
    """redis+sentinel://[user:password@]host[:port][,host…]/service[/database][?state=name&sentinel_password=…]."""
    form = f"{parts.scheme}://host:26379,host:26379/service/0?state=name"
    hosts = _hosts(parts, 26379, form)
    service, _, database = parts.path.strip("/").partition("/")
    if not (service := unquote(service)) or not service.isprintable():
        raise ValueError(f"which lacks the service name of the master at the Sentinels. Write {form}")
    number = _database(database, form)
    said = _query(parts, ("state", "sentinel_password", *(_TLS if tls else ())), form)
    state = said.pop("state", DEFAULT_STATE)
    options = {"sentinels": hosts, "service": service, "db": number, **_user(parts), **said, "ssl": tls}
    shown = f"{parts.scheme}://{_shown(hosts)}/{quote(service, safe='')}/{number}?state={quote(state)}"
    return _location(shown, state, options)


def _read_cluster(parts: SplitResult, *, tls: bool) -> ServerLocation:
    """redis+cluster://[user:password@]host[:port][,host…][?state=name]."""
    form = f"{parts.scheme}://host:6379,host:6379?state=name"
    hosts = _hosts(parts, 6379, form)
    if _database(parts.path.strip("/"), form):
        raise ValueError(f"but a cluster has only database 0. Write {form}")
    said = _query(parts, ("state", *(_TLS if tls else ())), form)
    state = said.pop("state", DEFAULT_STATE)
    options = {"nodes": hosts, **_user(parts), **said, "ssl": tls}
    return _location(f"{parts.scheme}://{_shown(hosts)}?state={quote(state)}", state, options)


def _read_socket(parts: SplitResult) -> ServerLocation:
    """unix://[user:password@]/path/of/the.sock[?db=0&state=name]."""
    form = "unix:///path/of/the.sock?state=name"
    if not parts.path.strip("/") or parts.hostname:
        raise ValueError(f"which names no absolute path of a socket. Write {form}")
    said = _query(parts, ("state", "db"), form)
    database = _database(said.get("db", ""), f"{form}&db=0")
    state = said.get("state", DEFAULT_STATE)
    options = {"path": unquote(parts.path), "db": database, **_user(parts)}
    return _location(f"unix://{parts.path}?db={database}&state={quote(state)}", state, options)


def _hosts(parts: SplitResult, port: int, form: str) -> list[tuple[str, int]]:
    """The hosts that a URL names, separated by commas, each with a port."""
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


def _database(said: str, form: str) -> int:
    said = said or "0"
    if not (said.isascii() and said.isdigit()):
        raise ValueError(f"which names no database by number. Write {form}")
    return int(said)


def _query(parts: SplitResult, known: tuple[str, ...], form: str) -> dict[str, str]:
    said = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(said.keys() - set(known)):
        raise ValueError(f"which has an unknown option {', '.join(unknown)}. Use one of: {', '.join(known)}")
    if parts.fragment:
        raise ValueError(f"which has a #. Write %23 for it in a password. The form is {form}")
    if not _STATE.fullmatch(said.get("state", DEFAULT_STATE)):
        raise ValueError("whose state has no valid name. Use up to 64 characters without spaces and braces")
    return said


def _user(parts: SplitResult) -> dict[str, str]:
    found = {"username": parts.username, "password": parts.password}
    return {name: unquote(value) for name, value in found.items() if value}


def _location(shown: str, state: str, options: dict[str, Any]) -> ServerLocation:
    location = ServerLocation(shown)
    location.options = {**options, "state": state}
    return location
