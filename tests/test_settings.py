"""Every setting: its default, its reading, and the sentence that refuses what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.kv.options import Options
from scrapy_neardup.methods import METHODS
from scrapy_neardup.methods.literature import NSHash
from scrapy_neardup.model import Kind as Verdicts
from scrapy_neardup.model import Likeness, Verdict
from scrapy_neardup.settings import (
    ACTIONS,
    DEFAULT_FIELDS,
    DEFAULT_POLICY,
    DROP,
    PASS,
    SETTINGS,
    TAG,
    Config,
    is_enabled,
    item_fields,
)
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.recipe import Secret

Kind = Callable[[dict[str, Any]], Mapping[str, Any]]

both_kinds = pytest.mark.parametrize("kind", [dict, Settings], ids=["dict", "Settings"])


def own_extractor(html: str, url: str) -> str:
    return html


OWN = f"{__name__}.own_extractor"
OWN_METHOD = f"{NSHash.__module__}.NSHash"
NOT_CALLABLE = "a string"

READ = [
    ("DROP_DUPLICATES", True, "drop", True),
    ("DROP_DUPLICATES", False, "drop", False),
    ("DROP_DUPLICATES", "False", "drop", False),
    ("DROP_DUPLICATES", "no", "drop", False),
    ("DROP_DUPLICATES", " TRUE ", "drop", True),
    ("DROP_DUPLICATES", None, "drop", True),
    ("NEARDUP_POLICY", {}, "policy", DEFAULT_POLICY),
    ("NEARDUP_POLICY", {"retitled": "tag"}, "policy", {**DEFAULT_POLICY, Likeness.RETITLED: "tag"}),
    ("NEARDUP_POLICY", '{"retitled": "tag"}', "policy", {**DEFAULT_POLICY, Likeness.RETITLED: "tag"}),
    (
        "NEARDUP_POLICY", '{"excerpt": "drop", "near": "pass"}', "policy",
        {**DEFAULT_POLICY, Likeness.EXCERPT: "drop", Likeness.NEAR: "pass"},
    ),
    ("NEARDUP_POLICY", dict.fromkeys(DEFAULT_POLICY, "tag"), "policy", dict.fromkeys(DEFAULT_POLICY, "tag")),
    ("NEARDUP_STORE", "memory:", "store", "memory:"),
    ("NEARDUP_STORE", "sqlite:///srv/state.sqlite", "store", "sqlite:///srv/state.sqlite"),
    ("NEARDUP_STORE", "", "store", ""),
    ("NEARDUP_STORE_OPTIONS", {"cache": "64MB", "bloom": 0}, "store_options", Options(cache=64 * 2**20, bloom=0)),
    (
        "NEARDUP_STORE_OPTIONS", {"cache": 0, "write_buffer": "64kB", "open_files": 50_000}, "store_options",
        Options(0, 65_536, 10, 50_000),
    ),
    ("NEARDUP_STORE", "leveldb:///srv/%(name)s/%20%(run)03d", "store", "leveldb:///srv/%(name)s/%20%(run)03d"),
    ("NEARDUP_SCOPE", "project", "scope", "project"),
    ("NEARDUP_DRY_RUN", True, "dry_run", "pass"),
    ("NEARDUP_DRY_RUN", "0", "dry_run", ""),
    ("NEARDUP_DRY_RUN", "tag", "dry_run", "tag"),
    ("NEARDUP_SECRET", "what several states share", "secret", Secret.shared("what several states share")),
    ("NEARDUP_SECRET", "", "secret", None),
    ("NEARDUP_METHOD", OWN_METHOD, "method", OWN_METHOD),
    ("NEARDUP_METHOD", NSHash, "method", OWN_METHOD),
    ("NEARDUP_METHOD", "cascade", "method", "cascade"),
    ("NEARDUP_PARAMETERS", {"bins": 256}, "parameters", {"bins": 256}),
    ("NEARDUP_PARAMETERS", '{"bins": 256, "certain": 0.8}', "parameters", {"bins": 256, "certain": 0.8}),
    ("NEARDUP_EXTRACTOR", OWN, "extractor", OWN),
    ("NEARDUP_EXTRACTOR", own_extractor, "extractor", OWN),
    ("NEARDUP_EXTRACTOR", "", "extractor", ""),
    ("NEARDUP_FIELDS", {"text": "body"}, "fields", {**DEFAULT_FIELDS, "text": "body"}),
    ("NEARDUP_FIELDS", '{"url": "link", "title": "h1"}', "fields", {**DEFAULT_FIELDS, "url": "link", "title": "h1"}),
    ("NEARDUP_FIELDS", {}, "fields", DEFAULT_FIELDS),
    ("NEARDUP_FIELDS", {"part": "headline"}, "fields", {**DEFAULT_FIELDS, "part": "headline"}),
    ("NEARDUP_LISTINGS", "False", "listings", False),
    ("NEARDUP_TAG_FIELD", "copy", "tag_field", "copy"),
    ("NEARDUP_MIN_LETTERS", 100, "min_letters", 100),
    ("NEARDUP_MIN_LETTERS", "100", "min_letters", 100),
    ("NEARDUP_MAX_HTML", 10_000, "max_html", 10_000),
    ("NEARDUP_MAX_TEXT", "20000", "max_text", 20_000),
    ("NEARDUP_MAX_SECONDS", "0.5", "max_seconds", 0.5),
    ("NEARDUP_WORKERS", 0, "workers", 0),
    ("NEARDUP_WORKERS", "2", "workers", 2),
    ("NEARDUP_WORKERS", "auto", "workers", "auto"),
    ("NEARDUP_KEEP", "texts", "keep", Keep.TEXTS),
    ("NEARDUP_KEEP_POLICY", "longest", "keep_policy", "longest"),
    ("NEARDUP_KEEP_POLICY", ["b.example", "a.example"], "keep_policy", ("b.example", "a.example")),
    ("NEARDUP_KEEP_POLICY", '["b.example", "人民.example"]', "keep_policy", ("b.example", "人民.example")),
    ("NEARDUP_TTL", "90d", "ttl", 90 * 86_400.0),
    ("NEARDUP_TTL", "1.5 h", "ttl", 5400.0),
    ("NEARDUP_TTL", None, "ttl", None),
    ("NEARDUP_TTL", "", "ttl", None),
    ("NEARDUP_MAX_PAGES", 200_000, "max_pages", 200_000),
    ("NEARDUP_MAX_PAGES", "1", "max_pages", 1),
    ("NEARDUP_MAX_PAGES", None, "max_pages", None),
    ("NEARDUP_COMMIT", "item", "commit", "item"),
    ("NEARDUP_DROPPED_FEED", "", "dropped_feed", {}),
    ("NEARDUP_DROPPED_FEED", "d.jsonl", "dropped_feed", {"d.jsonl": {"format": "jsonl"}}),
    (
        "NEARDUP_DROPPED_FEED", " s3://bucket/%(name)s/%(time)s.CSV ", "dropped_feed",
        {"s3://bucket/%(name)s/%(time)s.CSV": {"format": "csv"}},
    ),
    ("NEARDUP_DROPPED_FEED", Path("feeds/d.json"), "dropped_feed", {"feeds/d.json": {"format": "json"}}),
    ("NEARDUP_DROPPED_FEED", {Path("a"): {"format": "json"}}, "dropped_feed", {"a": {"format": "json"}}),
    (
        "NEARDUP_DROPPED_FEED", {"a.x": {"format": "xml", "overwrite": True}}, "dropped_feed",
        {"a.x": {"format": "xml", "overwrite": True}},
    ),
    ("NEARDUP_DROPPED_FEED", '{"a.x": {"format": "xml"}}', "dropped_feed", {"a.x": {"format": "xml"}}),
    ("NEARDUP_OVERWRITTEN", "forget", "overwritten", "forget"),
    ("NEARDUP_OVERWRITTEN", "known", "overwritten", "known"),
    ("NEARDUP_WAIT", 0, "wait", 0.0),
    ("NEARDUP_WAIT", "2.5", "wait", 2.5),
    ("NEARDUP_PROFILE", "catalogue", "profile", "catalogue"),
    ("NEARDUP_PROFILE", "article", "profile", "article"),
    ("NEARDUP_ON_STORE_ERROR", "pass", "on_store_error", "pass"),
    ("NEARDUP_STRICT", "True", "strict", True),
    ("NEARDUP_LANG", "zh", "lang", "zh"),
]  # fmt: skip

REFUSED = [
    ("DROP_DUPLICATES", "perhaps", "True or False"),
    ("NEARDUP_ENABLED", "perhaps", "True or False"),
    ("NEARDUP_LISTINGS", "perhaps", "True or False"),
    ("NEARDUP_POLICY", "tag", "as JSON"),
    ("NEARDUP_POLICY", {1: "tag"}, "keys must be strings"),
    ("NEARDUP_POLICY", {"similar": "tag"}, "'similar': 'tag'"),
    ("NEARDUP_POLICY", {"retitled": "keep"}, "'retitled': 'keep'"),
    ("NEARDUP_POLICY", {"drop": ["near", "excerpt"]}, "to one of drop, tag, pass"),
    ("NEARDUP_STORE", None, "to a string"),
    ("NEARDUP_STORE_OPTIONS", "64MB", "a dict (on the command line as JSON)"),
    ("NEARDUP_STORE_OPTIONS", {"bloom_bits": 10}, "no option 'bloom_bits'. Did you mean 'bloom'? The options"),
    ("NEARDUP_STORE_OPTIONS", {"cache": "64 megabytes"}, "'cache': '64 megabytes'. Set it to a size"),
    ("NEARDUP_STORE", 5, "to a string"),
    ("NEARDUP_STORE", "mongodb://a.example/", "names no state"),
    ("NEARDUP_STORE", "leveldb:///srv/%(name)", "Write it as %(name)s"),
    ("NEARDUP_SCOPE", "crawl", "one of: project, spider"),
    ("NEARDUP_SCOPE", "", "one of: project, spider"),
    ("NEARDUP_DRY_RUN", "drop", "to True, False, or 'tag'"),
    ("NEARDUP_DRY_RUN", None, "to True, False, or 'tag'"),
    ("NEARDUP_STORE", "state.sqlite", "names no state"),
    ("NEARDUP_STORE", "sqlite://state.sqlite", "three slashes"),
    ("NEARDUP_SECRET", None, "to a string"),
    ("NEARDUP_SECRET", "fifteen letters", "at least 16 characters"),
    ("NEARDUP_METHOD", "casade", "one of: cascade"),
    ("NEARDUP_METHOD", "SimHash", "Did you mean simhash?"),
    ("NEARDUP_METHOD", None, "to an import path"),
    ("NEARDUP_METHOD", "no_such_module.Method", "cannot be imported"),
    ("NEARDUP_METHOD", "scrapy_neardup.methods.literature.Text", "is no method"),
    ("NEARDUP_PARAMETERS", None, "to a dict"),
    ("NEARDUP_PARAMETERS", "bins=256", "as JSON"),
    ("NEARDUP_PARAMETERS", {1: 256}, "keys must be strings"),
    ("NEARDUP_PARAMETERS", {"bins": 63}, "bins must be one of 64, 128"),
    ("NEARDUP_PARAMETERS", '{"certain": 1.5}', "certain must be a number from 0 to 1"),
    ("NEARDUP_EXTRACTOR", None, "to an import path"),
    ("NEARDUP_EXTRACTOR", "no_such_module.extract", "cannot be imported"),
    ("NEARDUP_EXTRACTOR", "json.no_such_function", "cannot be imported"),
    ("NEARDUP_EXTRACTOR", lambda html, url: html, "cannot be imported"),
    ("NEARDUP_EXTRACTOR", f"{__name__}.NOT_CALLABLE", "is no function"),
    ("NEARDUP_FIELDS", None, "to a dict"),
    ("NEARDUP_FIELDS", {"body": "text"}, "must map url, title"),
    ("NEARDUP_FIELDS", {"text": 5}, "must map url, title"),
    ("NEARDUP_TAG_FIELD", 5, "to a string"),
    ("NEARDUP_MIN_LETTERS", 0, "from 1 to"),
    ("NEARDUP_MIN_LETTERS", 4.5, "to a whole number"),
    ("NEARDUP_MIN_LETTERS", 10**400, "from 1 to 1000000."),
    ("NEARDUP_MIN_LETTERS", None, "from 1 to"),
    ("NEARDUP_MAX_HTML", 0, "from 1 to"),
    ("NEARDUP_MAX_TEXT", 0, "from 1 to"),
    ("NEARDUP_MAX_SECONDS", 0, "from 0.1 to"),
    ("NEARDUP_WORKERS", -1, "from 0"),
    ("NEARDUP_WORKERS", "all", "'auto'"),
    ("NEARDUP_KEEP", "all", "one of: nothing, evidence, texts"),
    ("NEARDUP_KEEP_POLICY", "shortest", "first, longest, canonical, or a list of hosts"),
    ("NEARDUP_KEEP_POLICY", "a.example", "on the command line as JSON"),
    ("NEARDUP_KEEP_POLICY", ["a.example", 7], "a list of hosts"),
    ("NEARDUP_KEEP_POLICY", ["https://a.example/"], "a list of hosts"),
    ("NEARDUP_KEEP_POLICY", '{"a.example": 1}', "a list of hosts"),
    ("NEARDUP_TTL", 0, "'90d'"),
    ("NEARDUP_TTL", "0d", "from 1 second"),
    ("NEARDUP_TTL", "101000w", "100 years"),
    ("NEARDUP_TTL", "90 days", "'90d'"),
    ("NEARDUP_MAX_PAGES", 0, "from 1 to"),
    ("NEARDUP_MAX_PAGES", "many", "from 1 to"),
    ("NEARDUP_COMMIT", "page", "one of: feed, item"),
    ("NEARDUP_DROPPED_FEED", "dropped", "names no format"),
    ("NEARDUP_DROPPED_FEED", 5, "dict"),
    ("NEARDUP_DROPPED_FEED", {"a.jsonl": "jsonl"}, "format"),
    ("NEARDUP_DROPPED_FEED", {"a.jsonl": {}}, "format"),
    ("NEARDUP_DROPPED_FEED", '{"a": 5}', "format"),
    ("NEARDUP_DROPPED_FEED", '{"a', "on the command line"),
    ("NEARDUP_OVERWRITTEN", "again", "one of: warn, forget, known"),
    ("NEARDUP_WAIT", -0.1, "from 0 to 3600"),
    ("NEARDUP_WAIT", "nan", "from 0 to 3600"),
    ("NEARDUP_PROFILE", "forum", "one of: article, catalogue"),
    ("NEARDUP_ON_STORE_ERROR", "ignore", "one of: close, pass"),
    ("NEARDUP_STRICT", "perhaps", "True or False"),
    ("NEARDUP_LANG", "fr", "one of: "),
]


@both_kinds
def test_without_settings_the_defaults_hold(kind: Kind) -> None:
    config = Config.from_settings(kind({"BOT_NAME": "ferry"}))
    assert config == Config()
    assert config == Config(
        drop=True,
        policy={
            Likeness.IDENTICAL: "drop", Likeness.NEAR: "drop", Likeness.RETITLED: "drop", Likeness.EXCERPT: "tag",
            Likeness.SAME_TITLE: "tag",
            Verdicts.MINOR_UPDATE: "drop",
        },
        store="",
        scope="spider",
        dry_run="",
        method="cascade",
        parameters={},
        extractor="",
        fields={name: name for name in ("url", "title", "keywords", "description", "text", "html")} | {"part": ""},
        listings=True,
        tag_field="neardup",
        min_letters=40,
        max_html=5_000_000,
        max_text=400_000,
        max_seconds=1.5,
        keep=Keep.EVIDENCE,
        keep_policy="first",
        ttl=None,
        max_pages=None,
        commit="feed",
        overwritten="warn",
        wait=10.0,
        on_store_error="close",
    )  # fmt: skip


@both_kinds
def test_a_setting_is_read(kind: Kind) -> None:
    for name, value, field, expected in READ:
        found = getattr(Config.from_settings(kind({name: value})), field)
        assert found == expected, (name, value)
        assert type(found) is type(expected), (name, value)


def test_every_setting_is_tried_here() -> None:
    assert {name for name, *_ in READ} == set(SETTINGS) - {"NEARDUP_ENABLED"}
    assert {name for name, *_ in REFUSED} == set(SETTINGS)


def refusal(settings: Mapping[str, Any]) -> str:
    try:
        Config.from_settings(settings)
    except SettingsError as error:
        return str(error)
    return ""


@both_kinds
def test_an_impossible_value_is_refused_in_a_sentence_that_names_the_setting(kind: Kind) -> None:
    for name, value, reason in REFUSED:
        said = refusal(kind({name: value}))
        assert said, f"{name} = {value!r} was taken"
        assert reason in said, (name, value)
        assert name in said, (name, value)
        assert said.endswith((".", "?")), (name, value)


@both_kinds
def test_an_unknown_name_is_refused_with_the_setting_that_was_meant(kind: Kind) -> None:
    for name, meant in {
        "NEARDUP_STROE": "NEARDUP_STORE",
        "NEARDUP_PARAMETER": "NEARDUP_PARAMETERS",
        "NEARDUP_MIN_LETTER": "NEARDUP_MIN_LETTERS",
        "NEARDUP_FIELD": "NEARDUP_FIELDS",
        "NEARDUP_DROP_DUPLICATES": "DROP_DUPLICATES",
        "NEARDUP_QQQQQQQQQQQQQQQQQQQQQQ": "",
    }.items():
        said = refusal(kind({name: 1}))
        assert f"There is no setting {name}" in said
        assert f"The settings are: {', '.join(SETTINGS)}." in said
        assert f"Did you mean {meant}" in said if meant else "Did you mean" not in said, name


@both_kinds
def test_a_name_that_looks_like_ours_is_a_warning(kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    for name, meant in {
        "DROP_DUPLICATE": "DROP_DUPLICATES",
        "DROP_NEAR_DUPLICATES": "DROP_DUPLICATES",
        "DROPDUPLICATES": "DROP_DUPLICATES",
        "DORP_DUPLICATES": "DROP_DUPLICATES",
        "DROP_DUBLICATES": "DROP_DUPLICATES",
        "NEAR_DUP_STORE": "NEARDUP_STORE",
        "NEARDUPE_POLICY": "NEARDUP_POLICY",
    }.items():
        caplog.clear()
        assert Config.from_settings(kind({name: False})) == Config()
        [said] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert f"does not read the setting {name}." in said
        assert f"write {meant}." in said


def test_settings_of_others_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    others = {"DUPEFILTER_CLASS": "a.B", "DROP_TABLES": 1, "DUPLICATES": 1, "DROP_ITEMS": 1, "SKIP_DUPLICATE_CHECK": 1}
    Config.from_settings(Settings({"DROP_DUPLICATES": False, "NEARDUP_STORE": "memory:", **others}))
    assert caplog.text == ""
    assert Config.from_settings({"NEAR_DUP": 1, "neardup_store": 2, "MY_NEARDUP_STORE": 3}) == Config()


@both_kinds
@pytest.mark.parametrize("form", [dict, json.dumps], ids=["dict", "JSON"])
def test_an_unknown_parameter_is_refused_with_the_valid_ones(kind: Kind, form: Callable[[Any], Any]) -> None:
    with pytest.raises(SettingsError, match="cascade has no parameter bnis, tiltle") as refused:
        Config.from_settings(kind({"NEARDUP_PARAMETERS": form({"bnis": 1, "tiltle": 2, "bins": 64})}))
    assert "NEARDUP_PARAMETERS" in str(refused.value)
    assert "core_words, sentence_keys" in str(refused.value)


def test_a_configuration_makes_its_parts_and_shares_no_defaults() -> None:
    for method in METHODS:
        assert Config.from_settings({"NEARDUP_METHOD": method}).make_method().name == method
    changed = Config.from_settings({"NEARDUP_PARAMETERS": '{"certain": 0.5}'}).make_method()
    assert changed.parameters.certain == 0.5
    assert Config(extractor=OWN).make_extractor() is own_extractor
    assert Config().fields is not Config().fields
    assert Config().parameters is not Config().parameters
    assert Config().policy is not Config().policy
    Config.from_settings({"NEARDUP_POLICY": {"near": "pass"}})
    assert DEFAULT_POLICY[Likeness.NEAR] == "drop"


def test_the_fields_of_items_can_be_read_alone() -> None:
    assert item_fields({}) == DEFAULT_FIELDS
    assert item_fields({"NEARDUP_FIELDS": {"text": "body"}}) == {**DEFAULT_FIELDS, "text": "body"}
    with pytest.raises(SettingsError, match="NEARDUP_FIELDS"):
        item_fields({"NEARDUP_FIELDS": 5})


@both_kinds
def test_the_switch_is_on_unless_it_is_turned_off(kind: Kind) -> None:
    assert is_enabled(kind({})) is True
    for value in (True, "True", "true", "1", 1, "on", "yes", None):
        assert is_enabled(kind({"NEARDUP_ENABLED": value})) is True, value
    for value in (False, "False", "false", "0", 0, "off", "no"):
        assert is_enabled(kind({"NEARDUP_ENABLED": value})) is False, value
    with pytest.raises(SettingsError, match="NEARDUP_ENABLED is 'perhaps'"):
        is_enabled(kind({"NEARDUP_ENABLED": "perhaps"}))


# Each verdict with its action by default, and under policies that drop, tag and pass all kinds of copies.
OUTCOMES = [
    (Verdicts.UNIQUE, None, PASS, PASS, PASS, PASS),
    (Verdicts.UNIQUE, Likeness.EXCERPT, TAG, DROP, TAG, PASS),
    (Verdicts.UNIQUE, Likeness.SAME_TITLE, TAG, DROP, TAG, PASS),
    (Verdicts.DUPLICATE, Likeness.IDENTICAL, DROP, DROP, TAG, PASS),
    (Verdicts.DUPLICATE, Likeness.NEAR, DROP, DROP, TAG, PASS),
    (Verdicts.DUPLICATE, Likeness.RETITLED, DROP, DROP, TAG, PASS),
    (Verdicts.DUPLICATE, Likeness.EXCERPT, TAG, DROP, TAG, PASS),
    (Verdicts.DUPLICATE, Likeness.SAME_TITLE, TAG, DROP, TAG, PASS),
    # A user's own method need not name the kind of a copy.
    (Verdicts.DUPLICATE, None, DROP, DROP, DROP, DROP),
    (Verdicts.UNCHANGED, None, DROP, DROP, DROP, DROP),
    (Verdicts.UPDATED, None, PASS, PASS, PASS, PASS),
    (Verdicts.MINOR_UPDATE, None, DROP, DROP, TAG, PASS),
    (Verdicts.UNJUDGED, None, PASS, PASS, PASS, PASS),
]


def test_a_policy_decides_the_action_for_each_verdict() -> None:
    policies = [{}, *({one.value: action for one in DEFAULT_POLICY} for action in ACTIONS)]
    configs = [Config.from_settings({"NEARDUP_POLICY": policy}) for policy in policies]
    assert ACTIONS == (DROP, TAG, PASS)
    keeps = [Config.from_settings({"NEARDUP_POLICY": policy, "DROP_DUPLICATES": False}) for policy in policies]
    for kind, likeness, *actions in OUTCOMES:
        verdict = Verdict(kind, "http://a.example/", likeness=likeness)
        assert [config.action(verdict) for config in configs] == actions, (kind, likeness)
        assert [config.action(verdict) for config in keeps] == [TAG] * 4, (kind, likeness)


def test_a_policy_may_drop_more_kinds_than_copies() -> None:
    for policy, expected in [
        ({}, set()),
        ({"retitled": "tag", "identical": "pass"}, set()),
        ({"near": "drop"}, set()),
        ({"excerpt": "drop"}, {Likeness.EXCERPT}),
        ({"same_title": "drop", "excerpt": "pass"}, {Likeness.SAME_TITLE}),
        ({"same_title": "drop", "excerpt": "drop"}, {Likeness.EXCERPT, Likeness.SAME_TITLE}),
    ]:
        assert Config.from_settings({"NEARDUP_POLICY": policy}).also_copies == expected
