"""Sites of URLs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.page.urls import site_of


def test_a_site_is_the_host_without_www() -> None:
    for url, site in [
        ("https://daybook.example/ferry", "daybook.example"),
        ("http://daybook.example", "daybook.example"),
        ("https://www.daybook.example/", "daybook.example"),
        ("https://WWW.DayBook.Example/Ferry", "daybook.example"),
        ("https://keeper:secret@www.daybook.example:8443/log?page=2#top", "daybook.example"),
        ("//daybook.example/ferry", "daybook.example"),
        ("https://www2.daybook.example/", "www2.daybook.example"),
        ("https://wwwharbour.example/", "wwwharbour.example"),
        ("https://news.www.example/", "news.www.example"),
        ("https://渡口.example/新闻", "渡口.example"),
        ("https://192.0.2.7:80/log", "192.0.2.7"),
        ("http://[2001:db8::7]:8080/log", "2001:db8::7"),
        ("https://daybook.example/?__biz=MzA5", "daybook.example"),
    ]:
        assert site_of(url) == site


def test_accounts_of_one_host_are_sites() -> None:
    for url, site in [
        ("https://mp.weixin.qq.com/s?__biz=MzA5&mid=2", "mp.weixin.qq.com MzA5"),
        ("https://mp.weixin.qq.com/s?mid=2&idx=1&__biz=MzA5#wechat_redirect", "mp.weixin.qq.com MzA5"),
        ("http://MP.weixin.qq.com/s?__biz=MzA5MDAx==&mid=2", "mp.weixin.qq.com MzA5MDAx=="),
        ("http://mp.weixin.qq.com/s?__biz=MzA5MDAx%3D%3D&mid=2", "mp.weixin.qq.com MzA5MDAx=="),
        ("https://mp.weixin.qq.com/s?__biz=MzA5&__biz=MzB7", "mp.weixin.qq.com MzA5"),
        ("https://mp.weixin.qq.com/s?__biz=&mid=2", "mp.weixin.qq.com"),
        ("https://mp.weixin.qq.com/s/kJ3vQ", "mp.weixin.qq.com"),
        ("https://mp.weixin.qq.com.example/s?__biz=MzA5", "mp.weixin.qq.com.example"),
    ]:
        assert site_of(url) == site


@given(st.text(max_size=60))
def test_any_text_is_accepted(text: str) -> None:
    for url in (text, f"https://{text}", f"https://daybook.example/{text}", f"https://mp.weixin.qq.com/s?__biz={text}"):
        assert isinstance(site_of(url), str)


@given(st.from_regex(r"[a-z0-9/.&?%#=_-]{0,30}", fullmatch=True))
def test_path_and_query_do_not_matter(rest: str) -> None:
    assert site_of(f"https://www.daybook.example/{rest}") == "daybook.example"
