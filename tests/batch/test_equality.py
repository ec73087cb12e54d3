"""Batch gives the verdicts of one sequential run, whatever the parts."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.batch import pages
from scrapy_neardup.batch.counts import ExactCounts
from scrapy_neardup.batch.results import judged_pages
from scrapy_neardup.batch.rows import Topic
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Page
from scrapy_neardup.state.record import Record
from tests.batch import completed, judge_in_order, judge_in_parts, write_records
from tests.build import article_text, story

Records = list[dict[str, Any]]


def drawn(seed: int = 1, count: int = 66) -> Records:
    """Articles, copies with edits, new versions of pages, excerpts, short texts."""
    chance, records = random.Random(seed), Records()
    for number in range(count):
        sentences = story(1000 * seed + number, 12)
        record = {
            "url": f"http://s{number % 9}.example/{number}",
            "title": f"题目{number}\ud83d" if number % 7 == 1 else f"题目{number}",
        }
        if records and chance.random() < 0.6:
            other = chance.choice(records)
            sentences = other["text"].removesuffix("。").split("。")
            sentences = [f"{one}。" for one in sentences]
            for _ in range(chance.choice((0, 1, 2, 5))):
                sentences[chance.randrange(len(sentences))] = story(chance.randrange(10**6), 1)[0]
            if chance.random() < 0.3:
                record["url"] = other["url"]
            if chance.random() < 0.7:
                record["title"] = other["title"]
            if chance.random() < 0.2:
                sentences = sentences[: chance.randint(1, 8)]
        elif records and chance.random() < 0.2:
            record["url"] = chance.choice(records)["url"]  # another article at the same address
        records.append({**record, "text": "".join(sentences)})
    return records


def chain() -> Records:
    """Each page is a copy of the one before, and not of the one before that."""
    sentences = story(7, 42)
    return [
        {"url": f"http://{number}.example/", "title": "渡口", "text": "".join(sentences[2 * number : 2 * number + 12])}
        for number in range(15)
    ]


def one_key() -> Records:
    """All pages have one long sentence, so that its key is overused; every fifth page is a copy of an earlier one."""
    shared = "".join(story(5, 4)).replace("。", "，") + "。"
    families = [number if number % 5 else number // 2 for number in range(66)]
    return [
        {"url": f"http://{number}.example/", "title": f"题{family}", "text": shared + article_text(family)}
        for number, family in enumerate(families)
    ]


def one_site() -> Records:
    """A site with half of all pages, from HTML: a menu and a footer on each, copies of its own and of other sites."""
    menu, footer = ("".join(f"<p>{line}</p>" for line in story(seed, 3)) for seed in (1, 2))
    records = Records()
    for number in range(66):
        family = number if number % 4 else number // 3
        article = "".join(f"<p>{line}</p>" for line in story(100 + family, 8 + number % 3))
        title = f"消息{family}号"
        body = f"{menu}<article><h1>{title}</h1>{article}</article>{footer}"
        html = f"<html><title>{title}</title><body>{body}</body></html>"
        site = "big" if number % 2 else f"small{number}"
        records.append({"url": f"http://{site}.example/{number}", "html": html})
    return records


def one_disclaimer() -> Records:
    """A disclaimer on 60 sites, in texts that it makes alike; then pages with little else."""
    disclaimer = "".join(story(3, 5))
    texts = [*("".join(story(200 + number, 5)) for number in range(60)), *("".join(story(300, 1)) for _ in range(10))]
    return [
        {"url": f"http://p{number}.site{number}.example/", "title": f"告{number}", "text": text + disclaimer}
        for number, text in enumerate(texts)
    ]


def one_footer() -> Records:
    """A site with six sentences on all its pages, which are boilerplate from the 16th on; copies of its own pages."""
    footer = "".join(story(4, 6))
    families = [number if number % 3 else number // 2 for number in range(50)]
    return [
        {
            "url": f"http://one.example/{number}",
            "title": f"讯{family}",
            "text": "".join(story(400 + family, 4)) + footer,
        }
        for number, family in enumerate(families)
    ]


def one_menu() -> Records:
    """A site with a menu of long sentences, which give all keys until they are boilerplate; its articles elsewhere."""
    menu = "".join("".join(story(500 + number, 4)).replace("。", "，") + "。" for number in range(6))
    texts = ["".join(story(600 + number, 4)) for number in range(40)]
    here = [{"url": f"http://one.example/{at}", "title": f"闻{at}", "text": one + menu} for at, one in enumerate(texts)]
    return [*here, *({"url": f"http://{at}.example/", "title": f"见{at}", "text": one} for at, one in enumerate(texts))]


def one_line() -> Records:
    """Long articles with a short sentence, which gives no key: one on a site, another one on many sites."""
    lines, texts = story(6, 2), ["".join(story(700 + number, 20)) for number in (*range(84), 0)]
    return [
        {
            "url": f"http://{at * (at % 3 > 0)}.example/{at}",
            "title": f"文{chr(0x4E00 + at)}",
            "text": one + lines[at % 3 > 0],
        }
        for at, one in enumerate(texts)
    ]


def one_link() -> Records:
    """Pages that name an earlier page as canonical. It has their title, and many have no key in common with it."""
    records, texts = Records(), [story(800 + number, 12) for number in (*range(20), 0)]
    for number, text in enumerate(texts):
        link = f'<link rel="canonical" href="http://first{number}.example/">'
        for site, sentences in ("first", text), ("second", [*text[:3], *story(900 + number, 9)]):
            head = f"<title>录{number}</title>{link if site == 'second' else ''}"
            body = "".join(f"<p>{one}</p>" for one in sentences)
            records.append({"url": f"http://{site}{number}.example/", "html": f"{head}<article>{body}</article>"})
    return records


CASES = {
    make.__name__.removeprefix("one_"): make()
    for make in (drawn, chain, one_key, one_site, one_disclaimer, one_footer, one_menu, one_line, one_link)
}


@pytest.mark.parametrize(
    ("case", "parts"),
    [*((case, parts) for case in CASES for parts in (1, 7)), ("drawn", 2), ("drawn", 64), ("site", 64)],
)
def test_verdicts_do_not_depend_on_the_parts(case: str, parts: int, tmp_path: Path) -> None:
    records = CASES[case]
    name = write_records(tmp_path / "pages.jsonl", records)
    wanted = judge_in_order([name])
    assert len(Counter(one["verdict"] for one in wanted)) > 1
    assert judge_in_parts(tmp_path / "run", [name], -(-len(records) // parts)) == wanted


@pytest.mark.parametrize("case", ["site", "disclaimer", "drawn", "line"])
def test_the_parts_leave_the_records_and_counts_of_one_sequence(case: str, tmp_path: Path) -> None:
    name, exact, records = write_records(tmp_path / "pages.jsonl", CASES[case]), ExactCounts(), list[Record]()
    judge_in_order([name], counts=exact, records=records)
    run = completed(tmp_path / "run", [name], 20)
    pages = {one.record.id: one.record for part in run.parts for one in judged_pages(part) if one.record is not None}
    written = [record for _, record in sorted(pages.items())]
    assert [(one.url, one.keys, one.sketch) for one in written] == [(one.url, one.keys, one.sketch) for one in records]
    left = {topic: Counter[int]() for topic in (Topic.COUNT, Topic.BITS, Topic.FORM)}
    for part in run.parts:
        for topic, found in left.items():
            for row in next(part.rows_of(topic)).to_pylist():
                number, value = row["hash"] % 2**64, row["value"]
                found[number] = found[number] | value if topic is Topic.BITS else found[number] + value
    (numbers, counts), (sentences, bits) = exact.numbers.added(), exact.bits.added()
    assert +left[Topic.COUNT] == +Counter(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
    assert +left[Topic.BITS] == +Counter(dict(zip(sentences.tolist(), bits.tolist(), strict=True)))
    assert +left[Topic.FORM] == +Counter(exact.forms)
    assert all(left.values())


class Asked:
    """The counts of a site; it notes the sentences that a method asks about. ``is_all``: all are boilerplate."""

    def __init__(self, *, is_all: bool = False) -> None:
        self.sentences, self._is_all = set[int](), is_all

    def is_common(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        self.sentences.update(sentences.tolist())
        return np.full(len(sentences), self._is_all)

    is_own = is_common


@pytest.mark.parametrize("name", METHODS)
def test_a_fingerprint_needs_to_know_nothing_but_which_of_its_sentences_are_boilerplate(name: str) -> None:
    method, asked = make_method(name, {}), Asked()
    for record in drawn(1, 20):
        made = method.for_state(page := Page(record["url"], record["title"], text=record["text"]), asked)  # type: ignore[arg-type]  # it has no more
        assert asked.sentences <= set(made.sentences.tolist())
        assert method.for_state(page, None) == made
        stripped = method.for_state(page, Asked(is_all=True))  # type: ignore[arg-type]  # as above
        assert set(stripped.sentences.tolist()) == set(made.sentences.tolist())
        asked.sentences.clear()


def test_fingerprints_of_a_users_method_are_made_by_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys are unforeseen then, so parts are judged again."""
    monkeypatch.setattr(pages, "METHODS", {})
    name = write_records(tmp_path / "pages.jsonl", CASES["drawn"])
    assert judge_in_parts(tmp_path / "run", [name], 10) == judge_in_order([name])


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(3, 10**6), count=st.integers(2, 40), pages=st.integers(1, 15))
def test_drawn_archives_of_several_inputs(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, pages: int
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    records = drawn(seed, count)
    names = [write_records(folder / f"{at}.jsonl", records[at : at + 25]) for at in range(0, count, 25)]
    assert judge_in_parts(folder / "run", names, pages) == judge_in_order(names)
