"""Which lines of a message are not its own: what it quotes, who is said to have written that, and its signature.

A reply that quotes a whole message holds that message, and is no copy of it. Quotes are told by how mail programs and
forums write them. An article cites, too: what stands in quotation marks, in a paragraph set off or behind a name alone
is left to it. In doubt a line is the page's own.

Lines are looked at one after the other, by their beginning, their end and patterns whose repetitions are bounded, so
that no page can make it slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from scrapy_neardup.text.normalize import letters_each
from scrapy_neardup.text.quote_signs import (
    CLOSE_TAG,
    LONGEST,
    OPENS,
    Told,
    depth,
    has_digit,
    is_attribution,
    is_barred,
    is_forwarded,
    is_header,
    is_heading,
    is_reply_to,
    is_sent_from,
    is_separator,
    may_quote,
    opens_quote,
    opens_tag,
    says_from,
    says_sent,
    tags_apart,
)

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
