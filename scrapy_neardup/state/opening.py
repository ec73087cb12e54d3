"""Open the state at a URL, once for each location of this process."""

from __future__ import annotations

import re
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import cache
from glob import escape, glob
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from scrapy_neardup.errors import SettingsError, StoreError, StoreMismatch
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import SETTING, Engine, FileEngine, KeyValueStore, without_password
from scrapy_neardup.kv.exchange import is_unfinished, refuse_unfinished
from scrapy_neardup.kv.integrity import CheckedStore
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.kv.options import DEFAULT, Options
from scrapy_neardup.kv.snapshot import Snapshot
from scrapy_neardup.kv.transaction import Temporary, Transaction
from scrapy_neardup.state import layout
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import RECIPE, SECRET, Secret, fits, read_recipe, renamed, secret_of
from scrapy_neardup.state.verifier import row_problems
from scrapy_neardup.untrusted import line_logger


class Registry(Mapping[str, type[Engine]]):
    """Engines by URL scheme, imported on first use, from "module:class"."""

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def __getitem__(self, scheme: str) -> type[Engine]:
        kind: type[Engine] = _load(self.places[scheme])
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def forms(self, *, persistent: bool = False) -> str:
        """Return the forms of the URLs, for messages."""
        *others, last = [f"{kind.scheme}:{kind.form}" for kind in self.values() if kind.is_persistent or not persistent]
        return f"{', '.join(others)} or {last}" if others else last


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
    """Whether the URL stands for several states."""
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


def matching(url: str) -> Iterator[str]:
    """Return the existing paths that match a URL with placeholders."""
    path = url2pathname(urlsplit(_PLACEHOLDER.sub(_MARK, url)).path)
    found = sorted(glob("*".join(map(escape, path.split(_MARK)))))  # noqa: PTH207 - it leaves hidden names out
    yield from (one for one in found if not one.endswith(_BESIDE))


STORES = Registry(
    {
        "leveldb": "scrapy_neardup.kv.leveldb:LevelDB",
        "sqlite": "scrapy_neardup.kv.sqlite:SQLite",
        "memory": "scrapy_neardup.kv.memory:Memory",
    }
)

#: Engines on a server, shared by crawlers on many machines.
SERVERS = Registry(
    {
        "redis": "scrapy_neardup.server.engine:Redis",
        "rediss": "scrapy_neardup.server.engine:Rediss",
        "unix": "scrapy_neardup.server.engine:Unix",
        "redis+sentinel": "scrapy_neardup.server.engine:Sentinel",
        "rediss+sentinel": "scrapy_neardup.server.engine:RedissSentinel",
        "redis+cluster": "scrapy_neardup.server.engine:Cluster",
        "rediss+cluster": "scrapy_neardup.server.engine:RedissCluster",
    }
)
_ALL = ChainMap[str, type[Engine]](STORES, SERVERS)  # type: ignore[arg-type]  # nobody writes to it

#: The page store of a shared state.
_SHARED = "scrapy_neardup.server.store:RedisStore"

logger = line_logger(__name__)

# Open stores and their numbers of users, by location. One handle for each path, because a second one would drop the
# first one's lock. Dry runs are separate.
_open_stores: dict[str, tuple[PageStore, int]] = {}
_tried: dict[str, tuple[PageStore, int]] = {}


