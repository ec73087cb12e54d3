"""Builders for tests: articles, pages, records, detectors, and small states in memory and on disk.

Texts: ``story`` makes sentences that no other seed has, ``article_text`` one of several versions of an article.
Pages: ``page`` (from sentences), ``article_page``. States: ``memory_state({})``, ``make_state`` (files).
Verdicts: ``make_detector``, then ``kind``, ``answer``, ``judge_page`` or ``reserve``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.judge.context import KeepPolicy, Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation, Ruled
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.kv.leveldb import LevelDB
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Outcome, Page, Verdict
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.layout import meta_key, pack_seen, url_key
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import pack_recipe
from scrapy_neardup.state.record import Keep, Record
from scrapy_neardup.state.records import ids_of, number_of

#: The kinds of states that are files.
KINDS = ["sqlite", "leveldb"]
#: What a title or a URL may hold to steer a terminal.
HOSTILE = "梨\x1b[2J\x9b31m\u202e\u200f\r\nend"

# Texts

WORDS = re.findall(
    r"\w+",
    """
    渔港 灯塔 修缮 志愿 老人 图书 阅览 夜间 开放 河道 清淤 水位 上涨 茶园 采摘 工人 合作 价格 稳定 列车 停靠 站台 乘客
    学校 食堂 菜单 学生 投票 球场 草坪 更换 比赛 推迟 博物馆 陶罐 出土 年代 专家 意见 桥面 铺装 车辆 绕行 公告 市民 反映
""",
)


def story(seed: int, sentences: int = 16) -> list[str]:
    """Sentences of an article that has nothing to do with that of another seed."""
    chance = random.Random(seed)
    return ["".join(chance.choices(WORDS, k=12)) + f"{chance.randint(100, 999)}。" for _ in range(sentences)]


def story_without_numbers(seed: int, sentences: int = 16) -> list[str]:
    """A story; of two versions under other titles none has a number that the other lacks."""
    return [re.sub(r"\d", "", one) for one in story(seed, sentences)]


def article_text(family: int, version: int = 0) -> str:
    """An article; versions of one family are near-duplicates of each other, families have nothing in common."""
    return "".join(story(family, 12)) + f"由{chr(0x6C5F + version)}报编辑部转载。"


def join_text(*sentences: str) -> str:
    """Chinese and English sentences with their full stops."""
    return "".join(one + ("。" if one[0] > "\x7f" else ". ") for one in sentences)


# Pages


def page(name: str, sentences: Sequence[str], title: str = "", canonical: str = "", site: str = "") -> Page:
    """The page http://NAME.example/."""
    return Page(f"http://{name}.example/", title or name, text="".join(sentences), canonical=canonical, site=site)


def article_url(family: int, version: int = 0) -> str:
    """Each version of an article is on a host of its own."""
    return f"http://{version}.example/{family}"


def article_page(family: int, version: int = 0) -> Page:
    """A version of an article, with the title that all versions have."""
    return Page(article_url(family, version), f"标题{family}", text=article_text(family, version))


def record(n: int, *keys: int, size: int = 200) -> Record:
    """The n-th record of a state, an original; all of it follows from n, so that a wrong byte shows."""
    noise = random.Random(n)
    id = 1_700_000_000_000_000_000 + n
    own = keys or tuple(noise.getrandbits(40) for _ in range(6))
    return Record(id, f"https://news.example.cn/{n}.html", id, 1.0, own, noise.randbytes(size))


# Verdicts


def make_detector(
    store: PageStore,
    method: str = "cascade",
    *,
    drops: bool = True,
    keep: Keep = Keep.NOTHING,
    policy: KeepPolicy = "first",
    also_copies: Set[Kind] = frozenset(),
    min_letters: int = 40,
    who: str = "test",
    passes: Callable[[Verdict], bool] | None = None,
    bounds: Bounds | None = None,
    on_expired: Callable[[int], None] = lambda pages: None,
    **parameters: Any,
) -> Detector:
    """The detector of one more crawl, which ``drops`` copies or lets them pass. Parameters are the method's."""
    chosen = Policy(
        min_letters=min_letters,
        also_copies=also_copies,
        passes=passes or (lambda verdict: not (drops and verdict.is_copy)),
        keep=keep,
        keep_policy=policy,
    )
    chosen_method = make_method(method, parameters)
    return Detector(chosen_method, store, who=who, policy=chosen, bounds=bounds, on_expired=on_expired)


