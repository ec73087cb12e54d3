"""Find the quoted text and the signatures of messages, which are ignored.

A reply that quotes a message holds all of it and is no copy. Mail programs and forums mark the quoted lines.
Articles cite, too: text in quotation marks, in an indented paragraph or after a name alone stays. In doubt a line is
the page's own.

No page can make this slow: all patterns have bounded repetitions and see only short lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from enum import IntEnum
from itertools import accumulate

from scrapy_neardup.text import backend
from scrapy_neardup.text.normalize import letters


class QuoteMarkup(IntEnum):
    """How the markup of a page marks a line."""

    NONE = 0
    #: As a quotation, which in an article belongs to the article.
    CITED = 1
    #: As the quote of another message, by a mail program or a forum.
    QUOTED = 2


#: Longer lines neither attribute a quote nor head one.
_LONGEST_HEADING = 250
_MARK = re.compile(r"(?:[>＞][ \t]{0,3}){1,40}")
_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|schreef|skrev|napisał|escribió|escreveu|пишет|написал)\b"
    r"|a écrit|ha scritto|写道|寫道|書きました",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[\w.+-]@[\w-]{1,60}\.")
_OPENS = ("on ", "am ", "le ", "el ", "il ", "em ", "op ", "den ", "in article ", "在", "于", "於")
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
_OPEN_TAG, _CLOSE_TAG = re.compile(r"\[quote(?:=[^\[\]\n]{0,200})?\]", re.IGNORECASE), "[/quote]"
_AROUND_TAGS = re.compile(r"(\[quote(?:=[^\[\]\n]{0,200})?\]|\[/quote\])", re.IGNORECASE)
_CHINESE_QUOTING = (
    "写道 寫道 書きました 发自我 發自我 发件人 寄件者 的发言 的發言 的帖子 原帖由 引用由 楼主 "
    "发表的 发表于 发表於 發表的 發表于 發表於"
)
_MAIL_QUOTING = (
    "Sent:|sent:|SENT:|Gesendet:|egin forwarded|Sent from|sent from|Get Outlook|get outlook|einem iPhone |Envoyé de |"
    "réexpédié|weitergeleitete"
)
#: Most pages hold none of these strings, and so no quote.
_QUOTING = (
    *("\n>", "\n >", "\n＞", "\n|", "\n--", "[quote", "[QUOTE", "[Quote", ">:\n"),
    *_CHINESE_QUOTING.split(),
    *_MAIL_QUOTING.split("|"),
)
#: A line ends with a colon; then a part of a verb in _WROTE must occur too.
_COLONS = ":\n", ": \n", ":\r\n"
_has_quoting = backend.active.make_search(*_QUOTING)
_has_colon = backend.active.make_search(*_COLONS)
_has_any = backend.active.make_search(*_QUOTING, *_COLONS)
#: Parts of the verbs in _WROTE.
_has_verb = backend.active.make_search("wrote", "writes", "schr", "skrev", "napisa", "escr", "crit", "пишет", "написал")


def is_attribution(line: str) -> bool:
    """Whether a line names the author of the text after it.

    >>> is_attribution("Am 3. März 2024 um 10:03 schrieb Ada <ada@a.example>:"), is_attribution("She wrote a book.")
    (True, False)
    """
    if len(line) > _LONGEST_HEADING or not line.rstrip(" ↑»").endswith((":", "：")):
        return False
    return _WROTE.search(line) is not None or (_ADDRESS.search(line) is not None and _has_digit(line))


def may_quote(text: str) -> bool:
    """Whether a text may hold a quote: a fast check that clears most pages."""
    if text.lstrip().startswith((">", "＞", "---", "Begin")):
        return True
    if not _has_any(text):  # most pages end here
        return False
    return _has_quoting(text) or (_has_colon(text) and _has_verb(text))


def _quote_depth(line: str) -> int:
    """Return the number of quotation marks (>) at the beginning of a line."""
    found = _MARK.match(line) if line[:1] in (">", "＞") else None
    return found[0].count(">") + found[0].count("＞") if found else 0


def _opens_quote(line: str) -> bool:
    """Whether the first line of an indented block names the time of a post."""
    return len(line) <= _LONGEST_HEADING and (
        _POSTED_ON.search(line) is not None or (is_attribution(line) and _has_digit(line))
    )


def _is_heading(line: str) -> bool:
    """Whether a line may stand before a forum's quote."""
    may_be = 4 < len(line) <= _LONGEST_HEADING and any(map(line.__contains__, _IN_HEADING))
    return may_be and _POSTED.fullmatch(line) is not None


def _has_digit(line: str) -> bool:
    """Whether a line has a digit."""
    return any(char.isdigit() for char in line)


#: A text with more lines is no message.
_MOST_LINES = 10_000
#: Fewest letters of a line with content.
_SAYS = 10
#: From so many own letters on, a forwarded message below them is a quote. With fewer it is the message itself.
_COMMENT = 40
#: Most lines of a signature, and most characters of each.
_SIGNATURE, _SIGNATURE_LINE = 8, 80
#: Length and words of a line that a mail program has wrapped.
_WRAPPED, _WRAPPED_WORDS = (50, 90), 6
#: Most header lines to look at.
_HEADER = 6


