"""Every NEARDUP_* setting, read and checked once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.context import FIRST, POLICIES, KeepPolicy, Policy
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.methods.cascade.parameters import ARTICLE, METHOD, PROFILES
from scrapy_neardup.model import Kind, Outcome, Verdict
from scrapy_neardup.page.extraction import Extractor, HtmlReader
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.source import BodyHasher, PageSource
from scrapy_neardup.report.words import LANGUAGES
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Keep
from scrapy_neardup.state.urls import parse_url, placeholders_checked
from scrapy_neardup.untrusted import line_logger
from scrapy_neardup.workers.pool import WorkerPool, default_size
from scrapy_neardup.workers.worker import MAX_SECONDS, ReadingOptions

logger = line_logger(__name__)

#: The item field that holds each part of a page; empty for none.
DEFAULT_FIELDS = {**{part: part for part in ("url", "title", "keywords", "description", "text", "html")}, "part": ""}
#: What can happen to an item.
ACTIONS = DROP, TAG, PASS = "drop", "tag", "pass"
#: As many workers as cores and memory allow, started once a crawl needs them.
AUTO = "auto"
DEFAULT_POLICY: Mapping[Kind | Outcome, str] = {
    Kind.IDENTICAL: DROP,
    Kind.NEAR: DROP,
    Kind.RETITLED: DROP,
    Kind.EXCERPT: TAG,
    Kind.SAME_TITLE: TAG,
    Outcome.MINOR_UPDATE: DROP,
}
#: A worker has this many times NEARDUP_MAX_SECONDS for a page: the machine may be busy, and nobody waits.
_TIMES = 4

# Readers take the name and the value of a setting, and return the value of its field or raise SettingsError.

Reader = Callable[[str, Any], Any]


def _refusal(name: str, value: Any, cure: str) -> SettingsError:
    return SettingsError(f"{name} is {value!r}. Set it to {cure}.")


def _boolean(name: str, value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in ("true", "1", "yes", "on", "false", "0", "no", "off"):
        raise _refusal(name, value, "True or False")
    return word in ("true", "1", "yes", "on")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _refusal(name, value, "a string")
    return value


def _import_path(name: str, value: Any) -> str:
    """Read an import path, or name the place of an object from a settings module."""
    if isinstance(value, str):
        return value
    if callable(value) and "." not in getattr(value, "__qualname__", "."):
        return f"{value.__module__}.{value.__qualname__}"
    raise _refusal(name, value, "an import path, such as 'myproject.text.own'")


def _choice(*choices: str) -> Reader:
    def read(name: str, value: Any) -> str:
        if value not in choices:
            raise _refusal(name, value, f"one of: {', '.join(filter(None, choices))}")
        return str(value)

    return read


def _number(low: float, high: float, kind: type[float] | type[int] = float) -> Reader:
    def read(name: str, value: Any) -> float:
        try:
            found = float("nan") if isinstance(value, bool) else float(value)  # True is no limit of 1
        except (TypeError, ValueError, OverflowError):
            found = float("nan")
        if not low <= found <= high:
            raise _refusal(name, value, f"a number from {low:.16g} to {high:.16g}")
        if found != kind(found):
            raise _refusal(name, value, "a whole number")
        return kind(found)

    return read


def _mapping(name: str, value: Any) -> dict[str, Any]:
    """Read a dict with strings as keys, or one as JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise _refusal(name, value, "a dict (on the command line as JSON)") from None
    if not isinstance(value, Mapping):
        raise _refusal(name, value, "a dict")
    if not all(isinstance(key, str) for key in value):
        raise SettingsError(f"{name} is {value!r}. Its keys must be strings.")
    return dict(value)


def _secret(name: str, value: Any) -> Secret | None:
    return Secret.shared(value) if _text(name, value) else None


def _keep(name: str, value: Any) -> Keep:
    return Keep(_choice(*(keep.value for keep in Keep))(name, getattr(value, "value", value)))


def _workers(name: str, value: Any) -> int | str:
    try:
        return AUTO if value == AUTO else int(_number(0, 64, int)(name, value))
    except SettingsError:
        raise _refusal(name, value, "'auto', or a number of worker processes from 0 (none) to 64") from None


