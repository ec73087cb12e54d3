"""Which of two copies is the better one, by each of the policies."""

from __future__ import annotations

from dataclasses import replace

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import KeepPolicy, Policy, Preference, make_preference
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Likeness, Page
from scrapy_neardup.state.opening import memory_state
from tests.build import answer, page, story

TEXT = story(3, 40)


def kinds(policy: KeepPolicy, *pages: Page, method: str = "cascade") -> list[str]:
    """What is said of pages that come one after the other, where excerpts are copies too."""
    detector = Detector(
        make_method(method, {}),
        memory_state({}),
        who="test",
        policy=Policy(also_copies=frozenset([Likeness.EXCERPT]), preference=make_preference(policy)),
    )
    return [answer(detector, one).kind.value for one in pages]


def of_length(name: str, sentences: int, title: str = "标题甲") -> Page:
    return page(name, TEXT[:sentences], title)


def test_a_longer_article_is_better_from_a_tenth_more_on_and_a_shorter_one_never() -> None:
    assert kinds("longest", of_length("a", 30), of_length("b", 36)) == ["unique", "better"]
    assert kinds("longest", of_length("a", 30), of_length("b", 32)) == ["unique", "duplicate"]
    assert kinds("longest", of_length("a", 36), of_length("b", 30)) == ["unique", "duplicate"]


def of_host(host: str, sentences: int) -> Page:
    return replace(of_length("a", sentences), url=f"http://{host}.a.example/")


def test_each_must_be_longer_than_the_one_that_leads_by_then() -> None:
    assert kinds("longest", of_host("m", 12), of_host("www", 40)) == ["unique", "better"]
    assert kinds("longest", of_length("a", 12), of_length("b", 40)) == ["unique", "unique"]
    found = kinds("longest", *(of_host(name, many) for name, many in zip("abcde", (25, 30, 31, 34, 34), strict=True)))
    assert found == ["unique", "better", "duplicate", "better", "duplicate"]
    for method in ["cascade", "shingle"]:
        twice = replace(of_length("b", 30), text="".join(TEXT[:30] + TEXT[:10]))
        assert kinds("longest", of_length("a", 30), twice, method=method)[1] == "duplicate"


def test_spam_of_another_publisher_puts_no_article_aside_whatever_the_steps() -> None:
    """Nobody can tell what a stranger adds from the rest of an article, so both are kept."""
    spam = story(60, 40)
    grown = [page(f"spam{many}", TEXT[:30] + spam[:many], "标题甲") for many in (12, 6, 12)]
    assert kinds("longest", of_length("a", 30), grown[0]) == ["unique", "unique"]
    assert kinds("longest", of_length("a", 30), *grown[1:]) == ["unique", "better", "unique"]


def test_a_part_of_an_article_never_takes_its_place() -> None:
    """Not with other text to make it longer, nor where the earlier page names it."""
    for policy in ["longest", "canonical"]:
        first = replace(of_length("a", 30), canonical="http://b.example/")
        part = page("b", TEXT[:19], "标题甲", canonical="http://b.example/")
        with_more = replace(part, text=part.text + "".join(story(61, 10)))
        for one in (part, with_more):
            assert "better" not in kinds(policy, first, one)


def frame(host: str, entries: int) -> str:
    """Lines that stand around the articles of a site."""
    return "\n".join(f"{host}的第{number}个栏目里还有许多别的消息。" for number in range(entries))


def from_html(name: str, article: str, around: str = "") -> Page:
    """As it is read from HTML where the article could be told, and all else is there too."""
    return Page(
        f"http://{name}.example/1",
        "标题甲",
        text=f"{article}\n{around}",
        main=article,
        site=f"{name}.example",
        reader="article",
    )


def test_a_longer_menu_or_an_unknown_article_makes_no_longer_article() -> None:
    short, long = "\n".join(TEXT[:30]), "\n".join(TEXT[:36])
    assert kinds("longest", from_html("a", short), from_html("b", short, frame("b", 8))) == ["unique", "duplicate"]
    assert kinds("longest", from_html("a", short, frame("a", 8)), from_html("b", long)) == ["unique", "better"]
    short, long = "\n".join(TEXT[:30]), "\n".join(TEXT[:36])
    unclear = replace(from_html("b", long), main="")
    assert kinds("longest", from_html("a", short), unclear) == ["unique", "duplicate"]


def test_what_is_boilerplate_on_its_site_makes_no_text_longer() -> None:
    lines = story(50, 9)
    detector = Detector(
        make_method("cascade", {}), memory_state({}), who="test", policy=Policy(preference=make_preference("longest"))
    )
    for number in range(30):
        assert (
            answer(detector, page(f"p{number}", story(100 + number, 12) + lines, site="b.example")).kind is Kind.UNIQUE
        )
    assert answer(detector, page("first", TEXT[:30], "标题甲", site="a.example")).kind is Kind.UNIQUE
    reposted = page("reposted", TEXT[:30] + lines, "标题甲", site="b.example")
    assert answer(detector, reposted).kind is Kind.DUPLICATE


