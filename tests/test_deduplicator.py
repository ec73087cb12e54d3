"""Pages before a Deduplicator: the verdicts of a crawl, kept at once, whoever asks; and what it refuses."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from scrapy_neardup import Deduplicator
from scrapy_neardup.errors import NearDupError, SettingsError, StoreLocked, StoreMismatch, UsageError
from scrapy_neardup.kv.lock import is_held
from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import kept_page
from tests.build import article_text, article_url, reserve
from tests.crawl.engineless import article, crawl

FERRY = (
    "The ferry across the sound sails again after seven months. Nobody at Heron Quay believed that it would be back "
    "before the winter storms. Two brothers from the village took the engine apart twice, and put it together thrice."
)
SQLITE = "sqlite:///"


def page(family: int, version: int = 0) -> dict[str, Any]:
    """The arguments for an article; versions of a family are near-duplicates."""
    return {"url": article_url(family, version), "title": f"标题{family}", "text": article_text(family, version)}


def rows(dedup: Deduplicator) -> list[tuple[bytes, bytes]]:
    """Everything that its state holds, with the counts of sentences that are not written yet."""
    store: PageStore = dedup._store
    counts = list(store.counts.rows().items())
    return [*store.kv.scan(b""), *counts]


def said(call: Callable[[], object], kind: type[NearDupError]) -> str:
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind
    return str(raised.value)


def script(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Python code in a process of its own, which finds the package as this one does."""
    head = (
        "import os, sys, threading\nfrom pathlib import Path\nfrom scrapy_neardup import Deduplicator, deduplicator\n"
    )
    root = str(Path(__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", head + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


# Verdicts.


def test_verdicts_equal_those_of_a_crawl() -> None:
    stream = [(family, version) for family in range(12) for version in range(3)] + [(3, 0), (4, 2)]
    with Deduplicator() as dedup:
        verdicts = [dedup.check(**page(*one)) for one in stream]
    stats = crawl([article(*one) for one in stream], NEARDUP_STORE="memory:")
    for outcome in Outcome:
        counted = sum(count for stat, count in stats.items() if stat.startswith(f"neardup/{outcome.value}"))
        assert counted == sum(verdict.outcome is outcome for verdict in verdicts), outcome
    assert {verdict.outcome for verdict in verdicts} >= {Outcome.UNIQUE, Outcome.DUPLICATE, Outcome.UNCHANGED}


@pytest.mark.parametrize("form", [Path, lambda path: f"{SQLITE}{path}"], ids=["path", "URL"])
def test_crawls_and_scripts_share_a_state(tmp_path: Path, form: Callable[[Path], Any]) -> None:
    store = form(tmp_path / "seen.db")
    with Deduplicator(store) as dedup:
        assert dedup.check(**page(1)).outcome is Outcome.UNIQUE
    stats = crawl([article(1), article(1, 1), article(2)], NEARDUP_STORE=f"{SQLITE}{tmp_path}/seen.db")
    assert [stats.get(f"neardup/{kind}") for kind in ("unchanged", "duplicate", "unique")] == [1, 1, 1]
    with Deduplicator(store) as dedup:
        assert dedup.check(**page(2, 1)).outcome is Outcome.DUPLICATE


def test_html_is_read_as_in_a_crawl_by_its_charset() -> None:
    prose = "渡口今天重新开航了，等船的人比上个月多了一倍。码头上的灯一直亮到半夜，谁也不肯先走。" * 3
    plain = f"<html><head><title>渡口</title></head><body><p>{prose}</p></body></html>"
    named = plain.replace("<head>", '<head><meta charset="gb18030">').encode("gb18030")
    others: list[dict[str, Any]] = [
        {"html": named},
        {"html": plain.encode("gb18030"), "content_type": "text/html; charset=gb2312"},
        {"html": plain.encode()},
        {"text": prose, "title": "渡口"},
    ]
    with Deduplicator() as dedup:
        first = dedup.check(url="http://a.example/1", html=plain)
        assert (first.outcome, first.reader) == (Outcome.UNIQUE, "article")
        for place, given in enumerate(others):
            found = dedup.check(url=f"http://{place}.example/", **given)
            assert (found.is_copy, found.similar_id) == (True, first.similar_id), place
        assert dedup.check(html=b"{}", content_type="application/json").headline == "unjudged (not_html)"


def test_a_page_is_known_by_its_url_and_else_by_its_text_and_title() -> None:
    with Deduplicator() as dedup:
        kinds = [dedup.check(url="http://a.example/", text=article_text(one)).outcome for one in (1, 1, 2, 2, 1)]
    assert kinds == [Outcome.UNIQUE, Outcome.UNCHANGED, Outcome.UPDATED, Outcome.UNCHANGED, Outcome.UPDATED]
    with Deduplicator() as dedup:
        for text, title, verdict in (
            (FERRY, "The ferry", "unique"),
            (FERRY, "The ferry", "unchanged"),
            (FERRY, "Back at last: a ship for the islands", "duplicate (identical)"),
            (FERRY + " Tickets are sold on board.", "The ferry", "duplicate (near)"),
            ("See attachment.", "", "unjudged (too_short)"),
            ("See attachment.", "", "unjudged (too_short)"),  # it may be of another page
        ):
            assert dedup.check(text=text, title=title).headline == verdict, (text, title)
        assert dedup.check(html=f"<p>{FERRY}</p><p>One.").headline == "duplicate (near)"
        assert dedup.check(html=b"<p>x").headline == "unjudged (too_short)"


@pytest.mark.parametrize("keywords", [["渡口", "开航"], " 渡口，开航"])
def test_keywords_are_a_list_or_one_string(keywords: list[str] | str) -> None:
    with Deduplicator(keep="texts") as dedup:
        verdict = dedup.check(url=" http://a.example/ ", text=FERRY, keywords=keywords)
        kept = kept_page(verdict.url, dedup._store.evidence(verdict.id))
        assert kept is not None
        assert (kept.url, kept.keywords) == ("http://a.example/", ("渡口", "开航"))


@pytest.mark.parametrize("nothing", [None, "", " \n", float("nan")], ids=repr)
def test_a_page_without_content_is_unjudged(nothing: Any) -> None:
    with Deduplicator() as dedup:
        for given in ({"text": nothing}, {"html": nothing}, {"text": nothing, "html": nothing}):
            for _ in range(2):
                found = dedup.check(url="http://a.example/", title=nothing, description=nothing, **given)
                assert found.headline == "unjudged (no_content)"
        assert dedup.check(html=b"").reason == "no_content"
        assert dedup._store.pages == 0


# Looking.


def test_a_look_has_the_same_verdict_and_leaves_no_trace(tmp_path: Path) -> None:
    """For every kind of verdict, on a page that is new, and on one that is known."""
    whole = {"url": "http://a.example/whole", "text": "\n".join(article_text(one) for one in (7, 8, 9))}
    asked = [page(1), page(1, 1), page(1, 4), page(2), page(2), {**page(2), "text": article_text(5)}, whole]
    part, empty = (
        {"url": "http://a.example/part", "text": article_text(7)},
        {"url": "http://a.example/", "html": "<p>x"},
    )
    seen = set()
    with Deduplicator(tmp_path / "seen.db", keep="texts") as dedup:
        for given in [*asked, part, empty, part, empty]:
            before = rows(dedup)
            looks = [dedup.check(**given, remember=False) for _ in range(2)]
            assert rows(dedup) == before
            found = dedup.check(**given)
            for look in looks:
                assert (look.headline, look.sentence()) == (found.headline, found.sentence())
                assert look.similar_id == "" or look.is_copy or look.outcome is Outcome.UNJUDGED
            seen.add(found.headline)
    assert seen >= {"unique", "unchanged", "updated", "duplicate (near)", "unique (excerpt)", "unjudged (too_short)"}


def test_a_look_finds_pages_in_flight_and_leaves_them(tmp_path: Path) -> None:
    """A crawl of this process holds an article whose item is still in its pipelines."""
    with Deduplicator(tmp_path / "seen.db") as crawling, Deduplicator(tmp_path / "seen.db") as dedup:
        held = reserve(crawling._detector, Page(**page(1), site="0.example"))
        for given, remember in ((page(1, 1), False), (page(1), False), (page(1, 1), True)):
            assert dedup.check(**given, remember=remember).reason == "in_flight"
        assert dedup.check(**page(1, 1)).outcome is Outcome.UNCHANGED, "what gave up is filed"
        assert crawling._detector.in_flight.under(article_url(1)) == [held]
        crawling._detector.commit(held, sealed=True)
        assert not crawling._detector.in_flight
        assert dedup.check(**page(1, 2), remember=False).outcome is Outcome.DUPLICATE


@pytest.mark.parametrize("step", ["take_over", "open_judge", "Config.open_source"])
def test_a_failed_constructor_releases_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(f"scrapy_neardup.deduplicator.{step}", Mock(side_effect=ValueError(step)))
        with pytest.raises(ValueError, match=step):
            Deduplicator(tmp_path / "seen.db")
    assert not is_held(tmp_path / "seen.db.lock")
    with Deduplicator(tmp_path / "seen.db") as dedup:
        assert dedup.check(**page(1)).outcome is Outcome.UNIQUE


# The state.


def test_pages_of_a_killed_crawl_are_rolled_back_loudly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "seen.db"
    with Deduplicator(path) as dedup:
        dedup.check(**page(1))
        killed = dedup._store.journal.begin("morning")
        dedup._store.add(reserve(dedup._detector, Page(**page(2))).record, generation=killed)
    assert not caplog.messages
    with Deduplicator(path) as dedup:
        assert "1 pages are rolled back in the state, because their crawl (morning)" in caplog.text
        assert [dedup.check(**page(one)).outcome for one in (1, 2)] == [Outcome.UNCHANGED, Outcome.UNIQUE]


def test_two_in_one_process_share_a_state_and_the_last_one_closes_it(tmp_path: Path) -> None:
    path = tmp_path / "seen.db"
    one, other = Deduplicator(path), Deduplicator(path)
    one.check(**page(1))
    assert other.check(**page(1, 1)).is_copy
    one.close()
    one.close()
    assert other.check(**page(1)).outcome is Outcome.UNCHANGED
    message = said(lambda: Deduplicator(path, min_letters=50, method="simhash"), StoreMismatch)
    assert "with other parameters" in message
    assert "close the first" in message
    other.close()
    with Deduplicator(path) as again:
        assert repr(again) == f"<Deduplicator on {path}, 2 pages>"


def test_a_state_in_use_by_another_process_is_refused_with_a_cure(tmp_path: Path) -> None:
    with Deduplicator(tmp_path / "seen.db"):
        done = script("Deduplicator(Path('seen.db'))", tmp_path)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"{StoreLocked.__module__}.StoreLocked: Another process is using the state at {tmp_path}")
    assert "close its Deduplicator" in last
    assert "NEARDUP" not in last
    assert done.stderr.count("Traceback") == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_copy_refuses_to_work_and_does_not_close_the_state_of_its_parent(tmp_path: Path) -> None:
    """Nor does it wait for a thread of its parent."""
    code = f"""
d = Deduplicator(Path('seen.db'))
d.check(text={FERRY!r})
judging, forked = threading.Event(), threading.Event()

def judge():
    with deduplicator._LOCK:
        judging.set()
        forked.wait()

threading.Thread(target=judge).start()
judging.wait()
if not os.fork():
    try:
        d.check(text='x')
    except TypeError as error:
        print(error, flush=True)
    d.close()
    print(Deduplicator().check(text={FERRY!r}).headline, flush=True)
    os._exit(0)
os.wait()
forked.set()
print(d.check(text={FERRY!r}).headline)
d.close()
"""
    done = script(code, tmp_path)
    first, *others = done.stdout.splitlines()
    assert first.startswith("This Deduplicator was opened by another process")
    assert others == ["unique", "unchanged"]
    with Deduplicator(tmp_path / "seen.db") as dedup:
        assert dedup._store.pages == 1


def test_what_a_script_leaves_open_is_closed_at_its_end_also_if_one_cannot_be_closed(tmp_path: Path) -> None:
    code = f"""
def fail():
    raise OSError("No space left on device")

several = [Deduplicator(Path(name)) for name in ('a.db', 'b.db', 'c.db')]
for one in several:
    one.check(text={FERRY!r})
    one._opened.callback(print, 'closed')
several[0]._opened.callback(fail)
several[2]._opened.callback(fail)
"""
    done = script(code, tmp_path)
    assert done.stdout.splitlines() == ["closed"] * 3
    assert "No space left on device" in done.stderr


# Threads and loops.


def test_threads_take_turns() -> None:
    """Each of ten families comes from many threads at once, and one page of it stays."""
    pages = [page(family, version) for version in range(4) for family in range(10)]
    with Deduplicator() as dedup, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda one: dedup.check(**one), pages))
    groups = [{verdict.similar_id for verdict in found[family::10]} for family in range(10)]
    assert [len(group) for group in groups] == [1] * 10
    assert sum(verdict.outcome is Outcome.UNIQUE for verdict in found) == 10


