"""Every setting, read and checked once, into one frozen object."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Likeness, Verdict
from scrapy_neardup.page.apart import MAX_SECONDS, Apart, Terms
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.report.words import LANGUAGES
from scrapy_neardup.stores import Keep, Secret, parse_url

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
DEFAULT_POLICY = {
    Likeness.IDENTICAL: DROP,
    Likeness.NEAR: DROP,
    Likeness.RETITLED: DROP,
    Likeness.EXCERPT: TAG,
    Likeness.SAME_TITLE: TAG,
}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one crawl. The name in capitals behind each field is that of its setting."""

    drop: bool = True  # DROP_DUPLICATES
    policy: Mapping[Likeness, str] = field(default_factory=lambda: dict(DEFAULT_POLICY))  # NEARDUP_POLICY
    store: str = ""  # NEARDUP_STORE; empty: the default under the project's data directory
    secret: Secret | None = None  # NEARDUP_SECRET; None: each state draws its own
    method: str = "cascade"  # NEARDUP_METHOD
    parameters: Mapping[str, Any] = field(default_factory=dict)  # NEARDUP_PARAMETERS
    extractor: str = ""  # NEARDUP_EXTRACTOR; import path, empty: trafilatura
    fields: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_FIELDS))  # NEARDUP_FIELDS
    listings: bool = True  # NEARDUP_LISTINGS
    tag_field: str = "neardup"  # NEARDUP_TAG_FIELD
    min_letters: int = 40  # NEARDUP_MIN_LETTERS
    max_html: int = 5_000_000  # NEARDUP_MAX_HTML, in characters
    max_text: int = MAX_TEXT  # NEARDUP_MAX_TEXT, in characters
    max_seconds: float = MAX_SECONDS  # NEARDUP_MAX_SECONDS
    keep: Keep = Keep.EVIDENCE  # NEARDUP_KEEP
    commit: str = "feed"  # NEARDUP_COMMIT
    overwritten: str = "warn"  # NEARDUP_OVERWRITTEN
    wait: float = 10.0  # NEARDUP_WAIT, in seconds
    brake: str = "tag"  # NEARDUP_BRAKE
    on_store_error: str = "close"  # NEARDUP_ON_STORE_ERROR
    lang: str = ""  # NEARDUP_LANG; empty: closing lines in English, a report as its pages

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Config:
        """Read the settings; raises SettingsError that names the wrong one and what it may be."""
        given = {name: settings[name] for name in settings if name.startswith("NEARDUP_")}
        for name in given:
            if name not in _READERS:
                close = get_close_matches(name, _READERS, 1)
                meant = f" Did you mean {close[0]}?" if close else ""
                raise SettingsError(f"There is no setting {name}.{meant} The settings are: {', '.join(SETTINGS)}.")
        values = {
            _READERS[name][0]: _READERS[name][1](name, value) for name, value in given.items() if name in _READERS
        }
        values.pop("enabled", None)
        drop = settings.get("DROP_DUPLICATES")
        if drop is not None:
            values["drop"] = _boolean("DROP_DUPLICATES", drop)
        config = cls(**values)
        config.make_method()
        if config.store:
            parse_url(config.store)
        if config.extractor:
            load_extractor(config.extractor)
        return config

    @property
    def also_copies(self) -> frozenset[Likeness]:
        """What is dropped though no method calls it a duplicate."""
        return frozenset(
            likeness for likeness in (Likeness.EXCERPT, Likeness.SAME_TITLE) if self.policy[likeness] == DROP
        )

    def action(self, verdict: Verdict) -> str:
        """What becomes of the item of a page with this verdict: one of ``ACTIONS``."""
        if not self.drop:
            return TAG
        if verdict.likeness is not None:
            return self.policy[verdict.likeness]
        return DROP if verdict.is_copy else PASS

    def passes(self, verdict: Verdict) -> bool:
        """Whether the item of a page with this verdict is passed on, tagged or not."""
        return self.action(verdict) != DROP

    def make_method(self) -> Method:
        """The method with its parameters; raises SettingsError that names the settings."""
        try:
            return make_method(self.method, self.parameters)
        except SettingsError as error:
            raise SettingsError(f"NEARDUP_METHOD, NEARDUP_PARAMETERS: {error}") from None

    def make_apart(self) -> Apart | None:
        """What reads pages that may take long, to be closed by whoever asked; None where the extractor bars it."""
        terms = Terms(self.max_html, self.max_text, self.max_seconds, self.extractor)
        return Apart(terms) if terms.can_be_sent else None


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
            raise SettingsError(f"{name} is {value!r}; it must be a number from {low:g} to {high:g}.")
        return number

    return read


def _whole(low: int, high: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        number = _number(low, high)(name, value)
        if number != int(number):
            raise SettingsError(f"{name} is {value!r}; it must be a whole number.")
        return int(number)

    return read


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


def _fields(name: str, value: Any) -> dict[str, str]:
    given = _mapping(name, value)
    unknown = sorted(set(given) - set(DEFAULT_FIELDS))
    if unknown or not all(isinstance(field, str) for field in given.values()):
        wrong = ", ".join(unknown) or repr(value)
        raise SettingsError(f"{name}: {wrong} cannot be; it maps {', '.join(DEFAULT_FIELDS)} to names of item fields.")
    return {**DEFAULT_FIELDS, **given}


def _policy(name: str, value: Any) -> dict[Likeness, str]:
    given = _mapping(name, value)
    kinds = {likeness.value: likeness for likeness in Likeness}
    for kind, action in given.items():
        if kind not in kinds or action not in ACTIONS:
            raise SettingsError(
                f"{name}: {kind!r}: {action!r} cannot be; it maps some of {', '.join(kinds)} to one of "
                f"{', '.join(ACTIONS)}."
            )
    return {**DEFAULT_POLICY, **{kinds[kind]: action for kind, action in given.items()}}


_READERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "NEARDUP_ENABLED": ("enabled", _boolean),
    "NEARDUP_POLICY": ("policy", _policy),
    "NEARDUP_STORE": ("store", _text),
    "NEARDUP_SECRET": ("secret", _secret),
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
    "NEARDUP_KEEP": ("keep", _keep),
    "NEARDUP_COMMIT": ("commit", _choice("feed", "item")),
    "NEARDUP_OVERWRITTEN": ("overwritten", _choice("warn", "forget", "known")),
    "NEARDUP_WAIT": ("wait", _number(0, 3600)),
    "NEARDUP_BRAKE": ("brake", _choice("warn", "tag", "close")),
    "NEARDUP_ON_STORE_ERROR": ("on_store_error", _choice("close", "pass")),
    "NEARDUP_LANG": ("lang", _choice("", *LANGUAGES)),
}

#: Every setting that is read.
SETTINGS = ("DROP_DUPLICATES", *_READERS)
