"""Every setting: its default, its reading, and the sentence that refuses what cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods import METHODS
from scrapy_neardup.methods.literature.pieces import NSHash
from scrapy_neardup.model import Kind, Outcome, Verdict
from scrapy_neardup.settings import (
    ACTIONS,
    DEFAULT_FIELDS,
    DEFAULT_POLICY,
    DROP,
    PASS,
    SETTINGS,
    TAG,
    Config,
    read_setting,
)
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Keep

MakeSettings = Callable[[dict[str, Any]], Mapping[str, Any]]

both_kinds = pytest.mark.parametrize("make", [dict, Settings], ids=["dict", "Settings"])


def own_extractor(html: str, url: str) -> str:
    return html


OWN = f"{__name__}.own_extractor"
OWN_METHOD = f"{NSHash.__module__}.NSHash"
NOT_CALLABLE = "a string"

#: By a setting and its field, values with what is read.
READ: dict[str, list[tuple[Any, Any]]] = {
    "DROP_DUPLICATES drop": [(True, True), ("False", False), ("no", False), (" TRUE ", True), (None, True)],
    "NEARDUP_POLICY policy": [
        ({}, DEFAULT_POLICY),
        ('{"retitled": "tag"}', {**DEFAULT_POLICY, Kind.RETITLED: "tag"}),
        ('{"excerpt": "drop", "near": "pass"}', {**DEFAULT_POLICY, Kind.EXCERPT: "drop", Kind.NEAR: "pass"}),
    ],
    "NEARDUP_ENABLED enabled": [(False, False), (None, True)],
    "NEARDUP_STORE store": [
        ("sqlite:///srv/state.sqlite", "sqlite:///srv/state.sqlite"),
        ("", ""),
        ("leveldb:///srv/%(name)s/%20%(run)03d", "leveldb:///srv/%(name)s/%20%(run)03d"),
    ],
    "NEARDUP_SCOPE scope": [("project", "project")],
    "NEARDUP_DRY_RUN dry_run": [(True, True), ("0", False)],
    "NEARDUP_SECRET secret": [("what several states share", Secret.shared("what several states share")), ("", None)],
    "NEARDUP_METHOD method": [(OWN_METHOD, OWN_METHOD), (NSHash, OWN_METHOD), ("cascade", "cascade")],
    "NEARDUP_PARAMETERS parameters": [({"bins": 256}, {"bins": 256}), ('{"certain": 0.8}', {"certain": 0.8})],
    "NEARDUP_EXTRACTOR extractor": [(OWN, OWN), (own_extractor, OWN), ("", "")],
    "NEARDUP_FIELDS fields": [('{"url": "link", "title": "h1"}', {**DEFAULT_FIELDS, "url": "link", "title": "h1"})],
    "NEARDUP_TAG_FIELD tag_field": [("copy", "copy")],
    "NEARDUP_MIN_LETTERS min_letters": [(100, 100), ("100", 100)],
    "NEARDUP_MAX_HTML max_html": [(10_000, 10_000)],
    "NEARDUP_MAX_TEXT max_text": [("20000", 20_000)],
    "NEARDUP_MAX_SECONDS max_seconds": [("0.5", 0.5)],
    "NEARDUP_WORKERS workers": [(0, 0), ("2", 2), ("auto", "auto")],
    "NEARDUP_KEEP keep": [("texts", Keep.TEXTS)],
    "NEARDUP_KEEP_POLICY keep_policy": [
        ("longest", "longest"),
        (["b.example", "a.example"], ("b.example", "a.example")),
        ('["b.example", "人民.example"]', ("b.example", "人民.example")),
    ],
    "NEARDUP_TTL ttl": [("90d", 90 * 86_400.0), ("1.5 h", 5400.0), (None, None), ("", None)],
    "NEARDUP_MAX_PAGES max_pages": [(200_000, 200_000), ("1", 1), (None, None)],
    "NEARDUP_COMMIT commit": [("item", "item")],
    "NEARDUP_OVERWRITTEN overwritten": [("known", "known")],
    "NEARDUP_WAIT wait": [(0, 0.0), ("2.5", 2.5)],
    "NEARDUP_PROFILE profile": [("catalogue", "catalogue"), ("article", "article")],
    "NEARDUP_ON_STORE_ERROR on_store_error": [("pass", "pass")],
    "NEARDUP_LANG lang": [("zh", "zh")],
}

REFUSED: dict[str, list[tuple[Any, str]]] = {
    "DROP_DUPLICATES": [("perhaps", "True or False")],
    "NEARDUP_ENABLED": [("perhaps", "True or False")],
    "NEARDUP_POLICY": [
        ("tag", "as JSON"),
        ({"similar": "tag"}, "'similar': 'tag'"),
        ({"retitled": "keep"}, "'retitled': 'keep'"),
        ({"drop": ["near", "excerpt"]}, "to one of drop, tag, pass"),
        ({"updated": "drop"}, "'updated' only to tag or pass"),
    ],
    "NEARDUP_STORE": [
        (5, "to a string"),
        ("leveldb:///srv/%(name)", "Write it as %(name)s"),
        ("state.sqlite", "names no state"),
        ("sqlite://state.sqlite", "three slashes"),
    ],
    "NEARDUP_SCOPE": [("crawl", "one of: project, spider"), ("", "one of: project, spider")],
    "NEARDUP_DRY_RUN": [("tag", "True or False"), (None, "True or False")],
    "NEARDUP_SECRET": [(None, "to a string"), ("fifteen letters", "at least 16 characters")],
    "NEARDUP_METHOD": [
        ("casade", "one of: cascade"),
        ("SimHash", "Did you mean simhash?"),
        ("no_such_module.Method", "cannot be imported"),
        ("scrapy_neardup.methods.literature.Text", "is no method"),
    ],
    "NEARDUP_PARAMETERS": [
        ("bins=256", "as JSON"),
        ({1: 256}, "keys must be strings"),
        ('{"bnis": 1, "tiltle": 2, "bins": 64}', "cascade has no parameter bnis, tiltle"),
        ({"bnis": 1}, "sentence_keys, min_sentence"),
        ({"bins": 63}, "bins must be one of 64, 128"),
    ],
    "NEARDUP_EXTRACTOR": [
        ("json.no_such_function", "cannot be imported"),
        (lambda html, url: html, "cannot be imported"),
        (f"{__name__}.NOT_CALLABLE", "is no function"),
    ],
    "NEARDUP_FIELDS": [({"body": "text"}, "must map url, title"), ({"text": 5}, "must map url, title")],
    "NEARDUP_TAG_FIELD": [(5, "to a string")],
    "NEARDUP_MIN_LETTERS": [(0, "from 1 to"), (4.5, "to a whole number"), (10**400, "from 1 to 1000000.")],
    "NEARDUP_MAX_HTML": [(0, "from 1 to")],
    "NEARDUP_MAX_TEXT": [(0, "from 1 to")],
    "NEARDUP_MAX_SECONDS": [(0, "from 0.1 to")],
    "NEARDUP_WORKERS": [(-1, "from 0"), ("all", "'auto'")],
    "NEARDUP_KEEP": [("all", "one of: nothing, evidence, texts")],
    "NEARDUP_KEEP_POLICY": [
        ("shortest", "first, longest, canonical, or a list of hosts"),
        ("a.example", "on the command line as JSON"),
        (["https://a.example/", 7], "a list of hosts"),
    ],
    "NEARDUP_TTL": [(0, "'90d'"), ("0d", "from 1 second"), ("101000w", "100 years"), ("90 days", "'90d'")],
    "NEARDUP_MAX_PAGES": [(0, "from 1 to"), ("many", "from 1 to"), (True, "from 1 to")],
    "NEARDUP_COMMIT": [("page", "one of: feed, item")],
    "NEARDUP_OVERWRITTEN": [("forget", "one of: warn, known")],
    "NEARDUP_WAIT": [(-0.1, "from 0 to 3600"), ("nan", "from 0 to 3600")],
    "NEARDUP_PROFILE": [("forum", "one of: article, catalogue")],
    "NEARDUP_ON_STORE_ERROR": [("ignore", "one of: close, pass")],
    "NEARDUP_LANG": [("fr", "one of: en, zh")],
}


@both_kinds
def test_without_settings_the_defaults_hold(make: MakeSettings) -> None:
    assert Config.from_settings(make({"BOT_NAME": "ferry"})) == Config()


@both_kinds
def test_a_setting_is_read(make: MakeSettings) -> None:
    for names, cases in READ.items():
        name, field = names.split(" ")
        for value, expected in cases:
            found = getattr(Config.from_settings(make({name: value})), field)
            assert (type(found), found) == (type(expected), expected), (name, value)


def test_every_setting_is_tried_here() -> None:
    assert {name.split(" ")[0] for name in READ} == set(SETTINGS)
    assert set(REFUSED) == set(SETTINGS)


def refusal(settings: Mapping[str, Any]) -> str:
    try:
        Config.from_settings(settings)
    except SettingsError as error:
        return str(error)
    return ""


@both_kinds
def test_an_impossible_value_is_refused_in_a_sentence_that_names_the_setting(make: MakeSettings) -> None:
    for name, value, reason in ((name, *case) for name, cases in REFUSED.items() for case in cases):
        said = refusal(make({name: value}))
        assert said, f"{name} = {value!r} was taken"
        assert reason in said, (name, value)
        assert name in said, (name, value)
        assert said.endswith((".", "?")), (name, value)


@both_kinds
def test_an_unknown_name_is_refused_and_one_like_ours_is_a_warning(
    make: MakeSettings, caplog: pytest.LogCaptureFixture
) -> None:
    for name, meant in {
        "NEARDUP_STROE": "NEARDUP_STORE",
        "NEARDUP_PARAMETER": "NEARDUP_PARAMETERS",
        "NEARDUP_MIN_LETTER": "NEARDUP_MIN_LETTERS",
        "NEARDUP_DROP_DUPLICATES": "DROP_DUPLICATES",
        "NEARDUP_QQQQQQQQQQQQQQQQQQQQQQ": "",
    }.items():
        said = refusal(make({name: 1}))
        assert f"There is no setting {name}" in said
        assert f"Did you mean {meant}?" in said if meant else f"The settings are: {', '.join(SETTINGS)}." in said, name
    for name, meant in {
        "DROP_DUPLICATE": "DROP_DUPLICATES",
        "DROP_NEAR_DUPLICATES": "DROP_DUPLICATES",
        "DORP_DUPLICATES": "DROP_DUPLICATES",
        "NEAR_DUP_STORE": "NEARDUP_STORE",
        "NEARDUPE_POLICY": "NEARDUP_POLICY",
    }.items():
        caplog.clear()
        assert Config.from_settings(make({name: False})) == Config()
        [said] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert f"does not read the setting {name}." in said
        assert f"write {meant}." in said


def test_settings_of_others_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    others = {"DUPEFILTER_CLASS": "a.B", "DROP_TABLES": 1, "DUPLICATES": 1, "DROP_ITEMS": 1, "SKIP_DUPLICATE_CHECK": 1}
    Config.from_settings(Settings({"DROP_DUPLICATES": False, "NEARDUP_STORE": "memory:", **others}))
    assert caplog.text == ""
    assert Config.from_settings({"NEAR_DUP": 1, "neardup_store": 2, "MY_NEARDUP_STORE": 3}) == Config()


def test_a_configuration_makes_its_parts_and_shares_no_defaults() -> None:
    for method in METHODS:
        assert Config.from_settings({"NEARDUP_METHOD": method}).make_method().name == method
    changed = Config.from_settings({"NEARDUP_PARAMETERS": '{"certain": 0.5}'}).make_method()
    assert changed.parameters.certain == 0.5
    assert Config(extractor=OWN).make_extractor() is own_extractor
    for name in ("fields", "parameters", "policy"):
        assert getattr(Config(), name) is not getattr(Config(), name)
    Config.from_settings({"NEARDUP_POLICY": {"near": "pass"}})
    assert DEFAULT_POLICY[Kind.NEAR] == "drop"


@both_kinds
def test_one_setting_can_be_read_without_the_others(make: MakeSettings) -> None:
    for name, value, expected in (
        ("NEARDUP_FIELDS", None, DEFAULT_FIELDS),
        ("NEARDUP_FIELDS", {"text": "body"}, {**DEFAULT_FIELDS, "text": "body"}),
        *(("NEARDUP_ENABLED", value, True) for value in (True, "True", "true", "1", 1, "on", "yes", None)),
        *(("NEARDUP_ENABLED", value, False) for value in (False, "False", "false", "0", 0, "off", "no")),
    ):
        assert read_setting(make({name: value, "NEARDUP_STORE": 5}), name) == expected, (name, value)
    assert read_setting(make({}), "NEARDUP_ENABLED") is True
    for name in ("NEARDUP_FIELDS", "NEARDUP_ENABLED"):
        with pytest.raises(SettingsError, match=f"{name} (is|has)"):
            read_setting(make({name: "perhaps"}), name)


COPIES, PASSING = list(Kind)[:3], list(Kind)[3:]
# Outcome with their action by default, and under policies that drop, tag and pass all kinds of copies.
OUTCOMES: list[tuple[Outcome, list[Kind | None], list[str]]] = [
    (Outcome.UNIQUE, [None], [PASS, PASS, PASS, PASS]),
    (Outcome.UNIQUE, [*PASSING], [TAG, DROP, TAG, PASS]),
    (Outcome.DUPLICATE, [*COPIES], [DROP, DROP, TAG, PASS]),
    (Outcome.DUPLICATE, [*PASSING], [TAG, DROP, TAG, PASS]),
    # A user's own method need not name the kind of a copy.
    (Outcome.DUPLICATE, [None], [DROP, DROP, DROP, DROP]),
    (Outcome.UNCHANGED, [None], [DROP, DROP, DROP, DROP]),
    (Outcome.UPDATED, [None], [PASS, PASS, PASS, PASS]),
    (Outcome.MINOR_UPDATE, [None], [DROP, DROP, TAG, PASS]),
    # The tag says what it supersedes.
    (Outcome.BETTER, [Kind.NEAR], [TAG, TAG, TAG, TAG]),
    (Outcome.UNJUDGED, [None], [PASS, PASS, PASS, PASS]),
]


def test_a_policy_decides_the_action_for_each_verdict() -> None:
    policies = [{}, *({one.value: action for one in DEFAULT_POLICY} for action in ACTIONS)]
    configs = [Config.from_settings({"NEARDUP_POLICY": policy}) for policy in policies]
    assert ACTIONS == (DROP, TAG, PASS)
    keeps = [Config.from_settings({"NEARDUP_POLICY": policy, "DROP_DUPLICATES": False}) for policy in policies]
    for outcome, kinds, actions in OUTCOMES:
        for kind in kinds:
            verdict = Verdict(outcome, "http://a.example/", kind=kind)
            assert [config.action(verdict) for config in configs] == actions, (outcome, kind)
            assert [config.action(verdict) for config in keeps] == [TAG] * 4, (outcome, kind)


def test_a_policy_may_mark_updates() -> None:
    config = Config.from_settings({"NEARDUP_POLICY": {"updated": "tag"}})
    verdicts = [Verdict(outcome, "http://a.example/") for outcome in (Outcome.UPDATED, Outcome.UNIQUE)]
    assert [config.action(verdict) for verdict in verdicts] == [TAG, PASS]


def test_a_policy_may_drop_more_kinds_than_copies() -> None:
    for policy, expected in [
        ({"near": "drop", "retitled": "tag"}, set()),
        ({"same_title": "drop", "excerpt": "pass"}, {Kind.SAME_TITLE}),
        ({"same_title": "drop", "excerpt": "drop"}, {Kind.EXCERPT, Kind.SAME_TITLE}),
    ]:
        assert Config.from_settings({"NEARDUP_POLICY": policy}).also_copies == expected
