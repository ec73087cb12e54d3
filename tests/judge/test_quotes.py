"""Replies that quote each other: each is judged by its own words, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from html import escape

import pytest

from scrapy_neardup.model import Outcome, Page, Verdict
from scrapy_neardup.page.extraction import analyse
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.record import Evidence, about_page, kept_page
from tests.build import answer, make_detector

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


def mails() -> list[str]:
    """A thread in which every reply quotes all that went before it."""
    thread = [OPENING]
    for number, reply in enumerate(REPLIES):
        before = "\n".join(f"> {line}" for line in thread[-1].split("\n"))
        thread.append(f"On {number + 4} March 2024, Ada Byron wrote:\n{before}\n\n{reply}")
    return thread


def forum(kind: str) -> list[str]:
    """The same thread as pages, one for each post; ``pre``: in the archive of a mailing list."""
    thread = [_paragraphs(OPENING)]
    for number, reply in enumerate(REPLIES if kind != "pre" else ()):
        said = f"Ada Byron wrote on {number + 4} March 2024 at 10:0{number}:"
        quote = {
            "mail": f"<div class='gmail_quote'><p>{said}</p><blockquote>{thread[-1]}</blockquote></div>",
            "cite": f"<p>{said}</p><blockquote>{thread[-1]}</blockquote>",
            "phpbb": f"<blockquote><div><cite>Ada wrote:</cite>{thread[-1]}</div></blockquote>",
            "discuz": "<div class='quote'><blockquote><font>Ada 发表于 2024-3-4 10:03</font><br>"
            f"{thread[-1]}</blockquote></div>",
            "vbulletin": f"<div class='bbcode_container'><div class='bbcode_quote'>{thread[-1]}</div></div>",
            "xenforo": f"<blockquote class='bbCodeBlock bbCodeBlock--quote'>{thread[-1]}</blockquote>",
        }[kind]
        thread.append(quote + _paragraphs(reply))
    thread = [f"<pre>{escape(one)}</pre>" for one in mails()] if kind == "pre" else thread
    return [
        f"<html><head><title>Slipway closed</title></head><body><h1>Slipway closed</h1>{one}</body>" for one in thread
    ]


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in text.split("\n"))


def posts(texts: Iterable[str], site: str = "list", title: str = "Re: Slipway") -> list[Page]:
    """A page of the site for each text."""
    found = enumerate(texts)
    return [Page(f"http://{site}.example/{n}", title, text=text, site=f"{site}.example") for n, text in found]


def html_posts(htmls: Iterable[str], site: str = "forum") -> list[Page]:
    """A page of the site for each HTML."""
    pages = (analyse(html, f"http://{site}.example/{n}", max_html=10**6).page for n, html in enumerate(htmls))
    return [replace(page, site=f"{site}.example") for page in pages]


def judge(*pages: Page) -> list[Verdict]:
    detector = make_detector(memory_state({}))
    return [answer(detector, page) for page in pages]


def are_kept_once(thread: list[Page], again: list[Page]) -> bool:
    """Whether each page of a thread passes, and a later one is a copy of it."""
    originals = [verdict.as_tag()["original"] for verdict in judge(*thread, *again)]
    return originals == [*(None for _ in thread), *(page.url for page in thread)]


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_thread_of_mails_is_kept_whole_and_each_once(*, newest_first: bool) -> None:
    texts = mails()[:: -1 if newest_first else 1]
    assert are_kept_once(posts(texts), posts(texts, "mirror"))


@pytest.mark.parametrize("kind", ["mail", "cite", "phpbb", "discuz", "vbulletin", "xenforo", "pre"])
def test_a_thread_of_pages_is_kept_whole_and_each_once(kind: str) -> None:
    thread, again = (html_posts(forum(kind), site) for site in ("forum", "mirror"))
    for page, own in zip(thread, [OPENING, *REPLIES], strict=True):
        lines = [line for number, line in enumerate(page.text.split("\n")) if number not in page.quotes]
        assert lines[-len(own.split("\n")) :] == own.split("\n")
        assert bool(page.quotes) == (page.url != thread[0].url)
        evidence = Evidence(title=page.title, letters=len(page.text), text=page.text, about=about_page(page))
        kept = kept_page(page.url, evidence)
        assert kept is not None
        assert (kept.text, kept.main, kept.quotes) == (page.text, page.main, page.quotes)
    assert are_kept_once(thread, again)


def quote(text: str) -> str:
    return "On 4 March 2024, Ada wrote:\n" + "".join(f"> {line}\n" for line in text.split("\n"))


THANKS = "Thank you very much for that, I have put it on the page of the club."


@pytest.mark.parametrize(
    ("first", "second", "third", "expected"),
    [
        # A copy of a reply may say a little more around a long quote.
        (mails()[-1], "", f"{mails()[-1]}\nPosted by the mirror", "unique unjudged duplicate"),
        # Replies without words of their own are no copies.
        (OPENING, f"{quote(OPENING)}\nSo it is.", f"{quote(OPENING)}\nOh no!", "unique unjudged unjudged"),
        # One short answer to two messages is two answers.
        (
            f"{quote(REPLIES[0])}\n{THANKS}",
            f"{quote(OTHER)}\n{THANKS}",
            f"{quote(OTHER)}\n{THANKS}",
            "unique unique duplicate",
        ),
    ],
)
def test_own_words_decide(first: str, second: str, third: str, expected: str) -> None:
    found = judge(*posts([first, second]), *posts([third], "mirror"))
    assert [one.outcome.value for one in found] == expected.split()
    assert {one.reason for one in found if one.outcome is Outcome.UNJUDGED} <= {"quotes", "no_text"}


def test_an_article_is_a_copy_of_one_that_sets_its_quotation_off_otherwise() -> None:
    lines = [*OPENING.split("\n"), *REPLIES[0].split("\n"), *REPLIES[1].split("\n")]
    plain, quoted = _paragraphs("\n".join(lines)), f"<p>{lines[3]}</p>"
    set_off = plain.replace(quoted, f"<p>In his letter he wrote:</p><blockquote>{quoted}</blockquote>")
    for pages in [
        posts(["\n".join(lines), "\n".join([*lines[:3], f"> {lines[3]}", *lines[4:]])]),
        html_posts([plain, set_off]),
        html_posts([plain, f"<blockquote>{plain}</blockquote>"]),
    ]:
        pages[1] = replace(pages[1], url="http://mirror.example/", site="mirror.example")
        assert pages[1].reader == "" or not pages[1].quotes
        assert [one.outcome for one in judge(*pages)] == [Outcome.UNIQUE, Outcome.DUPLICATE]


def test_a_sentence_that_many_replies_quote_is_no_boilerplate() -> None:
    sentence = OPENING.split("\n")[0]
    texts = [
        f"{quote(sentence)}> and more\n"
        f"Answer {n} of harbour {n * 7}: the boat of number {n * 13} waits at berth {n * 17} of pier {n * 31}."
        for n in range(40)
    ]
    replies = [replace(one, title=f"Re: {n}") for n, one in enumerate(posts(texts))]
    new = [replace(one, url=f"{one.url}/new") for one in posts([OPENING, sentence], title="Slipway")]
    opening, copy = judge(*replies, *new)[-2:]
    assert (opening.outcome, copy.reason) == (Outcome.UNIQUE, "")
