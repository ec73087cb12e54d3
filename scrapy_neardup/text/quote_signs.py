"""By what a line is told to be a quote, or to stand before one: marks, patterns, and what the markup of a page says.

The repetitions of all patterns are bounded, and they are tried on short lines, so that no page can make them slow.
"""

from __future__ import annotations

import re
from enum import IntEnum

from scrapy_neardup.text.holding import Signs


class Told(IntEnum):
    """What the markup of a page says of a line."""

    NOTHING = 0
    #: It is set off as a quotation, which in an article is a part of it.
    CITED = 1
    #: A mail program or a forum has marked it as the quote of another message.
    QUOTED = 2


#: Characters beyond which a line is no line of attribution, and no heading of a quote.
LONGEST = 250
_MARK = re.compile(r"(?:[>＞][ \t]{0,3}){1,40}")
_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|schreef|skrev|napisał|escribió|escreveu|пишет|написал)\b"
    r"|a écrit|ha scritto|写道|寫道|書きました",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[\w.+-]@[\w-]{1,60}\.")
OPENS = ("on ", "am ", "le ", "el ", "il ", "em ", "op ", "den ", "in article ", "在", "于", "於")
_SEPARATOR = re.compile(
    r"-{3,20} {0,2}(?:original message|original appointment|ursprüngliche nachricht|message d'origine|mensaje original"
    r"|messaggio originale|mensagem original|原始邮件|原始郵件|原邮件|回复的原邮件|元のメッセージ) {0,2}-{3,20}",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"(?:begin forwarded message|anfang der weitergeleiteten nachricht|début du message réexpédié)[:：]?"
    r"|-{3,20} {0,2}(?:forwarded message|weitergeleitete nachricht|message transféré|转发邮件|轉寄郵件) {0,2}-{3,20}",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"\*?(?:from|sent|to|cc|subject|date|von|gesendet|an|betreff|de|envoyé|à|objet|发件人|发送时间|发送日期|日期|收件人|抄送|主题"
    r"|寄件者|寄件日期|收件者|主旨) ?[:：]",
    re.IGNORECASE,
)
_FROM = ("from", "*from", "von", "发件人", "寄件者")
_SENT = ("sent", "*sent", "gesendet", "发送时间", "发送日期", "日期", "寄件日期")
_POSTED = re.compile(
    r"(?:引用|回复|回覆) ?[:：]? ?.{1,60}(?:的发言|的發言|的帖子|发表的|發表的)[:：]?"
    r"|(?:原帖由|引用由) ?.{1,80}(?:发表|發表)[:：]?"
    r"|.{1,60} ?(?:发表于|發表於|发表於) ?.{4,30}[:：]"
    r"|楼主.{0,40}(?:说|說|写道) ?[:：]"
)
_IN_HEADING = "引用", "回复", "回覆", "原帖由", "发表", "發表", "楼主"
_POSTED_ON = re.compile(r"(?:发表于|發表於|发表於) ?\d{4}|原帖由 ")
_REPLY = re.compile(
    r"(?:\[[^\[\]]{1,60}\] ?){0,3}(?:re|aw|antw|sv|rif|odp|回复|回覆|答复|答覆)(?:\[\d{1,3}\]|\(\d{1,3}\))? ?[:：]",
    re.IGNORECASE,
)
_SENT_FROM = ("sent from my ", "get outlook for ", "von meinem iphone ", "envoyé de mon ", "发自我的", "發自我的")
_OPEN_TAG, CLOSE_TAG = re.compile(r"\[quote(?:=[^\[\]\n]{0,200})?\]", re.IGNORECASE), "[/quote]"
_AROUND_TAGS = re.compile(r"(\[quote(?:=[^\[\]\n]{0,200})?\]|\[/quote\])", re.IGNORECASE)
#: A text without any of these holds no quote: most pages, which cost no more than this.
_QUOTING = (
    *("\n>", "\n >", "\n＞", "\n|", "\n--", "[quote", "[QUOTE", "[Quote", ">:\n"),
    *(
        "写道",
        "寫道",
        "書きました",
        "发自我",
        "發自我",
        "发件人",
        "寄件者",
        "的发言",
        "的發言",
        "的帖子",
        "原帖由",
        "引用由",
        "楼主",
    ),
    *("发表的", "发表于", "发表於", "發表的", "發表于", "發表於"),
    *(
        "Sent:",
        "sent:",
        "SENT:",
        "Gesendet:",
        "egin forwarded",
        "Sent from",
        "sent from",
        "Get Outlook",
        "get outlook",
    ),
    *("einem iPhone ", "Envoyé de ", "réexpédié", "weitergeleitete"),
)
#: Where a line ends with a colon.
_COLONS = ":\n", ": \n", ":\r\n"
_MAY, _ENDS_WITH_COLON, _MAY_OR_COLONS = Signs(*_QUOTING), Signs(*_COLONS), Signs(*_QUOTING, *_COLONS)
#: The same of a text in which a line ends with a colon.
_MAY_COLON = Signs("wrote", "writes", "schr", "skrev", "napisa", "escr", "crit", "пишет", "написал")


