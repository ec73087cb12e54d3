"""Processes that fingerprint texts: what they make, and what becomes of texts of which they die or hang."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar, cast

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.inputs import Entry
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.fingerprint_tasks import Answer, Prepared, Preparing, Ready, Texts, TextTerms
from scrapy_neardup.judge.immediate import ImmediateJudge
from scrapy_neardup.judge.prefetch import Prefetcher
from scrapy_neardup.judge.records import Batch
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.methods.minhash import MinHash
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.apart import NoReader
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.recipe import Secret
from tests.judge.test_detector import story
from tests.processes import process_ids

pytestmark = pytest.mark.slow  # processes of their own

SECRET = b"a secret of tests"


class Odd(MinHash):
    """A user's own method, and what may become of one; the path of a mark stands behind a colon."""

    name: ClassVar[str] = f"{__name__}.Odd"

    def fingerprint(self, page: Page) -> Fingerprint:
        what, _, mark = page.title.partition(":")
        if what == "die" or (what == "die once" and not Path(mark).exists()):
            Path(mark or os.devnull).touch()
            os._exit(3)
        if what == "hang":
            time.sleep(100)
        if what == "raise":
            raise ValueError("nothing found")
        return super().fingerprint(page)


def page(number: int, title: str = "") -> Page:
    text = "\n".join(story(number))
    return Page(f"http://moor.example/{number}", title or str(number), text=text, site="moor.example")


def odd_records() -> list[dict[str, Any]]:
    """Records that bring their text: new ones, copies, versions, boilerplate, quotes, too little, nothing, nonsense."""
    found: list[dict[str, Any]] = []
    for number in range(90):
        site, own = number % 3, story(number, 8)
        footer = [f"本站编辑部设在河湾镇旧码头的第{site}仓库二楼。", "版权所有，转载请先给编辑部写信说明。"]
        own += footer * (number % 4 > 0)
        if number % 9 == 4:
            own[3:3] = [f"> {line}" for line in story(number - 4)[:2]]
        if number % 7 == 5:
            own = story(number - 5, 8)[: 7 - number % 2]
        title = ["", f"第{number}号船的船长", f"Re: 第{number // 8}号船"][number % 3]
        url = f"http://site{site}.example/{number}"
        found.append({"url": url, "title": title, "text": "\n".join(own), "keywords": ["渡口"] * (number % 2)})
    found[7:7] = [{"id": "short", "text": "太短。"}, {"id": "nothing"}, {"id": "empty", "text": "  "}, {}]
    found[30:30] = [{"id": "short", "text": "太短。"}]
    found[33:33] = [{"id": "odd", "text": "船\ud800来了\udfff，" * 30, "title": "\ud800"}]
    found[50:50] = [
        found[3],
        {**found[4], "text": "\n".join(story(400))},
        {"id": "html", "html": "<p>渡口今天早上开航"},
    ]
    return [*found, {"id": "list", "text": story(500)}, {"id": "long", "text": "渡口的船今天又开了。" * 50_000}]


@contextmanager
def preparing(method: str, workers: int = 1, seconds: float = 30.0) -> Iterator[Pool[Texts, Answer]]:
    terms = TextTerms(method, {}, Keyed(SECRET), seconds)
    pool: Pool[Texts, Answer] = Pool(terms, workers)
    with closing(pool):
        yield pool
    assert process_ids(pool) == []


def asked(pool: Pool[Texts, Answer], *pages: Page) -> Answer | ExtractionError:
    answers: SimpleQueue[Answer | ExtractionError] = SimpleQueue()
    pool.ask(Texts(pages), lambda answer, _: answers.put(answer))
    return answers.get(timeout=60)


def told(answer: Answer | ExtractionError) -> list[str]:
    assert isinstance(answer, list), answer
    return [one.reason if isinstance(one, ExtractionError) else "" if one is None else "made" for one in answer]


def test_fingerprints_are_those_that_are_made_here() -> None:
    method, known = make_method("cascade", {}).under(Keyed(SECRET)), open_store("memory:", {}).on_site("moor.example")
    pages = [*(page(number) for number in range(5)), Page("http://moor.example/", "\ud800", text=" \udfff\x00")]
    with preparing("cascade") as pool:
        answer = asked(pool, *pages)
        assert isinstance(answer, list)
        for one, made in zip(pages, answer, strict=True):
            assert isinstance(made, Prepared)
            here, there = method.guarded(one, known.is_common, known), made.under(one, known, method)
            assert (there.keys, there.sketch, there.own) == (here.keys, here.sketch, here.own)
            assert there.sentences.tolist() == here.sentences.tolist()
        assert pool.replaced == 0