def judge_page(detector: Detector, wanted: Page) -> Ruled:
    """The ruling on a page whose item comes through."""
    ruling = detector.check(wanted)
    assert isinstance(ruling, Ruled)
    if ruling.reservation is not None:
        detector.commit(ruling.reservation, sealed=True)
    return ruling


def answer(detector: Detector, wanted: Page) -> Verdict:
    """The verdict on a page whose item comes through."""
    return judge_page(detector, wanted).verdict


def outcome(detector: Detector, wanted: Page) -> Outcome:
    """The outcome of the verdict on a page whose item comes through."""
    return answer(detector, wanted).outcome


def reserve(detector: Detector, wanted: Page) -> Reservation:
    """The reservation of a page that passes and is in flight."""
    ruling = detector.check(wanted)
    assert isinstance(ruling, Ruled)
    assert ruling.reservation is not None
    return ruling.reservation


def summary(found: Verdict) -> tuple[Outcome, Kind | None, str | None]:
    """Outcome, kind, and the name of the page that decided, as ``page`` takes it."""
    like = found.match.url.removeprefix("http://").removesuffix(".example/") if found.match else None
    return found.outcome, found.kind, like


# States in memory


def find_record(store: PageStore, of: Page) -> Record:
    found = store.find(of.url)
    assert found is not None
    return found


# A state on disk: eight pages, with copies

PEARS = [
    "今年的秋月梨比往年早熟了将近两个星期，合作社的冷库已经腾空",
    "果农老周说，四月里那场冻害让半个山头的花都落了",
    "县里新修的水渠在七月底通水，坡地上的树第一次没有受旱",
    "收购价定在每斤三块六毛，比去年高出四毛钱",
    "村小学的孩子们周六来园里帮忙套袋，每人带走了一箱梨",
    "电商站点的打包机连夜运转，第一天就发出一千二百单",
    "农技员提醒大家，采摘后的十天内要施足基肥并清理落叶",
    "明年合作社打算把老品种砍掉三成，改种晚熟的新高梨",
]
BAKERY = [
    "The bakery behind the tram depot has been sold to the two sisters who ran its counter",
    "They mean to keep the wood oven, which was built by their great-uncle in 1931",
    "From the first of May the shop will open at five in the morning for the drivers",
    "The rye loaf that made the place known will be baked on four days instead of two",
    "Neighbours had collected eleven thousand signatures against a parking garage",
    "An apprentice from the village school starts in the autumn",
    "Whoever brings back an old paper bag gets a roll for nothing",
]
NOTICE = (
    "停电通知：因变压器检修，梨园小区五号楼将于三月九日上午八时至下午五时停电，请居民提前做好准备，不便之处敬请谅解。"
)

PEAR, BREAD, POWER = "https://orchard.example/pears", "https://daily.example/bakery", "https://town.example/notice/5"
EDITED, SAME, EXCERPT = "https://www.mirror.example/p/7", "https://mirror.example/p/8", "https://news.orchard.example/9"
POWER_AGAIN, SHORT = "https://town.example/notice/7", "https://town.example/short"

PAGES = [
    (PEAR, "秋月梨早熟", join_text(*PEARS)),
    (BREAD, "Sisters buy the bakery", join_text(*BAKERY)),
    (EDITED, "两个星期的惊喜", join_text(*PEARS[:7], "转载请注明出处和作者")),
    (SAME, "秋月梨早熟", join_text(*PEARS)),
    (EXCERPT, "套袋的孩子", join_text(*PEARS[2:6])),
    (POWER, "通知", NOTICE),
    (POWER_AGAIN, "通知", NOTICE.replace("五号楼", "七号楼").replace("三月九日", "四月二日")),
    (SHORT, "短", "太短。"),
]


