"""What a page is read from: decoded late, and the same at the other end of a pipe."""

from __future__ import annotations

from io import BytesIO

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.response import PageContent
from scrapy_neardup.page.worker import receive_message, send_message
from tests.page.pages import ARTICLE

URL = "http://river.example/ferry"


@pytest.mark.parametrize(
    "raw",
    [
        PageContent(URL, ARTICLE),
        PageContent(f"{URL}/\ud800渡口", "ferry \ud800 渡口 \U0001f6a2"),
        PageContent(URL, ""),
        PageContent(URL, b"\xff\x00<p>", "text/html; charset=gbk", is_of_url=False),
        PageContent(URL, ARTICLE, metadata=ItemMetadata("\ud800渡口", ("ferry", "渡口"), "One.\nTwo.")),
    ],
)
def test_it_comes_out_as_it_was_put_in(raw: PageContent) -> None:
    pipe = BytesIO()
    send_message(pipe, raw.message())
    send_message(pipe, raw.message())
    pipe.seek(0)
    assert [PageContent.of_message(receive_message(pipe)) for _ in range(2)] == [raw, raw]
    with pytest.raises(EOFError):
        receive_message(pipe)


def test_half_of_it_is_none() -> None:
    pipe = BytesIO()
    send_message(pipe, PageContent(URL, ARTICLE).message())
    with pytest.raises(EOFError):
        receive_message(BytesIO(pipe.getvalue()[:-1]))


def test_its_html_is_decoded_by_what_came_with_it() -> None:
    body = "<p>渡口今天早上重新開航</p>".encode("big5")
    assert "渡口" in PageContent(URL, body, "text/html; charset=big5").html()
    assert PageContent(URL, "<p>as it is").html() == "<p>as it is"


def test_a_page_that_is_not_known_to_be_that_of_the_url_has_to_say_so() -> None:
    names = f"<head><link rel=canonical href='{URL}/'></head>"
    assert PageContent(URL, names, is_of_url=False).html() == names
    for html in ("<p>The ferry", "<head><link rel=canonical href='http://river.example/other'></head>"):
        assert PageContent(URL, html).html() == html
        with pytest.raises(ExtractionError) as told:
            PageContent(URL, html, is_of_url=False).html()
        assert told.value.reason == "other_page"