def test_pages_that_were_judged_meanwhile_are_not_fingerprinted() -> None:
    with preparing("cascade") as pool:
        answers: SimpleQueue[Answer | ExtractionError] = SimpleQueue()
        pool.ask(Texts([page(1), page(2)], lambda: False), lambda answer, _: answers.put(answer))
        assert answers.get(timeout=60) == [None, None]
        assert process_ids(pool) == []  # nor is a process started for them


def judged(method: Method, pool: Pool[Texts, Answer] | None, read: list[Ready]) -> list[object]:
    """What is said of the odd records; ``read`` is told what processes have made of them."""
    store = open_store("memory:", {}, secret=Secret(SECRET))
    detector = Detector(method, store, who="test")
    batch = Batch(ImmediateJudge(detector), fields=DEFAULT_FIELDS, id_field="id", max_html=100_000, extractor=None)
    entries = [Entry("feed", number, "line", fields) for number, fields in enumerate(odd_records())]
    said = list[object]()
    texts = Preparing(pool) if pool else None
    if texts:
        texts._has_begun = True  # so that it waits for the first ones as for all others
    for entry, found in Prefetcher(batch.coming, None, texts).read(entries):
        assert isinstance(entry, Entry)
        read.append(found.ready)
        tag = batch.judge(entry, found).verdict.as_tag()
        said.append({**tag, "similar_id": bool(tag["similar_id"]), "first_seen": bool(tag["first_seen"])})
    return said


@pytest.mark.parametrize(("name", "copies"), [("cascade", 5), ("simhash", 0)])
def test_verdicts_are_those_of_one_process(name: str, copies: int) -> None:
    method, read = make_method(name, {}), list[Ready]()
    alone = judged(method, None, [])
    for workers in (1, 2):
        read.clear()
        with preparing(name, workers) as pool:
            assert judged(method, pool, read) == alone
        assert sum(isinstance(one, Prepared) for one in read) > 80
    kinds = Counter(tag["verdict"] for tag in cast(list[dict[str, str]], alone))
    assert kinds["duplicate"] >= copies
    assert (kinds["unchanged"], kinds["updated"], kinds["unjudged"]) == (2, 1, 6)


def test_of_texts_of_which_a_process_dies_one_is_to_blame(tmp_path: Path) -> None:
    with preparing(Odd.name) as pool:
        assert told(asked(pool, page(1), page(2, "die"), page(3, "raise"), page(4))) == [
            "made",
            "too_large",
            "",
            "made",
        ]
        assert pool.replaced == 4, "all of them twice, and the one twice"
        assert told(asked(pool, page(5), page(6, f"die once:{tmp_path}/mark"))) == ["made", "made"]
        assert pool.replaced == 5


def test_of_texts_that_take_too_long_one_is_to_blame() -> None:
    with preparing(Odd.name, seconds=1) as pool:
        assert told(asked(pool, page(1), page(2, "hang"), page(3))) == ["made", "too_slow", "made"]
        assert told(asked(pool, page(4))) == ["made"]


@pytest.mark.skipif(sys.platform == "win32", reason="by a signal")
def test_a_process_that_somebody_kills_costs_nothing_and_the_next_one_learns_all() -> None:
    with preparing("cascade") as pool:
        asked(pool, page(1))
        [killed] = process_ids(pool)
        os.kill(killed, signal.SIGKILL)
        time.sleep(0.1)
        assert told(asked(pool, page(2), page(3))) == ["made", "made"]
        assert pool.replaced == 1


def test_where_none_can_be_started_it_is_said_why() -> None:
    with preparing(f"{__name__}.NotThere") as pool:
        assert isinstance(asked(pool, page(1)), NoReader)


def test_a_method_of_the_script_that_was_started_cannot_be_sent() -> None:
    assert TextTerms("cascade", {}, OPEN, 1.0).can_be_sent
    assert not TextTerms("__main__.Own", {}, OPEN, 1.0).can_be_sent
    assert not TextTerms("cascade", {"lexicon": Path("words.tsv")}, OPEN, 1.0).can_be_sent
    assert "aa" not in repr(TextTerms("cascade", {}, Keyed(b"\xaa" * 8), 1.0)).replace("cascade", "")
