"""NEARDUP_KEEP_POLICY: which of two copies is better, with every method, and in a merge of two states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrapy_neardup.judge.context import KeepPolicy
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Kind, Outcome, Page
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import newest_replacement
from scrapy_neardup.state.record import Evidence
from tests.build import answer, find_record, make_detector, outcome, page, story

TEXT, SPAM = story(3, 40), story(60, 40)


def kinds(policy: KeepPolicy, *pages: Page, method: str = "cascade") -> list[str]:
    """The verdicts on pages that come one after the other; excerpts are copies, too."""
    detector = make_detector(memory_state({}), method, policy=policy, also_copies={Kind.EXCERPT})
    return [answer(detector, one).outcome.value for one in pages]


def of_length(name: str, sentences: int) -> Page:
    return page(name, TEXT[:sentences], "标题甲")


def of_host(host: str, sentences: int) -> Page:
    """Hosts of one publisher."""
    return replace(of_length("a", sentences), url=f"http://{host}.a.example/")


def with_spam(sentences: int) -> Page:
    return page(f"spam{sentences}", TEXT[:30] + SPAM[:sentences], "标题甲")


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ((of_length("a", 30), of_length("b", 36)), "unique better"),
        ((of_length("a", 30), of_length("b", 32)), "unique duplicate"),
        ((of_length("a", 36), of_length("b", 30)), "unique duplicate"),
        # Much longer: of one publisher it is better, of another one both stay.
        ((of_host("m", 12), of_host("www", 40)), "unique better"),
        ((of_length("a", 12), of_length("b", 40)), "unique unique"),
        # The other one's copies are dropped, though a better page leads the first group.
        (
            [of_length(name, many) for name, many in zip("abcd", (25, 29, 35, 35), strict=True)],
            "unique better unique duplicate",
        ),
        # Each must be longer than the page that leads by then.
        (
            [of_host(name, many) for name, many in zip("abcde", (25, 30, 31, 34, 34), strict=True)],
            "unique better duplicate better duplicate",
        ),
        # The first page of a group is compared with the page that leads by then, not with its own earlier version.
        ((of_length("a", 25), of_length("b", 29), of_length("a", 37)), "unique better updated"),
        # A stranger's spam supersedes no article, in one step or in two.
        ((of_length("a", 30), with_spam(12)), "unique unique"),
        ((of_length("a", 30), with_spam(6), with_spam(12)), "unique better unique"),
        # Repeated sentences make no text longer.
        ((of_length("a", 30), replace(of_length("b", 30), text="".join(TEXT[:30] + TEXT[:10]))), "unique duplicate"),
    ],
)
def test_the_longest_page_is_better_from_a_tenth_more_on(pages: list[Page], expected: str) -> None:
    assert kinds("longest", *pages) == expected.split()


def test_a_part_of_an_article_never_takes_its_place() -> None:
    """Not with other text to make it longer, and not if the earlier page names it."""
    for policy in ["longest", "canonical"]:
        first = replace(of_length("a", 30), canonical="http://b.example/")
        part = page("b", TEXT[:19], "标题甲", canonical="http://b.example/")
        for one in (part, replace(part, text=part.text + "".join(story(61, 10)))):
            assert "better" not in kinds(policy, first, one)


def frame(host: str, entries: int) -> str:
    """Lines that stand around the articles of a site."""
    return "\n".join(f"{host}的第{number}个栏目里还有许多别的消息。" for number in range(entries))


def from_html(name: str, article: str, around: str = "") -> Page:
    """A page with a recognised article and lines around it."""
    text, site = f"{article}\n{around}", f"{name}.example"
    return Page(f"http://{site}/1", "标题甲", text=text, main=article, site=site, reader="article")


def test_menus_boilerplate_and_unknown_articles_make_no_page_longer() -> None:
    short, long = "\n".join(TEXT[:30]), "\n".join(TEXT[:36])
    unclear = replace(from_html("b", long), main="")
    for first, second, expected in [
        (from_html("a", short), from_html("b", short, frame("b", 8)), "duplicate"),
        (from_html("a", short, frame("a", 8)), from_html("b", long), "better"),
        (from_html("a", short), unclear, "duplicate"),
        (from_html("a", short), replace(unclear, reader="extractor"), "better"),  # an extractor of the user
    ]:
        assert kinds("longest", first, second) == ["unique", expected]
    framed = [page(f"p{number}", story(100 + number, 12) + story(50, 9), site="b.example") for number in range(30)]
    first = page("first", TEXT[:30], "标题甲", site="a.example")
    reposted = page("reposted", TEXT[:30] + story(50, 9), "标题甲", site="b.example")
    assert kinds("longest", *framed, first, reposted) == ["unique"] * 31 + ["duplicate"]


def test_some_methods_do_not_know_the_length_of_a_page_from_before_the_policy() -> None:
    for name, expected in (("cascade", Outcome.BETTER), ("shingle", Outcome.DUPLICATE)):
        parameters = MILD[name]
        store = memory_state({})
        assert outcome(make_detector(store, name, **parameters), of_length("a", 34)) is Outcome.UNIQUE
        assert outcome(make_detector(store, name, policy="longest", **parameters), of_length("b", 38)) is expected, name


def linked(name: str, to: str = "") -> Page:
    return page(name, [*TEXT, f"{name}的编辑部供稿。"], "标题甲", canonical=f"http://{to}.example/" if to else "")


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        # The earlier page names the later one.
        ("copy>origin origin", "unique better"),
        ("copy>origin origin>origin", "unique better"),
        # The earlier page names another one, the later one of its publisher names itself.
        ("m.copy>elsewhere www.copy>www.copy", "unique better"),
        ("copy>elsewhere other>other", "unique duplicate"),
        ("copy>elsewhere other", "unique duplicate"),
        # A page that names another one gives way, and takes no place.
        ("copy>origin origin>further", "unique duplicate"),
        ("copy>elsewhere other>elsewhere", "unique duplicate"),
        # A stranger's link to himself, or to the victim, supersedes nobody.
        ("victim stranger>stranger", "unique duplicate"),
        ("victim>victim stranger>stranger", "unique duplicate"),
        ("victim>victim stranger>victim", "unique duplicate"),
        # The page that the first one names leads.
        ("copy>origin other>other origin>origin late>late", "unique duplicate better duplicate"),
        # Two pages that name each other do not take turns.
        ("a>b b>a", "unique duplicate"),
    ],
)
def test_a_canonical_link_gives_its_own_place_away_and_takes_no_other(pages: str, expected: str) -> None:
    assert kinds("canonical", *(linked(*one.split(">")) for one in pages.split())) == expected.split()


@pytest.mark.parametrize(
    ("hosts", "first", "second", "expected"),
    [
        ("a.example", "http://b.example/1", "https://a.example/1", "better"),
        ("a.example", "http://b.example/1", "https://NEWS.A.example:8080/1", "better"),
        ("www.A.example.", "http://b.example/1", "https://news.a.example/1", "better"),
        ("a.example", "http://b.example/1", "https://aa.example/1", "duplicate"),
        ("a.example", "http://b.example/1", "https://a.example.evil.example/1", "duplicate"),
        ("a.example", "http://b.example/1", "https://evil.example/a.example/", "duplicate"),
        ("a.example", "http://a.example/1", "https://news.a.example/1", "duplicate"),
        ("a.example b.example", "http://b.example/1", "http://a.example/1", "better"),
        ("a.example b.example", "http://a.example/1", "http://b.example/1", "duplicate"),
        ("a.example news.a.example", "http://news.a.example/1", "http://a.example/1", "duplicate"),
        ("news.a.example a.example", "http://a.example/1", "http://news.a.example/1", "better"),
        ("例子.example", "http://b.example/1", "http://xn--fsqu00a.example/1", "better"),
        *(("a.example", url, "http://a.example/1", "better") for url in ("text:0123456789abcdef", "http://[/", "a17")),
        *(("a.example", "http://a.example/1", url, "duplicate") for url in ("text:0123", "http://[/", "", "a17")),
    ],
)
def test_the_first_host_of_the_list_is_the_best(hosts: str, first: str, second: str, expected: str) -> None:
    pages = [Page(url, "标题甲", text="".join([*TEXT, f"来源：{url}。"])) for url in (first, second)]
    assert kinds(tuple(hosts.split()), *pages) == ["unique", expected]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_every_policy(name: str) -> None:
    """The same text on another host names itself, and the first page names it."""
    first = page("wire", TEXT, "标题甲", canonical="http://times.example/")
    better = replace(first, url="http://times.example/", canonical="http://times.example/")
    third = replace(first, url="http://late.example/")
    for policy in (("times.example",), "canonical"):
        store = memory_state({})
        tags = [
            answer(make_detector(store, name, policy=policy), one).as_tag() for one in (first, better, third, better)
        ]
        assert [tag["verdict"] for tag in tags] == ["unique", "better", "duplicate", "unchanged"]
        assert (tags[1]["supersedes"], tags[2]["original"]) == (first.url, better.url)


#: Parameters under which much is alike.
MILD: dict[str, dict[str, Any]] = {
    **{key: {"equal": 1} for key in ("nshash", "segments", "supershingle")},
    **{key: {"similarity": 0.4} for key in ("shingle", "minhash", "cosine")},
    "punctuation": {"threshold": 1.0},
    "keywords": {"n": 2},
    "simhash": {"distance": 8},
    "cascade": {"base": 0.4},
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_knows_the_longer_of_two_copies(name: str) -> None:
    """If it finds that they are copies: and one page has an eighth more."""
    found = set()
    for first, second in ((24, 27), (27, 24)):
        detector = make_detector(memory_state({}), name, policy="longest", **MILD.get(name, {}))
        assert outcome(detector, of_length("a", first)) is Outcome.UNIQUE
        found.add((second, outcome(detector, of_length("b", second))))
    if name in ("idf_terms", "segments", "term_profile"):  # for these they are no copies
        assert found == {(27, Outcome.UNIQUE), (24, Outcome.UNIQUE)}
    elif name == "punctuation":  # too rough to say that one page holds the other
        assert found == {(27, Outcome.DUPLICATE), (24, Outcome.DUPLICATE)}
    else:
        assert found == {(27, Outcome.BETTER), (24, Outcome.DUPLICATE)}


HOSTS = ("times.example", "paper.example")
WIRE, TIMES, BLOG, LATE = (
    page(name, [*TEXT[:29], f"{name}的编辑部供稿。"], "标题甲", site=f"{name}.example")
    for name in ("wire", "times", "blog", "late")
)


@pytest.mark.parametrize("is_copy_here", [False, True])
def test_a_merge_takes_the_better_page_under_the_group_that_it_has_here(is_copy_here: bool) -> None:
    """If its original is a copy here, the better page is one of the copies."""
    ours, theirs = memory_state({}), memory_state({})
    for one in [BLOG] if is_copy_here else [page("other", story(7, 30)), WIRE]:
        answer(make_detector(ours, policy=HOSTS), one)
    for one in (WIRE, TIMES):
        answer(make_detector(theirs, policy=HOSTS), one)
    merge(theirs, ours, make_method("cascade", {}).with_hashes(ours.hashes))
    original = find_record(ours, BLOG if is_copy_here else WIRE)
    times, leader = find_record(ours, TIMES), newest_replacement(ours, original.id)
    assert (times.original, leader) == (original.id, None if is_copy_here else times)
    found = answer(make_detector(ours, policy=HOSTS), TIMES if is_copy_here else LATE)
    expected = (Outcome.UNCHANGED, BLOG.url) if is_copy_here else (Outcome.DUPLICATE, TIMES.url)
    assert (found.outcome, found.as_tag()["original"]) == expected
    assert set(check(ours).counts) <= {"left over"}


def test_the_state_keeps_what_pages_are_weighed_by_and_nothing_else() -> None:
    store = memory_state({})
    for one in (replace(WIRE, canonical="http://origin.example/"), page("other", story(5, 30))):
        answer(make_detector(store, policy="canonical"), one)
    assert store.evidence(find_record(store, WIRE).id) == Evidence(
        letters=len(WIRE.text), canonical="http://origin.example/"
    )
    assert len(list(store.rows(b"e"))) == 1