_AGE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(s|min|h|d|w)")
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST = 100 * 366 * 86_400


def parse_age(text: str) -> float | None:
    """Return an age in seconds, at most a hundred years; None for any other text.

    An age needs a unit: a bare 90 may mean days or seconds, and a wrong limit forgets pages for good.

    >>> [parse_age(text) for text in ("90d", "1.5 h", "30min", "4W", "600s", "30", "0d", "3 months")]
    [7776000.0, 5400.0, 1800.0, 2419200.0, 600.0, None, 0.0, None]
    """
    match = _AGE.fullmatch(text.strip().lower())
    parsed = float(match[1]) * _UNITS[match[2]] if match else -1.0
    return parsed if 0 <= parsed <= _LONGEST else None


def _duration(name: str, value: Any) -> float | None:
    """Read an age; None for ever."""
    if value is None or value == "":
        return None
    parsed = parse_age(str(value))
    if parsed is None or parsed < 1:
        such = "an age with its unit ('600s', '30min', '12h', '90d', '4w'), from 1 second to 100 years"
        raise _refusal(name, value, f"{such}. Leave it out to keep pages for ever")
    return parsed


def _max_pages(name: str, value: Any) -> int | None:
    return None if value is None or value == "" else int(_number(1, 2**53, int)(name, value))


def _fields(name: str, value: Any) -> dict[str, str]:
    names = _mapping(name, value)
    unknown = sorted(set(names) - set(DEFAULT_FIELDS))
    if unknown or not all(isinstance(field, str) for field in names.values()):
        wrong = ", ".join(unknown) or repr(value)
        raise SettingsError(f"{name} has {wrong}. It must map {', '.join(DEFAULT_FIELDS)} to names of item fields.")
    return {**DEFAULT_FIELDS, **names}


def _policy(name: str, value: Any) -> dict[Kind | Outcome, str]:
    actions, kinds = _mapping(name, value), {kind.value: kind for kind in (*DEFAULT_POLICY, Outcome.UPDATED)}
    for kind, action in actions.items():
        if kind not in kinds or action not in ACTIONS or (kinds[kind] is Outcome.UPDATED and action == DROP):
            raise SettingsError(
                f"{name} has {kind!r}: {action!r}. It must map kinds ({', '.join(kinds)}) to one of "
                f"{', '.join(ACTIONS)}; 'updated' only to tag or pass."
            )
    return {**DEFAULT_POLICY, **{kinds[kind]: action for kind, action in actions.items()}}


#: A text that can be a host name, and no URL.
_HOST = re.compile(r"\s*[^\s/:@?#*]+\s*")


def _keep_policy(name: str, value: Any) -> KeepPolicy:
    if value in POLICIES:
        return str(value)
    try:
        hosts = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        hosts = None
    are_texts = isinstance(hosts, (list, tuple)) and all(isinstance(host, str) for host in hosts)
    if hosts and are_texts and all(map(_HOST.fullmatch, hosts)):
        return tuple(hosts)
    such = "a list of hosts, the best first, such as ['a.example', 'b.example'] (on the command line as JSON)"
    raise _refusal(name, value, f"{', '.join(POLICIES)}, or {such}")