def is_attribution(line: str) -> bool:
    """Whether a line says who wrote what follows.

    >>> is_attribution("Am 3. März 2024 um 10:03 schrieb Ada <ada@a.example>:"), is_attribution("She wrote a book.")
    (True, False)
    """
    if len(line) > LONGEST or not line.rstrip(" ↑»").endswith((":", "：")):
        return False
    return _WROTE.search(line) is not None or (_ADDRESS.search(line) is not None and has_digit(line))


def may_quote(text: str) -> bool:
    """Whether there may be a quote in a text: most pages hold none, which costs no more than this."""
    if text.lstrip().startswith((">", "＞", "---", "Begin")):
        return True
    if not _MAY_OR_COLONS.stand_in(text):  # most pages
        return False
    return _MAY.stand_in(text) or (_ENDS_WITH_COLON.stand_in(text) and _MAY_COLON.stand_in(text))


def depth(line: str) -> int:
    """By how many marks it is said that a line is quoted."""
    found = _MARK.match(line) if line[:1] in (">", "＞") else None
    return found[0].count(">") + found[0].count("＞") if found else 0


def is_barred(line: str) -> bool:
    """Whether it begins with a bar and is no row of a table."""
    return line.startswith("|") and line.count("|") == 1


def opens_quote(line: str) -> bool:
    """Whether the first line of what is set off says when somebody posted it."""
    return len(line) <= LONGEST and (_POSTED_ON.search(line) is not None or (is_attribution(line) and has_digit(line)))


def is_heading(line: str) -> bool:
    """Whether a line is what a forum sets before a quote."""
    told = 4 < len(line) <= LONGEST and any(map(line.__contains__, _IN_HEADING))
    return told and _POSTED.fullmatch(line) is not None


def is_separator(line: str) -> bool:
    """Whether a mail program sets this line before the message that is answered."""
    return line[:1] == "-" and _SEPARATOR.fullmatch(line) is not None


def is_forwarded(line: str) -> bool:
    """Whether a mail program sets this line before a message that is passed on."""
    return line[:1] in "-BbAaDd" and _FORWARDED.fullmatch(line) is not None


def is_header(line: str) -> bool:
    """Whether it is a line of the header of a message."""
    return _HEAD.match(line) is not None


def says_from(line: str) -> bool:
    """Whether such a line says who sent the message."""
    return line.casefold().startswith(_FROM) and is_header(line)


def says_sent(line: str) -> bool:
    """Whether such a line says when it was sent."""
    return line.casefold().startswith(_SENT) and is_header(line)


def is_sent_from(line: str) -> bool:
    """Whether a telephone or a program signs with this line."""
    return line.casefold().startswith(_SENT_FROM)


def is_reply_to(title: str) -> bool:
    """Whether a subject says that the message is a reply."""
    return _REPLY.match(title) is not None


def opens_tag(line: str) -> bool:
    """Whether a quote in tags begins with this line."""
    return _OPEN_TAG.match(line) is not None


def tags_apart(text: str) -> str:
    """The text with each ``[quote]`` and ``[/quote]`` on a line of its own."""
    return _AROUND_TAGS.sub(r"\n\1\n", text) if "[quote" in text.casefold() else text


def has_digit(line: str) -> bool:
    """Whether a digit stands in it."""
    return any(char.isdigit() for char in line)
