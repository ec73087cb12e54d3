"""Pages in an order, and the verdict on each: what is a copy, what a new version, what leads a group.

A step names a page and its verdict: the kind, the host of the page that the verdict names (its original, or the page
that it supersedes), and ``by hand``. ``FIRST+`` is a page with one more sentence, ``FIRST@host`` the same page on
another host, and ``FIRST=OTHER`` has the text of another page. ``reserve`` leaves a page in flight until ``commit`` or
``lose``; another one ``waits`` for it. Other steps are what a person does: ``keep``, ``copy``, ``undo`` (of a manual
verdict), ``forget``, or a setting. A new crawl begins after them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled
from scrapy_neardup.judge.lists import ManualKind, ManualVerdict, remove_manual_verdicts, write_manual_verdicts
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Kind, Outcome, Page, Verdict
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from scrapy_neardup.state.record import Keep
from tests.build import answer, find_record, make_detector, page
from tests.build import story_without_numbers as story

TEXT, OTHER = story(1, 40), story(2, 40)
TEXTS = {
    "first": TEXT,
    "copy": [*TEXT[1:], "本站转载。"],
    # So different from the first page that it is filed as a variant, and a page that is only like the variant.
    "variant": TEXT[:34] + OTHER[:4],
    "further": TEXT[3:32] + OTHER[:6],
    # The same three; the last is no copy of the first.
    "stem": TEXT[:30],
    "branch": TEXT[:24] + OTHER[:8],
    "twig": TEXT[8:24] + OTHER[:8],
    # Like the variant, but not enough for a copy of a variant.
    "remote": TEXT[14:34] + OTHER[:8],
    "another": OTHER,
    "third": story(3, 40),
    "excerpt": TEXT[:12],
    # All of the first page and 80 % more: neither is a copy of the other by the method.
    "longer": [*TEXT, *story(4, 32)],
    "longer2": [*TEXT, *story(5, 32)],
    # One article on five hosts, each time a little different.
    **{name: [*TEXT[:29], f"{name}的编辑部供稿。"] for name in ("wire", "paper", "times", "blog", "late")},
}
TITLES = {"another": "标题丙", "third": "标题丁", "excerpt": "标题戊"}
PAGES = {
    **{
        name.upper(): page(name, text, TITLES.get(name, "标题甲"), site=f"{name}.example")
        for name, text in TEXTS.items()
    },
    "RETITLED": page("first", TEXT, "新的标题", site="first.example"),
    # Without a known site, so that the first page alone is never enough.
    "FURTHER": page("further", TEXTS["further"], "别的消息"),
    "RENAMED": page("further", TEXTS["further"], "新来的消息"),
    "EMPTY": Page("http://first.example/", html=7, site="first.example"),
    "BARE": Page("http://bare.example/", "渔港", text="一张照片。", html=1, site="bare.example"),
    # Rows of a listing.
    "ROW": Page("http://row.example/", "渔港", text="一张照片。", html=1, row=True),
    "LISTED": Page("http://listed.example/", "渔港", text="".join(TEXT[:5]), html=1, row=True),
    "RELISTED": Page("http://listed.example/", "渔港", text="".join(TEXT[:5]), html=2, row=True),
    "CHANGED": Page("http://bare.example/", "渔港", text="一张照片。", html=2, site="bare.example"),
}


def parse_sequences(text: str) -> dict[str, str]:
    """The steps of each sequence by its name, which stands above them."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            name, found[line] = line, ""
        else:
            found[name] += line
    return found


