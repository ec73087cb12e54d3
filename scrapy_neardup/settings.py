"""Every NEARDUP_* setting, read and checked once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import PurePath
from typing import Any

from scrapy_neardup.ages import parse_duration
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.fingerprint_tasks import TextTerms
from scrapy_neardup.judge.page_tasks import Readers, ReadingTerms
from scrapy_neardup.judge.preference import FIRST, POLICIES, KeepPolicy
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.methods.cascade.parameters import ARTICLE, CATALOGUE, METHOD, PROFILES
from scrapy_neardup.model import Kind, Likeness, Verdict
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.apart import MAX_SECONDS, Apart, Terms
from scrapy_neardup.page.cores import workers_by_machine
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.report.words import LANGUAGES
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import parse_url, placeholders_checked
from scrapy_neardup.state.options import Options, read_options
from scrapy_neardup.state.recipe import Secret

# ----------------------------------------------------------------------------------------------------------------------
# Values of settings by their kind: from Python, or as text from the command line.
#
# Each raises SettingsError that says what the setting must be.


def boolean(name: str, value: Any) -> bool:
    """True or False, or a word for it."""
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise SettingsError(f"{name} is {value!r}. Set it to True or False.")


def text(name: str, value: Any) -> str:
    """A string, as it is."""
    if isinstance(value, str):
        return value
    raise SettingsError(f"{name} is {value!r}. Set it to a string.")


def import_path(name: str, value: Any) -> str:
    """An import path; an object from a settings module is named by where it lives."""
    if isinstance(value, str):
        return value
    if callable(value) and hasattr(value, "__qualname__") and "." not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    raise SettingsError(f"{name} is {value!r}. Set it to an import path, such as 'myproject.text.own'.")


def choice(*choices: str) -> Callable[[str, Any], str]:
    """What reads one of these words."""

    def read(name: str, value: Any) -> str:
        if value in choices:
            return str(value)
        raise SettingsError(f"{name} is {value!r}. Set it to one of: {', '.join(choices)}.")

    return read


def number(low: float, high: float) -> Callable[[str, Any], float]:
    """What reads a number within these bounds."""

    def read(name: str, value: Any) -> float:
        try:
            found = float(value)
        except (TypeError, ValueError, OverflowError):
            found = float("nan")
        if not low <= found <= high:
            raise SettingsError(f"{name} is {value!r}. Set it to a number from {_plain(low)} to {_plain(high)}.")
        return found

    return read


def _plain(number: float) -> str:
    """A number as people write it, however large."""
    return str(int(number)) if number == int(number) else f"{number:g}"


def whole(low: int, high: int) -> Callable[[str, Any], int]:
    """What reads a whole number within these bounds."""

    def read(name: str, value: Any) -> int:
        found = number(low, high)(name, value)
        if found != int(found):
            raise SettingsError(f"{name} is {value!r}. Set it to a whole number.")
        return int(found)

    return read


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A dict, or one as JSON; its keys are strings."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise SettingsError(f"{name} is {value!r}. Set it to a dict (on the command line as JSON).") from None
    if not isinstance(value, Mapping):
        raise SettingsError(f"{name} is {value!r}. Set it to a dict.")
    if not all(isinstance(key, str) for key in value):
        raise SettingsError(f"{name} is {value!r}. Its keys must be strings.")
    return dict(value)


# ----------------------------------------------------------------------------------------------------------------------
# A function of the user's that finds the text of a page.


def load_extractor(path: str) -> Callable[[str, str], str | None]:
    """The callable at an import path: takes HTML and URL, gives the text or None."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingsError(f"NEARDUP_EXTRACTOR is {path!r}, which cannot be imported: {error}.") from error
    if not callable(found):
        raise SettingsError(f"NEARDUP_EXTRACTOR is {path!r}, which is no function. Name a function(html, url) -> text.")
    return found  # type: ignore[no-any-return]  # what it gives is checked where it is called


# ----------------------------------------------------------------------------------------------------------------------
# The table of settings: of each its field, and what reads its value or says what it may be.


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
DEFAULT_POLICY = {
    Likeness.IDENTICAL: DROP,
    Likeness.NEAR: DROP,
    Likeness.RETITLED: DROP,
    Likeness.EXCERPT: TAG,
    Likeness.SAME_TITLE: TAG,
}


def _secret(name: str, value: Any) -> Secret | None:
    said = text(name, value)
    return Secret.shared(said) if said else None