def _load(place: str) -> Any:
    """Return what "module:name" names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


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
        # A witness without database belongs to a lost state, which must be reported. So must a state that a migration
        # was moving.
        if path.exists() or STORES[scheme].exists(str(path)) or is_unfinished(str(path)):
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
    return [kind.url(path) for path in matching(url) if kind.exists(path)] if kind.is_persistent else []


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
    if parts.scheme not in _ALL:
        there = states_near(url) if url and not parts.scheme else []
        forms = " or ".join(there) if there else f"{STORES.forms()}; or on a server: {SERVERS.forms()}"
        raise SettingsError(f"{named_by} is {without_password(url)!r}, which names no state. Use {forms}.")
    kind = _ALL[parts.scheme]
    try:
        location = kind.read_url(parts)
    except ValueError as error:
        raise SettingsError(f"{named_by} is {without_password(url)!r}, {error}.") from None
    if hint := kind.misplaced(location):
        _warn_once(named_by, hint)
    return kind, location


@cache
def _warn_once(named_by: str, hint: str) -> None:
    logger.warning("%s: %s", named_by, hint)


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


def open_at(
    kind: type[Engine],
    location: str,
    recipe: Mapping[str, Any] | None,
    named_by: str = SETTING,
    secret: Secret | None = None,
    options: Options = DEFAULT,
) -> PageStore:
    """Open or create the state at a location. Raises StoreMismatch if another recipe or secret wrote it.

    Without a recipe any state opens, for commands that judge nothing. Without a secret the state's own counts, and a
    new state draws one. ``options``: use of memory.
    """
    engine = kind(location, named_by, options)
    return open_rows(CheckedStore(engine) if isinstance(engine, FileEngine) else engine, recipe, named_by, secret)


def memory_state(recipe: Mapping[str, Any], secret: Secret | None = None) -> PageStore:
    """Make a state in memory."""
    return open_rows(Memory(), recipe, secret=secret)


def open_rows(
    kv: KeyValueStore,
    recipe: Mapping[str, Any] | None,
    named_by: str = SETTING,
    secret: Secret | None = None,
    snapshot: Snapshot | None = None,
) -> PageStore:
    """Make the page store of opened rows, and roll back what crawls have left unless the rows are a snapshot."""
    try:
        if snapshot is kv and kv.get(RECIPE) is None:
            recipe = None  # nothing is begun there
        written = kv.run(lambda: read_recipe(kv, recipe, named_by, secret))
        own = secret_of(written, kv.get(SECRET), secret, kv.location)
        source = kv if snapshot is None else snapshot
        if source.must_verify:
            _verify(source, own)
        pages = 0 if kv.is_shared else kv.count(layout.RECORDS) if source.tally is None else source.tally.pages
        kind: type[PageStore] = _load(_SHARED) if kv.is_shared else PageStore
        store = kind(kv, written, own, pages, snapshot)
        store.renamed = renamed(written, recipe or {})
        if snapshot is None or (snapshot is not kv and not snapshot.is_held):
            crawls = store.journal.crawls()
            kv.accept()
            store.note_rollback(store.journal.roll_back_crawls(crawls, lists=snapshot is None))
        if own is not None and own.is_own:
            kv.keep_secret(own.value)
        return store
    except BaseException:
        kv.close()
        raise


def _verify(kv: KeyValueStore, secret: Secret | None) -> None:
    """Compare all rows with the tally. Raises StoreDamaged."""
    assert kv.tally is not None
    if not kv.tally.sequence:
        raise kv.damaged("it has a recipe, but its tally is missing")
    hashes = Keyed(secret.value) if secret else None
    for problem in (*row_problems(kv, kv.tally, hashes), *kv.file_problems()):
        raise kv.damaged(problem)


def open_store(
    url: str,
    recipe: Mapping[str, Any] | None,
    named_by: str = SETTING,
    secret: Secret | None = None,
    *,
    dry_run: bool = False,
    options: Options = DEFAULT,
) -> PageStore:
    """Open the state at a URL, once per location of this process; give it back with ``close_store``.

    Without a recipe there must be a state. ``named_by``: see ``parse_url``; ``secret``: see ``open_at``.
    ``dry_run``: keep writes in memory and change nothing. ``options``: use of memory, for the first opening.
    """
    kind, location = parse_url(url, named_by)
    if not kind.is_persistent:
        return open_at(kind, location, recipe, named_by, secret)
    if kind.scheme in STORES:
        refuse_unfinished(location)
    opened = _tried if dry_run else _open_stores
    if location not in opened:
        if dry_run:
            snapshot = _take_snapshot(kind, location, named_by)
            made = open_rows(Transaction(snapshot), recipe, named_by, secret, snapshot)
        else:
            made = open_at(kind, location, recipe, named_by, secret, options)
        opened[location] = made, 1
        return made
    store, holders = opened[location]
    if store.scheme != kind.scheme or (recipe is not None and not fits(store.recipe, recipe)):
        raise StoreMismatch(
            f"This process already uses {location} with other parameters, in another crawl or in an open Deduplicator. "
            f"Give both the same parameters, give each its own state with {named_by}, or close the first."
        )
    opened[location] = store, holders + 1
    return store


def open_temporary(folder: Path, recipe: Mapping[str, Any], secret: Secret | None, options: Options) -> PageStore:
    """Open a state in a folder that the caller removes; give it back with ``close_store``.

    LevelDB if plyvel is installed, else SQLite.
    """
    if find_spec("plyvel") is None:
        return open_store(default_url(folder), recipe, SETTING, secret, options=options)
    return open_rows(Temporary(folder, options), recipe, SETTING, secret)


def open_snapshot(
    url: str, recipe: Mapping[str, Any] | None = None, named_by: str = SETTING, secret: Secret | None = None
) -> PageStore:
    """Open a snapshot of the state at a URL, even while a crawl uses it; give it back with ``close_store``.

    Kinds without snapshots are opened. Raises StoreError if there is no state.
    """
    kind, location = parse_url(url, named_by)
    if kind.scheme in STORES:
        refuse_unfinished(location)
    if issubclass(kind, FileEngine):
        snapshot = _take_snapshot(kind, location, named_by)
        return open_rows(snapshot, recipe, named_by, secret, snapshot)
    store = open_store(url, recipe, named_by, secret)
    store.as_of = time.time()
    return store


def url_of(store: PageStore) -> str:
    """Return the URL of an open state."""
    return _ALL[store.scheme].url(store.location)


def close_store(store: PageStore) -> None:
    """Give a store back. The last user closes it."""
    for opened in (_open_stores, _tried):
        held, holders = opened.get(store.location, (None, 0))
        if held is store and holders > 1:
            opened[store.location] = store, holders - 1
            return
        if held is store:
            del opened[store.location]
    store.close()


def _take_snapshot(kind: type[Engine], location: str, named_by: str) -> Snapshot:
    if not issubclass(kind, FileEngine):
        raise StoreError(
            f"A dry run is not possible with a {kind.scheme} state. Set NEARDUP_STORE to another state, for example a "
            "copy made with scrapy neardup merge."
        )
    return Snapshot(kind(location, named_by))