SEQUENCES = parse_sequences("""
a URL with the same text is unchanged, with another text or title updated
    FIRST unique; FIRST unchanged first; FIRST+ updated; RETITLED updated; COPY duplicate first; COPY duplicate first
a page that only a variant is like is a copy of the original
    FIRST unique; VARIANT duplicate first; FURTHER duplicate first
an original that has become a copy keeps its place for its copies
    FIRST unique; ANOTHER unique; ANOTHER@x duplicate another; ANOTHER=FIRST duplicate first;
    ANOTHER@y duplicate another
a page with little text passes again only if its source has changed
    BARE unjudged; BARE unchanged bare; CHANGED unjudged; CHANGED unchanged bare; CHANGED@x unjudged;
    BARE=THIRD unique
equal rows with little text all pass in one crawl, and are unchanged in the next
    ROW unjudged; ROW unjudged; drops yes; ROW unchanged row
none of them waits for another
    reserve ROW unjudged; ROW unjudged; commit ROW; drops yes; ROW unchanged row
a row with enough text passes again only if its source has changed
    LISTED unjudged; LISTED unchanged listed; RELISTED updated; RELISTED unchanged listed; FIRST unique
it waits for an equal row
    reserve LISTED unjudged; LISTED waits listed; RELISTED unjudged; commit LISTED; LISTED unchanged listed
a delivered copy is unchanged, and a dropped one a duplicate again
    FIRST unique; COPY duplicate first; VARIANT duplicate first; COPY duplicate first; drops no; COPY duplicate first;
    VARIANT duplicate first; drops yes; COPY unchanged first; VARIANT unchanged first
a delivered text is known after another one was dropped in its place
    drops no; FIRST unique; ANOTHER unique; COPY duplicate first; drops yes; COPY=ANOTHER duplicate another;
    COPY+ duplicate first; drops no; COPY unchanged first
a dropped copy comes again: it is dropped, though only a forgotten variant was like it
    FIRST unique; VARIANT duplicate first; FURTHER duplicate first; forget VARIANT; FURTHER duplicate first;
    FURTHER duplicate first; FURTHER@x unique
also with the text that it had last
    FIRST unique; VARIANT duplicate first; FURTHER duplicate first; FURTHER+ duplicate first; forget VARIANT;
    FURTHER+ duplicate first; FURTHER unique
it keeps its group, though another original is more like it by now
    FIRST unique; COPY duplicate first; keep ANOTHER; ANOTHER=COPY unique by hand; COPY@x duplicate another;
    COPY duplicate first
but not with another title
    FIRST unique; VARIANT duplicate first; FURTHER duplicate first; forget VARIANT; RENAMED unique
nor under another threshold
    FIRST unique; VARIANT duplicate first; FURTHER duplicate first; forget VARIANT; set base 0.56; FURTHER unique
nor under another least length
    FIRST unique; VARIANT duplicate first; FURTHER duplicate first; forget VARIANT; set min_letters 41; FURTHER unique
nor under another policy
    FIRST unique; VARIANT duplicate first; FURTHER duplicate first; forget VARIANT; also_copies same_title;
    FURTHER unique
nor by its similarity: another article at its URL passes
    FIRST unique; VARIANT duplicate first; FURTHER duplicate first; forget VARIANT; FURTHER=THIRD unique
a kept page passes once and is an original from then on
    FIRST unique; COPY duplicate first; keep COPY; COPY unique by hand; COPY unchanged copy; COPY@x duplicate copy
a manual verdict that is taken back does not count
    copy ANOTHER FIRST; FIRST unique; ANOTHER duplicate first by hand; undo ANOTHER; ANOTHER unique
a manual copy is one whatever the method says
    FIRST unique; VARIANT duplicate first; copy ANOTHER VARIANT; ANOTHER duplicate first by hand; drops no;
    ANOTHER duplicate first by hand; ANOTHER unchanged first
a delivered page that is called a copy stays
    FIRST unique; ANOTHER unique; copy ANOTHER FIRST; ANOTHER unchanged another; ANOTHER+ duplicate first by hand;
    ANOTHER@x duplicate another
a manual copy of a superseded page or of its copy is one of the better page, if it is not that page itself
    policy times; WIRE unique; TIMES better wire; BLOG duplicate times; copy ANOTHER WIRE; copy THIRD BLOG;
    ANOTHER duplicate times by hand; THIRD duplicate times by hand; THIRD@x duplicate times; copy TIMES WIRE;
    TIMES+ duplicate wire by hand; forget WIRE; copy LONGER TIMES; LONGER duplicate times by hand
a copy of an unknown page, or of one without text, is judged as any page
    copy ANOTHER FIRST; ANOTHER unique; BARE unjudged; copy THIRD BARE; THIRD unique
of two pages that are called copies of each other one passes
    copy ANOTHER FIRST; copy FIRST ANOTHER; FIRST unique; ANOTHER duplicate first by hand; FIRST+ updated
a group is known whatever the policy is later
    policy times paper; WIRE unique; TIMES better wire; BLOG duplicate times; policy; WIRE unchanged times;
    TIMES unchanged times; BLOG duplicate times; LATE duplicate times; policy times paper; WIRE unchanged times;
    TIMES unchanged times
updates of a superseded page pass, and the better one leads
    policy times paper; WIRE unique; TIMES better wire; WIRE+ updated; WIRE+ unchanged wire; WIRE++ updated;
    WIRE++ unchanged wire; LATE=WIRE duplicate times; LATE@x duplicate times
so do updates of the better page
    policy times; WIRE unique; TIMES better wire; WIRE+ updated; TIMES+ better wire; LATE@x duplicate times
whatever the policy is later
    policy times; WIRE unique; TIMES better wire; WIRE+ updated; policy; TIMES+ updated
their copies are known once the better page is rolled back
    policy times paper; WIRE unique; TIMES better wire; WIRE+ updated; withdraw TIMES; LATE duplicate wire
a delivered page that becomes a copy of an older text is a duplicate of the better page
    policy times paper; WIRE unique; THIRD unique; TIMES better wire; THIRD=BLOG duplicate times
updates of a better page that is superseded itself pass, too
    policy times paper; WIRE unique; PAPER better wire; TIMES better paper; PAPER+ updated; PAPER++ updated;
    LATE duplicate times
the better page that becomes another article leaves its place to the first
    policy times paper; WIRE unique; TIMES better wire; TIMES=THIRD updated; LATE duplicate wire
a copy that was dropped for the better page leads once that is forgotten
    policy times paper; WIRE unique; TIMES better wire; PAPER duplicate times; forget TIMES; PAPER better wire
a copy of the better page that is none of the first cannot lead
    policy twig branch; STEM unique; BRANCH better stem; TWIG duplicate branch
a page waits for a copy and for another version of itself
    reserve FIRST unique; COPY waits first; FIRST+ waits first; ANOTHER unique; lose FIRST; COPY unique;
    FIRST duplicate copy
a page that only a variant in flight is like waits for it
    drops no; FIRST unique; reserve VARIANT duplicate first; FURTHER waits variant; commit VARIANT;
    FURTHER duplicate first
a page that is no copy by a variant does not wait for one
    drops no; FIRST unique; reserve VARIANT duplicate first; REMOTE unique
a delivered copy whose original is withdrawn is unchanged
    drops no; FIRST unique; COPY duplicate first; withdraw FIRST; COPY unchanged copy; FIRST unique
two better pages wait for each other, and a worse one for none
    policy times paper; WIRE unique; reserve PAPER better wire; TIMES waits paper; BLOG duplicate wire; commit PAPER;
    TIMES better paper
updates pass after a longer page with the same text
    FIRST unique; LONGER unique; FIRST+ updated; FIRST++ updated; FIRST++ unchanged first
whatever counts as a copy
    FIRST unique; also_copies excerpt; LONGER unique; FIRST+ updated; FIRST++ updated; FIRST++ unchanged first
and whichever page is preferred
    FIRST unique; policy longer; LONGER unique; FIRST+ updated; policy longest; FIRST++ updated; FIRST++ unchanged first
a version whose earlier one is withdrawn while it is in flight takes its place
    FIRST unique; FIRST+ updated; reserve FIRST++ updated; withdraw FIRST; commit FIRST++; FIRST++ unchanged first;
    COPY duplicate first
a page elsewhere that takes over each version drops no later one
    FIRST unique; LONGER unique; FIRST+ updated; LONGER+ updated; FIRST++ updated; LONGER++ updated; FIRST+++ updated
an old page that takes over an article is newer than the article
    LONGER=THIRD unique; FIRST unique; LONGER updated; FIRST+ updated
a page that becomes a copy of an older one is a duplicate
    LONGER unique; ANOTHER unique; LONGER2 unique; ANOTHER=FIRST duplicate longer
a delivered copy stays one when its original is updated
    drops no; FIRST unique; COPY duplicate first; FIRST+ updated; COPY=FIRST duplicate first
better pages that are withdrawn leave their places to those before them
    policy times paper; WIRE unique; PAPER better wire; TIMES better paper; withdraw TIMES; TIMES better paper;
    withdraw TIMES; withdraw PAPER; LATE duplicate wire
""")


