"""What a crawl is told, as one frozen object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scrapy_neardup.config.extractor import load_extractor
from scrapy_neardup.config.names import look_alikes, meant_setting
from scrapy_neardup.config.readers import AUTO, DEFAULT_FIELDS, DEFAULT_POLICY, DROP, PASS, READERS, SETTINGS, TAG
from scrapy_neardup.config.values import boolean
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judging.preference import FIRST, KeepPolicy
from scrapy_neardup.judging.preparer import TextTerms
from scrapy_neardup.judging.reader import Readers, ReadingTerms
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.methods.profiles import ARTICLE, CATALOGUE, METHOD, PROFILES
from scrapy_neardup.model import Kind, Likeness, Verdict
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.apart import MAX_SECONDS, Apart, Terms
from scrapy_neardup.page.cores import workers_by_machine
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.stores import Bounds, Keep, Secret, parse_url, placeholders_checked
from scrapy_neardup.stores.options import Options

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