def _dry_run(name: str, value: Any) -> str:
    if value == TAG:
        return TAG
    try:
        return PASS if boolean(name, value) else ""
    except SettingsError:
        raise SettingsError(
            f"{name} is {value!r}. Set it to True, False, or 'tag', which writes the verdict into each item."
        ) from None


def _keep(name: str, value: Any) -> Keep:
    return Keep(choice(*(keep.value for keep in Keep))(name, getattr(value, "value", value)))


def many_workers(name: str, value: Any) -> int | str:
    """A number of processes, or AUTO. Raises SettingsError for anything else."""
    try:
        return AUTO if value == AUTO else whole(0, 64)(name, value)
    except SettingsError:
        raise SettingsError(
            f"{name} is {value!r}. Set it to 'auto', or a number of worker processes from 0 (none) to 64."
        ) from None


def many_pages(name: str, value: Any) -> int | None:
    """How many pages at most; None for any number. Raises SettingsError for what is no number of pages."""
    return None if value is None or value == "" else whole(1, 2**53)(name, value)


def _store_options(name: str, value: Any) -> Options:
    return read_options(name, mapping(name, value))


def _feeds(name: str, value: Any) -> dict[str, dict[str, Any]]:
    """A URI, whose format is its ending, or a dict of URIs with their options, as FEEDS is one."""
    if isinstance(value, (str, PurePath)) and not str(value).lstrip().startswith("{"):
        uri = str(value).strip()
        format = PurePath(uri.rstrip("/")).suffix[1:].lower()
        if uri and not format:
            raise SettingsError(f"{name} is {uri!r}, which names no format. Write {{{uri!r}: {{'format': 'jsonl'}}}}.")
        return {uri: {"format": format}} if uri else {}
    given = value if isinstance(value, Mapping) and not isinstance(value, str) else mapping(name, value)
    if not all(isinstance(options, Mapping) and options.get("format") for options in given.values()):
        raise SettingsError(f"{name} is {value!r}. Give each URI a dict of options with at least 'format'.")
    return {str(uri): dict(options) for uri, options in given.items()}


def _fields(name: str, value: Any) -> dict[str, str]:
    given = mapping(name, value)
    unknown = sorted(set(given) - set(DEFAULT_FIELDS))
    if unknown or not all(isinstance(field, str) for field in given.values()):
        wrong = ", ".join(unknown) or repr(value)
        turned = {field: part for part, field in given.items() if isinstance(field, str) and field in DEFAULT_FIELDS}
        meant = f" Did you mean {turned!r}?" if turned and len(turned) == len(given) else ""
        raise SettingsError(
            f"{name} has {wrong}. It must map {', '.join(DEFAULT_FIELDS)} to names of item fields.{meant}"
        )
    return {**DEFAULT_FIELDS, **given}


def _policy(name: str, value: Any) -> dict[Likeness, str]:
    given = mapping(name, value)
    kinds = {likeness.value: likeness for likeness in Likeness}
    for kind, action in given.items():
        if kind not in kinds or action not in ACTIONS:
            raise SettingsError(
                f"{name} has {kind!r}: {action!r}. It must map kinds ({', '.join(kinds)}) to one of "
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
        f"{name} is {value!r}. Set it to {', '.join(POLICIES)}, or a list of hosts, the best first, such "
        "as ['a.example', 'b.example'] (on the command line as JSON)."
    )


def _is_host(text: str) -> bool:
    """Whether a text may be the name of a host: no URL, no path, no port."""
    return bool(text.strip()) and not any(mark in text.strip() for mark in "/:@?#* \t\n")


