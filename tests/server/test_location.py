"""URLs of states on servers: the location that they name, and messages without passwords."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.state.urls import SERVERS, existing_states, parse_url, placeholders_filled


def test_a_url_names_a_state_and_its_location_shows_no_password() -> None:
    for url, location in [
        ("redis://cache.example", "redis://cache.example:6379/0?state=neardup"),
        ("redis://cache.example:7000/3?state=news", "redis://cache.example:7000/3?state=news"),
        ("REDIS://Cache.Example/", "redis://cache.example:6379/0?state=neardup"),
        ("redis://crawler:p%40ss@cache.example/1", "redis://cache.example:6379/1?state=neardup"),
        ("rediss://:secret@[2001:db8::7]/", "rediss://[2001:db8::7]:6379/0?state=neardup"),
        ("unix:///run/redis.sock?db=2&state=新闻", "unix:///run/redis.sock?db=2&state=%E6%96%B0%E9%97%BB"),
        ("unix://:secret@/run/redis.sock", "unix:///run/redis.sock?db=0&state=neardup"),
        ("redis+cluster://a.example", "redis+cluster://a.example:6379?state=neardup"),
        ("redis+cluster://A.example:7000,b.example/0?state=a", "redis+cluster://a.example:7000,b.example:6379?state=a"),
        (
            "rediss+cluster://u:p%40ss@a.example,[2001:db8::7]:1",
            "rediss+cluster://a.example:6379,[2001:db8::7]:1?state=neardup",
        ),
        ("redis+sentinel://a.example/news", "redis+sentinel://a.example:26379/news/0?state=neardup"),
        (
            "redis+sentinel://:p%40ss@a.example,b.example:5/the%20one/3?state=x&sentinel_password=p%40ss",
            "redis+sentinel://a.example:26379,b.example:5/the%20one/3?state=x",
        ),
        (
            "rediss+sentinel://a.example/news?ssl_ca_certs=/tls/ca&sentinel_password=p%40ss",
            "rediss+sentinel://a.example:26379/news/0?state=neardup",
        ),
    ]:
        kind, found = parse_url(url)
        assert kind is SERVERS[url.partition(":")[0].lower()]
        assert found == location
        assert parse_url(found) == (kind, location)
        assert "p@ss" not in repr(found), url
        assert kind.form.startswith("//"), url
        assert parse_url(f"{kind.scheme}:{kind.form}")[0] is kind, url


def test_passwords_go_along_unseen() -> None:
    _, location = parse_url("redis+sentinel://u:o%40n%2Fe@a/news?sentinel_password=t%26wo")
    options: dict[str, Any] = location.options  # type: ignore[attr-defined]
    assert (options["username"], options["password"], options["sentinel_password"]) == ("u", "o@n/e", "t&wo")


def test_a_wrong_url_is_refused_without_its_password() -> None:
    for url, message in [
        ("redis://", "names no server"),
        ("redis://:hush@/0", "names no server"),
        ("redis://user:hush@host:port/0", "no valid port"),
        ("redis://user:hush@cache..example/0", "no valid name of a host"),
        ("redis://user:hush@host/news", "no database by number"),
        ("redis://user:hush@host/0?stat=news", "unknown option stat"),
        ("redis://user:hush@host/0?state=a%20b", "no valid name"),
        ("redis://user:hush@host/0?state={a}", "no valid name"),
        ("redis://user:hush@host/0#hush", "Write %23 for it in a password"),
        ("unix://user:hush@/", "no absolute path of a socket"),
        ("unix://run/redis.sock", "no absolute path of a socket"),
        ("mongodb://user:hush@host/0", "names no state"),
        ("redis+sentinel://user:hush@a,b", "lacks the service name"),
        ("redis+sentinel://user:hush@a,b/?sentinel_password=hush", "lacks the service name"),
        ("redis+sentinel://user:hush@/news", "names no server"),
        ("redis+sentinel://a,,b/news?sentinel_password=hush", "names no server"),
        ("redis+sentinel://user:hush@a/news/first", "no database by number"),
        ("redis+sentinel://user:hush@a:b/news", "no valid port"),
        ("redis+sentinel://a/news?Sentinel_password=hush", "unknown option Sentinel_password"),
        ("redis+cluster://user:hush@a,b/1", "only database 0"),
        ("redis+cluster://user:hush@a,b?sentinel_password=hush", "unknown option sentinel_password"),
        ("redis+cluster://a?password=hush#hush", "unknown option password"),
        ("redis://user:hush@a,b/0", "several servers\\. For a cluster write redis\\+cluster://"),
        ("redis+other://user:hush@a", "names no state"),
    ]:
        with pytest.raises(SettingsError, match=message) as refused:
            parse_url(url)
        assert "hush" not in str(refused.value).replace("#hush", ""), url
        assert "NEARDUP_STORE" in str(refused.value), url


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:hush@host/0?state=%(name",
        "redis://user:hush@host/0?state=%(missing)s",
        "redis://user:hush@host/0?state=%(name)d",
        "redis+sentinel://u:hush@a/news?sentinel_password=hush&state=%(name",
    ],
)
def test_a_wrong_placeholder_is_refused_without_the_password(url: str) -> None:
    with pytest.raises(SettingsError, match="state=%") as refused:
        placeholders_filled(url, lambda name: "a" if name == "name" else None)
    assert "hush" not in str(refused.value)


def test_a_state_for_each_spider_has_a_name_of_its_own() -> None:
    url = placeholders_filled("redis://user:hush@host/0?state=%(name)s", lambda name: "a b")
    assert parse_url(placeholders_filled(url.replace("a%20b", "news"), str))[1] == "redis://host:6379/0?state=news"
    assert existing_states("redis://host/0?state=%(name)s") == []


WITHOUT_REDIS = """
import sys
sys.modules["redis"] = None
from scrapy_neardup.errors import StoreError
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.urls import SERVERS, parse_url
assert "redis+cluster://" in SERVERS.forms() and parse_url("redis://host")[1]
try:
    open_store("redis://localhost/0", {})
except StoreError as error:
    print(error)
"""


def test_without_redis_py_it_is_said_how_to_get_it_or_do_without() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_REDIS], capture_output=True, text=True, timeout=110)
    assert "scrapy-neardup[redis]" in done.stdout, done.stderr
    assert "leveldb:///path" in done.stdout
