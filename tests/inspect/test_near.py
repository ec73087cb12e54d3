"""URLs that differ only in how they are written lead to each other."""

from __future__ import annotations

from scrapy_neardup.inspect.sources import near_urls
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.record import Record

NEWS = "https://a.example/%E6%96%B0%E9%97%BB?q=%E6%A2%A8"


def test_a_url_is_found_by_another_way_to_write_it() -> None:
    for there, typed in [
        ("https://a.example/b", "https://a.example/b/"),
        ("https://a.example/b/", "https://a.example/b"),
        ("https://a.example/", "https://a.example"),
        ("https://a.example", "https://a.example/"),
        ("https://a.example/b/?x=1", "https://a.example/b?x=1"),
        ("http://www.a.example/b", "https://a.example/b/#end"),
        ("https://a.example/b", "http://www.a.example/b"),
        ("https://a.example/b", "a.example/b"),
        ("https://a.example/b", "https://A.Example/b"),
        ("https://a.example:8080/b", "http://www.a.example:8080/b/"),
        (NEWS, "https://a.example/新闻?q=梨"),
        ("https://a.example/新闻", "http://a.example/%E6%96%B0%E9%97%BB"),
    ]:
        store = memory_state({})
        for url in (there, "https://other.example/b"):
            id = store.new_id()
            store.add(Record(id, url, id))
        assert near_urls(store, typed) == [there]
        assert near_urls(store, there) == []
