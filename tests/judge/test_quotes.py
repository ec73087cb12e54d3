"""Replies that quote each other: each is judged by its own words, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from html import escape

import pytest

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.page.extraction import extract
from scrapy_neardup.state.evidence import Evidence, about_page, kept_page
from scrapy_neardup.state.opening import close_store, open_store

OPENING = (
    "The old slipway at the lower ferry is to be closed for repairs from the first of June, the council writes.\n"
    "Has anybody heard where the trailers are meant to go in the meantime, and for how long this is going to last?\n"
    "Last year they shut the car park without a word, and we stood there with four boats and a queue behind us."
)
REPLIES = [
    (
        "My neighbour works for the harbour office, and says the sand pit across the river will be open to trailers.\n"
        "You need a key for the barrier, which the ferryman keeps in his cabin, and he leaves at six in the evening."
    ),
    (
        "That key was lost in April, so do not count on it; I waited for an hour last Sunday and went home again.\n"
        "There is a second ramp behind the paper mill, steep but dry, and nobody there has ever asked me for money."
    ),
    (
        "The ramp of the mill belongs to the rowing club, whose chairman is my cousin, and members only may use it.\n"
        "Write to him before you go, he is glad of anybody who helps to paint the boats on the last Saturday of May."
    ),
]
OTHER = "Bring a brush and old clothes, the paint is paid by the club, and there is soup for everybody after the work."


@pytest.fixture
def detector() -> Iterator[Detector]:
    store = open_store("memory:", {})
    yield Detector(make_method("cascade", {}), store, who="test")
    close_store(store)


def mails() -> list[str]:
    """A thread in which every reply quotes all that went before it."""
    thread = [OPENING]
    for number, reply in enumerate(REPLIES):
        before = "\n".join(f"> {line}" for line in thread[-1].split("\n"))
        thread.append(f"On {number + 4} March 2024, Ada Byron wrote:\n{before}\n\n{reply}")
    return thread


def forum(kind: str) -> list[str]:
    """The same thread as pages, one for each post."""
    thread = [_paragraphs(OPENING)]
    for number, reply in enumerate(REPLIES):
        said = f"Ada Byron wrote on {number + 4} March 2024 at 10:0{number}:"
        quote = {
            "mail": f"<div class='gmail_quote'><p>{said}</p><blockquote>{thread[-1]}</blockquote></div>",
            "cite": f"<p>{said}</p><blockquote>{thread[-1]}</blockquote>",
            "phpbb": f"<blockquote><div><cite>Ada wrote:</cite>{thread[-1]}</div></blockquote>",
            "discuz": "<div class='quote'><blockquote><font>Ada 发表于 2024-3-4 10:03</font><br>"
            f"{thread[-1]}</blockquote></div>",
            "vbulletin": f"<div class='bbcode_container'><div class='bbcode_quote'>{thread[-1]}</div></div>",
            "xenforo": f"<blockquote class='bbCodeBlock bbCodeBlock--quote'>{thread[-1]}</blockquote>",
            "pre": f"<pre>{said}\n&gt; " + _plain(thread[-1]).replace("\n", "\n&gt; ") + "</pre>",
        }[kind]
        thread.append(quote + _paragraphs(reply))
    return [
        f"<html><head><title>Slipway closed</title></head><body><h1>Slipway closed</h1>{one}</body>" for one in thread
    ]


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in text.split("\n"))


def _plain(html: str) -> str:
    for tag in ("<p>", "<pre>", "</pre>"):
        html = html.replace(tag, "")
    return html.replace("</p>", "\n").strip()


def posts(texts: Iterable[str], site: str = "list", title: str = "Re: Slipway") -> list[Page]:
    """A page of the site for each text."""
    found = enumerate(texts)
    return [Page(f"http://{site}.example/{n}", title, text=text, site=f"{site}.example") for n, text in found]


def of_html(html: str, url: str, site: str) -> Page:
    page = extract(html, url, max_html=10**6)
    return Page(**{name: getattr(page, name) for name in Page.__slots__} | {"site": site})


def judged(detector: Detector, pages: list[Page]) -> list[Verdict]:
    return [detector.judge_now(page, sealed=True) for page in pages]


def kinds(verdicts: list[Verdict]) -> list[Kind]:
    return [verdict.kind for verdict in verdicts]


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_thread_of_mails_is_kept_whole_and_each_once(detector: Detector, *, newest_first: bool) -> None:
    texts = mails()[:: -1 if newest_first else 1]
    thread = posts(texts)
    assert kinds(judged(detector, thread)) == [Kind.UNIQUE] * len(texts)
    told = judged(detector, posts(texts, "mirror"))
    assert kinds(told) == [Kind.DUPLICATE] * len(texts)
    assert [one.match and one.match.url for one in told] == [page.url for page in thread]


@pytest.mark.parametrize("kind", ["mail", "cite", "phpbb", "discuz", "vbulletin", "xenforo", "pre"])
def test_a_thread_of_pages_is_kept_whole_and_each_once(detector: Detector, kind: str) -> None:
    posts = forum(kind)
    thread = [of_html(html, f"http://forum.example/{n}", "forum.example") for n, html in enumerate(posts)]
    for page, own in zip(thread, [OPENING, *REPLIES], strict=True):
        lines = page.text.split("\n")
        assert [line for number, line in enumerate(lines) if number not in page.quotes][
            -len(own.split("\n")) :
        ] == own.split("\n")
        assert bool(page.quotes) == (page.url != thread[0].url)
    assert kinds(judged(detector, thread)) == [Kind.UNIQUE] * len(posts)
    again = [of_html(html, f"http://mirror.example/{n}", "mirror.example") for n, html in enumerate(posts)]
    assert kinds(judged(detector, again)) == [Kind.DUPLICATE] * len(posts)


def test_a_copy_of_a_reply_may_say_a_little_more_around_a_long_quote(detector: Detector) -> None:
    reply = mails()[-1]
    pages = [*posts([reply]), *posts([f"{reply}\nPosted by the mirror"], "mirror")]
    assert kinds(judged(detector, pages)) == [Kind.UNIQUE, Kind.DUPLICATE]


def test_a_reply_without_words_of_its_own_passes_as_one_that_cannot_be_judged(detector: Detector) -> None:
    texts = [
        OPENING,
        *(
            f"On 4 March 2024, Ada wrote:\n> {OPENING.replace(chr(10), chr(10) + '> ')}\n\n{one}"
            for one in ("So it is.", "Oh no!")
        ),
    ]
    told = judged(detector, posts(texts))
    assert [(one.kind, one.reason) for one in told] == [(Kind.UNIQUE, ""), *[(Kind.UNJUDGED, "quotes")] * 2]


def test_the_same_short_answer_to_two_messages_is_two_answers(detector: Detector) -> None:
    answer = "Thank you very much for that, I have put it on the page of the club."
    texts = [f"On 4 March 2024, Ada wrote:\n> {one}\n\n{answer}" for one in (REPLIES[0].split("\n")[0], OTHER)]
    assert kinds(judged(detector, posts(texts))) == [Kind.UNIQUE] * 2
    assert kinds(judged(detector, posts(texts[1:], "mirror"))) == [Kind.DUPLICATE]


@pytest.mark.parametrize("how", ["text", "html", "whole"])
def test_an_article_is_a_copy_of_one_that_sets_its_quotation_off_otherwise(detector: Detector, how: str) -> None:
    lines = [*OPENING.split("\n"), *REPLIES[0].split("\n"), *REPLIES[1].split("\n")]
    plain = "".join(f"<p>{line}</p>" for line in lines)
    if how == "text":
        pages = [
            Page(f"http://{n}.example/", "Slipway", site=f"{n}.example", text="\n".join(text))
            for n, text in enumerate((lines, [*lines[:3], f"> {lines[3]}", *lines[4:]]))
        ]
    else:
        set_off = (
            f"<blockquote>{plain}</blockquote>"
            if how == "whole"
            else plain.replace(
                f"<p>{lines[3]}</p>", f"<p>In his letter he wrote:</p><blockquote><p>{lines[3]}</p></blockquote>"
            )
        )
        pages = [
            of_html(f"<title>Slipway</title>{body}", f"http://{n}.example/", f"{n}.example")
            for n, body in enumerate((plain, set_off))
        ]
        assert not pages[1].quotes
    assert kinds(judged(detector, pages)) == [Kind.UNIQUE, Kind.DUPLICATE]


def test_what_many_replies_quote_is_no_boilerplate(detector: Detector) -> None:
    sentence = OPENING.split("\n")[0]
    texts = [
        f"On 4 March 2024, Ada wrote:\n> {sentence}\n> and more\n"
        f"Answer {n} of harbour {n * 7}: the boat of number {n * 13} waits at berth {n * 17} of pier {n * 31}."
        for n in range(40)
    ]
    judged(detector, [replace(one, title=f"Re: {n}") for n, one in enumerate(posts(texts))])
    first, second = posts([OPENING, sentence], title="Slipway")
    opening, copy = judged(
        detector, [replace(first, url=f"{first.url}/first"), replace(second, url=f"{second.url}/copy")]
    )
    assert (opening.kind, copy.reason) == (Kind.UNIQUE, "")


def test_a_page_whose_text_was_kept_still_tells_its_quotes() -> None:
    one = of_html(forum("mail")[-1], "http://forum.example/", "forum.example")
    assert one.quotes
    kept = kept_page(one.url, Evidence(title=one.title, letters=len(one.text), text=one.text, about=about_page(one)))
    assert kept is not None
    assert (kept.text, kept.main, kept.quotes) == (one.text, one.main, one.quotes)
