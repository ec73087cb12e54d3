"""Find the quoted text and the signatures of messages, which are ignored.

A reply that quotes a message holds all of it and is no copy. Mail programs and forums mark the quoted lines.
Articles cite: text in quotation marks, in an indented paragraph or after a name stays. In doubt a line is the
page's own.

No page can make this slow: repetitions are bounded, or none can follow another one over the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from enum import IntEnum
from itertools import accumulate

from scrapy_neardup.text.normalize import letters


class QuoteMarkup(IntEnum):
    """How the markup of a page marks a line."""

    NONE = 0
    #: As a quotation, which in an article belongs to the article.
    CITED = 1
    #: As the quote of another message, by a mail program or a forum.
    QUOTED = 2


#: Longer lines do not introduce a quote, and a text with more lines is no message.
_LONGEST_HEADING, _MOST_LINES = 250, 10_000
#: Fewest letters that say something.
_LEAST_LETTERS = 10
#: Most lines of a signature, most characters of each, and most lines of a header.
_SIGNATURE, _SIGNATURE_LINE, _HEADER_LINES = 8, 80, 5

#: A bar marks a quote of some mail programs, if a dated attribution stands above it. Otherwise a table has it, or code.
_MARKS, _BAR, _COLONS = (">", "＞"), "|", (":", "：")
# Archives may lose the accents of letters: then "?" or "�" stands for them.
_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|schreef|skrev|napisał|pisze|escreveu|пишет|написал)\b"
    r"|\bescribi[ó?�]|\ba [é?�]crit|ha scritto|写道|寫道|書きました",
    re.IGNORECASE,
)
# Archives write "at". In prose a place may stand there: "at St. Mary's".
_ADDRESS = re.compile(r"[\w.+-](?:@[\w-]{1,60}\.| at [\w-]{1,60}\.[^\W\d_])")
_CLOCK = re.compile(r"\d[:.h]\d\d")
_OPENS = ("on ", "am ", "le ", "el ", "il ", "em ", "op ", "den ", "在", "于", "於")
_SEPARATOR = re.compile(
    r"-{3,60} {0,2}(?:original message|urspr[ü?�]ngliche nachricht|message d'origine|mensaje original|mensagem original"
    r"|messaggio originale|(?:start of )?forwarded message|weitergeleitete nachricht|message transféré|原始邮件"
    r"|原始郵件|回复的原邮件|元のメッセージ|转发邮件|轉寄郵件) {0,2}-{3,60}"
    r"|begin forwarded message[:：]?|>>> [^<>]{1,80}<[^<>]{3,80}> [^<>]{4,30}>>>",
    re.IGNORECASE,
)
#: The header of a quoted message, which has its time in a line such as "Sent:".
_HEADER = re.compile(
    r"\*?(?:from|von|de|发件人|寄件者) ?[:：].*\n"
    r"(?:\*?(?:to|cc|subject|an|betreff|à|objet|收件人|抄送|主题|收件者|主旨) ?[:：].*\n){0,3}"
    r"\*?(?:sent|gesendet|envoyé|发送时间|发送日期|日期|寄件日期) ?[:：]",
    re.IGNORECASE,
)
_FIELD = re.compile(r"\*?[^\W\d_][\w -]{0,20}[:：]")
_POSTED = re.compile(
    r"(?:引用|回复|回覆) ?[:：]? ?.{1,60}(?:的发言|的發言|的帖子|发表的|發表的)[:：]?"
    r"|(?:原帖由|引用由) ?.{1,80}(?:发表|發表)[:：]?|楼主.{0,40}(?:说|說|写道) ?[:：]"
    r"|.{1,60} ?(?:发表于|發表於|发表於) ?.{4,30}[:：]"
)
_REPLY = re.compile(
    r"(?:\[[^\[\]]{1,60}\] ?){0,3}(?:re|aw|antw|sv|rif|odp|回复|回覆|答复|答覆)(?:\[\d{1,3}\]|\(\d{1,3}\))? ?[:：]",
    re.IGNORECASE,
)
_SENT_FROM = ("sent from my ", "get outlook for ", "von meinem iphone ", "envoyé de mon ", "发自我的", "發自我的")
_OPEN_TAG, _CLOSE_TAG = re.compile(r"\[quote(?:=[^\[\]\n]{0,200})?\]", re.IGNORECASE), "[/quote]"
_TAG = re.compile(r"(\[quote(?:=[^\[\]\n]{0,200})?\]|\[/quote\])", re.IGNORECASE)
#: How lines begin that are no quote in themselves and may belong to one. Most pages have none, and no quote.
_SIGNS = (
    *(*_MARKS, " >", "--", "[quote", "[QUOTE", "Begin forwarded", "begin forwarded", "From", "FROM", "*From", "发件人"),
    *("寄件者", "引用", "回复", "回覆", "原帖由", "Sent from my", "Get Outlook", "sent from my", "发自我", "發自我"),
    *("Von:", "*Von:", "De :", "De:", "Envoyé de mon"),
)
_ENDS = (*_COLONS, ": ", ":\r", "： ", "：\r")
_FIRST, _LAST = frozenset(sign[0] for sign in _SIGNS), frozenset(end[-1] for end in _ENDS)


def is_attribution(line: str) -> bool:
    """Whether a line names the author of the text after it.

    >>> is_attribution("Am 3. März 2024 um 10:03 schrieb Ada <ada@a.example>:"), is_attribution("She wrote a book.")
    (True, False)
    """
    if len(line) > _LONGEST_HEADING or not line.rstrip(" ↑»").endswith(_COLONS):
        return False
    return _WROTE.search(line) is not None or (_ADDRESS.search(line) is not None and any(map(str.isdigit, line)))


def split_quotes(text: str, title: str = "") -> tuple[str, str]:
    """Return the own text of a message, and the rest: quotes, their attributions, signatures. ``title``: its subject.

    >>> split_quotes("On 3 March 2024, Ada wrote:\\n> The ferry sails at nine.\\nIt has sailed at ten since May.")
    ('It has sailed at ten since May.', 'On 3 March 2024, Ada wrote:\\n> The ferry sails at nine.')
    """
    if "]" in text and ("quote]" in text or "QUOTE]" in text):  # a line for each tag
        text = _TAG.sub(r"\n\1\n", text)
    lines = text.split("\n")
    found = find_quotes(lines, title=title)
    return split_lines(lines, found) if found else (text, "")


def split_lines(lines: Sequence[str], quotes: Set[int]) -> tuple[str, str]:
    """Split lines into own text and quotes, given the numbers of the quotes."""
    own = [line for number, line in enumerate(lines) if number not in quotes]
    return "\n".join(own), "\n".join(line for number, line in enumerate(lines) if number in quotes)


def find_quotes(lines: Sequence[str], markup: Sequence[QuoteMarkup] = (), *, title: str = "") -> frozenset[int]:
    """Return the numbers, from 0, of the lines that are quotes or signatures.

    ``markup``: marks of the lines, if they come from HTML; ``title``: it may mark a reply.
    """
    # Most pages have few such lines, or none. To look at a character is faster than a call.
    likely = [line for line in lines if line and (line[0] in _FIRST or (line[-1] in _LAST and line.endswith(_ENDS)))]
    if len(lines) > _MOST_LINES or not (any(markup) or any(map(_is_sign, likely))):
        return frozenset()
    return frozenset(_Message(lines, markup, is_reply=_REPLY.match(title) is not None).quotes())


def _is_sign(line: str) -> bool:
    return line.startswith(_SIGNS) or (line.rstrip().endswith(_COLONS) and (is_attribution(line) or _is_heading(line)))


def _is_heading(line: str) -> bool:
    """Whether a line may stand before a forum's quote."""
    return 4 < len(line) <= _LONGEST_HEADING and _POSTED.fullmatch(line) is not None


