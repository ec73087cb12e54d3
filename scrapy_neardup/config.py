"""Every setting, read and checked once, into one frozen object."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import PurePath
from typing import Any

from scrapy_neardup.ages import seconds
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judging.preference import FIRST, POLICIES, KeepPolicy
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.methods.profiles import ARTICLE, CATALOGUE, METHOD, PROFILES
from scrapy_neardup.model import Kind, Likeness, Verdict
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.apart import MAX_SECONDS, Apart, Terms
from scrapy_neardup.page.cores import workers_by_machine
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.report.words import LANGUAGES
from scrapy_neardup.stores import Bounds, Keep, Secret, parse_url, placeholders_checked
from scrapy_neardup.stores.options import Options, read_options

logger = line_logger(__name__)

#: What part of an item holds what; a value is the name of the item's field, empty if none does.
DEFAULT_FIELDS = {
    "url": "url",
    "title": "title",
    "keywords": "keywords",
    "description": "description",
    "text": "text",
    "html": "html",
    "part": "",
}


#: What can become of a page, and what becomes of each likeness if nothing else is said.
ACTIONS = DROP, TAG, PASS = "drop", "tag", "pass"
#: As many workers as the machine has room for, for a crawl that has much to read.
AUTO = "auto"
#: A page that may take long has NEARDUP_MAX_SECONDS. Any other takes one at most on an idle machine, and has so many
#: times as long in a worker: there it keeps nobody waiting, and is not to be given up for a machine that is not idle.
_TIMES = 4
DEFAULT_POLICY = {
    Likeness.IDENTICAL: DROP,
    Likeness.NEAR: DROP,
    Likeness.RETITLED: DROP,
    Likeness.EXCERPT: TAG,
    Likeness.SAME_TITLE: TAG,
}


#: What is no setting of its own: each method has its limits, which are parameters.
_OF_METHODS = ("THRESHOLD", "SIMILARITY", "SIMILARITY_THRESHOLD", "DISTANCE", "LIMIT")
#: How our names are written by those who do not know them; and names that speak of dropping duplicates.
_PREFIX = re.compile(r"^(?:SCRAPY_?)?NEAR_?DUP(?:E|S|ES|LICATES?|LICATE_PAGES)?_")
_DROPPING = re.compile(
    r"^(?:DROP|FILTER|SKIP|REMOVE)_?(?:NEAR_?)?DUP(?:E|S|ES|LICAT(?:E|ES|ED|ION|IONS))?(?:_PAGES|_ITEMS)?$"
)


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one crawl. The name in capitals behind each field is that of its setting."""

    drop: bool = True  # DROP_DUPLICATES
    policy: Mapping[Likeness, str] = field(default_factory=lambda: dict(DEFAULT_POLICY))  # NEARDUP_POLICY
    store: str = ""  # NEARDUP_STORE; empty: the default under the project's data directory
    store_options: Options = field(default_factory=Options)  # NEARDUP_STORE_OPTIONS
    scope: str = ""  # NEARDUP_SCOPE; empty: "spider", or "project" where that has a state already
    dry_run: str = ""  # NEARDUP_DRY_RUN; empty: none, else TAG or PASS: what becomes of items
    secret: Secret | None = None  # NEARDUP_SECRET; None: each state draws its own
    profile: str = ARTICLE  # NEARDUP_PROFILE
    method: str = METHOD  # NEARDUP_METHOD
    parameters: Mapping[str, Any] = field(default_factory=dict)  # NEARDUP_PARAMETERS
    extractor: str = ""  # NEARDUP_EXTRACTOR; import path, empty: trafilatura
    fields: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_FIELDS))  # NEARDUP_FIELDS
    listings: bool = True  # NEARDUP_LISTINGS
    tag_field: str = "neardup"  # NEARDUP_TAG_FIELD
    min_letters: int = 40  # NEARDUP_MIN_LETTERS
    max_html: int = 5_000_000  # NEARDUP_MAX_HTML, in characters
    max_text: int = MAX_TEXT  # NEARDUP_MAX_TEXT, in characters
    max_seconds: float = MAX_SECONDS  # NEARDUP_MAX_SECONDS
    workers: int | str = AUTO  # NEARDUP_WORKERS; a number, or AUTO
    keep: Keep = Keep.EVIDENCE  # NEARDUP_KEEP
    keep_policy: KeepPolicy = FIRST  # NEARDUP_KEEP_POLICY; hosts as a tuple
    ttl: float | None = None  # NEARDUP_TTL, in seconds
    max_pages: int | None = None  # NEARDUP_MAX_PAGES
    dropped_feed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # NEARDUP_DROPPED_FEED; as FEEDS
    commit: str = "feed"  # NEARDUP_COMMIT
    overwritten: str = "warn"  # NEARDUP_OVERWRITTEN
    wait: float = 10.0  # NEARDUP_WAIT, in seconds
    brake: str = "tag"  # NEARDUP_BRAKE
    on_store_error: str = "close"  # NEARDUP_ON_STORE_ERROR
    strict: bool = False  # NEARDUP_STRICT
    lang: str = ""  # NEARDUP_LANG; empty: closing lines in English, a report as its pages

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Config:
        """Read the settings; raises SettingsError that names the wrong one and what it may be."""
        given = {name: settings[name] for name in settings if name.startswith("NEARDUP_")}
        for name in given:
            if name not in _READERS:
                meant = meant_setting(name)
                asked = f" Did you mean {meant}?" if meant else ""
                raise SettingsError(f"There is no setting {name}.{asked} The settings are: {', '.join(SETTINGS)}.")
        values = {
            _READERS[name][0]: _READERS[name][1](name, value) for name, value in given.items() if name in _READERS
        }
        values.pop("enabled", None)
        for name, meant in look_alikes(settings).items():
            logger.warning(
                "There is a setting %s, which scrapy-neardup does not read. If it is meant for it, the name is %s; "
                "if it is somebody else's, all is well.",
                name,
                meant,
            )
        drop = settings.get("DROP_DUPLICATES")
        if drop is not None:
            values["drop"] = _boolean("DROP_DUPLICATES", drop)
        if profiled := PROFILES[values.get("profile", ARTICLE)]:
            if values.get("method", METHOD) != METHOD:
                raise SettingsError(
                    f"NEARDUP_PROFILE is {values['profile']!r}, which sets parameters of the method {METHOD}, and "
                    f"NEARDUP_METHOD is {values['method']!r}: leave one of the two out."
                )
            values["parameters"] = {**profiled, **values.get("parameters", {})}
        config = cls(**values)
        config.make_method()
        if config.store:
            parse_url(placeholders_checked(config.store))
        if config.extractor:
            load_extractor(config.extractor)
        return config

    @property
    def tags_all(self) -> bool:
        """Whether tags on all items are what is wanted, and not some as the policy says."""
        return not self.drop or self.dry_run == TAG

    @property
    def drops_catalogue(self) -> bool:
        """Whether products are dropped, of which a reader would keep most: tags are what is advised."""
        return self.profile == CATALOGUE and self.drop and not self.dry_run

    @property
    def also_copies(self) -> frozenset[Likeness]:
        """What is dropped though no method calls it a duplicate."""
        return frozenset(
            likeness for likeness in (Likeness.EXCERPT, Likeness.SAME_TITLE) if self.policy[likeness] == DROP
        )

    def action(self, verdict: Verdict) -> str:
        """What becomes of the item of a page with this verdict: one of ``ACTIONS``."""
        if not self.drop or verdict.kind is Kind.BETTER:  # the tag says what it supersedes
            return TAG
        if verdict.likeness is not None:
            return self.policy[verdict.likeness]
        return DROP if verdict.is_copy else PASS

    def passes(self, verdict: Verdict) -> bool:
        """Whether the item of a page with this verdict is passed on, tagged or not."""
        return self.action(verdict) != DROP

    @property
    def bounds(self) -> Bounds | None:
        """How long and how many pages are known; None where nothing is to be forgotten."""
        bounds = Bounds(self.ttl, self.max_pages)
        return None if bounds == Bounds() else bounds

    def make_method(self) -> Method:
        """The method with its parameters; raises SettingsError that names the settings."""
        try:
            return make_method(self.method, self.parameters)
        except SettingsError as error:
            raise SettingsError(f"NEARDUP_METHOD, NEARDUP_PARAMETERS: {error}") from None

    def deciding(self, method: Method) -> dict[str, Any]:
        """What two crawls of one state may have different, as it only decides: parameters of the method, settings."""
        policy = {f"NEARDUP_POLICY {likeness.value}": action for likeness, action in self.policy.items()}
        return {**method.decisions(), "NEARDUP_MIN_LETTERS": self.min_letters, **policy}

    @property
    def terms(self) -> Terms:
        """On which pages are read in other processes."""
        return Terms(self.max_html, self.max_text, self.max_seconds, self.extractor)

    @property
    def many_workers(self) -> int:
        """In how many processes pages are read; 0 where they are read in that of the crawl.

        Whether an extractor of the user's can be called in several at once only the user knows, and says by a number.
        """
        if isinstance(self.workers, int):
            return self.workers
        return 0 if self.extractor else workers_by_machine()

    def make_workers(self) -> Pool | None:
        """What reads all other pages, to be closed by whoever asked; None where they are to be read here."""
        terms = replace(self.terms, seconds=_TIMES * self.max_seconds, only_quick=True)
        return Pool(terms, many) if (many := self.many_workers) and terms.can_be_sent else None

    def make_apart(self) -> Apart | None:
        """What reads pages that may take long, to be closed by whoever asked; None where the extractor bars it."""
        return Apart(self.terms) if self.terms.can_be_sent else None


