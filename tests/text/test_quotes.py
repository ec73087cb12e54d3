"""Quotes of messages, in the spellings of mail programs and forums, and similar lines of articles."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.text.quotes import QuoteMarkup as Markup
from scrapy_neardup.text.quotes import find_quotes, split_quotes

ASKED = "When does the ferry sail in winter, and does it take bicycles?"
ANSWERED = "It sails at ten since May, and bicycles go free of charge."


def test_a_message_is_left_with_its_own_words() -> None:
    for text in [
        f"On 3 March 2024, Ada wrote:\n> {ASKED}\n\n{ANSWERED}",
        f"On Mon, Mar 4, 2024 at 10:03 AM Ada <ada@a.example>\nwrote:\n\n> {ASKED}\n>\n> > Not at all\n{ANSWERED}",
        f"Am 03.03.24 um 10:11 schrieb Ada Byron:\n＞ {ASKED}\n{ANSWERED}",
        f"Le 3 mars 2024 à 10:03, Ada a écrit :\n> {ASKED}\n> Bises\n{ANSWERED}",
        f"在 2024年3月4日 10:03，张三 写道：\n> {ASKED}\n{ANSWERED}",
        f"{ANSWERED}\nOn Mon, Mar 4, 2024 at 10:03 AM Ada <ada@a.example> wrote:\n{ASKED}",
        f"{ANSWERED}\n-----Original Message-----\nFrom: Ada\nSent: Monday\nTo: Bob\nSubject: Ferry\n\n{ASKED}",
        f"{ANSWERED}\n---------- 原始邮件 ----------\n发件人: 张三\n发送时间: 2024年3月4日\n主题: 渡口\n{ASKED}",
        f"{ANSWERED}\n发件人：张三\n发送时间：2024年3月4日\n收件人：李四\n主题：渡口\n{ASKED}",
        f"{ANSWERED}\nFrom: Ada\nSent: Monday, 4 March 2024\nTo: Bob\nSubject: Ferry\n{ASKED}",
        f"{ANSWERED} See below what she sent to all of us.\nBegin forwarded message:\nFrom: Ada\n\n{ASKED}",
        f"{ANSWERED}\nVon: Ada\nGesendet: Montag, 4. März 2024\nAn: Bob\nBetreff: Fähre\n\n{ASKED}",
        f"{ANSWERED}\nDe : Ada\nEnvoyé : lundi 4 mars 2024\nÀ : Bob\nObjet : Bac\n\n{ASKED}",
        f"{ANSWERED}\n-----Ursprüngliche Nachricht-----\nVon: Ada\n\n{ASKED}",
        f"{ANSWERED}\n----- Mensaje original -----\n{ASKED}",
        f"{ANSWERED}\n-------- Message transféré --------\n{ASKED}",
        f"W dniu 4.03.2024 o 10:03, Ada pisze:\n> {ASKED}\n{ANSWERED}",
        f"Den 4. marts 2024 skrev Ada:\n> {ASKED}\n{ANSWERED}",
        f"{ANSWERED}\nOp ma 4 mrt 2024 om 10:03 schreef Ada <ada@a.example>:\n{ASKED}",
        f"引用 3楼 张三 的发言：\n{ASKED}\n{ANSWERED}",
        f"张三 发表于 2024-3-4 10:03：\n{ASKED}\n\n{ANSWERED}",
        f"楼主 张三 说：\n{ASKED}\n{ANSWERED}",
        f"引用由 张三 发表：\n{ASKED}\n{ANSWERED}",
        f"原帖由 张三 發表\n{ASKED}\n{ANSWERED}",
        f"[quote=Ada]{ASKED} [QUOTE]Never[/quote] Really?[/quote]{ANSWERED}",
        f"{ANSWERED}\n-- \nBob, {ASKED[:20]}\nHarbour office",
        f"On 3 March 2024, Ada wrote:\n> {ASKED}\n{ANSWERED}\n--\nBob",
        # Archives hide addresses and lose accents; some programs mark with a bar, or mark the attribution, too.
        f"On 3 March 2024 at 10:03, Ada wrote:\n| {ASKED}\n|\n| > Not at all\n{ANSWERED}",
        f"2024/3/4 Ada <ada at a.example>:\n> {ASKED}\n{ANSWERED}",
        f"Le 03/03/2024 10:03, Ada a ?crit :\n\n\n> {ASKED}\n{ANSWERED}",
        f">>>>> Ada Byron writes:\n\n    > {ASKED}\n{ANSWERED}",
        f">>>>> On Mon, 4 Mar 2024,\n>>>>> Ada Byron (AB) wrote:\n\n > {ASKED}\n{ANSWERED}",
        f"On Mon, Mar 4, 2024 at 10:03 AM Ada <ada at a.example\n> wrote:\n> {ASKED}\n{ANSWERED}",
        f"{ANSWERED}\n> -----Original Message-----\n> From: Ada\n> {ASKED}",
        f"{ANSWERED}\n-----Original Message-----\nFrom: Ada\nSent: Monday\n\n{ASKED}\n> Never",
        f"{ANSWERED}\nOn Mar 9, 2024, at 3:53 AM, Ada <ada at a.example> wrote:\n{ASKED}\n> > Never",
        f"{ANSWERED}\n>>> Ada <ada at a.example> 04/03/2024 21:15 >>>\n{ASKED}",
        f"{ANSWERED}\nSent from my iPhone",
    ]:
        own, quotes = split_quotes(text)
        assert own.strip().removesuffix("See below what she sent to all of us.").strip() == ANSWERED, text
        assert quotes, text
        assert ANSWERED not in quotes, text


def test_in_doubt_a_line_is_the_pages_own() -> None:
    for text in [
        ASKED,
        f"> {ASKED}\n> {ANSWERED}",  # nothing else is there: it may be an article that somebody set off
        f"> {ASKED}\n{ANSWERED}",  # one line may be a headline, or cited in Markdown
        f"> {ASKED[:-1]} on\n> the days before Christmas? Many thanks.\n{ANSWERED}",  # cited in Markdown
        f"{ANSWERED}\n--\n{ASKED}",
        f"{ANSWERED}\n> {ASKED}\n> More about ferries and bicycles",  # links behind an article
        f"In his letter the harbour master wrote:\n{ASKED}\n{ANSWERED}",
        f"On 3 March 2024, the harbour master wrote:\n{ASKED}\n{ANSWERED}",
        f">>> print({ASKED!r})\n>>> print({ANSWERED!r})\nSo the two are printed one after the other.",
        "| ferry | sails |\n| 1 | at nine |\n| 2 | at ten |\nThis is the whole timetable of the winter.",
        f"On 3 March 2024 at 10:03, Ada wrote:\n\n| ferry | sails |\n| --- | --- |\n| 1 | at nine |\n{ASKED}",
        f"The script that Ada wrote:\n| cat ferries\n| grep Monday\n{ASKED}",
        f"Report of the harbour\nOn 3 March at 9 a.m. we met Ada at St. Mary's. She said:\n{ASKED}",
        f"Report of the harbour\nOn 3 March 2024 we put it at ferry.example. There you can read:\n{ASKED}",
        f">>> for one in ['ada@a.example', 2]:\n>>>     print(one)\n{ASKED}",
        f"Ferry\nFrom: Ada\nSent: Monday\nTo: Bob\nSubject: Ferry\n\n{ASKED}",  # the message's own head
        f"Begin forwarded message:\nFrom: Ada\nDate: Monday\n\n{ASKED}",  # that is the message
        f"{ASKED}\n--\n" + "\n".join(f"{ANSWERED} {n}" for n in range(12)),  # a line between two parts
        "楼主说这条渡船每天早上五点半开第一班。\n晚上九点收班。",
        f"引用 3楼 张三 的发言：\n{ASKED}",  # nothing follows
        f"[quote]{ASKED}",
        f"{ANSWERED}\nOn 3 May 2024 the two sides met at Geneva. They agreed on these points:\n{ASKED}",
        f"{ANSWERED}\nOn 3 May 2024 we met at 9.30 at the pier, and then this came out:\n{ASKED}",
    ]:
        own, quotes = split_quotes(text)
        assert quotes == "", text
        assert ASKED in own or ASKED not in text


def test_quotes_of_forums_mails_and_replies_have_their_ends() -> None:
    heading, more = "引用 3楼 张三 的发言：", f"{ANSWERED} And {ANSWERED}"
    mixed = f"See below, please.\n-----Original Message-----\nFrom: Ada\n\n> {ASKED}\n{ANSWERED}"
    assert ANSWERED in split_quotes(mixed)[0], "an answer between marked lines is the page's own"
    text = f"{heading}\n{ASKED}\n{more}\n\n{ANSWERED}\n\n{more}"
    assert split_quotes(text) == (f"\n{ANSWERED}\n\n{more}", f"{heading}\n{ASKED}\n{more}")
    assert split_quotes(f"{heading}\n{ASKED}\n{ANSWERED}\n{more}") == (f"{ANSWERED}\n{more}", f"{heading}\n{ASKED}")
    for title in ["Re: Ferry", "[harbour] SV: Ferry", "Antw: Ferry", "RE[2]: Ferry", "回复：渡口"]:
        text = f"> {ASKED}\n{ANSWERED}"
        assert split_quotes(text, title) == (ANSWERED, f"> {ASKED}")
        assert split_quotes(text, "Reply to Ada: the ferry") == (text, ""), title


def test_only_the_attribution_of_a_quote_goes_with_it() -> None:
    paragraph = "On Fridays the harbour office answers at office@harbour.example"
    text = f"{paragraph}\n\nOn 3 March 2024, Ada wrote:\n> {ASKED}\n{ANSWERED}"
    assert split_quotes(text)[0].split() == f"{paragraph} {ANSWERED}".split()
    closed = f"[quote]{ANSWERED}\n[quote]{ASKED}[/quote]"
    assert ASKED not in split_quotes(closed)[0]
    assert ANSWERED in split_quotes(closed)[0], "nobody closed the first quote"


def test_quotes_in_markup_include_their_attribution() -> None:
    lines = ["Ada wrote on 4 March at 10:03:", ASKED, ANSWERED]
    assert find_quotes(lines, [Markup.NONE, Markup.CITED, Markup.NONE]) == {0, 1}
    assert find_quotes(["Ada wrote:", *lines[1:]], [Markup.NONE, Markup.CITED, Markup.NONE]) == set()
    assert find_quotes(["Ada wrote:", *lines[1:]], [Markup.NONE, Markup.QUOTED, Markup.NONE]) == {0, 1}
    posted = ["张三 发表于 2024-3-4 10:03", ASKED, ANSWERED]
    assert find_quotes(posted, [Markup.CITED, Markup.CITED, Markup.NONE]) == {0, 1}
    # In a message the last lines may be a signature.
    signed = ["Ada wrote:", *lines[1:], "--", "Bob"]
    assert find_quotes(signed, [Markup.NONE, Markup.QUOTED, *[Markup.NONE] * 3]) == {0, 1, 3, 4}
    # Prompts and menus begin with the same mark.
    assert find_quotes([f"> {ASKED}", f"> {ASKED}", ANSWERED], [Markup.NONE] * 3) == set()


def test_no_text_takes_long() -> None:
    for piece in [
        *(">", "> ", ">\n", "[quote]", "[/quote]\n", "[quote=", "On 1 @ a wrote:\n", "@From:\nSent:\n", "\n"),
        *("a\n--\n", "-----Original Message-----\n", "Begin forwarded message:\nTo:\n"),
        *(f"引用{'a' * 240}\n", f"{'发表于' * 80}:\n"),
        *("> a\n> b\nx\n\n", f"{'-' * 200}\n", f"{'wrote ' * 40}1@:\n", "Sent from my \n"),
        *(f">>> {'<' * 80}{'> ' * 41}1:1\n", "| a\nA wrote:\n", "> wrote:\n", "[quote]a\n", "[/quote]a[/quote]\n"),
    ]:
        text = piece * (400_000 // len(piece))
        start = time.process_time()
        split_quotes(text)
        split_quotes("\n".join((text[:39_000], "> a", ">b")))
        assert time.process_time() - start < 2, piece


_LINES = [
    *("", "> a", ">> b", "--", "[quote]", "[/quote]", "A wrote:", "On 1 May, A <a@b.example> wrote:", "From: A"),
    *(
        "Sent: B",
        "-----Original Message-----",
        "引用 A 的发言：",
        "Begin forwarded message:",
        "Sent from my x",
        ANSWERED,
    ),
]


@given(st.lists(st.sampled_from(_LINES), max_size=30), st.data())
def test_no_line_of_any_text_is_lost(lines: list[str], data: st.DataObject) -> None:
    markup = data.draw(st.lists(st.sampled_from(Markup), min_size=len(lines), max_size=len(lines)))
    assert find_quotes(lines, markup) <= set(range(len(lines)))
    own, quotes = split_quotes("\n".join(lines))
    assert sorted((own + quotes).replace("\n", "")) == sorted("".join(lines))