#: Of each NEARDUP_* setting the field of ``Config`` that holds it, and what reads it, by its name and value.
READERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "NEARDUP_ENABLED": ("enabled", boolean),
    "NEARDUP_POLICY": ("policy", _policy),
    "NEARDUP_STORE": ("store", text),
    "NEARDUP_STORE_OPTIONS": ("store_options", _store_options),
    "NEARDUP_SCOPE": ("scope", choice("project", "spider")),
    "NEARDUP_DRY_RUN": ("dry_run", _dry_run),
    "NEARDUP_SECRET": ("secret", _secret),
    "NEARDUP_PROFILE": ("profile", choice(*PROFILES)),
    "NEARDUP_METHOD": ("method", import_path),
    "NEARDUP_PARAMETERS": ("parameters", mapping),
    "NEARDUP_EXTRACTOR": ("extractor", import_path),
    "NEARDUP_FIELDS": ("fields", _fields),
    "NEARDUP_LISTINGS": ("listings", boolean),
    "NEARDUP_TAG_FIELD": ("tag_field", text),
    "NEARDUP_MIN_LETTERS": ("min_letters", whole(1, 1_000_000)),
    "NEARDUP_MAX_HTML": ("max_html", whole(1, 2**31)),
    "NEARDUP_MAX_TEXT": ("max_text", whole(1, 2**31)),
    "NEARDUP_MAX_SECONDS": ("max_seconds", number(0.1, 3600)),
    "NEARDUP_WORKERS": ("workers", many_workers),
    "NEARDUP_KEEP": ("keep", _keep),
    "NEARDUP_KEEP_POLICY": ("keep_policy", read_keep_policy),
    "NEARDUP_TTL": ("ttl", parse_duration),
    "NEARDUP_MAX_PAGES": ("max_pages", many_pages),
    "NEARDUP_DROPPED_FEED": ("dropped_feed", _feeds),
    "NEARDUP_COMMIT": ("commit", choice("feed", "item")),
    "NEARDUP_OVERWRITTEN": ("overwritten", choice("warn", "forget", "known")),
    "NEARDUP_WAIT": ("wait", number(0, 3600)),
    "NEARDUP_ON_STORE_ERROR": ("on_store_error", choice("close", "pass", "wait")),
    "NEARDUP_STRICT": ("strict", boolean),
    "NEARDUP_LANG": ("lang", choice("", *LANGUAGES)),
}

#: Every setting that is read.
SETTINGS = ("DROP_DUPLICATES", *READERS)


# ----------------------------------------------------------------------------------------------------------------------
# Which setting was meant by a name that is none.


#: What is no setting of its own: each method has its limits, which are parameters.
_OF_METHODS = ("THRESHOLD", "SIMILARITY", "SIMILARITY_THRESHOLD", "DISTANCE", "LIMIT")
#: How our names are written by those who do not know them; and names that speak of dropping duplicates.
_PREFIX = re.compile(r"^(?:SCRAPY_?)?NEAR_?DUP(?:E|S|ES|LICATES?|LICATE_PAGES)?_")
_DROPPING = re.compile(
    r"^(?:DROP|FILTER|SKIP|REMOVE)_?(?:NEAR_?)?DUP(?:E|S|ES|LICAT(?:E|ES|ED|ION|IONS))?(?:_PAGES|_ITEMS)?$"
)


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
    named = {setting.removeprefix("NEARDUP_"): setting for setting in READERS}
    named |= dict.fromkeys(_OF_METHODS, "NEARDUP_PARAMETERS")
    return named[close[0]] if (close := get_close_matches(plain, named, 1)) else ""


def _is_close(name: str, other: str) -> bool:
    return abs(len(name) - len(other)) <= 4 and bool(get_close_matches(name, [other], 1, 0.8))


