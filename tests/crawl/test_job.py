"""A crawl with JOBDIR that is killed: what is taken back is not requested again, so its URLs are told of and listed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.memory import SortedRows
from scrapy_neardup.state.journal import LIST, add_to_list, prune_list
from scrapy_neardup.state.record import Record
from tests.crawl.conftest import SLUGS, Crawl, Site, killed
from tests.crawl.engineless import crawl
from tests.crawl.pages import html
from tests.crawl.parts import Log
from tests.faults import lasting_state

MAY, HAVE = "may not come again in this crawl", "have NOT come again in this crawl"


@pytest.mark.parametrize("seen", [True, False], ids=["its requests were written down", "they were not"])
def test_what_a_killed_job_requests_no_more_is_listed(site: Site, crawl: Crawl, tmp_path: Path, seen: bool) -> None:
    site.content |= {f"/{slug}": html(slug) for slug in SLUGS}
    paths, job, out = list(site.content), tmp_path / "job", tmp_path / "out.jsonl"
    settings: dict[str, Any] = {"FEEDS": {f"file://{out}": {"format": "jsonlines"}}, "once": True}
    if seen:
        settings["DUPEFILTER_CLASS"] = "tests.crawl.project.EagerFilter"
    assert crawl(paths, **settings, **killed(5), JOBDIR=str(job)).code == 9
    resumed = crawl(paths, **settings, JOBDIR=str(job))
    assert resumed.count("taken_back") == 4
    assert resumed.log.count(f"4 pages that were rolled back {MAY}") == 1
    if not seen:
        assert resumed.paths == paths
        assert HAVE not in resumed.log
        assert not (job / LIST).exists()
        return
    lost = [path for path in paths if path not in resumed.paths]
    listed = (job / LIST).read_text("utf-8").splitlines()
    assert (len(listed), resumed.count("taken_back/not_requested")) == (4, 4)
    assert set(listed) <= {site.base + path for path in lost}, "what was on its way is Scrapy's loss"
    assert resumed.log.count(f"4 pages that were rolled back {HAVE}") == 1
    assert f"The pages are listed in {job / LIST}" in resumed.log
    anew = crawl(paths, **settings)
    assert sorted(anew.paths) == sorted(lost)
    again = crawl(paths, **settings, JOBDIR=str(job))
    assert (again.count("taken_back"), again.count("taken_back/not_requested")) == (0, 0)
    assert "rolled back" not in again.log
    assert not (job / LIST).exists()


Rows = SortedRows[bytes]


def leave_pages(rows: Rows, job: Path | str, *urls: str) -> None:
    """As a crawl that was killed."""
    store = lasting_state(rows)
    crawl = store.journal.begin("killed", str(job))
    for one in urls:
        id = store.new_id()
        store.add(Record(id, one, id), generation=crawl)


def test_whoever_opens_the_state_lists_the_pages_for_the_job_that_lost_them(tmp_path: Path) -> None:
    rows = Rows()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    leave_pages(rows, tmp_path / "a", "http://a/1", "http://a/2")
    # Opened by a crawl that has no job, and is killed as well.
    leave_pages(rows, "", "http://c/1")
    leave_pages(rows, tmp_path / "b", "http://b/1")
    leave_pages(rows, tmp_path / "gone", "http://d/1")
    lasting_state(rows)
    assert (tmp_path / "a" / LIST).read_text("utf-8").split() == ["http://a/2", "http://a/1"]
    assert (tmp_path / "b" / LIST).read_text("utf-8").split() == ["http://b/1"]
    assert not (tmp_path / "gone").exists()


def test_where_the_list_cannot_be_written_nothing_is_rolled_back(tmp_path: Path) -> None:
    rows = Rows()
    leave_pages(rows, tmp_path, "http://a/1")
    (tmp_path / LIST).mkdir()
    with pytest.raises(StoreError, match=r"rolled-back URLs.*Make that directory writable"):
        lasting_state(rows)
    (tmp_path / LIST).rmdir()
    assert lasting_state(rows).rolled_back.pages == 1
    assert (tmp_path / LIST).read_text("utf-8") == "http://a/1\n"


def test_a_list_holds_each_url_once_and_none_that_has_come(tmp_path: Path) -> None:
    assert prune_list(str(tmp_path), set[str]().__contains__) == (0, [])
    add_to_list(str(tmp_path), ["http://a/1", "http://a/2", "http://a/1"])
    add_to_list(str(tmp_path), [f"http://a/{number}" for number in range(2, 7)])
    assert prune_list(str(tmp_path), {"http://a/2"}.__contains__) == (5, ["http://a/1", "http://a/3", "http://a/4"])
    assert (tmp_path / LIST).read_text("utf-8").split() == [f"http://a/{number}" for number in (1, 3, 4, 5, 6)]
    assert prune_list(str(tmp_path), lambda url: True) == (0, [])
    assert not list(tmp_path.iterdir())


def test_a_line_that_a_full_disk_cut_takes_no_url_with_it(tmp_path: Path) -> None:
    (tmp_path / LIST).write_text("http://a/1\nhttp:", "utf-8")
    add_to_list(str(tmp_path), ["http://a/2", "http://a/3"])
    assert prune_list(str(tmp_path), {"http://a/3"}.__contains__) == (3, ["http://a/1", "http:", "http://a/2"])


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://a/\nhttp://evil/", "http://a/%0Ahttp://evil/"),
        ("http://a/\x1b[31m", "http://a/%1B[31m"),
        ("http://a/b c", "http://a/b%20c"),
        ("http://a/\u2028茶", "http://a/%E2%80%A8茶"),
    ],
)
def test_a_url_is_one_line_of_the_list(tmp_path: Path, url: str, line: str) -> None:
    add_to_list(str(tmp_path), [url])
    assert (tmp_path / LIST).read_text("utf-8") == f"{line}\n"
    assert prune_list(str(tmp_path), {"http://a/"}.__contains__) == (1, [line])
    assert prune_list(str(tmp_path), {url}.__contains__) == (0, [])


def test_a_list_that_cannot_be_read_stops_no_crawl(tmp_path: Path, caplog: Log) -> None:
    caplog.set_level(logging.WARNING)
    (tmp_path / LIST).write_bytes(b"http://a/\xff\n")
    (tmp_path / f".part.{LIST}").mkdir()
    crawl([], NEARDUP_STORE="memory:", JOBDIR=str(tmp_path))
    assert "cannot be read or written" in caplog.text