def find_page(name: str) -> Page:
    name, _, text = name.partition("=")
    name, _, host = name.partition("@")
    found = PAGES[name.rstrip("+")]
    added = "更正：第一班船是空的。" * name.count("+")
    if host:
        return replace(found, url=f"http://{host}.example/", site=found.site and f"{host}.example")
    return replace(found, text=find_page(text).text if text else found.text + added)


def outcome(verdict: Verdict) -> str:
    tag = verdict.as_tag()
    named = site_of(tag["supersedes"] or tag["original"] or "").removesuffix(".example")
    return " ".join(filter(None, (verdict.outcome.value, named, "by hand" if verdict.by_hand else "")))


def do(store: PageStore, what: str, names: list[str], settings: dict[str, Any]) -> None:
    pages = [PAGES[name] for name in names if name in PAGES]
    if what in ("keep", "copy"):
        other = pages[1].url if what == "copy" else ""
        write_manual_verdicts(store, ManualVerdict(pages[0].url, ManualKind(what), other, 1))
    elif what == "undo":
        remove_manual_verdicts(store, pages[0].url)
    elif what == "forget":
        store.forget([find_record(store, pages[0]).id])
    elif what == "set":
        settings[names[0]] = float(names[1]) if "." in names[1] else int(names[1])
    elif what == "drops":
        settings["drops"] = names == ["yes"]
    elif what == "also_copies":
        settings["also_copies"] = frozenset(map(Kind, names))
    else:
        assert what == "policy"
        settings["policy"] = names[0] if names == ["longest"] else tuple(f"{name}.example" for name in names) or "first"


