"""Records that are read ahead in workers: their order, their number, and the same verdicts as of one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest

from scrapy_neardup.errors import ExtractionError, NearDupError, NoWorker
from scrapy_neardup.files import Entry, InputRecord, Malformed
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.immediate import ImmediateJudge
from scrapy_neardup.judge.records import Batch
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.source import PageContent
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.workers import prefetch
from scrapy_neardup.workers.pool import WorkerPool
from scrapy_neardup.workers.prefetch import Prefetcher, ReadAhead, Ready
from scrapy_neardup.workers.speculation import PreparedFingerprint
from scrapy_neardup.workers.tasks import FingerprintTask, ReadPage, ReadTask, WorkerOptions
from tests.build import story
from tests.workers.users import SECRET, Method, fingerprints, opened


def prepared(url: str = "") -> PreparedFingerprint:
    return PreparedFingerprint(Fingerprint((), url.encode()))


class Pool:
    """In the place of a pool of workers: answers at once, or on demand and the last task first."""

    size = 2

    def __init__(self, answer: Callable[[Any], Any], *, is_idle: bool = False, starts: bool = True) -> None:
        """``is_idle``: answers on demand. ``starts``: whether a worker has started."""
        self.answer = answer
        self.is_idle = is_idle
        self.starts = starts
        self.tasks: list[Any] = []
        self.futures: list[Future[Any]] = []

    def submit(self, task: object, on_start: Callable[[], None] = lambda: None) -> Future[Any]:
        self.tasks.append(task)
        self.futures.append(Future())
        if self.starts:
            on_start()
        if not self.is_idle:
            self.futures[-1].set_result(self.answer(task))
        return self.futures[-1]

    def answer_all(self) -> None:
        for task, future in reversed([*zip(self.tasks, self.futures, strict=True)]):
            if not future.done():
                future.set_result(self.answer(task))


def page_pool(*, is_idle: bool = False) -> Pool:
    def answer(task: ReadTask) -> ReadPage:
        return ReadPage(Page(task.raw.url), prepared(task.raw.url))

    return Pool(answer, is_idle=is_idle)


def text_pool(answer: object = None, *, is_idle: bool = False, starts: bool = True) -> Pool:
    def answer_pages(task: FingerprintTask) -> object:
        return answer or [prepared(page.url) for page in task.pages]

    return Pool(answer_pages, is_idle=is_idle, starts=starts)


def groups(pool: Pool) -> list[list[str]]:
    return [[page.url for page in task.pages] for task in pool.tasks]


def content(entry: Entry) -> PageContent | Page | None:
    html, text = entry.fields.get("html"), entry.fields.get("text")
    if isinstance(text, str):
        return Page(str(entry.number), text=text)
    return PageContent(str(entry.number), html) if isinstance(html, str) else None


def entry(number: int, html: str | None = "<p>", text: str | None = None) -> Entry:
    return Entry("feed", number, "line", {"html": html, "text": text})


def texts(many: int, text: str = "渡口") -> Iterator[Entry]:
    return (entry(number, None, text) for number in range(many))


def read(
    records: Iterable[InputRecord], pages: Pool | None = None, texts: Pool | None = None, **more: int
) -> Iterator[tuple[InputRecord, ReadAhead]]:
    pools: list[Any] = [pages, texts]
    return Prefetcher(content, pools[0], pools[1], **more).read(records)


def number_and_url(found: tuple[InputRecord, ReadAhead]) -> tuple[int, str | None]:
    """The number of a record, and the URL whose fingerprint came with it."""
    record, ahead = found
    if not isinstance(ahead.ready, PreparedFingerprint):
        return record.number, None
    return record.number, ahead.ready.fingerprint.sketch.decode()


def test_records_keep_their_order_whichever_page_is_read_first() -> None:
    pool = page_pool(is_idle=True)

    def records() -> Iterator[InputRecord]:
        yield from (entry(1), entry(2, None), Malformed("feed", 3, "line", "no JSON"), entry(4))
        pool.answer_all()

    found = [*read(records(), pool)]
    assert [*map(number_and_url, found)] == [(1, "1"), (2, None), (3, None), (4, "4")]
    assert [ahead.answer for _, ahead in found] == [Page("1"), None, None, Page("4")]


@pytest.mark.parametrize(("html", "most"), [("<p>", 64), ("x" * 100, 10)])
def test_the_pages_that_are_read_ahead_have_bounds(html: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "_MOST_BYTES", 1_000)
    pool = page_pool()
    for place, found in enumerate(read((entry(number, html) for number in range(200)), pool)):
        assert number_and_url(found) == (place, str(place))
        assert len(pool.tasks) <= place + most
    assert len(pool.tasks) == 200


def test_the_texts_that_are_read_ahead_are_as_many_as_keep_the_workers_busy() -> None:
    taken = []

    def records() -> Iterator[Entry]:
        for one in texts(300):
            taken.append(one)
            yield one

    for place, _ in enumerate(read(records(), None, text_pool())):
        assert len(taken) <= place + 80
    assert len(taken) == 300


def test_an_error_comes_after_the_records_before_it() -> None:
    def records() -> Iterator[InputRecord]:
        yield from map(entry, range(3))
        raise NearDupError("the file ends in the middle")

    found = read(records(), page_pool())
    assert [number_and_url(next(found)) for _ in range(3)] == [(0, "0"), (1, "1"), (2, "2")]
    with pytest.raises(NearDupError):
        next(found)


def test_the_first_pages_and_texts_are_not_worth_a_process() -> None:
    expected = [(0, None), (1, None), (2, None), (3, "3"), (4, "4")]
    assert [*map(number_and_url, read(map(entry, range(5)), page_pool(), first_pages=3))] == expected
    assert [*map(number_and_url, read(texts(5), None, text_pool(), first_characters=5))] == expected


def test_texts_are_sent_in_groups() -> None:
    pages, pool = page_pool(), text_pool()
    records = [entry(number, text=None if number % 10 == 3 else "渡口") for number in range(100)]
    found = [*read(records, pages, pool)]
    assert [*map(number_and_url, found)] == [(number, str(number)) for number in range(100)]
    assert all((ahead.page is None) == (ahead.answer is not None) for _, ahead in found)
    assert [len(group) for group in groups(pool)] == [16] * 5 + [10]


def test_a_group_is_sent_once_it_is_large_or_one_of_its_texts_is_needed() -> None:
    pool = text_pool()
    records = [entry(number, text="渡" * (60_000 if number < 4 else 1)) for number in range(6)]
    assert [*map(number_and_url, read(records, None, pool))] == [(number, str(number)) for number in range(6)]
    assert groups(pool) == [["0", "1"], ["2", "3"], ["4", "5"]]


def test_texts_are_left_to_the_judge_if_no_worker_can_start() -> None:
    pool = text_pool(NoWorker("too_slow", "no memory"))
    found = [*read(texts(200), None, pool)]
    assert [(record.number, ahead.ready) for record, ahead in found] == [(number, None) for number in range(200)]
    assert len(pool.tasks) == 5, "no more are sent"


def test_groups_that_were_judged_before_a_worker_started_are_cancelled() -> None:
    pool = text_pool(is_idle=True, starts=False)
    records = read(texts(100), None, pool)
    for number in range(33):
        assert number_and_url(next(records)) == (number, None)
    assert [future.cancelled() for future in pool.futures] == [True, True, *[False] * (len(pool.futures) - 2)]


def odd_records() -> list[dict[str, Any]]:
    """Records with their text: new ones, copies, versions, boilerplate, quotes, too little, nothing, nonsense."""
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


def judged(
    name: str, pool: WorkerPool | None, records: Iterable[dict[str, Any]]
) -> tuple[list[dict[str, object]], list[Ready]]:
    """The verdicts on records, and the fingerprints that workers made."""
    store = open_store("memory:", {}, secret=Secret(SECRET))
    detector = Detector(make_method(name, {}), store, who="test")
    batch = Batch(ImmediateJudge(detector), fields=DEFAULT_FIELDS, id_field="id", max_html=100_000, extractor=None)
    prefetcher = Prefetcher(batch.coming, None, pool)
    if prefetcher._texts:
        prefetcher._texts._has_started = True  # so that it waits for the first texts as for all others
    tags, ready = list[dict[str, object]](), list[Ready]()
    for record, found in prefetcher.read(Entry("feed", number, "line", one) for number, one in enumerate(records)):
        assert isinstance(record, Entry)
        ready.append(found.ready)
        tag = batch.judge(record, found).verdict.as_tag()
        tags.append({**tag, "similar_id": bool(tag["similar_id"]), "first_seen": bool(tag["first_seen"])})
    return tags, ready


@pytest.mark.slow
@pytest.mark.parametrize(("name", "copies"), [("cascade", 5), ("simhash", 0)])
def test_verdicts_are_those_of_one_process(name: str, copies: int) -> None:
    alone, _ = judged(name, None, odd_records())
    for size in (1, 2):
        with opened(WorkerOptions(30.0, None, fingerprints(name)), size) as pool:
            tags, ready = judged(name, pool, odd_records())
        assert tags == alone
        assert sum(isinstance(one, PreparedFingerprint) for one in ready) > 80
    kinds = Counter(cast(str, tag["verdict"]) for tag in alone)
    assert kinds["duplicate"] >= copies
    assert (kinds["unchanged"], kinds["updated"], kinds["unjudged"]) == (2, 1, 6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("orders", "seconds", "expected", "replaced"),
    [
        # The worker dies of the group twice, and twice of the page.
        (["", "die", "raise", ""], 30.0, ["", "too_large", None, ""], 4),
        (["", "die once:{}", ""], 30.0, ["", "", ""], 1),
        (["", "hang", ""], 1.0, ["", "too_slow", ""], 2),
        (["hang"], 1.0, ["too_slow"], 1),
    ],
)
def test_one_text_of_a_group_is_to_blame(
    orders: list[str], seconds: float, expected: list[str | None], replaced: int, tmp_path: Path
) -> None:
    records = [
        {"id": number, "title": order.format(tmp_path / "mark"), "text": "\n".join(story(number))}
        for number, order in enumerate(orders)
    ]
    with opened(WorkerOptions(seconds, None, fingerprints(Method.name))) as pool:
        _, ready = judged(Method.name, pool, records)
        reasons = [one.reason if isinstance(one, ExtractionError) else None if one is None else "" for one in ready]
        assert reasons == expected
        assert pool.replaced == replaced
