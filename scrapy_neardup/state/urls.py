"""The URLs of states: engines by scheme, placeholders, and what states exist.

A URL in NEARDUP_STORE names an engine and a location. It may have placeholders, ``%(name)s``, and then names a
state for each value of an attribute of the spider.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from glob import escape, glob
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.kv.base import SETTING, Engine, without_password


class Registry(Mapping[str, type[Engine]]):
    """Engines by URL scheme, imported on first use, from "module:class"."""

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def __getitem__(self, scheme: str) -> type[Engine]:
        kind: type[Engine] = resolve_name(self.places[scheme])
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def forms(self, *, persistent: bool = False) -> str:
        """Return the forms of the URLs, for messages."""
        found = [f"{scheme}:{kind.form}" for scheme, kind in self.items() if kind.is_persistent or not persistent]
        *others, last = found
        return f"{', '.join(others)} or {last}" if others else last


STORES = Registry(
    {
        "leveldb": "scrapy_neardup.kv.leveldb:LevelDB",
        "sqlite": "scrapy_neardup.kv.sqlite:SQLite",
        "memory": "scrapy_neardup.kv.memory:Memory",
    }
)

#: Engines on a server, shared by crawlers on many machines; with two s over TLS.
SERVERS = Registry(
    {
        "redis": "scrapy_neardup.server.engine:Redis",
        "rediss": "scrapy_neardup.server.engine:Redis",
        "unix": "scrapy_neardup.server.engine:Unix",
        "redis+sentinel": "scrapy_neardup.server.engine:Sentinel",
        "rediss+sentinel": "scrapy_neardup.server.engine:Sentinel",
        "redis+cluster": "scrapy_neardup.server.engine:Cluster",
        "rediss+cluster": "scrapy_neardup.server.engine:Cluster",
    }
)
ENGINES = ChainMap[str, type[Engine]](STORES, SERVERS)  # type: ignore[arg-type]  # nobody writes to it


def default_url(directory: Path) -> str:
    """Return the default store: LevelDB if plyvel is installed, else SQLite. An existing state in ``directory`` decides
    first.
    """
    scheme = "leveldb" if find_spec("plyvel") else "sqlite"
    return existing_default(directory) or STORES[scheme].url(str((directory / f"state.{scheme}").absolute()))


def existing_default(directory: Path) -> str:
    """Return the URL of the default state in a directory; empty if there is none."""
    for scheme in ("leveldb", "sqlite"):
        path = directory / f"state.{scheme}"
        # A witness without database belongs to a lost state, which must be reported.
        if path.exists() or STORES[scheme].exists(str(path)):
            return STORES[scheme].url(str(path.absolute()))
    return ""


def existing_states(url: str) -> list[str]:
    """Return the URLs of existing states at a URL, for all values of its placeholders."""
    if not has_placeholders(url):
        kind, location = parse_url(url)
        return [url] if kind.exists(location) else []
    kind, _ = parse_url(placeholders_checked(url))
    if kind.is_shared:  # where nobody can tell which of its states a URL means
        return []
    pattern = url2pathname(urlsplit(_PLACEHOLDER.sub(_MARK, url)).path)
    found = sorted(glob("*".join(map(escape, pattern.split(_MARK)))))  # noqa: PTH207 - it leaves hidden names out
    places = (place for place in found if not place.endswith(_BESIDE) and kind.is_persistent)
    return [kind.url(place) for place in places if kind.exists(place)]


def parse_url(url: str, named_by: str = SETTING) -> tuple[type[Engine], str]:
    """Return store class and location of a URL. Raises SettingsError that shows the forms.

    ``named_by``: where the user wrote the URL.
    """
    try:
        if any(character in url for character in "\t\r\n"):  # which urlsplit leaves out
            raise ValueError
        parts = urlsplit(url)
    except ValueError:  # half a bracket, a line end
        parts = urlsplit("")
    if parts.scheme not in ENGINES:
        there = states_near(url) if url and not parts.scheme else []
        on_servers = f"; or on a server: {SERVERS.forms()}" if parts.scheme else ""  # a path means a file
        forms = " or ".join(there) if there else STORES.forms() + on_servers
        raise SettingsError(f"{named_by} is {without_password(url)!r}, which names no state. Use {forms}.")
    kind = ENGINES[parts.scheme]
    try:
        location = kind.read_url(parts)
    except ValueError as error:
        raise SettingsError(f"{named_by} is {without_password(url)!r}, {error}.") from None
    return kind, location


def states_near(path: str) -> list[str]:
    """Return URLs of states at or below a path that somebody may have meant."""
    if not path.isprintable():
        return []
    place = Path(path).resolve()
    return [
        kind.url(str(location))
        for scheme, kind in STORES.items()
        for location in (place, place / f"state.{scheme}")
        if kind.is_persistent and kind.exists(str(location))
    ]


#: As in printf; other percent signs stay.
_PLACEHOLDER = re.compile(r"%\((\w+)\)([-#0 +]*\d*(?:\.\d+)?[diouxXeEfFgGrsa])")
_MARK = "\ue000"  # nothing that a path would have
#: Suffixes of files beside a state.
_BESIDE = (".witness", ".lock", "-wal", "-shm", ".draft")
#: Characters that some file system refuses or that lead elsewhere; and the escape itself.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|%\ud800-\udfff]|^[. ]+$|[. ]+$')


def safe_name(value: str) -> str:
    """Return a value as a file name: injective, and never leading elsewhere.

    >>> safe_name("news.example"), safe_name("a/b"), safe_name(".."), safe_name("100%")
    ('news.example', 'a%2Fb', '%2E%2E', '100%25')
    """
    return _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")), value
    )


def has_placeholders(url: str) -> bool:
    """Whether the URL names several states."""
    return "%(" in url


def placeholders_filled(url: str, value_of: Callable[[str], object], named_by: str = SETTING) -> str:
    """Return the URL with each placeholder replaced by ``value_of`` its name, as part of a file name.

    Raises SettingsError for a malformed placeholder, or a value that is empty or no text, number or date.
    """

    shown = without_password(url)

    def fill(found: re.Match[str]) -> str:
        value = value_of(found[1])
        if not isinstance(value, (str, int, float, date)):
            raise SettingsError(
                f"{named_by} is {shown!r}, but the spider's {found[1]} is {value!r:.80}, which cannot be part of a "
                "name. Use an attribute that is a string or a number, such as %(name)s."
            )
        try:
            filled = f"%{found[2]}" % value
        except (TypeError, ValueError) as error:
            raise SettingsError(f"{named_by} is {shown!r}, but {found[0]} cannot be filled in: {error}.") from None
        if not filled:
            raise SettingsError(
                f"{named_by} is {shown!r}, but the spider's {found[1]} is empty. Give it a value, or use another "
                "attribute, such as %(name)s."
            )
        return quote(safe_name(filled), safe="")

    placeholders_checked(url, named_by)
    return _PLACEHOLDER.sub(fill, url)


def placeholders_checked(url: str, named_by: str = SETTING) -> str:
    """Return an example of the URLs. Raises SettingsError for a malformed placeholder."""
    shown, one = without_password(url), _PLACEHOLDER.sub("x", url)
    if has_placeholders(one):
        raise SettingsError(
            f"{named_by} is {shown!r}, which has an incomplete placeholder. Write it as %(name)s, with the s. "
            "If %( is part of a name, write %25(."
        )
    return one