@pytest.mark.parametrize("name", SEQUENCES)
def test_verdicts(name: str) -> None:
    """All pages of a group have one id, and the state is sound afterwards."""
    store, settings = memory_state({}, secret=NO_SECRET), dict[str, Any](keep=Keep.EVIDENCE)
    detector, groups, in_flight = make_detector(store, **settings), dict[str, str](), dict[str, Reservation]()
    for step in map(str.split, SEQUENCES[name].split(";")):
        what, expected = step[0], " ".join(step[1:])
        if what in ("commit", "lose", "withdraw"):
            if (reservation := in_flight.pop(step[1], None)) is None:
                assert what == "withdraw"
                detector.roll_back(find_record(store, find_page(step[1])).id)
            elif what == "commit":
                detector.commit(reservation, sealed=True)
            else:
                detector.release(reservation)
            continue
        if what == "reserve":
            ruled = detector.check(find_page(step[1]))
            assert isinstance(ruled, Ruled)
            assert ruled.reservation is not None
            assert outcome(ruled.verdict) == " ".join(step[2:]), step
            in_flight[step[1]] = ruled.reservation
            groups.pop(site_of(ruled.verdict.url).removesuffix(".example"), None)
            continue
        if what.islower():
            do(store, what, step[1:], settings)
            detector = make_detector(store, **settings)
            continue
        wanted = find_page(what)
        if step[1] == "waits":
            ruling = detector.check(wanted)
            assert isinstance(ruling, Blocked)
            assert site_of(ruling.by.record.url) == f"{step[2]}.example"
            continue
        verdict = answer(detector, wanted)
        assert outcome(verdict) == expected, step
        assert (verdict.as_tag()["reason"] == "by_hand") is verdict.by_hand
        named = expected.removesuffix(" by hand").partition(" ")[2]
        if named in groups:
            assert verdict.similar_id == groups[named], step
        if verdict.outcome in (Outcome.UNIQUE, Outcome.UPDATED, Outcome.BETTER):
            groups[site_of(wanted.url).removesuffix(".example")] = verdict.similar_id
    assert set(check(store).counts) <= {"left over"}