def test_of_a_page_that_was_judged_without_the_policy_some_methods_do_not_know_the_length() -> None:
    for name, kind in (("cascade", Kind.BETTER), ("shingle", Kind.DUPLICATE)):
        method = make_method(name, {make_method(name, {}).threshold: 0.6})
        store = memory_state({})
        found = [
            answer(Detector(method, store, who="", policy=Policy(preference=preference)), one).kind
            for preference, one in ((None, of_length("a", 34)), (make_preference("longest"), of_length("b", 38)))
        ]
        assert found == [Kind.UNIQUE, kind], name


def linked(name: str, to: str = "") -> Page:
    return page(name, [*TEXT, f"{name}的编辑部供稿。"], "标题甲", canonical=f"http://{to}.example/" if to else "")


def test_a_link_gives_ones_own_place_away_and_takes_nobodys() -> None:
    for pages, expected in [
        # The earlier page names the later one.
        ([linked("copy", "origin"), linked("origin")], "better"),
        ([linked("copy", "origin"), linked("origin", "origin")], "better"),
        # The earlier page says that it is none, the later one of its publisher that it is one.
        ([linked("m.copy", "elsewhere"), linked("www.copy", "www.copy")], "better"),
        ([linked("copy", "elsewhere"), linked("other", "other")], "duplicate"),
        ([linked("copy", "elsewhere"), linked("other")], "duplicate"),
        # Who names another page gives way, and does not take a place.
        ([linked("copy", "origin"), linked("origin", "further")], "duplicate"),
        ([linked("copy", "elsewhere"), linked("other", "elsewhere")], "duplicate"),
        # A stranger's link to himself, or to the victim, supersedes nobody.
        ([linked("victim"), linked("stranger", "stranger")], "duplicate"),
        ([linked("victim", "victim"), linked("stranger", "stranger")], "duplicate"),
        ([linked("victim", "victim"), linked("stranger", "victim")], "duplicate"),
    ]:
        assert kinds("canonical", *pages) == ["unique", expected]


def test_of_pages_that_name_others_the_one_that_the_first_names_leads() -> None:
    pages = linked("copy", "origin"), linked("other", "other"), linked("origin", "origin"), linked("late", "late")
    assert kinds("canonical", *pages) == ["unique", "duplicate", "better", "duplicate"]
    turns = linked("a", "b"), linked("b", "a"), replace(linked("a", "b"), text="".join(TEXT))
    assert kinds("canonical", *turns) == ["unique", "duplicate", "updated"]
    other = page("origin", story(4, 40), "标题乙", canonical="http://origin.example/")
    assert kinds("canonical", linked("copy", "origin"), other) == ["unique", "unique"]


def at(url: str) -> Page:
    return Page(url, "标题甲", text="".join([*TEXT, f"来源：{url.split('/')[2]}。"]))


def test_the_host_that_stands_first_is_the_best_and_those_that_do_not_are_the_worst() -> None:
    for hosts, first, second, expected in [
        (["a.example"], "http://b.example/1", "https://a.example/1", "better"),
        (["a.example"], "http://b.example/1", "https://www.a.example/1", "better"),
        (["a.example"], "http://b.example/1", "https://NEWS.A.example:8080/1", "better"),
        (["www.A.example."], "http://b.example/1", "https://news.a.example/1", "better"),
        (["a.example"], "http://b.example/1", "https://aa.example/1", "duplicate"),
        (["a.example"], "http://b.example/1", "https://a.example.evil.example/1", "duplicate"),
        (["a.example"], "http://b.example/1", "https://evil.example/a.example/", "duplicate"),
        (["a.example"], "http://a.example/1", "https://news.a.example/1", "duplicate"),
        (["a.example"], "http://a.example/1", "https://b.example/1", "duplicate"),
        (["a.example", "b.example"], "http://b.example/1", "http://a.example/1", "better"),
        (["a.example", "b.example"], "http://a.example/1", "http://b.example/1", "duplicate"),
        (["a.example", "news.a.example"], "http://news.a.example/1", "http://a.example/1", "duplicate"),
        (["news.a.example", "a.example"], "http://a.example/1", "http://news.a.example/1", "better"),
        (["渡口.example"], "http://b.example/1", "http://xn--fiq40fhu9a.example/1", "duplicate"),
        (["例子.example"], "http://b.example/1", "http://xn--fsqu00a.example/1", "better"),
    ]:
        assert kinds(tuple(hosts), at(first), at(second)) == ["unique", expected]


def test_by_default_there_is_no_preference_and_what_has_no_host_is_of_the_worst() -> None:
    assert make_preference("first") is None
    for url in ["text:0123456789abcdef", "http://[/", "", "a17"]:
        preference = make_preference(("a.example",))
        assert isinstance(preference, Preference), url
        named = replace(at("http://b.example/1"), url=url)
        assert kinds(("a.example",), named, at("http://a.example/1")) == ["unique", "better"], url
        assert kinds(("a.example",), at("http://a.example/1"), named) == ["unique", "duplicate"], url
