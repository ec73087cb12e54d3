"""Small states that a detector has made, for tests of what looks after states."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.former import state_recipe
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.commands.run import scrapy_neardup

KINDS = ["sqlite", "leveldb"]
#: What a title or a URL may hold to steer a terminal.
HOSTILE = "梨\x1b[2J\x9b31m\u202e\u200f\r\nend"

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

_MADE: dict[tuple[str, Keep], dict[str, bytes]] = {}


def text(*sentences: str) -> str:
    return "".join(one + ("。" if one[0] > "\x7f" else ". ") for one in sentences)


PAGES = [
    (PEAR, "秋月梨早熟", text(*PEARS)),
    (BREAD, "Sisters buy the bakery", text(*BAKERY)),
    (EDITED, "两个星期的惊喜", text(*PEARS[:7], "转载请注明出处和作者")),
    (SAME, "秋月梨早熟", text(*PEARS)),
    (EXCERPT, "套袋的孩子", text(*PEARS[2:6])),
    (POWER, "通知", NOTICE),
    (POWER_AGAIN, "通知", NOTICE.replace("五号楼", "七号楼").replace("三月九日", "四月二日")),
    (SHORT, "短", "太短。"),
]


def page(url: str, title: str, body: str) -> Page:
    return Page(url, title, text=body, site=site_of(url), html=7)


def url_of(kind: str, path: Path) -> str:
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    return path.as_uri().replace("file", kind, 1)


@contextmanager
def opened(url: str) -> Iterator[PageStore]:
    store = open_store(url, state_recipe(make_method("cascade", {}), None))
    try:
        yield store
    finally:
        close_store(store)


def judged(
    store: PageStore, pages: Sequence[tuple[str, str, str]], *, keep: Keep = Keep.EVIDENCE, sealed: bool = True
) -> list[str]:
    """The headlines of the verdicts on these pages."""
    detector = Detector(make_method("cascade", {}), store, who="morning", policy=Policy(keep=keep))
    said = [detector.judge_now(page(*one), sealed=sealed).headline for one in pages]
    detector.end()
    return said


def made(kind: str, folder: Path, *, keep: Keep = Keep.EVIDENCE) -> str:
    """The URL of a state with all of the pages; made once, then a copy of those files."""
    place = folder / f"state.{kind}"
    url = url_of(kind, place)
    if (kind, keep) in _MADE:
        for name, content in _MADE[kind, keep].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return url
    with opened(url) as store:
        said = judged(store, PAGES, keep=keep)
    assert said == [
        *("unique", "unique", "duplicate (retitled)", "duplicate (identical)", "unique (excerpt)"),
        *("unique", "unique (same_title)", "unjudged (too_short)"),
    ]
    _MADE[kind, keep] = contents(folder, place)
    return url


def contents(folder: Path, place: Path) -> dict[str, bytes]:
    """What is in the files of a state, by name; without those that are there to lock it."""
    files = [place, *place.rglob("*")] if place.is_dir() else sorted(folder.glob(f"{place.name}*"))
    kept = [file for file in files if file.is_file() and file.name.lower() != "lock" and file.suffix != ".lock"]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in kept}


def aged(store: PageStore, urls: dict[str, float]) -> None:
    """Make these URLs last seen at other times, in seconds since 1970."""
    from scrapy_neardup.kv.base import Changes
    from scrapy_neardup.state.layout import pack_seen, url_key

    changes = Changes()
    for url, seconds in urls.items():
        record = store.find(url)
        assert record is not None
        changes.put(url_key(url, store.hashes), pack_seen(record.id, seconds))
    store.kv.write(changes, sync=True)


def records(url: str) -> dict[str, Record]:
    """All pages of a state by URL."""
    with opened(url) as store:
        return {record.url: record for record in store.records()}


def run(command: ModuleType, *arguments: str | Path, **settings: Any) -> int:
    """Runs a command in this process; returns the exit code."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    asked = parser.parse_args([str(one) for one in arguments])
    asked.settings = Settings(settings)
    code = command.run(asked)
    assert isinstance(code, int)
    return code


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def outcome(command: ModuleType, *arguments: str, state: str, capsys: pytest.CaptureFixture[str]) -> Outcome:
    """How a command ends: as a process of its own for SQLite; in this one, which is faster, for LevelDB."""
    if state.startswith("sqlite"):
        done = scrapy_neardup(command.NAME, *arguments, "--store", state, cwd=Path(state.partition("://")[2]).parent)
        return Outcome(done.returncode, done.stdout, done.stderr)
    capsys.readouterr()
    code = run(command, *arguments, "--store", state)
    return Outcome(code, *capsys.readouterr())


def plain(output: str, url: str) -> str:
    """Output without what differs from run to run, or with the method: times, ids, sizes, places, similarities."""
    output = output.replace(str(Path(url.partition("://")[2]).resolve()), "STATE")
    output = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "TIME", output)
    output = re.sub(r"\b[0-9a-f]{16}\b", "ID", output)
    output = re.sub(r"\b0\.\d{4}\b", "0.NNNN", output)
    return re.sub(r"\d+(\.\d+)? (bytes|kB)\b", "SIZE", output)


def is_harmless(output: str) -> bool:
    """Whether nothing in it could steer a terminal."""
    return not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", output)


def parsed(output: str) -> Any:
    return json.loads(output)