def split_quotes(text: str, title: str = "") -> tuple[str, str]:
    """Return the own text of a message, and the text it quotes; ``title`` is its subject.

    >>> split_quotes("On 3 March 2024, Ada wrote:\\n> The ferry sails at nine.\\nIt has sailed at ten since May.")
    ('It has sailed at ten since May.', 'On 3 March 2024, Ada wrote:\\n> The ferry sails at nine.')
    """
    if not may_quote(text):
        return text, ""
    # Each [quote] and [/quote] stands on a line of its own.
    lines = (_AROUND_TAGS.sub(r"\n\1\n", text) if "[quote" in text.casefold() else text).split("\n")
    found = find_quotes(lines, is_reply=_REPLY.match(title) is not None)
    return split_lines(lines, found) if found else (text, "")


def split_lines(lines: Sequence[str], quotes: Set[int]) -> tuple[str, str]:
    """Split lines into own text and quotes, given the numbers of the quotes."""
    own = [line for number, line in enumerate(lines) if number not in quotes]
    return "\n".join(own), "\n".join(line for number, line in enumerate(lines) if number in quotes)


def find_quotes(lines: Sequence[str], markup: Sequence[QuoteMarkup] = (), *, is_reply: bool = False) -> frozenset[int]:
    """Return the numbers, from 0, of the lines that are quotes or signatures.

    ``markup``: marks of the lines, if they come from HTML; ``is_reply``: the title marks a reply.
    """
    if len(lines) > _MOST_LINES or (not any(markup) and not may_quote("\n".join(lines))):
        return frozenset()
    return frozenset(_Message(lines, markup, is_reply=is_reply).quotes())


