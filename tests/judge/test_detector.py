"""The detector: kinds, candidates, evidence, overused keys, boilerplate, pages that were not read."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import pytest

from scrapy_neardup.errors import Reason
from scrapy_neardup.inspect.pages import inspect_pages
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, Ruled
from scrapy_neardup.judge.lists import ManualKind, ManualVerdict, write_manual_verdicts
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.model import Kind, Outcome, Page
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from scrapy_neardup.state.record import Keep, Record
from tests.build import (
    answer,
    find_record,
    make_detector,
    outcome,
    page,
    reserve,
    story,
    story_without_numbers,
    summary,
)


@pytest.fixture
def store() -> PageStore:
    return memory_state({})


@pytest.fixture
def detector(store: PageStore) -> Detector:
    return make_detector(store)


# Kinds.

HEADLINE, OTHER_HEADLINE = "渡口清晨开航第一班", "图书馆夜间开放"
# Its beginning holds the keys of the longest sentences of the whole: without one, an excerpt is not found.
LONG = sorted(story(5, 20), key=len, reverse=True)
FIRST = page("first", LONG, HEADLINE)
ALIKE = {
    Kind.IDENTICAL: page("second", LONG, OTHER_HEADLINE),
    Kind.NEAR: page("second", [*LONG[1:], *story(2, 2)], HEADLINE),
    Kind.RETITLED: page("second", [*LONG[1:], *story_without_numbers(2, 2)], OTHER_HEADLINE),
    Kind.EXCERPT: page("second", LONG[:7], OTHER_HEADLINE),
    Kind.SAME_TITLE: page("second", story(2), HEADLINE),
}
PASSING = [Kind.EXCERPT, Kind.SAME_TITLE]


@pytest.mark.parametrize("kind", Kind)
def test_a_verdict_names_the_kind_and_the_policy_decides_what_is_a_copy(kind: Kind) -> None:
    for also_copies in (set[Kind](), {kind}):
        detector = make_detector(memory_state({}), also_copies=also_copies)
        first = answer(detector, FIRST)
        assert summary(first) == (Outcome.UNIQUE, None, None)
        for _ in range(2 if also_copies else 1):
            found = answer(detector, ALIKE[kind])
            is_copy = kind not in PASSING or kind in also_copies
            assert summary(found) == (Outcome.DUPLICATE if is_copy else Outcome.UNIQUE, kind, "first")
            assert (found.similar_id == first.similar_id) is is_copy
            assert found.match is not None
            assert set(found.match.shared) <= {sentence.rstrip("。") for sentence in LONG}
            assert bool(found.match.shared) is (kind is not Kind.SAME_TITLE)


@pytest.mark.parametrize(
    ("earlier", "also_copies", "expected"),
    [
        ("copied excerpt title", set(), (Outcome.DUPLICATE, Kind.RETITLED, "copied")),
        ("excerpt title", set(), (Outcome.UNIQUE, Kind.EXCERPT, "excerpt")),
        ("title", set(), (Outcome.UNIQUE, Kind.SAME_TITLE, "title")),
        ("near excerpt", {Kind.EXCERPT}, (Outcome.DUPLICATE, Kind.NEAR, "near")),
    ],
)
def test_the_best_match_is_a_copy_before_an_excerpt_before_the_same_title(
    store: PageStore, earlier: str, also_copies: Set[Kind], expected: object
) -> None:
    """Similarity decides only among matches of one kind: the page with the same title is the most similar here."""
    pages = {
        "copied": page("copied", [*LONG[:16], *story(2, 2)], "灯塔修缮老人志愿"),
        "near": page("near", [*LONG[:16], *story(2, 2)], HEADLINE),
        "excerpt": page("excerpt", LONG[:6], "茶园采摘工人合作"),
        "title": page("title", [*LONG[6:16], *story(4, 6)], HEADLINE),
    }
    for name in earlier.split():
        answer(make_detector(store), pages[name])
    found = answer(make_detector(store, also_copies=also_copies), page("new", LONG[:16], HEADLINE))
    assert summary(found) == expected
    assert found.match is not None
    assert found.match.similarity > 0.25


def test_a_drop_says_whether_an_earlier_text_of_its_url_was_delivered(detector: Detector) -> None:
    new, other = ALIKE[Kind.NEAR], page("other", story(9))
    for one in (FIRST, other):
        answer(detector, one)
    for copy, was_delivered in ((new, False), (new, False), (replace(other, text=FIRST.text, title=FIRST.title), True)):
        ruling = detector.check(copy)
        assert isinstance(ruling, Ruled)
        assert (ruling.verdict.outcome, ruling.was_delivered) == (Outcome.DUPLICATE, was_delivered)


def test_a_dropped_copy_keeps_its_record_when_its_text_changes(detector: Detector) -> None:
    answer(detector, FIRST)
    copy = ALIKE[Kind.NEAR]
    assert len({answer(detector, replace(copy, text=copy.text + more)).id for more in ("", "更正：今天停航。")}) == 1


def test_a_dropped_copy_stays_one_though_its_text_is_boilerplate_by_now(
    store: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, guarded = ALIKE[Kind.NEAR], Cascade.fingerprint_own
    assert [outcome(make_detector(store), one) for one in (FIRST, copy)] == [Outcome.UNIQUE, Outcome.DUPLICATE]
    monkeypatch.setattr(Cascade, "fingerprint_own", lambda *given: replace(guarded(*given), own=0))
    assert outcome(make_detector(store), copy) is Outcome.DUPLICATE
    assert answer(make_detector(store), page("other", story(7))).reason == "boilerplate"


# Candidates.


@pytest.mark.parametrize(
    ("sites", "filed"), [(1, 16), (20, METHODS["cascade"].common), (52, 30)], ids=["one site", "some", "many"]
)
def test_a_sentence_of_many_originals_is_no_evidence_and_its_postings_stop_growing(
    detector: Detector, store: PageStore, sites: int, filed: int
) -> None:
    """On one site and on many it soon is boilerplate; on some its key is overused first."""
    disclaimer = (
        "本文仅代表作者个人观点与本站立场无关转载请注明出处如有侵权请在三十日内与编辑部联系我们将及时处理" * 2 + "。"
    )
    key = make_method("cascade", {}).with_hashes(store.hashes).fingerprint(Page("", text=disclaimer)).keys[0]
    for number in range(METHODS["cascade"].common + 20):
        site = f"{number % sites}.example"
        assert outcome(detector, page(f"site{number}", [*story(100 + number), disclaimer], site=site)) is Outcome.UNIQUE
    assert len(store.postings(key, 1000)) == filed


def test_the_canonical_link_proposes_a_page_or_the_leader_of_its_group_and_the_text_decides() -> None:
    """Every sentence is edited, so the few keys miss the page, though its shingles are much the same."""
    text, other = story(1, 20), [*story(1, 15), *story(2, 8)]
    texts = {"first": text, "copy": [*text, "由编辑部转载。"], "better": other}
    kinds = {"first": Outcome.UNIQUE, "copy": Outcome.DUPLICATE, "better": Outcome.BETTER}
    for there, own, named, expected in [
        ("first", text, "first", Outcome.DUPLICATE),
        ("first", text, "none", Outcome.UNIQUE),
        ("first", story(9), "first", Outcome.UNIQUE),
        ("first copy", text, "copy", Outcome.DUPLICATE),
        ("first better", other[4:], "better", Outcome.DUPLICATE),
        ("first better", other[4:], "first", Outcome.UNIQUE),
    ]:
        detector = make_detector(memory_state({}), policy=("better.example",), shingle_keys=1, sentence_keys=1)
        for name in there.split():
            assert outcome(detector, page(name, texts[name], "标题甲")) is kinds[name]
        edited = [sentence[:14] + "的" + sentence[14:] for sentence in own]
        new = page("new", edited, "标题甲", canonical=f"http://{named}.example/")
        assert outcome(detector, new) is expected, (there, named)


# Pages with little text, and pages that were not read.


@pytest.mark.parametrize("reason", ["too_slow", "too_large"])
def test_an_unread_page_passes_and_is_unchanged_the_next_time(detector: Detector, reason: Reason) -> None:
    url = "http://river.example/ferry"
    unread = Page(url, html=7, unread=reason, body=5)
    assert detector.check_bytes(url, 5) is None
    steps = [
        (unread, f"unjudged ({reason})"),
        (unread, "unchanged"),
        (replace(unread, url=f"{url}/2"), f"unjudged ({reason})"),
        (replace(unread, html=8, body=6), f"unjudged ({reason})"),
        (Page(url, text="".join(story(1, 12)), html=9), "unique"),
        (Page(url, unread=reason), f"unjudged ({reason})"),
    ]
    for number, (one, expected) in enumerate(steps):
        verdict = answer(detector, one)
        assert verdict.headline == expected, number
        assert expected != "unchanged" or verdict.as_tag()["similarity"] == verdict.as_tag()["containment"] == 1.0
        assert (detector.check_bytes(url, 5) is not None) is (number < 3), number


# A page in flight that was given up, and manual verdicts.


def test_a_new_version_that_gave_up_a_page_in_flight_is_updated(detector: Detector) -> None:
    answer(detector, FIRST)
    new = replace(FIRST, text="".join(story(9, 20)))
    slow = reserve(detector, replace(new, url="http://slow.example/"))
    assert detector.check(new) == Blocked(slow)
    ruling = detector.check(new, [slow])
    assert isinstance(ruling, Ruled)
    assert (ruling.verdict.outcome, ruling.verdict.reason) == (Outcome.UPDATED, "")


@pytest.mark.parametrize("name", METHODS)
def test_a_page_of_a_former_recipe_has_manual_copies_and_is_updated_when_it_comes(store: PageStore, name: str) -> None:
    other = page("other", story(9, 20))
    answer(make_detector(store, name), FIRST)
    former = store.new_id()
    store.add(Record(former, FIRST.url, former, former=True), replaces=find_record(store, FIRST).id)
    write_manual_verdicts(store, ManualVerdict(other.url, ManualKind.COPY, FIRST.url, 0))
    found = answer(make_detector(store, name), other)
    assert summary(found) == (Outcome.DUPLICATE, Kind.NEAR, "first")
    assert found.by_hand
    assert find_record(store, other).similarity > 0  # else `explain` names no original
    assert outcome(make_detector(store, name), FIRST) is Outcome.UPDATED


# The near miss: the page that was nearly the original, with the decision of that moment.


def notice(number: int, own: int = 6) -> Page:
    """A notice in a form: titles and some sentences differ."""
    title = f"第{number}号通告 港口{story(number, 1)[0][:6]}"
    text = "".join([*story(1, 24), *story(10 + number, own)])
    return Page(f"http://town.example/{number}", title, text=text, site="town.example")


def test_a_page_that_passed_keeps_its_most_similar_near_miss_with_the_decision() -> None:
    """Unless the state keeps no evidence, or a person decided."""
    store, silent = (memory_state({}, secret=NO_SECRET) for _ in range(2))
    write_manual_verdicts(store, ManualVerdict(notice(4).url, ManualKind.KEEP, "", 0))
    far, near, new = notice(1, own=12), notice(2), notice(3)
    pages = far, near, new, notice(4), page("other", story(99))
    assert {outcome(make_detector(store, keep=Keep.EVIDENCE), one) for one in pages} == {Outcome.UNIQUE}
    (shown,) = inspect_pages(store, [find_record(store, new)])
    why = shown["near_miss"]["why"]
    assert shown["near_miss"]["url"] == near.url
    assert why.startswith("similarity 0.")
    assert why.endswith("They are about two things.")
    (first, second, _, kept, _) = inspect_pages(store, [find_record(store, one) for one in pages])
    assert [one["near_miss"] and one["near_miss"]["url"] for one in (first, second, kept)] == [None, far.url, None]
    assert {outcome(make_detector(silent), one) for one in (near, new)} == {Outcome.UNIQUE}
    assert next(silent.rows(b"e"), None) is None


@pytest.mark.parametrize("turn", [1, -1])
def test_nearly_equal_pages_pass_if_a_third_shows_a_form_and_the_decision_knows_that(
    store: PageStore, turn: int
) -> None:
    detector = make_detector(store, keep=Keep.EVIDENCE)
    plover, heron, egret = (
        replace(notice(3), url=f"http://town.example/{name}", title=f"渡口 {name}", text=f"{notice(3).text}{more}。")
        for name, more in (("plover", "plover"), ("heron", ""), ("egret", "港口"))
    )
    first, second = (plover, heron)[::turn]
    assert outcome(detector, first) is Outcome.UNIQUE
    in_flight, ruled = reserve(detector, second), detector.check(egret)
    assert isinstance(ruled, Ruled), "it waits for none"
    assert ruled.reservation is not None
    detector.release(ruled.reservation)
    detector.commit(in_flight, sealed=True)
    assert outcome(detector, egret) is Outcome.UNIQUE
    (shown,) = inspect_pages(store, [find_record(store, egret)])
    assert (shown["near_miss"]["url"], "two things" in shown["near_miss"]["why"]) == (heron.url, True)


# Boilerplate.

CLAUSES = story(9, 12)


def board(number: int, *, clauses: list[str] = CLAUSES, site: str = "board.example") -> Page:
    """Short news, 81 letters, above a disclaimer that is four times as long; ``number`` also makes its HTML."""
    text = "\n".join([*story(1000 + number, 3), *clauses])
    return Page(f"http://{site}/{number}", f"第{number}号短讯", text=text, html=number + 1, site=site)


def known(store: PageStore, sentences: list[str] = CLAUSES, site: str = "board.example") -> int:
    """How many of these the state knows for boilerplate of a site."""
    method = make_method("cascade", {}).with_hashes(store.hashes)
    counted = method.fingerprint(Page("", text="\n".join(sentences))).sentences
    return int(store.on_site(site).is_common(counted).sum())


def test_pages_that_differ_in_a_fifth_pass_and_are_unchanged_once_the_rest_is_boilerplate(
    detector: Detector, store: PageStore
) -> None:
    for number in range(40):
        assert summary(answer(detector, board(number))) == (Outcome.UNIQUE, None, None)
        assert known(store) == (len(CLAUSES) if number >= 15 else 0)
    assert {outcome(detector, board(number)) for number in range(32)} == {Outcome.UNCHANGED}
    changed = board(3).text.replace(CLAUSES[0], "另有一条。")
    assert outcome(detector, replace(board(3), text=changed)) is Outcome.UPDATED


@pytest.mark.parametrize("number", [0, 7, 15, 16, 30], ids="filed {}".format)
@pytest.mark.parametrize("site", ["board.example", "mirror.example"])
def test_a_copy_with_boilerplate_is_found_whenever_that_was_known(detector: Detector, number: int, site: str) -> None:
    for one in range(32):
        answer(detector, board(one))
    copy = replace(board(number), url=f"http://{site}/copy", site=site)
    assert summary(answer(detector, copy))[:2] == (Outcome.DUPLICATE, Kind.IDENTICAL)
    longer = replace(copy, url=f"http://{site}/longer", text=f"{copy.text}\n本报记者现场报道")
    found = answer(detector, longer)
    if (number < 16) == (site == "board.example"):
        # Four fifths of the earlier sketch are boilerplate, and the rest shows only identity. Or the sketch lacks them,
        # and to another site they are no boilerplate: then it holds a fifth of the other page.
        assert found.outcome is Outcome.UNIQUE
    else:
        assert (found.outcome, found.match and found.match.url) == (Outcome.DUPLICATE, board(number).url)


def test_a_page_of_boilerplate_passes_again_only_if_its_html_has_changed(detector: Detector) -> None:
    menu = Page("http://board.example/menu", "版面目录", text="\n".join(CLAUSES[:6]), html=99, site="board.example")
    for number in range(16):
        answer(detector, board(number))
    for html in (99, 100):
        found = answer(detector, replace(menu, html=html))
        assert (found.outcome, found.reason, found.kind, found.match) == (Outcome.UNJUDGED, "boilerplate", None, None)
        assert outcome(detector, replace(menu, html=html)) is Outcome.UNCHANGED
    assert answer(detector, replace(menu, url="http://board.example/second")).reason == "boilerplate"


def test_a_page_counts_once_and_only_if_its_item_came_through(detector: Detector, store: PageStore) -> None:
    for number in range(40):
        detector.release(reserve(detector, board(number)))
        withdrawn = reserve(detector, board(0))
        detector.commit(withdrawn, sealed=False)
        detector.roll_back(withdrawn.record.id)
    for number in range(15):
        answer(detector, board(number))
    for number in range(100, 120):
        seen = replace(board(number), url=board(3).url)
        assert [outcome(detector, seen) for _ in range(2)] == [Outcome.UPDATED, Outcome.UNCHANGED]
    copy = replace(board(7), url="http://board.example/copy")
    assert [outcome(detector, copy) for _ in range(20)] == [Outcome.DUPLICATE] * 20
    assert known(store) == 0
    answer(detector, board(15))
    assert known(store) == len(CLAUSES)


def test_the_share_of_forms_on_a_site_counts_copies_and_no_later_version(
    detector: Detector, store: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = Cascade.compare
    monkeypatch.setattr(Cascade, "compare", lambda *given: replace(compare(*given), in_form=True))
    pages = [page(f"page{number}", story(100 + number), site="town.example") for number in range(30)]
    copies = [replace(one, url=f"{one.url}{end}") for end in ("copy", "another") for one in pages[:20]]
    updates = [replace(one, text=one.text + "更正：今天的会议改期。") for one in pages]
    for some, expected in ((pages + copies[:20] + updates, 0.0), (copies[20:], 40 / 70)):  # 64 pages are enough
        for one in some:
            answer(detector, one)
        assert store.on_site("town.example").template_share() == expected


@pytest.mark.parametrize("drops", [True, False])
@pytest.mark.parametrize(("sites", "own"), [(1, 0), (1, 1), (60, 0), (60, 1), (60, 3)])
def test_a_popular_article_does_not_become_boilerplate(store: PageStore, sites: int, own: int, drops: bool) -> None:
    """60 hosts bring it, or one site. With three sentences of its own a copy is a variant, which counts for a site."""
    detector = make_detector(store, drops=drops)
    for number in range(60 if sites > 1 else 20):
        text, site = [*LONG[: 20 - own], *story_without_numbers(500 + number, own)], f"host{number % sites}.example"
        found = answer(detector, page(f"host{number}", text, HEADLINE, site=site))
        assert summary(found)[::2] == ((Outcome.DUPLICATE, "host0") if number else (Outcome.UNIQUE, None))
    assert own == 3 or known(store, LONG, "host0.example") == 0
    assert known(store, LONG) == 0


OTHERS = "barge{} ferry{} egret{}"


@pytest.mark.parametrize(
    ("site", "title", "reader", "copies"),
    [
        ("a.example", OTHERS, "", 15),
        ("a.example", OTHERS, "prose", 19),  # of HTML the lines show a form
        ("a.example", f"{HEADLINE} {{}}", "", 19),  # one article with a counter in its title
        ("", OTHERS, "", 19),
    ],
)
def test_an_equal_text_under_many_titles_of_a_site_is_its_form(
    detector: Detector, site: str, title: str, reader: str, copies: int
) -> None:
    pages = [page(f"p{n}", LONG, title.replace("{}", chr(0x61 + n) * 2), site=site) for n in range(20)]
    found = [answer(detector, replace(one, reader=reader)) for one in pages]
    assert [one.is_copy for one in found] == [False, *[True] * copies, *[False] * (19 - copies)]
    assert {one.reason for one in found[copies + 1 :]} <= {"boilerplate"}


def test_a_copy_counts_once_though_it_copies_another_page_each_time(detector: Detector, store: PageStore) -> None:
    texts = LONG, story(6, 20)
    for name, text in zip(("first", "second"), texts, strict=True):
        answer(detector, page(name, text, HEADLINE, site="a.example"))
    for number in range(40):
        copy = page(
            "copy", [*texts[number % 2][:18], *story_without_numbers(700 + number, 2)], HEADLINE, site="a.example"
        )
        assert outcome(detector, copy) is Outcome.DUPLICATE
    assert known(store, [*LONG, *texts[1]], "a.example") == 0