def test_within_a_running_loop_also_pages_that_are_read_in_a_process_of_their_own() -> None:
    risky = f"<p>{FERRY}</p>" + "<b></b>" * 8_000

    async def cell() -> list[str]:
        with Deduplicator() as dedup:
            first = dedup.check(url="http://a.example/1", html=risky)
            assert "neardup-risky" in {thread.name for thread in threading.enumerate()}
            asyncio.get_running_loop().call_soon(lambda: None)
            await asyncio.sleep(0)
            return [first.headline, dedup.check(url="http://b.example/2", text=FERRY).headline]

    assert asyncio.run(cell()) == ["unique", "duplicate (identical)"]


# Messages.


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"store": "seen.db"}, "store is 'seen.db', which names no state*Path('seen.db')"),
        ({"store": "sqlite://seen.db"}, "three slashes*Path('seen.db')"),
        ({"store": "sqlite:///%(name)s.db"}, "store is *no spider fills it in"),
        ({"method": "casade"}, "method, parameters: There is no method 'casade'"),
        ({"extractor": lambda html, url: html}, "extractor is *cannot be imported"),
        ({"policy": {"near": "keep"}}, "policy has 'near': 'keep'"),
        ({"secret": "short"}, "secret*at least 16 characters"),
        ({"max_seconds": 0}, "max_seconds is 0"),
    ],
)
def test_an_impossible_parameter_is_refused(given: dict[str, Any], words: str) -> None:
    message = said(lambda: Deduplicator(**given), SettingsError)
    assert fnmatch(message, f"*{words}*")
    assert "NEARDUP_" not in message


