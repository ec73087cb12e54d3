"""``scrapy neardup extract``: pages of every reader, from everywhere, with a state and without."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError, StoreError
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from tests.build import open_state, state_url
from tests.cli import Invoke
from tests.page.pages import ARTICLE, ASIDE, NONE, PARAGRAPHS, PROSE

URL = "https://www.daybook.example/news/1"
Found = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the commands, with the pages alone."""
    for name, html in {"article": ARTICLE, "prose": PROSE, "none": NONE}.items():
        (tmp_path / f"{name}.html").write_text(html, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def found(invoke: Invoke) -> Found:
    """Runs the command, with settings; returns its JSON."""

    def found(*arguments: str | Path, **settings: Any) -> dict[str, Any]:
        done = invoke("extract", *arguments, "--json", **settings)
        assert (done.code, done.err) == (0, "")
        answer: dict[str, Any] = done.data
        return answer

    return found


@pytest.fixture
def state(folder: Path) -> str:
    """The state of a crawl here that has seen the aside on 40 pages of the site, and some pages of it besides."""
    place = folder / ".scrapy" / "neardup" / "spiders" / "news"
    place.mkdir(parents=True)
    url = state_url("sqlite", place / "state.sqlite")
    with open_state(url) as store:
        counted = make_method("cascade", {}).with_hashes(store.hashes).fingerprint(Page("", text=ASIDE)).sentences
        for number in range(50):
            store.note(counted if number < 40 else counted[:0], "daybook.example")
    return url


def extracted(html: str, url: str) -> str:
    """An extractor of the user's own."""
    return PARAGRAPHS[1] if "ferry" in html else ""


@pytest.mark.parametrize(
    ("page", "settings", "reader", "why"),
    [
        ("article", {}, "article", "and is also judged on its own."),
        ("prose", {}, "prose", "but it is ignored: an article needs 60 letters, 33% of the prose"),
        ("none", {}, "none", "none of its 2 visible lines is prose."),
        ("article", {"NEARDUP_EXTRACTOR": f"{__name__}.extracted"}, "extractor", "NEARDUP_EXTRACTOR gave 85 letters, "),
    ],
)
def test_each_reader_gives_its_reason(found: Found, page: str, settings: dict[str, Any], reader: str, why: str) -> None:
    answer = found(f"{page}.html", **settings)
    assert (answer["reader"], why in answer["why"]) == (reader, True)


@pytest.mark.parametrize(
    ("html", "settings", "reason"),
    [
        ("<p>Too short.</p>", {}, "too_short"),
        ("<p>Too short to be.</p>", {"NEARDUP_MIN_LETTERS": 10}, None),
        ("", {}, "no_text"),
        (ARTICLE, {"NEARDUP_METHOD": "imatch"}, "no_lexicon"),
    ],
)
def test_whether_a_page_would_be_judged(
    found: Found, folder: Path, html: str, settings: dict[str, Any], reason: str | None
) -> None:
    (folder / "page.html").write_text(html, encoding="utf-8")
    answer = found("page.html", **settings)
    assert (answer["judged"], answer["reason"]) == (reason is None, reason)


def test_boilerplate_of_the_state_is_marked(found: Found, invoke: Invoke, state: str) -> None:
    answer = found("article.html", "--url", URL)
    [line] = [one for one in answer["lines"] if one["text"][0]["text"] == ASIDE]
    assert line == {"role": "boilerplate", "text": [{"text": ASIDE, "mark": "boilerplate"}]}
    assert answer["letters"] - answer["own_letters"] == sum(map(str.isalpha, ASIDE))
    assert (answer["pages_of_site"], answer["why_no_store"]) == (50, None)
    printed = invoke("extract", "article.html", "--url", URL, "--store", state).out
    assert f"\nboilerplate  {ASIDE}\n" in printed


def test_an_unusable_state_is_an_error_only_if_it_was_named(found: Found, state: str) -> None:
    other = {"NEARDUP_METHOD": "simhash"}
    assert "has another recipe" in found("article.html", **other)["why_no_store"]
    assert "is a state in memory" in found("article.html", NEARDUP_STORE="memory:")["why_no_store"]
    with pytest.raises(StoreError, match="has another recipe"):
        found("article.html", "--store", state, **other)
    with pytest.raises(StoreError, match="There is no state at "):
        found("article.html", "--store", f"{state}.none")


@pytest.mark.parametrize("html", [ARTICLE.encode(), ("<meta charset=gb2312><p>渡口今天清晨恢复通航</p>").encode("gbk")])
def test_standard_input_is_a_page_too(found: Found, monkeypatch: pytest.MonkeyPatch, html: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(html)))
    answer = found("-")
    assert (answer["url"], "渡口今天清晨恢复通航" in answer["text"]) == ("", html != ARTICLE.encode())


def test_a_response_without_a_page_is_refused_as_in_a_crawl(found: Found, folder: Path) -> None:
    (folder / "long.html").write_bytes(b"<p>" + b"long " * 100)
    said = r"^long\.html has no readable page: the page has 503 characters and 1 tags \(too_large\)\. In a crawl its"
    with pytest.raises(NearDupError, match=said):
        found("long.html", NEARDUP_MAX_HTML=500)


@pytest.mark.parametrize("name", ["nosuch.html", ".", "a\0b", "x" * 5000, "http://www.daybook.example/1"])
def test_a_name_without_a_file_is_refused(found: Found, name: str) -> None:
    with pytest.raises(NearDupError, match=r"cannot be read: .*scrapy fetch"):
        found(name)
