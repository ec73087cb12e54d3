"""Quoted text and signatures of messages, which are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from typing import Any

from scrapy_neardup.hashing import compiled
from scrapy_neardup.text.normalize import letters_each

# ----------------------------------------------------------------------------------------------------------------------
# Whether a text holds one of many strings.


class Signs:
    """Strings, each of 2 to 32 characters and 64 of them at most, that are looked for in one text after the other.

    >>> signs = Signs("渡船", "开航")
    >>> signs.stand_in("渡口今天早上开航"), signs.stand_in("")
    (True, False)
    """

    def __init__(self, *signs: str) -> None:
        self._signs = signs

    def stand_in(self, text: str) -> bool:
        """Whether any of them stands in a text."""
        kernels = compiled.kernels
        if kernels is not None:
            return kernels.holds_any(text, self._prepared)
        return any(char in text and any(sign in text for sign in some) for char, some in self._by_shared.items())

    @cached_property
    def _prepared(self) -> Any:
        """As the compiled module takes them, which must be there."""
        assert compiled.kernels is not None
        return compiled.kernels.signs(self._signs)

    @cached_property
    def _by_shared(self) -> dict[str, tuple[str, ...]]:
        """The signs by a character that many of them have: that it does not stand in a text is found out in no time."""
        left, found = list(self._signs), dict[str, tuple[str, ...]]()
        while left:
            chars = {char for sign in left for char in sign}
            shared = max(chars, key=lambda char: (sum(char in one for one in left), char))
            found[shared] = tuple(sign for sign in left if shared in sign)
            left = [sign for sign in left if shared not in sign]
        return found


# ----------------------------------------------------------------------------------------------------------------------
# By what a line is told to be a quote, or to stand before one: marks, patterns, and what the markup of a page says.
#
# The repetitions of all patterns are bounded, and they are tried on short lines, so that no page can make them slow.


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


# ----------------------------------------------------------------------------------------------------------------------
# Which lines of a message are not its own: what it quotes, who is said to have written that, and its signature.
#
# A reply that quotes a whole message holds that message, and is no copy of it. Quotes are told by how mail programs and
# forums write them. An article cites, too: what stands in quotation marks, in a paragraph set off or behind a name
# alone is left to it. In doubt a line is the page's own.
#
# Lines are looked at one after the other, by their beginning, their end and patterns whose repetitions are bounded, so
# that no page can make it slow.


#: Lines beyond which a text is no message: its lines are not looked at one by one.
_MOST_LINES = 10_000
#: Letters from which a line says something.
_SAYS = 10
#: Letters of its own before a forwarded message from which that is a quote, and no more the message itself.
_COMMENT = 40
#: Lines that a signature has at most, and characters of each.
_SIGNATURE, _SIGNATURE_LINE = 8, 80
#: Characters of a line whose sentence goes on in the next one, where a mail program has cut it.
_CUT, _CUT_WORDS = (50, 90), 6
#: Lines of a header that are looked at.
_HEADER = 6


def parted(text: str, title: str = "") -> tuple[str, str]:
    """A text without what it quotes, and that; ``title``: its subject.

    >>> parted("On 3 March 2024, Ada wrote:\\n> The ferry sails at nine.\\nIt has sailed at ten since May.")
    ('It has sailed at ten since May.', 'On 3 March 2024, Ada wrote:\\n> The ferry sails at nine.')
    """
    if not may_quote(text):
        return text, ""
    lines = tags_apart(text).split("\n")
    found = quoted(lines, is_reply=is_reply_to(title))
    if not found:
        return text, ""
    own = [line for number, line in enumerate(lines) if number not in found]
    return "\n".join(own), "\n".join(line for number, line in enumerate(lines) if number in found)


def quoted(lines: Sequence[str], told: Sequence[Told] = (), *, is_reply: bool = False) -> frozenset[int]:
    """The numbers, from 0, of the lines that are quotes.

    ``told``: of lines that were read from markup; ``is_reply``: the title says that these are a reply.
    """
    if len(lines) > _MOST_LINES or (not any(told) and not may_quote("\n".join(lines))):
        return frozenset()
    return frozenset(_Message(lines, told, is_reply=is_reply).quotes())


class _Message:
    """The lines of one text, and which of them are found to be quotes."""

    def __init__(self, lines: Sequence[str], told: Sequence[Told], *, is_reply: bool) -> None:
        #: Where a line stands that begins a signature, as programs write it.
        self._dashes = {number for number, line in enumerate(lines) if line.rstrip("\r") == "-- "}
        self._lines = [line.strip() for line in lines]
        self._letters = [len(line) for line in letters_each([line.replace("\n", " ") for line in self._lines])]
        self._told = told
        self._found: set[int] = set()
        #: Whether anything says that this is a message.
        self._is_message = is_reply

    def quotes(self) -> set[int]:
        self._in_tags()
        self._in_markup()
        end = self._to_the_end()
        self._behind_marks(end)
        self._posted()
        self._signatures()
        return self._found

    def _in_tags(self) -> None:
        """``[quote]`` to ``[/quote]``, also one within another."""
        opened: list[int] = []
        for number, line in enumerate(self._lines):
            if "[" not in line:
                continue
            if opens_tag(line) and CLOSE_TAG not in line.casefold():
                opened.append(number)
            elif line.casefold().endswith(CLOSE_TAG):
                start = opened.pop() if opened else number
                if not opened and (start < number or opens_tag(line)):
                    self._take(start, number + 1)

    def _in_markup(self) -> None:
        for start, end in _runs([told > Told.NOTHING for told in self._told]):
            before = self._before(start)
            marked = max(self._told[start:end]) is Told.QUOTED
            # An article may say "She wrote:" of what it cites; the time of day or an address is a mail program's.
            if marked or self._is_dated(before) or opens_quote(self._lines[start]):
                numbers = range(start, end)
                # Of what a forum has marked, that alone: an article may stand around it that is set off itself.
                sure = not marked or self._is_dated(before) or opens_quote(self._lines[start])
                self._found.update(one for one in numbers if sure or self._told[one] is Told.QUOTED)
                self._is_message = True
                if is_attribution(self._line(before)):
                    self._found.add(before)

    def _to_the_end(self) -> int:
        """Where a message begins that is quoted without marks, up to the end; the number of lines if none does."""
        count, own = len(self._lines), 0
        for number, line in enumerate(self._lines):
            if number in self._found or not line:
                continue
            if len(line) <= LONGEST and (kind := self._begins_message(number, own)):
                behind = self._behind_header(number + 1)
                self._found.update(range(number, behind))
                self._is_message = True
                if behind == count or not depth(self._lines[behind]):
                    if kind == "forwarded" and own < _COMMENT:  # nothing else is said: that is the message
                        self._found.difference_update(range(number, behind))
                        return count
                    self._take(number, count)
                    return number
            own += self._letters[number] if not depth(line) else 0
        return count

    def _begins_message(self, number: int, own: int) -> str:
        line = self._lines[number]
        if is_separator(line):
            return "separator"
        if is_forwarded(line):
            return "forwarded"
        if own < _SAYS:  # the message's own head
            return ""
        if "@" in line and line.casefold().startswith(OPENS) and is_attribution(line):
            behind = self._after(number)
            return "attribution" if behind < len(self._lines) and not depth(self._lines[behind]) else ""
        if says_from(line):
            heads = [one for one in self._lines[number : number + _HEADER] if is_header(one)]
            return "header" if len(heads) > 2 and any(map(says_sent, heads)) else ""
        return ""

    def _behind_header(self, number: int) -> int:
        """The first line that says something behind the lines of a header."""
        for _ in range(2 * _HEADER):
            if number < len(self._lines) and (not self._lines[number] or is_header(self._lines[number])):
                number += 1
        return number

    def _behind_marks(self, end: int) -> None:
        """Lines that begin with a mark. Without any line of attribution they may be prompts, or a list of links."""
        depths = [depth(line) if number < end else 0 for number, line in enumerate(self._lines)]
        bars = [number < end and is_barred(line) for number, line in enumerate(self._lines)]
        runs = [*self._marked_runs([depth > 0 for depth in depths])]
        runs += [(start, behind) for start, behind in _runs(bars) if behind - start > 1]
        for start, _ in runs:
            before = self._before(start)
            if before in self._found or is_attribution(self._line(before)):
                self._is_message = True
                self._found.add(before)
                above = self._before(before)
                if len(self._line(before)) < _SIGNATURE_LINE and self._line(above).casefold().startswith(OPENS):
                    self._found.update([above] if has_digit(self._line(above)) else [])
        self._found.discard(-1)
        if not self._is_message:
            runs = self._likely(runs, depths)
        for start, behind in runs:
            self._found.update(range(start, behind))

    def _likely(self, runs: list[tuple[int, int]], depths: list[int]) -> list[tuple[int, int]]:
        """Of these those that are quotes though nothing says whose: lines cut as in mail, and text of the page behind.

        Articles are written with the same marks, a paragraph a line.
        """
        cut = sum(self._is_cut(number) for start, behind in runs for number in range(start, behind - 1))
        if not cut:
            return []
        marked = {number for start, behind in runs for number in range(start, behind)}
        last = max((n for n, count in enumerate(self._letters) if count >= _SAYS and n not in marked), default=-1)
        return [(a, b) for a, b in runs if b <= last and min((d for d in depths[a:b] if d), default=1) < 3]

    def _is_cut(self, number: int) -> bool:
        """Whether a sentence goes on in the next line."""
        line, behind = self._lines[number], self._lines[number + 1].lstrip(">＞| \t")
        cut = _CUT[0] <= len(line) <= _CUT[1] and line.count(" ") >= _CUT_WORDS and line[-1:] not in ".:!?;。：！？；"
        return cut and behind[:1].islower()

    def _marked_runs(self, marked: list[bool]) -> Iterator[tuple[int, int]]:
        """Runs of marked lines; an empty line between two of them is one."""
        whole = list(marked)
        for number in range(1, len(whole) - 1):
            if not self._lines[number] and whole[number - 1] and marked[number + 1]:
                whole[number] = True
        return _runs(whole)

    def _posted(self) -> None:
        """What forums set before a quote, and the paragraph behind that, if more follows."""
        rest = list(accumulate(reversed(self._letters), initial=0))[::-1]
        #: Where the paragraph ends that each line is in; without an empty line each is one.
        ends = list(range(1, len(self._lines) + 1))
        for number in range(len(ends) - 2, -1, -1) if "" in self._lines else ():
            ends[number] = ends[number + 1] if self._lines[number + 1] else number + 1
        for number, line in enumerate(self._lines):
            if number in self._found or not is_heading(line):
                continue
            behind = self._after(number)
            if behind < len(self._lines) and behind not in self._found and rest[behind + 1] >= _SAYS:
                end = ends[behind] if rest[ends[behind]] >= _SAYS else behind + 1
                self._take(number, end)

    def _signatures(self) -> None:
        for number, line in enumerate(self._lines):
            if line == "--" and number and (self._is_message or number in self._dashes):
                behind = number + 1
                while behind < len(self._lines) and behind - number <= _SIGNATURE and behind not in self._found:
                    behind += 1
                ends = behind == len(self._lines) or behind in self._found
                if ends and all(len(one) <= _SIGNATURE_LINE for one in self._lines[number:behind]):
                    self._found.update(range(number, behind))
            elif len(line) <= _SIGNATURE_LINE and is_sent_from(line):
                self._found.add(number)

    def _take(self, start: int, end: int) -> None:
        self._found.update(range(start, end))
        self._is_message = True

    def _line(self, number: int) -> str:
        return self._lines[number] if number >= 0 else ""

    def _before(self, number: int) -> int:
        """The line before that is not empty, or the one before that; -1 for none."""
        for found in (number - 1, number - 2):
            if found >= 0 and self._lines[found]:
                return found
        return -1

    def _after(self, number: int) -> int:
        """The same behind it; the number of lines for none."""
        for found in (number + 1, number + 2):
            if found < len(self._lines) and self._lines[found]:
                return found
        return len(self._lines)

    def _is_dated(self, number: int) -> bool:
        line = self._line(number)
        return is_attribution(line) and ("@" in line or re.search(r"\d[:.h]\d\d", line) is not None)


def _runs(marked: Sequence[bool]) -> Iterator[tuple[int, int]]:
    start = -1
    for number, one in enumerate((*marked, False)):
        if one and start < 0:
            start = number
        elif not one and start >= 0:
            yield start, number
            start = -1