def _setting(read: Reader, default: Any) -> Any:
    """A field of ``Config`` with its reader."""
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={"read": read})
    return field(default=default, metadata={"read": read})


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one crawl.

    The field ``min_letters`` is the setting ``NEARDUP_MIN_LETTERS``; only ``drop`` is ``DROP_DUPLICATES``.
    """

    #: Drop copies. With ``False`` nothing is dropped, and every item gets its verdict in the field
    #: ``NEARDUP_TAG_FIELD``.
    drop: bool = _setting(_boolean, True)
    #: Whether pages are judged at all. ``NEARDUP_ENABLED = False`` switches everything off.
    enabled: bool = _setting(_boolean, True)
    #: What happens to each kind of copy, and to a ``minor_update``: ``drop``; ``tag`` (the item passes with its
    #: verdict); ``pass`` (the item passes untouched). Kinds that you leave out keep their default. ``"updated": "tag"``
    #: tags updates, which otherwise pass untouched. Example: ``{"retitled": "tag", "excerpt": "drop"}``.
    policy: Mapping[Kind | Outcome, str] = _setting(_policy, DEFAULT_POLICY)
    #: The URL of the state. By default a LevelDB folder (SQLite where plyvel is not installed) in the project's
    #: ``.scrapy/neardup``, or in that of the working directory outside of projects. Forms: ``leveldb:///path``,
    #: ``sqlite:///path``, ``memory:``, and on a server ``redis://host:6379/0?state=name``, ``rediss://…``,
    #: ``unix:///path/of/the.sock?state=name``, ``redis+sentinel://host,host/service?state=name``,
    #: ``redis+cluster://host,host?state=name``. ``%(name)s`` in a path is the spider's name; other attributes of the
    #: spider work the same way.
    store: str = _setting(_text, "")
    #: Who shares the default state: ``"spider"`` gives each spider its own state, ``"project"`` gives all spiders of
    #: the project one state.
    scope: str = _setting(_choice("project", "spider"), "spider")
    #: Judge pages, drop nothing, and leave the state as it is. With ``DROP_DUPLICATES = False`` each item gets its
    #: verdict.
    dry_run: bool = _setting(_boolean, False)
    #: A secret of at least 16 characters for the hashes of the state. States with the same secret can be merged. By
    #: default each state draws its own.
    secret: Secret | None = _setting(_secret, None)
    #: Parameters for a field of pages. ``"catalogue"`` is for product pages: two pages are copies only if nearly
    #: everything is the same and no word of a title is missing. Use it with ``DROP_DUPLICATES = False``. ``"posts"`` is
    #: for channels: a short text in other words is a copy.
    profile: str = _setting(_choice(*PROFILES), ARTICLE)
    #: The method that decides: a name from the list of methods, or the import path of your own.
    method: str = _setting(_import_path, METHOD)
    #: Parameters of the method. Those that you leave out keep their default.
    parameters: Mapping[str, Any] = _setting(_mapping, {})
    #: The import path of your own function from ``(html, url)`` to the text, or to ``None``. Its text is judged as it
    #: is.
    extractor: str = _setting(_import_path, "")
    #: Which field of an item holds the ``url``, ``title``, ``keywords``, ``description``, ``text``, ``html``. ``part``
    #: names the field that distinguishes several articles of one page; by default none does.
    fields: Mapping[str, str] = _setting(_fields, DEFAULT_FIELDS)
    #: The field of an item that holds the verdict. A ``scrapy.Item`` must declare it.
    tag_field: str = _setting(_text, "neardup")
    #: A page with fewer letters and digits is not judged (``too_short``).
    min_letters: int = _setting(_number(1, 1_000_000, int), 40)
    #: A page with more characters of HTML is not judged (``too_large``).
    max_html: int = _setting(_number(1, 2**31, int), 5_000_000)
    #: A page with more characters of text is not judged (``too_large``).
    max_text: int = _setting(_number(1, 2**31, int), MAX_TEXT)
    #: Seconds for reading a page that may take long. A page that takes longer is not judged (``too_slow``).
    max_seconds: float = _setting(_number(0.1, 3600), MAX_SECONDS)
    #: How many processes read pages beside the crawl. ``"auto"`` chooses by cores and memory once a crawl has spent 3
    #: seconds on reading; with a ``NEARDUP_EXTRACTOR`` it uses none.
    workers: int | str = _setting(_workers, AUTO)
    #: What the state keeps for later questions: ``"evidence"`` keeps titles, and for copies the kind and shared
    #: sentences; ``"texts"`` also keeps all texts; ``"nothing"`` keeps neither evidence nor the list of dropped pages.
    keep: Keep = _setting(_keep, Keep.EVIDENCE)
    #: Which copy stays: ``"first"``, ``"longest"``, ``"canonical"``, or a list of hosts with the best one first.
    keep_policy: KeepPolicy = _setting(_keep_policy, FIRST)
    #: How long the state knows a page after the page or a copy was last seen: an age such as ``"90d"`` or ``"12h"``. By
    #: default for ever.
    ttl: float | None = _setting(_duration, None)
    #: How many pages the state knows at most, copies included. The page that was last seen longest ago goes first. By
    #: default there is no limit.
    max_pages: int | None = _setting(_max_pages, None)
    #: When pages become permanent: ``"feed"`` once the feed with their item is stored, ``"item"`` at once.
    commit: str = _setting(_choice("feed", "item"), "feed")
    #: What happens if this crawl overwrites a feed while the state knows pages: ``"warn"`` logs a warning; ``"known"``
    #: says that something else collects the feed.
    overwritten: str = _setting(_choice("warn", "known"), "warn")
    #: Seconds that a page waits for each near-duplicate in flight. Then it is judged without that page; if it would be
    #: unique, it passes as ``unjudged`` (``in_flight``).
    wait: float = _setting(_number(0, 3600), 10.0)
    #: What happens if the state fails: ``"close"`` ends the crawl (``neardup_store_failed``); ``"pass"`` lets all items
    #: pass unjudged; ``"wait"`` waits for the server of the state.
    on_store_error: str = _setting(_choice("close", "pass", "wait"), "close")
    #: The language of closing lines and of the report: ``"en"`` or ``"zh"``. Empty: English.
    lang: str = _setting(_choice("", *LANGUAGES), "")

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Config:
        """Read the settings; raises SettingsError that names the wrong one and what it may be."""
        config = cls(**_read(settings))
        config.make_method()
        if config.store:
            parse_url(placeholders_checked(config.store))
        config.make_extractor()
        return config

    @property
    def also_copies(self) -> frozenset[Kind]:
        """Kinds that the policy drops though they are no duplicates."""
        return frozenset(kind for kind in (Kind.EXCERPT, Kind.SAME_TITLE) if self.policy[kind] == DROP)

    def action(self, verdict: Verdict) -> str:
        """What happens to the item: one of ``ACTIONS``."""
        if not self.drop or verdict.outcome is Outcome.BETTER:  # the tag says what it supersedes
            return TAG
        if verdict.outcome is Outcome.UPDATED and self.policy.get(Outcome.UPDATED) == TAG:
            return TAG
        ruled = Outcome.MINOR_UPDATE if verdict.outcome is Outcome.MINOR_UPDATE else verdict.kind
        return self.policy[ruled] if ruled is not None else DROP if verdict.is_copy else PASS

    def passes(self, verdict: Verdict) -> bool:
        """Whether the item goes on to later pipelines."""
        return self.action(verdict) != DROP

    @property
    def bounds(self) -> Bounds | None:
        return Bounds(self.ttl, self.max_pages) if self.ttl or self.max_pages else None

    def make_method(self) -> Method:
        """The method with its parameters; raises SettingsError that names the settings."""
        try:
            return make_method(self.method, self.parameters)
        except SettingsError as error:
            raise SettingsError(f"NEARDUP_METHOD, NEARDUP_PARAMETERS: {error}") from None

    def make_extractor(self) -> Extractor | None:
        """The user's function from HTML and URL to the text of a page, or to None; raises SettingsError."""
        if not (path := self.extractor):
            return None
        module, _, name = path.rpartition(".")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise SettingsError(f"NEARDUP_EXTRACTOR is {path!r}, which cannot be imported: {error}.") from error
        if not callable(found):
            raise SettingsError(f"NEARDUP_EXTRACTOR is {path!r}, which is no function. Name a function(html, url).")
        return found  # type: ignore[no-any-return]  # its result is checked where it is called

    def make_policy(self) -> Policy:
        """The settings that decide verdicts beside the method."""
        return Policy(self.min_letters, self.also_copies, self.passes, self.keep, self.keep_policy)

    def deciding(self, method: Method) -> dict[str, Any]:
        """Parameters and settings that change verdicts but no fingerprint; two crawls of a state may differ in them."""
        policy = {f"NEARDUP_POLICY {kind.value}": action for kind, action in self.policy.items()}
        return {**method.decisions(), "NEARDUP_MIN_LETTERS": self.min_letters, **policy}

    @property
    def reading(self) -> ReadingOptions:
        return ReadingOptions(self.max_html, self.max_text, self.extractor, self.max_seconds)

    @property
    def many_workers(self) -> int:
        """How many worker processes read pages.

        "auto" starts none for an extractor of the user, which may not work in several processes.
        """
        if isinstance(self.workers, int):
            return self.workers
        return 0 if self.extractor else default_size()

    def make_page_pool(self) -> WorkerPool | None:
        """Workers that read pages, but give back those that may take long; None if this process reads all pages."""
        if not (self.many_workers and self.reading.can_be_sent):
            return None
        return WorkerPool(replace(self.reading, seconds=_TIMES * self.max_seconds, only_quick=True), self.many_workers)

    def make_risky_pool(self) -> WorkerPool | None:
        """One worker that reads pages that may take long; None if it cannot import the extractor."""
        return WorkerPool(self.reading, 1, "neardup-risky") if self.reading.can_be_sent else None

    def make_reader(self) -> HtmlReader:
        return HtmlReader(self.max_html, self.max_text, self.make_extractor())

    @contextmanager
    def open_source(
        self, fields: Mapping[str, str] | None = None, *, bodies: BodyHasher | None = None, hashes_items: bool = True
    ) -> Iterator[PageSource]:
        """Open the source of pages for items or records; ``fields`` in place of NEARDUP_FIELDS.

        Pages that may take long are read in another process, which ends with it.
        """
        pool = self.make_risky_pool()
        with closing(pool) if pool else nullcontext():
            yield PageSource(
                fields or self.fields,
                self.make_reader(),
                read_risky=pool.read if pool else None,
                bodies=bodies,
                hashes_items=hashes_items,
            )