def test_a_method_that_works_in_memory_alone_and_a_state_of_another_recipe_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "seen.db"
    assert "Set store = 'memory:'" in said(lambda: Deduplicator(path, method="cosine"), SettingsError)
    assert not list(tmp_path.iterdir())
    Deduplicator(path).close()
    message = said(lambda: Deduplicator(path, parameters={"shingle": 4}), StoreMismatch)
    assert "set store to a new path" in message
    open_store(f"sqlite://{path}", None).close()  # nothing holds it


def test_other_types_than_text_are_refused() -> None:
    for given, words in [
        ({"text": b"bytes"}, "text is b'bytes', a bytes. Give a string: use .decode()."),
        ({"text": 5}, "text is 5, a int. Give a string, or None if there is none."),
        ({"url": 5, "text": FERRY}, "url is 5"),
        ({"keywords": [5], "text": FERRY}, "keywords is 5"),
    ]:
        with Deduplicator() as dedup:
            assert words in said(lambda: dedup.check(**given), UsageError)  # type: ignore[arg-type]  # noqa: B023
            assert dedup._store.pages == 0
    assert "a path" in said(lambda: Deduplicator(5), UsageError)  # type: ignore[arg-type]


def test_a_closed_deduplicator_refuses_work() -> None:
    dedup = Deduplicator()
    dedup.close()
    assert "is closed. Make another one" in said(lambda: dedup.check(text=FERRY), UsageError)
    assert "is closed" in said(dedup.__enter__, UsageError)
    assert repr(dedup) == "<Deduplicator on memory:, closed>"


def test_defaults_equal_those_of_the_settings() -> None:
    config = Config.from_settings({})
    for one in list(signature(Deduplicator).parameters.values())[1:]:
        setting = getattr(config, one.name)
        assert one.default == getattr(setting, "value", setting) or not one.default, one.name