def _is_dated(line: str) -> bool:
    """Whether a mail program wrote a line of attribution: it gives a time or an address."""
    return is_attribution(line) and (_ADDRESS.search(line) or _CLOCK.search(line)) is not None


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
        has_bars = any(
            line.startswith(_BAR) and not line.endswith(_BAR, 1) and _is_dated(self._line(self._near(number, -1)))
            for number, line in enumerate(self._lines)
        )
        self._marks = (*_MARKS, _BAR) if has_bars else _MARKS

    def quotes(self) -> set[int]:
        self._in_tags()
        self._in_markup()
        self._after_marks(self._to_the_end())
        self._in_posts()
        self._signatures()
        return self._found

    def _in_tags(self) -> None:
        """Find ``[quote]`` to ``[/quote]``, also nested ones."""
        opened, spans, last = list[int](), list[tuple[int, int]](), 0
        for number, line in enumerate(self._lines):
            if _OPEN_TAG.match(line) and _CLOSE_TAG not in line.casefold():
                opened.append(number)
            elif line.casefold().endswith(_CLOSE_TAG):
                start = opened.pop() if opened else number
                if start < number or _OPEN_TAG.match(line):
                    spans.append((start, number + 1))
        for start, end in sorted(spans):
            if end > last:  # not within another one
                last = end
                self._add(start, end)

    def _in_markup(self) -> None:
        """Find marked lines. Articles write "She wrote:" before a citation, so the attribution must be dated."""
        for start, end in _runs([markup > QuoteMarkup.NONE for markup in self._markup]):
            before, first = self._near(start, -1), self._lines[start]
            heading = f"{first.rstrip('：:')}："  # forums may leave the colon out
            is_sure = _is_dated(self._line(before)) or _is_dated(first) or _is_heading(heading)
            # A forum's mark counts for its own lines only: an indented article may surround them.
            quoted = [one for one in range(start, end) if is_sure or self._markup[one] is QuoteMarkup.QUOTED]
            if quoted:
                self._found.update(quoted)
                self._is_message = True
                if is_attribution(self._line(before)):
                    self._found.add(before)

    def _to_the_end(self) -> int:
        """Return the line where an unmarked quote begins that goes on to the end, or the number of lines."""
        count, own = len(self._lines), 0
        for number, line in enumerate(self._lines):
            if number in self._found:
                continue
            # Without a text above it, a forwarded message is the page itself.
            if own and self._begins_message(number, own):
                self._is_message = True
                after = self._lines[number + 1 : number + 2 * _HEADER_LINES]
                quoted = next((one for one in after if one and not _FIELD.match(one)), "")
                # A marked text may be answered line by line. In any other one the marks are of still earlier messages.
                if not quoted.startswith(self._marks):
                    self._found.update(range(number, count))
                    return number
            own += 0 if line.startswith(self._marks) else self._letters[number]
        return count

    def _begins_message(self, number: int, own: int) -> bool:
        line = self._lines[number]
        if _SEPARATOR.fullmatch(line):
            return True
        if own < _LEAST_LETTERS or len(line) > _LONGEST_HEADING:  # the header of the message itself
            return False
        if line.casefold().startswith(_OPENS) and is_attribution(line) and _ADDRESS.search(line):
            return "@" in line or _WROTE.search(line) is not None
        return _HEADER.match("\n".join(self._lines[number : number + _HEADER_LINES])) is not None

    def _after_marks(self, end: int) -> None:
        """Find lines that begin with a mark. Without attribution they may be prompts or a list of links."""
        marked = [number < end and line.startswith(self._marks) for number, line in enumerate(self._lines)]
        for number in range(1, len(marked) - 1):  # one empty line may lie between two of them
            marked[number] |= not self._lines[number] and marked[number - 1] and marked[number + 1]
        for start, stop in _runs(marked):
            introduction = self._introduction(start, stop)
            if introduction >= 0:
                self._add(introduction, introduction + 1)
                above = introduction - 1
                if not self._opens(introduction) and self._opens(above) and _ADDRESS.search(self._line(above)[-200:]):
                    self._found.add(above)  # the attribution was wrapped
        if self._is_message:
            self._found.update(number for number, one in enumerate(marked) if one)

    def _introduction(self, start: int, stop: int) -> int:
        """Return the line that says who wrote marked lines, which may be the first of them; -1 if none does."""
        before, first = self._near(start, -1), self._lines[start]
        if before in self._found or is_attribution(self._line(before)):
            return before
        unmarked = [line.lstrip("> ＞|") for line in self._lines[start : min(start + 2, stop)]]
        if unmarked[0] == "wrote:" and _is_dated(f"{self._line(before)} wrote:"):  # it was wrapped
            return before
        # Lines of code have addresses, too.
        named = [one for one in unmarked if is_attribution(one) and ("<" in one or _WROTE.search(one))]
        is_named = any(first.startswith(">>") or _is_dated(one) for one in named)
        return start if is_named or any(map(_SEPARATOR.fullmatch, unmarked)) else -1

    def _in_posts(self) -> None:
        """Find the headings of forum quotes, and the paragraph after each if more text follows."""
        rest = list(accumulate(reversed(self._letters), initial=0))[::-1]
        #: End of the paragraph of each line; in a text without empty lines each line is one.
        ends = list(range(1, len(self._lines) + 1))
        if "" in self._lines:
            for number in reversed(range(len(ends) - 1)):
                ends[number] = ends[number + 1] if self._lines[number + 1] else number + 1
        for number, line in enumerate(self._lines):
            after = self._near(number, 1) if number not in self._found and _is_heading(line) else -1
            if after >= 0 and after not in self._found and rest[after + 1] >= _LEAST_LETTERS:
                self._add(number, ends[after] if rest[ends[after]] >= _LEAST_LETTERS else after + 1)

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

    def _opens(self, number: int) -> bool:
        """Whether a line begins as an attribution does."""
        return self._line(number)[:_LEAST_LETTERS].casefold().startswith(_OPENS)

    def _line(self, number: int) -> str:
        return self._lines[number] if number >= 0 else ""

    def _near(self, number: int, step: int) -> int:
        """Return the nearest line with text among the three lines before (-1) or after (1), or -1."""
        for found in range(number + step, number + 4 * step, step):
            if 0 <= found < len(self._lines) and self._lines[found]:
                return found
        return -1


def _runs(marked: Sequence[bool]) -> Iterator[tuple[int, int]]:
    start = -1
    for number, one in enumerate((*marked, False)):
        if one and start < 0:
            start = number
        elif not one and start >= 0:
            yield start, number
            start = -1