def look_alikes(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings that are none of ours and may be meant to be, each with ours; they may also be somebody else's."""
    others = [name for name in settings if name not in SETTINGS and not name.startswith("NEARDUP_")]
    return {name: meant for name in others if (meant := meant_setting(name))}


# ----------------------------------------------------------------------------------------------------------------------
# What a crawl is told, as one frozen object.


logger = line_logger(__name__)

#: A page that may take long has NEARDUP_MAX_SECONDS. Any other takes one at most on an idle machine, and has so many
#: times as long in a worker: there it keeps nobody waiting, and is not to be given up for a machine that is not idle.
_TIMES = 4


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one crawl. The name in capitals behind each field is that of its setting."""

    #: Drop copies. With ``False`` nothing is dropped, and every item gets its verdict in the field
    #: ``NEARDUP_TAG_FIELD``.
    drop: bool = True  # DROP_DUPLICATES
    #: What happens to each kind of copy: ``drop``; ``tag`` (the item passes with its verdict); ``pass`` (the item
    #: passes as it is). Kinds that you leave out keep their default. Example: ``{"retitled": "tag", "excerpt":
    #: "drop"}``.
    policy: Mapping[Likeness, str] = field(default_factory=lambda: dict(DEFAULT_POLICY))  # NEARDUP_POLICY
    #: The URL of the state. By default a LevelDB folder (SQLite where plyvel is not installed) in the project's
    #: ``.scrapy/neardup``, or in that of the working directory outside of projects. Forms: ``leveldb:///path``,
    #: ``sqlite:///path``, ``memory:``, and on a server ``redis://host:6379/0?state=name``, ``rediss://…``,
    #: ``unix:///path/of/the.sock?state=name``, ``redis+sentinel://host,host/service?state=name``,
    #: ``redis+cluster://host,host?state=name``. ``%(name)s`` in a path is the spider's name; other attributes of the
    #: spider work the same way.
    store: str = ""  # NEARDUP_STORE; empty: the default under the project's data directory
    #: How the state uses memory and disk, such as ``{"cache": "64MB"}``.
    store_options: Options = field(default_factory=Options)  # NEARDUP_STORE_OPTIONS
    #: Who shares the default state: ``"spider"`` gives each spider its own state, ``"project"`` gives all spiders of
    #: the project one state. The default is ``"project"`` where the project has such a state already, else
    #: ``"spider"``.
    scope: str = ""  # NEARDUP_SCOPE; empty: "spider", or "project" where that has a state already
    #: Judge pages, drop nothing, and leave the state as it is. With ``"tag"`` each item also gets its verdict.
    dry_run: str = ""  # NEARDUP_DRY_RUN; empty: none, else TAG or PASS: what becomes of items
    #: A secret of at least 16 characters for the hashes of the state. States with the same secret can be merged. By
    #: default each state draws its own.
    secret: Secret | None = None  # NEARDUP_SECRET; None: each state draws its own
    #: Parameters for a field of pages. ``"catalogue"`` is for product pages: two pages are copies only if nearly
    #: everything is the same and no word of a title is missing. Use it with ``DROP_DUPLICATES = False``.
    profile: str = ARTICLE  # NEARDUP_PROFILE
    #: The method that decides: a name from the list of methods, or the import path of your own.
    method: str = METHOD  # NEARDUP_METHOD
    #: Parameters of the method. Those that you leave out keep their default.
    parameters: Mapping[str, Any] = field(default_factory=dict)  # NEARDUP_PARAMETERS
    #: The import path of your own function from ``(html, url)`` to the text, or to ``None``. Its text is judged as it
    #: is.
    extractor: str = ""  # NEARDUP_EXTRACTOR; import path, empty: trafilatura
    #: Which field of an item holds the ``url``, ``title``, ``keywords``, ``description``, ``text``, ``html``. ``part``
    #: names the field that distinguishes several articles of one page; by default none does.
    fields: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_FIELDS))  # NEARDUP_FIELDS
    #: Several items of one response without text and URL are rows of a listing, and each row is judged by itself. With
    #: ``False`` all items of a response are one article.
    listings: bool = True  # NEARDUP_LISTINGS
    #: The field of an item that holds the verdict. A ``scrapy.Item`` must declare it.
    tag_field: str = "neardup"  # NEARDUP_TAG_FIELD
    #: A page with fewer letters and digits is not judged (``too_short``).
    min_letters: int = 40  # NEARDUP_MIN_LETTERS
    #: A page with more characters of HTML is not judged (``too_large``).
    max_html: int = 5_000_000  # NEARDUP_MAX_HTML, in characters
    #: A page with more characters of text is not judged (``too_large``).
    max_text: int = MAX_TEXT  # NEARDUP_MAX_TEXT, in characters
    #: Seconds for reading a page that may take long. A page that takes longer is not judged (``too_slow``).
    max_seconds: float = MAX_SECONDS  # NEARDUP_MAX_SECONDS
    #: How many processes read pages beside the crawl. ``"auto"`` chooses by cores and memory once a crawl has spent 3
    #: seconds on reading; with a ``NEARDUP_EXTRACTOR`` it uses none.
    workers: int | str = AUTO  # NEARDUP_WORKERS; a number, or AUTO
    #: What the state keeps for later questions: ``"evidence"`` keeps titles, and for copies the kind and shared
    #: sentences; ``"texts"`` also keeps all texts; ``"nothing"`` keeps neither evidence nor the list of dropped pages.
    keep: Keep = Keep.EVIDENCE  # NEARDUP_KEEP
    #: Which copy stays: ``"first"``, ``"longest"``, ``"canonical"``, or a list of hosts with the best one first.
    keep_policy: KeepPolicy = FIRST  # NEARDUP_KEEP_POLICY; hosts as a tuple
    #: How long the state knows a page after the page or a copy was last seen: an age such as ``"90d"`` or ``"12h"``. By
    #: default for ever.
    ttl: float | None = None  # NEARDUP_TTL, in seconds
    #: How many pages the state knows at most, copies included. The page that was last seen longest ago goes first. By
    #: default there is no limit.
    max_pages: int | None = None  # NEARDUP_MAX_PAGES
    #: A feed for the items that are dropped as copies, with their verdicts: a URI whose ending is the format, such as
    #: ``dropped-%(time)s.jsonl``, or a dict in the form of ``FEEDS``. By default there is none.
    dropped_feed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # NEARDUP_DROPPED_FEED; as FEEDS
    #: When pages become permanent: ``"feed"`` once the feed with their item is stored, ``"item"`` at once.
    commit: str = "feed"  # NEARDUP_COMMIT
    #: What happens to known pages whose feed this crawl overwrites: ``"warn"`` logs a warning; ``"forget"`` forgets the
    #: pages so that they come again; ``"known"`` keeps them without a warning.
    overwritten: str = "warn"  # NEARDUP_OVERWRITTEN
    #: Seconds that a page waits for each near-duplicate in flight. Then it is judged without that page; if it would be
    #: unique, it passes as ``unjudged`` (``in_flight``).
    wait: float = 10.0  # NEARDUP_WAIT, in seconds
    #: What happens if the state fails: ``"close"`` ends the crawl (``neardup_store_failed``); ``"pass"`` lets all items
    #: pass unjudged; ``"wait"`` waits for the server of the state.
    on_store_error: str = "close"  # NEARDUP_ON_STORE_ERROR
    #: Refuse a state that other versions of the extractor or segmenter wrote, even if they read our samples alike.
    strict: bool = False  # NEARDUP_STRICT
    #: The language of the closing line and of the report: ``"en"`` or ``"zh"``. Empty: lines in English, and a report
    #: in the language of its pages.
    lang: str = ""  # NEARDUP_LANG; empty: closing lines in English, a report as its pages

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Config:
        """Read the settings; raises SettingsError that names the wrong one and what it may be."""
        values = _read(settings)
        values["parameters"] = _profiled(values)
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

    @property
    def worker_seconds(self) -> float:
        """What a page may take in a worker."""
        return _TIMES * self.max_seconds

    def make_readers(self, hashes: Keyed | None) -> Readers | None:
        """What reads all other pages, to be closed by whoever asked; None where they are to be read here.

        ``hashes``: of the state, for which it makes their fingerprints, too, where that can be.
        """
        terms = replace(self.terms, seconds=self.worker_seconds, only_quick=True)
        many = self.many_workers
        if not (many and terms.can_be_sent):
            return None
        texts = self.text_terms(hashes) if hashes is not None else None
        return Pool(ReadingTerms(terms, texts) if texts is not None and texts.can_be_sent else terms, many)

    def text_terms(self, hashes: Keyed) -> TextTerms:
        """On which fingerprints are made in other processes, for a state with these hashes."""
        return TextTerms(self.method, self.parameters, hashes, self.worker_seconds)

    def make_apart(self) -> Apart | None:
        """What reads pages that may take long, to be closed by whoever asked; None where the extractor bars it."""
        return Apart(self.terms) if self.terms.can_be_sent else None


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are given, by the field that holds them; warns of names that may be meant for us."""
    values: dict[str, Any] = {}
    for name in settings:
        if name in READERS:
            field_name, read = READERS[name]
            values[field_name] = read(name, settings[name])
        elif name.startswith("NEARDUP_"):
            meant = meant_setting(name)
            asked = f" Did you mean {meant}?" if meant else ""
            raise SettingsError(f"There is no setting {name}.{asked} The settings are: {', '.join(SETTINGS)}.")
    values.pop("enabled", None)
    for name, meant in look_alikes(settings).items():
        logger.warning(
            "scrapy-neardup does not read the setting %s. If you mean its setting, write %s. "
            "If another package reads it, ignore this message.",
            name,
            meant,
        )
    drop = settings.get("DROP_DUPLICATES")
    return values if drop is None else {**values, "drop": boolean("DROP_DUPLICATES", drop)}


def _profiled(values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the method: those of the profile, and those that are given."""
    profiled = PROFILES[values.get("profile", ARTICLE)]
    if profiled and values.get("method", METHOD) != METHOD:
        raise SettingsError(
            f"NEARDUP_PROFILE = {values['profile']!r} works only with the method {METHOD}, but NEARDUP_METHOD is "
            f"{values['method']!r}. Remove one of the two."
        )
    return {**profiled, **values.get("parameters", {})}


def is_enabled(settings: Mapping[str, Any]) -> bool:
    """Whether pages are judged at all. ``NEARDUP_ENABLED = False`` switches everything off."""
    value = settings.get("NEARDUP_ENABLED")
    return True if value is None else boolean("NEARDUP_ENABLED", value)


def item_fields(settings: Mapping[str, Any]) -> Mapping[str, str]:
    """NEARDUP_FIELDS alone; raises SettingsError."""
    value = settings.get("NEARDUP_FIELDS")
    fields: Mapping[str, str] = (
        DEFAULT_FIELDS if value is None else READERS["NEARDUP_FIELDS"][1]("NEARDUP_FIELDS", value)
    )
    return fields