#: Each setting: its field of ``Config``, and its reader.
SETTINGS: dict[str, tuple[str, Reader]] = {
    "DROP_DUPLICATES" if one.name == "drop" else f"NEARDUP_{one.name.upper()}": (one.name, one.metadata["read"])
    for one in fields(Config)
}


def read_setting(settings: Mapping[str, Any], name: str) -> Any:
    """Read one setting and no other, or return its default. Raises SettingsError."""
    field_name, read = SETTINGS[name]
    value = settings.get(name)
    return getattr(Config(), field_name) if value is None else read(name, value)


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings by field; warn of names that resemble our settings."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name in SETTINGS:
            field_name, read = SETTINGS[name]
            if value is not None or name not in ("DROP_DUPLICATES", "NEARDUP_ENABLED"):
                values[field_name] = read(name, value)
        elif name.startswith("NEARDUP_"):
            meant = meant_setting(name)
            cure = f"Did you mean {meant}?" if meant else f"The settings are: {', '.join(SETTINGS)}."
            raise SettingsError(f"There is no setting {name}. {cure}")
        elif meant := meant_setting(name):
            logger.warning(
                "scrapy-neardup does not read the setting %s. If you mean its setting, write %s. If another package "
                "reads it, ignore this message.",
                name,
                meant,
            )
    values["parameters"] = _profiled(values)
    return values


def _profiled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the profile, changed by NEARDUP_PARAMETERS."""
    profiled = PROFILES[values.get("profile", ARTICLE)]
    if profiled and values.get("method", METHOD) != METHOD:
        raise SettingsError(
            f"NEARDUP_PROFILE = {values['profile']!r} works only with the method {METHOD}, but NEARDUP_METHOD is "
            f"{values['method']!r}. Remove one of the two."
        )
    return {**profiled, **values.get("parameters", {})}


def meant_setting(name: str) -> str:
    """Suggest the setting for a wrong name; empty if none is close.

    >>> meant_setting("DROP_DUPLICATE"), meant_setting("NEARDUP_STROE"), meant_setting("DOWNLOAD_DELAY")
    ('DROP_DUPLICATES', 'NEARDUP_STORE', '')
    """
    if not name.startswith("NEARDUP_"):
        return next(iter(get_close_matches(name, SETTINGS, 1, 0.85)), "")
    by_end = {setting.removeprefix("NEARDUP_"): setting for setting in SETTINGS}
    return next((by_end[end] for end in get_close_matches(name.removeprefix("NEARDUP_"), by_end, 1)), "")