def meant_setting(name: str) -> str:
    """The setting that was probably meant by a name that is none; empty if there is no telling.

    >>> meant_setting("NEARDUP_DROP_DUPLICATES"), meant_setting("NEARDUP_STROE"), meant_setting("DOWNLOAD_DELAY")
    ('DROP_DUPLICATES', 'NEARDUP_STORE', '')
    """
    plain = _PREFIX.sub("", name)
    is_prefixed = plain != name
    if (
        (is_prefixed and plain in ("DROP", "DUPLICATES"))
        or _DROPPING.search(plain)
        or _is_close(plain, "DROP_DUPLICATES")
    ):
        return "DROP_DUPLICATES"
    if not is_prefixed:
        return ""
    named = {setting.removeprefix("NEARDUP_"): setting for setting in _READERS}
    named |= dict.fromkeys(_OF_METHODS, "NEARDUP_PARAMETERS")
    return named[close[0]] if (close := get_close_matches(plain, named, 1)) else ""


def _is_close(name: str, other: str) -> bool:
    return abs(len(name) - len(other)) <= 4 and bool(get_close_matches(name, [other], 1, 0.8))


def look_alikes(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings that are none of ours and may be meant to be, each with ours; they may also be somebody else's."""
    others = [name for name in settings if name not in SETTINGS and not name.startswith("NEARDUP_")]
    return {name: meant for name in others if (meant := meant_setting(name))}


def is_enabled(settings: Mapping[str, Any]) -> bool:
    """NEARDUP_ENABLED, true unless set."""
    value = settings.get("NEARDUP_ENABLED")
    return True if value is None else _boolean("NEARDUP_ENABLED", value)


def load_extractor(path: str) -> Callable[[str, str], str | None]:
    """The callable at an import path: takes HTML and URL, gives the text or None."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingsError(f"NEARDUP_EXTRACTOR is {path!r}, which cannot be imported: {error}.") from error
    if not callable(found):
        raise SettingsError(f"NEARDUP_EXTRACTOR is {path!r}, which is not callable; it takes (html, url), gives text.")
    return found  # type: ignore[no-any-return]  # what it gives is checked where it is called


def _secret(name: str, value: Any) -> Secret | None:
    said = _text(name, value)
    return Secret.shared(said) if said else None


def _boolean(name: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise SettingsError(f"{name} is {value!r}; it must be True or False.")


def _dry_run(name: str, value: Any) -> str:
    if value == TAG:
        return TAG
    try:
        return PASS if _boolean(name, value) else ""
    except SettingsError:
        raise SettingsError(
            f"{name} is {value!r}; it must be True, False, or 'tag' to have the verdict on each item."
        ) from None


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise SettingsError(f"{name} is {value!r}; it must be a string.")


def _path(name: str, value: Any) -> str:
    """An import path; an object from a settings module is named by where it lives."""
    if isinstance(value, str):
        return value
    if callable(value) and hasattr(value, "__qualname__") and "." not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    raise SettingsError(f"{name} is {value!r}; it must be an import path, such as 'myproject.text.own'.")


def _choice(*choices: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if value in choices:
            return str(value)
        raise SettingsError(f"{name} is {value!r}; it must be one of: {', '.join(choices)}.")

    return read


def _keep(name: str, value: Any) -> Keep:
    return Keep(_choice(*(keep.value for keep in Keep))(name, getattr(value, "value", value)))


def _number(low: float, high: float) -> Callable[[str, Any], float]:
    def read(name: str, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not low <= number <= high:
            raise SettingsError(f"{name} is {value!r}; it must be a number from {_plain(low)} to {_plain(high)}.")
        return number

    return read


def many_workers(name: str, value: Any) -> int | str:
    """A number of processes, or AUTO. Raises SettingsError for anything else."""
    try:
        return AUTO if value == AUTO else _whole(0, 64)(name, value)
    except SettingsError:
        raise SettingsError(
            f"{name} is {value!r}; it must be a number of processes from 0 (pages are read where the crawl runs) to "
            "64, or 'auto'."
        ) from None


def _plain(number: float) -> str:
    """A number as people write it, however large."""
    return str(int(number)) if number == int(number) else f"{number:g}"


def _whole(low: int, high: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        number = _number(low, high)(name, value)
        if number != int(number):
            raise SettingsError(f"{name} is {value!r}; it must be a whole number.")
        return int(number)

    return read


def many_pages(name: str, value: Any) -> int | None:
    """How many pages at most; None for any number. Raises SettingsError for what is no number of pages."""
    return None if value is None or value == "" else _whole(1, 2**53)(name, value)


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise SettingsError(f"{name} is {value!r}; it must be a dict, on the command line as JSON.") from None
    if not isinstance(value, Mapping):
        raise SettingsError(f"{name} is {value!r}; it must be a dict.")
    if not all(isinstance(key, str) for key in value):
        raise SettingsError(f"{name} is {value!r}; its keys must be strings.")
    return dict(value)


def _store_options(name: str, value: Any) -> Options:
    return read_options(name, _mapping(name, value))


def _feeds(name: str, value: Any) -> dict[str, dict[str, Any]]:
    """A URI, whose format is its ending, or a dict of URIs with their options, as FEEDS is one."""
    if isinstance(value, (str, PurePath)) and not str(value).lstrip().startswith("{"):
        uri = str(value).strip()
        format = PurePath(uri.rstrip("/")).suffix[1:].lower()
        if uri and not format:
            raise SettingsError(
                f"{name} is {uri!r}, whose ending is no format; write {{{uri!r}: {{'format': 'jsonl'}}}}."
            )
        return {uri: {"format": format}} if uri else {}
    given = value if isinstance(value, Mapping) and not isinstance(value, str) else _mapping(name, value)
    if not all(isinstance(options, Mapping) and options.get("format") for options in given.values()):
        raise SettingsError(f"{name} is {value!r}; each URI in it must have its options, of which 'format' is needed.")
    return {str(uri): dict(options) for uri, options in given.items()}


def _fields(name: str, value: Any) -> dict[str, str]:
    given = _mapping(name, value)
    unknown = sorted(set(given) - set(DEFAULT_FIELDS))
    if unknown or not all(isinstance(field, str) for field in given.values()):
        wrong = ", ".join(unknown) or repr(value)
        turned = {field: part for part, field in given.items() if isinstance(field, str) and field in DEFAULT_FIELDS}
        meant = f" Did you mean {turned!r}?" if turned and len(turned) == len(given) else ""
        raise SettingsError(
            f"{name}: {wrong} cannot be; it maps {', '.join(DEFAULT_FIELDS)} to names of item fields.{meant}"
        )
    return {**DEFAULT_FIELDS, **given}


def _policy(name: str, value: Any) -> dict[Likeness, str]:
    given = _mapping(name, value)
    kinds = {likeness.value: likeness for likeness in Likeness}
    for kind, action in given.items():
        if kind not in kinds or action not in ACTIONS:
            raise SettingsError(
                f"{name}: {kind!r}: {action!r} cannot be; it maps some of {', '.join(kinds)} to one of "
                f"{', '.join(ACTIONS)}.{_turned_policy(kind, action, kinds)}"
            )
    return {**DEFAULT_POLICY, **{kinds[kind]: action for kind, action in given.items()}}


def _turned_policy(kind: str, action: Any, kinds: Mapping[str, Likeness]) -> str:
    """What was probably meant by a policy that is the wrong way round."""
    named = [action] if isinstance(action, str) else action
    if (
        kind not in ACTIONS
        or not isinstance(named, (list, tuple))
        or not named
        or not set(map(str, named)) <= set(kinds)
    ):
        return ""
    return f" Did you mean {dict.fromkeys(map(str, named), kind)!r}?"


def read_keep_policy(name: str, value: Any) -> KeepPolicy:
    """One of ``POLICIES``, or hosts: a list, or one as JSON."""
    if value in POLICIES:
        return str(value)
    try:
        hosts = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        hosts = None
    if isinstance(hosts, (list, tuple)) and hosts and all(isinstance(host, str) and _is_host(host) for host in hosts):
        return tuple(hosts)
    raise SettingsError(
        f"{name} is {value!r}; it must be one of: {', '.join(POLICIES)}, or a list of hosts, the best one first, such "
        "as ['a.example', 'b.example'], on the command line as JSON."
    )


def _is_host(text: str) -> bool:
    """Whether a text may be the name of a host: no URL, no path, no port."""
    return bool(text.strip()) and not any(mark in text.strip() for mark in "/:@?#* \t\n")


_READERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "NEARDUP_ENABLED": ("enabled", _boolean),
    "NEARDUP_POLICY": ("policy", _policy),
    "NEARDUP_STORE": ("store", _text),
    "NEARDUP_STORE_OPTIONS": ("store_options", _store_options),
    "NEARDUP_SCOPE": ("scope", _choice("project", "spider")),
    "NEARDUP_DRY_RUN": ("dry_run", _dry_run),
    "NEARDUP_SECRET": ("secret", _secret),
    "NEARDUP_PROFILE": ("profile", _choice(*PROFILES)),
    "NEARDUP_METHOD": ("method", _path),
    "NEARDUP_PARAMETERS": ("parameters", _mapping),
    "NEARDUP_EXTRACTOR": ("extractor", _path),
    "NEARDUP_FIELDS": ("fields", _fields),
    "NEARDUP_LISTINGS": ("listings", _boolean),
    "NEARDUP_TAG_FIELD": ("tag_field", _text),
    "NEARDUP_MIN_LETTERS": ("min_letters", _whole(1, 1_000_000)),
    "NEARDUP_MAX_HTML": ("max_html", _whole(1, 2**31)),
    "NEARDUP_MAX_TEXT": ("max_text", _whole(1, 2**31)),
    "NEARDUP_MAX_SECONDS": ("max_seconds", _number(0.1, 3600)),
    "NEARDUP_WORKERS": ("workers", many_workers),
    "NEARDUP_KEEP": ("keep", _keep),
    "NEARDUP_KEEP_POLICY": ("keep_policy", read_keep_policy),
    "NEARDUP_TTL": ("ttl", seconds),
    "NEARDUP_MAX_PAGES": ("max_pages", many_pages),
    "NEARDUP_DROPPED_FEED": ("dropped_feed", _feeds),
    "NEARDUP_COMMIT": ("commit", _choice("feed", "item")),
    "NEARDUP_OVERWRITTEN": ("overwritten", _choice("warn", "forget", "known")),
    "NEARDUP_WAIT": ("wait", _number(0, 3600)),
    "NEARDUP_BRAKE": ("brake", _choice("warn", "tag", "close")),
    "NEARDUP_ON_STORE_ERROR": ("on_store_error", _choice("close", "pass", "wait")),
    "NEARDUP_STRICT": ("strict", _boolean),
    "NEARDUP_LANG": ("lang", _choice("", *LANGUAGES)),
}

#: Every setting that is read.
SETTINGS = ("DROP_DUPLICATES", *_READERS)
