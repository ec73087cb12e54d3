"""Pages in an order, and the verdict on each: what is a copy, what a new version, what leads a group.

A step is a page and its verdict: the kind, the host of the page that the verdict names (its original, or the page that
it supersedes), and whether it is by hand. A step of a name and a value is something that a person does: gives or takes
back a manual verdict, forgets a page, or changes a setting. A new crawl begins after it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrapy_neardup.judge.manual_verdicts import (
    ManualKind,
    ManualVerdict,
    remove_manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Kind, Likeness, Page, Verdict
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from tests.build import answer, find_record, make_detector, page, story

Step = tuple[Page, str] | tuple[str, Any]

TEXT, OTHER, THIRD = story(1, 40), story(2, 40), story(3, 40)
FIRST = page("first", TEXT, "标题甲", site="first.example")
COPY = page("copy", [*TEXT[1:], "本站转载。"], "标题甲", site="copy.example")
#: So different from the first page that it is filed as a witness, and a page that is only like the witness.
WITNESS = page("witness", TEXT[:34] + OTHER[:4], "标题甲", site="witness.example")
FURTHER = page("further", TEXT[9:34] + OTHER[:4], "标题乙", site="further.example")
#: The same three, of which the last is no copy of the first.
STEM, BRANCH, TWIG = (
    page(name, text, "标题甲", site=f"{name}.example")
    for name, text in (("stem", TEXT[:30]), ("branch", TEXT[:24] + OTHER[:8]), ("twig", TEXT[8:24] + OTHER[:8]))
)
ANOTHER = page("another", OTHER, "标题丙", site="another.example")
#: One article on five hosts, each time a little different.
WIRE, PAPER, TIMES, BLOG, LATE = (
    page(name, [*TEXT[:29], f"{name}的编辑部供稿。"], "标题甲", site=f"{name}.example")
    for name in ("wire", "paper", "times", "blog", "late")
)
HOSTS = ("times.example", "paper.example")


def at(where: Page, sentences: list[str], title: str = "") -> Page:
    """Another text at the URL of a page."""
    return replace(where, text="".join(sentences), title=title or where.title)


def more(one: Page, sentence: str = "更正：第一班船是空的。") -> Page:
    return replace(one, text=one.text + sentence)


BARE = Page("http://gallery.example/", "渔港", text="一张照片。", html=1, site="gallery.example")

SEQUENCES: dict[str, list[Step]] = {
    "a URL with the same text is unchanged, with another one updated": [
        (FIRST, "unique"),
        (FIRST, "unchanged first"),
        (more(FIRST), "updated"),
        (replace(more(FIRST), title="新的标题"), "updated"),
        (COPY, "duplicate first"),
        (COPY, "duplicate first"),
    ],
    "a page that only a witness is like is a copy of the original": [
        (FIRST, "unique"),
        (WITNESS, "duplicate first"),
        (FURTHER, "duplicate first"),
    ],
    "without the witness it may be an original": [(STEM, "unique"), (TWIG, "unique")],
    "an original that has become a copy keeps its place for its copies": [
        (FIRST, "unique"),
        (ANOTHER, "unique"),
        (page("third", OTHER), "duplicate another"),
        (at(ANOTHER, TEXT), "duplicate first"),
        (page("fourth", OTHER), "duplicate another"),
    ],
    "a page with little text passes again only if its source has changed": [
        (BARE, "unjudged"),
        (BARE, "unchanged gallery"),
        (replace(BARE, html=2), "unjudged"),
        (replace(BARE, html=2), "unchanged gallery"),
        (replace(BARE, html=2, url="http://b.example/"), "unjudged"),
        (at(BARE, THIRD), "unique"),
    ],
    "a page without text does not take the place of its article": [
        (FIRST, "unique"),
        (Page(FIRST.url, html=7), "unjudged"),
        (FIRST, "unchanged first"),
    ],
    "a delivered copy is unchanged, and a dropped one a duplicate again": [
        (FIRST, "unique"),
        ("drops", True),
        (COPY, "duplicate first"),
        (WITNESS, "duplicate first"),
        (COPY, "duplicate first"),
        ("drops", False),
        (COPY, "duplicate first"),
        (WITNESS, "duplicate first"),
        ("drops", True),
        (COPY, "unchanged first"),
        (WITNESS, "unchanged first"),
    ],
    "a delivered copy with another text is judged as any page": [
        ("drops", False),
        (FIRST, "unique"),
        (COPY, "duplicate first"),
        (more(COPY), "duplicate first"),
        (more(COPY), "unchanged first"),
        (at(COPY, THIRD), "updated"),
        (at(COPY, THIRD), "unchanged copy"),
    ],
    "a delivered text is known after another one was dropped in its place": [
        ("drops", False),
        (FIRST, "unique"),
        (ANOTHER, "unique"),
        (COPY, "duplicate first"),
        ("drops", True),
        (at(COPY, OTHER), "duplicate another"),
        (more(COPY), "duplicate first"),
        ("drops", False),
        (COPY, "unchanged first"),
    ],
    "an original that was delivered as a copy is unchanged": [
        ("drops", False),
        (FIRST, "unique"),
        (ANOTHER, "unique"),
        (at(ANOTHER, TEXT, FIRST.title), "duplicate first"),
        (at(ANOTHER, TEXT, FIRST.title), "unchanged first"),
    ],
    "an excerpt that was dropped passes once the policy says so": [
        (FIRST, "unique"),
        ("also_copies", frozenset([Likeness.EXCERPT])),
        (page("excerpt", TEXT[:12], "标题丁"), "duplicate first"),
        (page("excerpt", TEXT[:12], "标题丁"), "duplicate first"),
        ("also_copies", frozenset()),
        (page("excerpt", TEXT[:12], "标题丁"), "unique"),
    ],
    # Manual verdicts.
    "a kept page passes once and is an original from then on": [
        (FIRST, "unique"),
        (COPY, "duplicate first"),
        ("keep", COPY),
        (COPY, "unique by hand"),
        (COPY, "unchanged copy"),
        (replace(COPY, url="http://new.example/"), "duplicate copy"),
    ],
    "a kept witness does so, too": [
        (FIRST, "unique"),
        (WITNESS, "duplicate first"),
        ("keep", WITNESS),
        (WITNESS, "unique by hand"),
        (replace(WITNESS, url="http://new.example/"), "duplicate witness"),
    ],
    "a kept page that is edited passes as updated": [
        (FIRST, "unique"),
        ("keep", COPY),
        (COPY, "unique by hand"),
        (replace(COPY, text=more(FIRST).text), "updated by hand"),
    ],
    "a kept page need be no copy at first": [
        (FIRST, "unique"),
        ("keep", ANOTHER),
        (ANOTHER, "unique"),
        (replace(COPY, url=ANOTHER.url), "updated by hand"),
    ],
    "a manual verdict that is taken back does not count": [
        (FIRST, "unique"),
        ("keep", COPY),
        ("take back", COPY),
        (COPY, "duplicate first"),
    ],
    "a manual copy is one whatever the method says": [
        (FIRST, "unique"),
        (WITNESS, "duplicate first"),
        ("copy", (ANOTHER, WITNESS)),
        (ANOTHER, "duplicate first by hand"),
        ("drops", False),
        (ANOTHER, "duplicate first by hand"),
        (ANOTHER, "unchanged first"),
    ],
    "a delivered page that is called a copy stays": [
        (FIRST, "unique"),
        (ANOTHER, "unique"),
        ("copy", (ANOTHER, FIRST)),
        (ANOTHER, "unchanged another"),
        (more(ANOTHER), "duplicate first by hand"),
        (replace(ANOTHER, url="http://new.example/"), "duplicate another"),
    ],
    "a copy of an unknown page is judged as any page": [("copy", (ANOTHER, FIRST)), (ANOTHER, "unique")],
    "a manual copy is one only as long as that is said": [
        (FIRST, "unique"),
        ("copy", (ANOTHER, FIRST)),
        (ANOTHER, "duplicate first by hand"),
        ("copy", (ANOTHER, COPY)),
        (ANOTHER, "unique"),
    ],
    "of two pages that are called copies of each other one passes": [
        ("copy", (ANOTHER, FIRST)),
        ("copy", (FIRST, ANOTHER)),
        (FIRST, "unique"),
        (ANOTHER, "duplicate first by hand"),
        (more(FIRST), "updated"),
    ],
    # Better copies.
    "a better page passes and leads": [
        ("policy", HOSTS),
        (WIRE, "unique"),
        (PAPER, "better wire"),
        (BLOG, "duplicate paper"),
        (TIMES, "better paper"),
        (LATE, "duplicate times"),
    ],
    "a page that is as good or worse is not better": [
        ("policy", HOSTS),
        (TIMES, "unique"),
        (PAPER, "duplicate times"),
        (BLOG, "duplicate times"),
        (replace(LATE, url=f"{TIMES.url}again"), "duplicate times"),
    ],
    "without a policy the first one leads": [(WIRE, "unique"), (PAPER, "duplicate wire"), (TIMES, "duplicate wire")],
    "a group is known whatever the policy is later": [
        ("policy", HOSTS),
        (WIRE, "unique"),
        (TIMES, "better wire"),
        (BLOG, "duplicate times"),
        ("policy", "first"),
        (WIRE, "unchanged times"),
        (TIMES, "unchanged times"),
        (BLOG, "duplicate times"),
        (LATE, "duplicate times"),
        ("policy", HOSTS),
        (WIRE, "unchanged times"),
        (TIMES, "unchanged times"),
    ],
    "a dropped copy passes once a policy likes it better": [
        (WIRE, "unique"),
        (TIMES, "duplicate wire"),
        ("policy", HOSTS),
        (TIMES, "better wire"),
        (TIMES, "unchanged times"),
    ],
    "updates of a superseded page pass, and the better one leads": [
        ("policy", HOSTS),
        (WIRE, "unique"),
        (TIMES, "better wire"),
        (more(WIRE), "updated"),
        (more(WIRE), "unchanged times"),
        (more(more(WIRE)), "updated"),
        (more(more(WIRE)), "unchanged times"),
        (LATE, "duplicate times"),
    ],
    "a superseded page that was another article in between is delivered again": [
        ("policy", HOSTS),
        (WIRE, "unique"),
        (TIMES, "better wire"),
        (at(WIRE, THIRD), "updated"),
        (more(WIRE), "updated"),
        (LATE, "duplicate times"),
    ],
    "the better page leads when it changes": [
        ("policy", HOSTS),
        (WIRE, "unique"),
        (TIMES, "better wire"),
        (more(TIMES), "updated"),
        (LATE, "duplicate times"),
        (PAPER, "duplicate times"),
    ],
    "the better page that becomes another article leaves its place to the first": [
        ("policy", HOSTS),
        (WIRE, "unique"),
        (TIMES, "better wire"),
        (at(TIMES, THIRD), "updated"),
        (LATE, "duplicate wire"),
    ],
    "the first page that becomes another article leaves the group to the better one": [
        ("policy", HOSTS),
        (WIRE, "unique"),
        (TIMES, "better wire"),
        (at(WIRE, THIRD), "updated"),
        (LATE, "duplicate times"),
    ],
    "a copy of the better page that is none of the first cannot lead": [
        ("policy", ("twig.example", "branch.example")),
        (STEM, "unique"),
        (BRANCH, "better stem"),
        (TWIG, "duplicate branch"),
    ],
    "where copies are tagged all pass, and name the page that leads": [
        ("drops", False),
        ("policy", HOSTS),
        (WIRE, "unique"),
        (BLOG, "duplicate wire"),
        (TIMES, "better wire"),
        (LATE, "duplicate times"),
        (WIRE, "unchanged times"),
        (BLOG, "unchanged times"),
        (TIMES, "unchanged times"),
        (LATE, "unchanged times"),
    ],
}


def outcome(verdict: Verdict) -> str:
    tag = verdict.as_tag()
    named = site_of(tag["supersedes"] or tag["original"] or "").removesuffix(".example")
    return " ".join(filter(None, (verdict.kind.value, named, "by hand" if verdict.by_hand else "")))


def do(store: PageStore, what: str, value: Any, settings: dict[str, Any]) -> None:
    """Something that a person does."""
    if what == "keep":
        write_manual_verdicts(store, ManualVerdict(value.url, ManualKind.KEEP, "", 1))
    elif what == "copy":
        write_manual_verdicts(store, ManualVerdict(value[0].url, ManualKind.COPY, value[1].url, 1))
    elif what == "take back":
        remove_manual_verdicts(store, value.url)
    elif what == "forget":
        store.forget([find_record(store, value).id])
    else:
        settings[what] = value


@pytest.mark.parametrize("name", SEQUENCES)
def test_verdicts(name: str) -> None:
    """All pages of a group have one id, and the state is sound afterwards."""
    store, settings = memory_state({}), dict[str, Any](keep=Keep.EVIDENCE)
    detector, groups = make_detector(store, **settings), dict[str, str]()
    for number, (what, expected) in enumerate(SEQUENCES[name]):
        if isinstance(what, str):
            do(store, what, expected, settings)
            detector = make_detector(store, **settings)
            continue
        verdict = answer(detector, what)
        assert outcome(verdict) == expected, f"step {number}"
        assert (verdict.as_tag()["reason"] == "by_hand") is verdict.by_hand
        named = expected.removesuffix(" by hand").partition(" ")[2]
        if named in groups:
            assert verdict.similar_id == groups[named], f"step {number}"
        if verdict.kind in (Kind.UNIQUE, Kind.UPDATED, Kind.BETTER):
            groups[site_of(what.url).removesuffix(".example")] = verdict.similar_id
    found = check(store)
    assert set(found.counts) <= {"left over"}
    forgotten = sum(what == "forget" for what, _ in SEQUENCES[name])
    assert store.pages == len({what.url for what, _ in SEQUENCES[name] if isinstance(what, Page)}) - forgotten