class _Message:
    def __init__(self, lines: Sequence[str], markup: Sequence[QuoteMarkup], *, is_reply: bool) -> None:
        #: Lines that begin a signature.
        self._dashes = {number for number, line in enumerate(lines) if line.rstrip("\r") == "-- "}
        self._lines = [line.strip() for line in lines]
        self._letters = [len(letters(line)) for line in self._lines]
        self._markup = markup
        self._found: set[int] = set()
        #: Whether there is a sign that this is a message.
        self._is_message = is_reply

    def quotes(self) -> set[int]:
        self._in_tags()
        self._in_markup()
        end = self._to_the_end()
        self._after_marks(end)
        self._in_posts()
        self._signatures()
        return self._found

    def _in_tags(self) -> None:
        """Find ``[quote]`` to ``[/quote]``, also nested ones."""
        opened: list[int] = []
        for number, line in enumerate(self._lines):
            if "[" not in line:
                continue
            if _OPEN_TAG.match(line) and _CLOSE_TAG not in line.casefold():
                opened.append(number)
            elif line.casefold().endswith(_CLOSE_TAG):
                start = opened.pop() if opened else number
                if not opened and (start < number or _OPEN_TAG.match(line)):
                    self._add(start, number + 1)

    def _in_markup(self) -> None:
        for start, end in _runs([markup > QuoteMarkup.NONE for markup in self._markup]):
            before = self._before(start)
            marked = max(self._markup[start:end]) is QuoteMarkup.QUOTED
            # Articles write "She wrote:" before a citation; only mail programs give the time or an address.
            if marked or self._is_dated(before) or _opens_quote(self._lines[start]):
                numbers = range(start, end)
                # A forum's mark counts for its own lines only: an indented article may surround them.
                sure = not marked or self._is_dated(before) or _opens_quote(self._lines[start])
                self._found.update(one for one in numbers if sure or self._markup[one] is QuoteMarkup.QUOTED)
                self._is_message = True
                if is_attribution(self._line(before)):
                    self._found.add(before)

    def _to_the_end(self) -> int:
        """Return the line where an unmarked quote begins that goes on to the end, or the number of lines."""
        count, own = len(self._lines), 0
        for number, line in enumerate(self._lines):
            if number in self._found or not line:
                continue
            if len(line) <= _LONGEST_HEADING and (kind := self._begins_message(number, own)):
                after = self._skip_header(number + 1)
                self._found.update(range(number, after))
                self._is_message = True
                if after == count or not _quote_depth(self._lines[after]):
                    if kind == "forwarded" and own < _COMMENT:  # there is no other text: that is the message
                        self._found.difference_update(range(number, after))
                        return count
                    self._add(number, count)
                    return number
            own += self._letters[number] if not _quote_depth(line) else 0
        return count

    def _begins_message(self, number: int, own: int) -> str:
        line = self._lines[number]
        if _SEPARATOR.fullmatch(line):
            return "separator"
        if _FORWARDED.fullmatch(line):
            return "forwarded"
        if own < _SAYS:  # the header of the message itself
            return ""
        if "@" in line and line.casefold().startswith(_OPENS) and is_attribution(line):
            after = self._after(number)
            return "attribution" if after < len(self._lines) and not _quote_depth(self._lines[after]) else ""
        if not (line.casefold().startswith(_FROM) and _HEAD.match(line)):
            return ""
        heads = [one.casefold() for one in self._lines[number : number + _HEADER] if _HEAD.match(one)]
        return "header" if len(heads) > 2 and any(one.startswith(_SENT) for one in heads) else ""

    def _skip_header(self, number: int) -> int:
        for _ in range(2 * _HEADER):
            if number < len(self._lines) and (not self._lines[number] or _HEAD.match(self._lines[number])):
                number += 1
        return number

    def _after_marks(self, end: int) -> None:
        """Find lines that begin with a mark. Without attribution they may be prompts or a list of links."""
        depths = [_quote_depth(line) if number < end else 0 for number, line in enumerate(self._lines)]
        # A row of a table has several bars.
        bars = [number < end and line[:1] == "|" and line.count("|") == 1 for number, line in enumerate(self._lines)]
        runs = [*self._marked_runs([depth > 0 for depth in depths])]
        runs += [(start, after) for start, after in _runs(bars) if after - start > 1]
        for start, _ in runs:
            before = self._before(start)
            if before in self._found or is_attribution(self._line(before)):
                self._is_message = True
                self._found.add(before)
                above = self._before(before)
                if len(self._line(before)) < _SIGNATURE_LINE and self._line(above).casefold().startswith(_OPENS):
                    self._found.update([above] if _has_digit(self._line(above)) else [])
        self._found.discard(-1)
        if not self._is_message:
            runs = self._likely_runs(runs, depths)
        for start, after in runs:
            self._found.update(range(start, after))

    def _likely_runs(self, runs: list[tuple[int, int]], depths: list[int]) -> list[tuple[int, int]]:
        """Return the runs that are quotes although nobody is named: wrapped as in mail, with own text below.

        Articles use the same marks, with a paragraph a line.
        """
        cut = sum(self._is_wrapped(number) for start, after in runs for number in range(start, after - 1))
        if not cut:
            return []
        marked = {number for start, after in runs for number in range(start, after)}
        last = max((n for n, count in enumerate(self._letters) if count >= _SAYS and n not in marked), default=-1)
        return [(a, b) for a, b in runs if b <= last and min((d for d in depths[a:b] if d), default=1) < 3]

    def _is_wrapped(self, number: int) -> bool:
        line, after = self._lines[number], self._lines[number + 1].lstrip(">＞| \t")
        cut = (
            _WRAPPED[0] <= len(line) <= _WRAPPED[1]
            and line.count(" ") >= _WRAPPED_WORDS
            and line[-1:] not in ".:!?;。：！？；"
        )
        return cut and after[:1].islower()

    def _marked_runs(self, marked: list[bool]) -> Iterator[tuple[int, int]]:
        """Yield runs of marked lines; one empty line may lie between two of them."""
        whole = list(marked)
        for number in range(1, len(whole) - 1):
            if not self._lines[number] and whole[number - 1] and marked[number + 1]:
                whole[number] = True
        return _runs(whole)

    def _in_posts(self) -> None:
        """Find the headings of forum quotes, and the paragraph after each if more text follows."""
        rest = list(accumulate(reversed(self._letters), initial=0))[::-1]
        #: End of the paragraph of each line; in a text without empty lines each line is one.
        ends = list(range(1, len(self._lines) + 1))
        for number in range(len(ends) - 2, -1, -1) if "" in self._lines else ():
            ends[number] = ends[number + 1] if self._lines[number + 1] else number + 1
        for number, line in enumerate(self._lines):
            if number in self._found or not _is_heading(line):
                continue
            after = self._after(number)
            if after < len(self._lines) and after not in self._found and rest[after + 1] >= _SAYS:
                end = ends[after] if rest[ends[after]] >= _SAYS else after + 1
                self._add(number, end)

    def _signatures(self) -> None:
        for number, line in enumerate(self._lines):
            if line == "--" and number and (self._is_message or number in self._dashes):
                after = number + 1
                while after < len(self._lines) and after - number <= _SIGNATURE and after not in self._found:
                    after += 1
                ends = after == len(self._lines) or after in self._found
                if ends and all(len(one) <= _SIGNATURE_LINE for one in self._lines[number:after]):
                    self._found.update(range(number, after))
            elif len(line) <= _SIGNATURE_LINE and line.casefold().startswith(_SENT_FROM):
                self._found.add(number)

    def _add(self, start: int, end: int) -> None:
        self._found.update(range(start, end))
        self._is_message = True

    def _line(self, number: int) -> str:
        return self._lines[number] if number >= 0 else ""

    def _before(self, number: int) -> int:
        """Return the nearest of the two lines before that is not empty, or -1."""
        for found in (number - 1, number - 2):
            if found >= 0 and self._lines[found]:
                return found
        return -1

    def _after(self, number: int) -> int:
        """Return the nearest of the two lines after that is not empty, or the number of lines."""
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
