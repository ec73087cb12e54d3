"""What a page is read from, decoded late."""

from __future__ import annotations

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.response import PageContent

URL = "http://river.example/ferry"


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
