"""The table of settings: of each its field, and what reads its value or says what it may be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from scrapy_neardup.ages import seconds
from scrapy_neardup.config.values import boolean, choice, import_path, mapping, number, text, whole
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judging.preference import POLICIES, KeepPolicy
from scrapy_neardup.methods.profiles import PROFILES
from scrapy_neardup.model import Likeness
from scrapy_neardup.report.words import LANGUAGES
from scrapy_neardup.stores import Keep, Secret
from scrapy_neardup.stores.options import Options, read_options

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
    "NEARDUP_TTL": ("ttl", seconds),
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
