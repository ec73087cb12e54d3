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

    @classmethod
    def make(cls, shown: str, options: dict[str, Any]) -> ServerLocation:
        """Return the location that is shown like this."""
        location = cls(shown)
        location.options = options
        return location


def need_redis(named_by: str) -> None:
    """Raise StoreError that names the extra if redis-py or hiredis is not installed."""
    try:
        import hiredis  # noqa: F401
        import redis  # noqa: F401
    except ImportError as error:
        raise StoreError(
            "A state on a Redis server needs redis-py and hiredis. Run: pip install 'scrapy-neardup[redis]', or set "
            f"{named_by} to leveldb:///path or sqlite:///path."
        ) from error


def read_url(parts: SplitResult, form: str = "") -> ServerLocation:
    """Return the location that a URL names. The message of the ValueError goes on after the URL, and shows the form.

    redis://[user:password@]host[:port][/database][?state=name], or rediss:// with TLS;
    redis+sentinel://[user:password@]host[:port][,host…]/service[/database][?state=name&sentinel_password=…];
    redis+cluster://[user:password@]host[:port][,host…][?state=name];
    unix://[user:password@]/path/of/the.sock[?db=0&state=name]
    """
    scheme, _, kind = parts.scheme.partition("+")
    kind = "unix" if scheme == "unix" else kind
    form = f"{parts.scheme}:{form}"
    known = ("state", *{"sentinel": ("sentinel_password",), "unix": ("db",)}.get(kind, ()))
    query = _query(parts, (*known, *(_TLS if scheme == "rediss" else ())), form)
    state = query.pop("state", DEFAULT_STATE)
    user = {name: unquote(value or "") for name, value in (("username", parts.username), ("password", parts.password))}
    options: dict[str, Any] = {"state": state, **{name: value for name, value in user.items() if value}}
    if kind == "unix":
        if not parts.path.strip("/") or parts.hostname:
            raise ValueError(f"which names no absolute path of a socket. Write {form}")
        options |= {"unix_socket_path": unquote(parts.path), "db": _database(query.get("db", ""), form)}
        return ServerLocation.make(f"unix://{parts.path}?db={options['db']}&state={quote(state)}", options)
    hosts, path = _hosts(parts, 26379 if kind == "sentinel" else 6379, form), parts.path.strip("/")
    shown = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts)
    if kind == "sentinel":
        service, _, path = path.partition("/")
        if not (service := unquote(service)) or not service.isprintable():
            raise ValueError(f"which lacks the service name of the master at the Sentinels. Write {form}")
        options |= {"sentinels": hosts, "service": service}
        shown += f"/{quote(service, safe='')}"
    elif kind == "cluster":
        if _database(path, form):
            raise ValueError(f"but a cluster has only database 0. Write {form}")
        options |= {"nodes": hosts}
    elif len(hosts) > 1:
        raise ValueError(
            "which names several servers. For a cluster write redis+cluster://host:6379,host:6379?state=name, for one "
            f"server {form}"
        )
    else:
        options |= {"host": hosts[0][0], "port": hosts[0][1]}
    if kind != "cluster":
        options["db"] = _database(path, form)
        shown += f"/{options['db']}"
    options |= {**query, "ssl": scheme == "rediss"}
    return ServerLocation.make(f"{parts.scheme}://{shown}?state={quote(state)}", options)


def _hosts(parts: SplitResult, port: int, form: str) -> list[tuple[str, int]]:
    """Return the hosts of a URL, separated by commas, each with its port."""
    found = []
    for one in parts.netloc.rpartition("@")[2].split(","):
        named = SplitResult("", one, "", "", "")
        try:
            found.append((named.hostname or "", named.port or port))
        except ValueError:
            raise ValueError(f"which has no valid port. Write {form}") from None
    if not all(host for host, _ in found):
        raise ValueError(f"which names no server. Write {form}")
    try:
        ".".join(host for host, _ in found).encode("idna")  # as a look-up of their addresses does
    except UnicodeError:
        raise ValueError(f"which has no valid name of a host. Write {form}") from None
    return found


def _database(number: str, form: str) -> int:
    if not ((number := number or "0").isascii() and number.isdigit()):
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