#: Engines in files.
FILE_ENGINES: dict[str, type[FileEngine]] = {"leveldb": LevelDB, "sqlite": SQLite}
_MADE: dict[tuple[str, Keep], dict[str, bytes]] = {}


def state_url(kind: str, path: Path) -> str:
    """The URL of a state of this kind; the test is skipped if the kind needs a library that is missing."""
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    return path.as_uri().replace("file", kind, 1)


def make_state(kind: str, folder: Path, *, keep: Keep = Keep.EVIDENCE) -> str:
    """The URL of a state with ``PAGES``; made once in a test run, later copied."""
    place = folder / f"state.{kind}"
    url = state_url(kind, place)
    if (kind, keep) in _MADE:
        for name, content in _MADE[kind, keep].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return url
    with open_state(url) as store:
        found = judge_pages(store, PAGES, keep=keep)
    assert found == [
        *("unique", "unique", "duplicate (retitled)", "duplicate (identical)", "unique (excerpt)"),
        *("unique", "unique (same_title)", "unjudged (too_short)"),
    ]
    _MADE[kind, keep] = state_files(folder, place)
    return url


@contextmanager
def open_state(url: str, recipe: dict[str, Any] | None = None) -> Iterator[PageStore]:
    """The state as a crawl opens it: with the default method, or with this recipe."""
    store = open_store(url, state_recipe(make_method("cascade", {}), None) if recipe is None else recipe)
    try:
        yield store
    finally:
        close_store(store)


def put(
    store: PageStore, url: str = "https://ferry.example/1", *keys: int, generation: int = 0, replaces: int = 0
) -> Record:
    """File an original under these keys."""
    id = store.new_id()
    record = Record(id, url, id, 1.0, keys, b"sketch")
    store.add(record, generation=generation, replaces=replaces)
    return record


def judge_pages(
    store: PageStore, pages: Sequence[tuple[str, str, str]], *, keep: Keep = Keep.EVIDENCE, sealed: bool = True
) -> list[str]:
    """Judge pages (URL, title, text) in one crawl; returns the headlines of the verdicts."""
    detector = make_detector(store, keep=keep, who="morning")
    verdicts = [
        detector.judge_now(Page(url, title, text=text, site=site_of(url), html=7), sealed=sealed)
        for url, title, text in pages
    ]
    detector.end()
    return [verdict.headline for verdict in verdicts]


def read_records(url: str) -> dict[str, Record]:
    with open_state(url) as store:
        return {record.url: record for record in store.records()}


def state_files(folder: Path, place: Path) -> dict[str, bytes]:
    """The files of a state by name, without locks."""
    files = [place, *place.rglob("*")] if place.is_dir() else sorted(folder.glob(f"{place.name}*"))
    kept = [file for file in files if file.is_file() and file.name.lower() != "lock" and file.suffix != ".lock"]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in kept}


def set_extractor(url: str, name: str) -> None:
    """Have a state as another version of trafilatura would have written it."""
    store = open_store(url, None)
    store.write(Changes({meta_key("recipe"): pack_recipe({**store.recipe, "extractor": name})}))
    close_store(store)


def set_last_seen(store: PageStore, urls: dict[str, float]) -> None:
    """Set when URLs were last seen, in seconds since 1970."""
    changes = Changes()
    for url, seconds in urls.items():
        record = store.find(url)
        assert record is not None
        changes.put(url_key(url, store.hashes), pack_seen(record.id, seconds))
    store.kv.write(changes, sync=True)


def pairs(row: Row) -> list[tuple[int, int]]:
    """The keys and ids in a row of postings, of either layout."""
    return [(number_of(row[0]), id) for id in ids_of(row)]


# Random steps


def run_machine(machine: Any, examples: int, steps: int, *, derandomize: bool = False) -> None:
    """Let Hypothesis walk through a state machine; ``machine`` makes one."""
    from hypothesis import HealthCheck, settings
    from hypothesis.stateful import run_state_machine_as_test

    calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=derandomize)
    few = settings(calm, max_examples=examples, stateful_step_count=steps)
    run_state_machine_as_test(machine, settings=few)
