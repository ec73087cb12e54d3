"""Strings of pages disturb no line of a log, an error or a terminal."""

from __future__ import annotations

import io
import logging
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import scrapy_neardup
from scrapy_neardup import errors
from scrapy_neardup.model import Kind, Match, Outcome, Verdict
from scrapy_neardup.untrusted import (
    REPORT_URL,
    clean_line,
    clean_text,
    escape_json,
    is_disturbing,
    line_logger,
    link,
    one_line,
    shell_word,
)

PACKAGE = Path(scrapy_neardup.__file__).parent
FORGED = "2026-01-01 00:00:00 [scrapy] ERROR: forged"
#: Each of what could disturb, and a line that was never logged.
EVIL = f"http://a.example/\x1b[2J\x1b]0;title\x07\r\n{FORGED}\x85\u2028{FORGED}\u2029\u202egnp\u2066.exe\u200e\x9b2J\ud800\0\t"


def is_clean(line: str) -> bool:
    line.encode()
    return line.isprintable()


def test_disturbing_characters_are_escaped_and_ordinary_text_stays() -> None:
    assert one_line("a\n\x1b[2J\u202e\ud800\x85\u2028\t\0") == r"a\n\x1b[2J\u202e\ud800\x85\u2028\t\x00"
    for text in ["渡口\u3000开航", "a\xa0b", "می\u200cخواهم", "👩\u200d🚀", "com\xadpany", "é", "a\\x1b"]:
        assert one_line(text) == text
    disturbing = "".join(char for char in map(chr, range(sys.maxunicode + 1)) if is_disturbing(char))
    assert len(disturbing) > 2000
    for shown in (
        one_line(EVIL),
        one_line(disturbing, len(disturbing)),
        clean_text(disturbing),
        escape_json(disturbing),
    ):
        assert is_clean(shown.replace("\n", ""))


def test_a_long_line_keeps_its_beginning_and_its_end() -> None:
    text = "".join(chr(0x4E00 + number) for number in range(1000))
    for limit in (10, 11, 12, 100):
        first, last = one_line(text, limit).split("…")
        assert (text.startswith(first), text.endswith(last), len(first) + len(last)) == (True, True, limit - 1)
        assert len(first) > len(last) > 0
        assert one_line(text[:limit], limit) == text[:limit]
    assert len(one_line("\x1b" * 1_000_000)) < 4 * 400 + 1  # quickly


VERDICTS = [
    Verdict(outcome, EVIL, 1, match, "" if kind else "no_text", kind)
    for outcome in Outcome
    for match in (None, Match(1, EVIL, 0.0, 0.9, 0.9), Match(1, EVIL, 0.0, 0.9, 0.9, (EVIL,)))
    for kind in (None, Kind.RETITLED)
]


def test_sentences_of_verdicts_are_lines_that_can_be_read() -> None:
    for verdict in VERDICTS:
        assert is_clean(verdict.sentence()), verdict.headline
        assert one_line(EVIL) in verdict.sentence(), verdict.headline
    long = "http://a.example/" + "a" * 1_000_000
    match = Match(1, long, 0.0, 0.9, 0.9, ("s" * 1_000_000,))
    assert len(Verdict(Outcome.DUPLICATE, long, 1, match).sentence()) < 1000
    for url in ["http://a.example/1;reboot", "http://a.example/'; reboot; '", "$(reboot)", "a\nreboot"]:
        assert shlex.split(f"scrapy neardup compare {shell_word(url)}")[3:] == [one_line(url)]


def test_the_message_of_an_error_is_a_line() -> None:
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, errors.NearDupError):
            reason = ("reason",) if issubclass(error, errors.PageError) else ()
            made = str(error(*reason, f"The page {EVIL} cannot be read."))
            assert is_clean(made), error
            assert "cannot be read." in made, error


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The output of a handler on the root logger, in Scrapy's format."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(asctime)s [%(name)s] %(levelname)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    yield out
    logging.getLogger().removeHandler(handler)


def test_messages_stay_lines_and_no_line_of_an_indented_traceback_can_be_forged(log: io.StringIO) -> None:
    line_logger("tests.a").warning("%s of %d is %.1f like %r: %s", EVIL, 7, 0.5, EVIL, ValueError(EVIL))
    line_logger("tests.a").warning("Nothing is put in.")
    try:
        raise ValueError(EVIL)
    except ValueError:
        line_logger("tests.b").exception("%s failed.", EVIL)
    first, second, third, *trace = log.getvalue().split("\n")[:-1]
    assert " of 7 is 0.5 like " in first
    assert second.endswith("WARNING: Nothing is put in.")
    assert trace[0] == "  Traceback (most recent call last):"
    assert all(is_clean(line) for line in (first, third, *trace))
    assert all(line.startswith("  ") for line in trace)
    assert any(line.startswith("  ValueError: http://a.example/") for line in trace)


def test_every_module_logs_by_a_line_logger() -> None:
    sources = {file.name: file.read_text("utf-8") for file in PACKAGE.rglob("*.py")}
    own = [name for name, source in sources.items() if "logging.getLogger(__name__)" in source]
    assert not own, f"{own}: take line_logger, whose lines cannot be forged by what pages say"
    assert sum(" = line_logger(" in source for source in sources.values()) > 6


NASTY = [
    ("bell\x07 escape\x1b[2J null\x00 c1\x9b", "bell� escape�[2J null� c1�"),
    ("\u202eright\u202c \u2066to\u2069 \u202dleft", "�right� �to� �left"),
    ("half \ud83d a pair \udc80", "half � a pair �"),
    ("com\u00adpany می\u200cخواهم", "com\u00adpany می\u200cخواهم"),
    ("no \ufffe character \uffff, zero\u200b width\ufeff", "no � character �, zero width"),
    ("🚢 渡口 👩‍👩‍👧 שלום", "🚢 渡口 👩‍👩‍👧 שלום"),
]


def test_texts_and_lines_show_what_disturbs() -> None:
    for given, shown in NASTY:
        assert clean_text(given) == clean_line(given, 100) == shown
    assert clean_text("a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h\ti") == "a\nb\nc\nd\ne\nf\ng\nh i"
    assert clean_line(" a\r\nb\u2028\u3000c\t\u00a0d\n", 100) == "a b c d"
    for given, limit, shown in [
        ("ferries", 5, "ferri…"),
        ("the ferry", 4, "the…"),
        ("渡口" * 50, 3, "渡口渡…"),
        ("a" + " " * 40 + "b", 5, "a…"),  # what stands behind was not read
        (" \n ", 5, ""),
    ]:
        assert clean_line(given, limit) == shown


def test_addresses_of_the_web_are_links_and_nothing_else() -> None:
    for url in ("http://a.example/", "https://a.example/?q=<b>&c='\"", "HTTPS://A.example/渡口"):
        assert link(clean_line(url, REPORT_URL)) == url
    for url in (
        *("javascript:alert(1)", " javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\nscript:alert(1)"),
        *("data:text/html,x", "//a.example/", "/a", "", "https:a.example"),
        *("http://a.example/\nb", "http://a.example/\0"),
        *("http://a.example/\u202egpj", "http://a.example/\ud800", "x http://a.example/", "view-source:http://a/"),
        "http://a.example/" + "x" * REPORT_URL,
        "http://a.example/" + "x" * (REPORT_URL - 18) + " y",
        "http://a.example/" + " " * 5 * REPORT_URL + "y",
    ):
        assert link(clean_line(url, REPORT_URL)) == "", url
