"""Pages of archives in WARC, and all that archives hold beside them."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.files import Entry, Malformed, Skipped, entry
from tests.files.samples import PACKERS, RECORDS, Archive, archive, page, read, read_until_error, summaries

HTML = ("Content-Type", "text/html")
PAGE = "<p>渡口 and ferry</p>".encode()


def pages_of(folder: Path) -> list[bytes]:
    return [one.html for one in read(folder / "crawl.warc") if isinstance(one, Entry)]


def chunked(body: bytes, size: int = 7) -> bytes:
    """The body as a server sends it that does not know its length."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("suffix", [*PACKERS, "by record"])
def test_pages_of_an_archive_have_url_date_and_type(tmp_path: Path, suffix: str) -> None:
    if suffix == "by record":
        file, raw = tmp_path / "crawl.warc.gz", archive(gzipped=True)
    else:
        file, raw = tmp_path / f"crawl.warc{suffix}", PACKERS[suffix](archive())
    file.write_bytes(raw)
    found = read(file)
    assert [one for one in found if isinstance(one, Entry)] == [
        Entry(
            str(file),
            2 * number,
            "record",
            {"url": record["url"], "date": "2024-05-01T08:00:00Z"},
            html=page(record),
            content_type="text/html; charset=utf-8",
        )
        for number, record in enumerate(RECORDS, 1)
    ]
    assert [(one.number, one.why) for one in found if isinstance(one, Skipped)] == [
        *((number, "a request") for number in (1, 3, 5, 7, 9)),
        (11, "image/png"),
    ]
    assert found[1].place == f"{file}, record 2"


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"kind": "request"}, "a request"),
        ({"kind": "warcinfo"}, "a warcinfo"),
        ({"kind": "revisit"}, "a revisit"),
        ({"kind": "metadata"}, "a metadata"),
        ({"status": "404 Not Found"}, "status 404"),
        ({"status": "301"}, "status 301"),
        ({"headers": [("Content-Type", "image/PNG")]}, "image/png"),
        ({"kind": "resource", "content_type": "text/css"}, "text/css"),
        ({"body": b""}, "an empty page"),
    ],
)
def test_other_records_are_skipped_with_a_reason(tmp_path: Path, record: dict[str, Any], why: str) -> None:
    made = Archive().add(record.pop("body", PAGE), **record).add(PAGE)
    (tmp_path / "crawl.warc").write_bytes(made.bytes())
    assert summaries(read(tmp_path / "crawl.warc"))[0] == (1, "skipped", why)
    assert pages_of(tmp_path) == [PAGE]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([HTML], PAGE),
        ([], PAGE),
        ([("content-type", "Application/XHTML+XML; charset=utf-8")], PAGE),
        ([HTML, ("Content-Encoding", "gzip")], gzip.compress(PAGE)),
        ([HTML, ("Content-Encoding", "GZip")], gzip.compress(PAGE)),
        ([HTML, ("Content-Encoding", "deflate")], zlib.compress(PAGE)),
        ([HTML, ("Content-Encoding", "deflate")], zlib.compress(PAGE)[2:-4]),
        ([HTML, ("Content-Encoding", "zstd")], PACKERS[".zst"](PAGE)),
        ([HTML, ("Content-Encoding", "deflate, , X-GZip")], gzip.compress(zlib.compress(PAGE))),
        ([HTML, ("Content-Encoding", "gzip")], gzip.compress(PAGE) + b"rubbish"),
        ([HTML, ("Transfer-Encoding", "Chunked")], chunked(PAGE)),
        ([HTML, ("Transfer-Encoding", "chunked"), ("Content-Encoding", "gzip")], chunked(gzip.compress(PAGE))),
        # Archives that have unpacked a page and kept the header.
        ([HTML, ("Content-Encoding", "gzip")], PAGE),
        ([HTML, ("Content-Encoding", "zstd")], PAGE),
        ([HTML, ("Content-Encoding", "utf-8")], PAGE),
        ([HTML, ("Transfer-Encoding", "chunked")], PAGE),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_page_comes_without_encodings_of_http(tmp_path: Path, headers: list[tuple[str, str]], body: bytes) -> None:
    (tmp_path / "crawl.warc").write_bytes(Archive().add(body, headers=headers).add(PAGE).bytes())
    assert pages_of(tmp_path) == [PAGE, PAGE]
    assert getattr(read(tmp_path / "crawl.warc")[0], "content_type", None) == (headers[0][1] if headers else "")


LONG = b"<p>" + bytes(range(97, 123)) * 40_000
ZSTD = PACKERS[".zst"]


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("gzip", gzip.compress(LONG)[:-9], "packed as gzip: the data ends too early"),
        ("gzip", gzip.compress(LONG)[:900] + b"\0" * 900, "packed as gzip: "),
        ("gzip", gzip.compress(PAGE) + gzip.compress(LONG), "packed as gzip: there are several streams"),
        ("gzip", b"\0\1 no gzip", "packed as gzip: Error -3"),
        ("deflate", zlib.compress(LONG)[:-9], "packed as deflate: the data ends too early"),
        ("deflate", b"\0\1 no zlib", "packed as deflate: Error -3"),
        ("zstd", ZSTD(LONG)[:-9], "packed as zstd: the data ends too early"),
        ("zstd", b"\0\1 no frame", "packed as zstd: "),
        ("compress", b"\x1f\x9d\0", "packed as compress: this encoding is not supported"),
        ("br, gzip", gzip.compress(b"\xff\0\1"), "packed as br: "),
        ("br", b"\xff\0\1", "packed as br: "),
        ("", LONG * 3, "larger than 2,000,000 bytes"),
        ("gzip", gzip.compress(LONG * 3), "larger than 2,000,000 bytes"),
        ("deflate", zlib.compress(LONG * 3), "larger than 2,000,000 bytes"),
        ("zstd", ZSTD(LONG * 3), "larger than 2,000,000 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_page_that_cannot_be_unpacked_is_malformed_and_the_next_one_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    encoding: str,
    body: bytes,
    why: str,
) -> None:
    monkeypatch.setattr(entry, "LARGEST", 2_000_000)
    headers = [HTML, ("Content-Encoding", encoding)]
    (tmp_path / "crawl.warc").write_bytes(Archive().add(body, headers=headers).add(PAGE).bytes())
    number, kind, found, _ = summaries(read(tmp_path / "crawl.warc"))[0]
    assert (number, kind, found[: len(why)]) == (1, "malformed", why)
    assert pages_of(tmp_path) == [PAGE]
    assert capsys.readouterr().err == ""


def test_pages_in_brotli_are_unpacked_if_the_package_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brotli = pytest.importorskip("brotli")
    monkeypatch.setattr(entry, "LARGEST", 2_000_000)
    bodies = [brotli.compress(PAGE), brotli.compress(LONG)[:-2], brotli.compress(LONG * 3)]
    made = Archive()
    for body in bodies:
        made.add(body, headers=[HTML, ("Content-Encoding", "br")])
    (tmp_path / "crawl.warc").write_bytes(made.bytes())
    assert pages_of(tmp_path) == [PAGE]
    said = [one.why for one in read(tmp_path / "crawl.warc") if isinstance(one, Malformed)]
    assert said == ["packed as br: the data ends too early", "larger than 2,000,000 bytes"]
    monkeypatch.setitem(sys.modules, "brotli", None)
    missing = "packed as br: this needs brotli; run: pip install 'scrapy-neardup[files]'"
    assert summaries(read(tmp_path / "crawl.warc"))[0][2] == missing


def test_records_as_other_programs_write_them(tmp_path: Path) -> None:
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <https://a.example/1>\r\n"
    http = b"HTTP/2 200\r\nContent-Type: text/html\r\n\r\n" + PAGE
    dns = b"20240501\r\na.example. 60 IN A 127.0.0.1\n"
    records = [
        head + b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n" % len(http) + http,
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: dns:a.example\r\nContent-Type: text/dns\r\n"
        b"Content-Length: %d\r\n\r\n" % len(dns) + dns,
        b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n" % len(http) + http,
        head + b"Content-Length: 0\r\n\r\n",
        head + b"Content-Length: 9\r\n\r\n<p>no\r\n\r\n",
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: file:///a.html\r\nContent-Type: text/html\r\n"
        b"Content-Length: %d\r\n\r\n" % len(PAGE) + PAGE,
        b"WARC/1.0\r\nContent-Length: 0\r\n\r\n",
    ]
    (tmp_path / "crawl.warc").write_bytes(b"".join(record + b"\r\n\r\n" for record in records))
    found = read(tmp_path / "crawl.warc")
    assert summaries(found) == [
        (1, {"url": "https://a.example/1"}),
        (2, "skipped", "text/dns"),
        (3, {}),
        (4, "skipped", "an empty response"),
        (5, "malformed", "no HTTP response", b""),
        (6, {"url": "file:///a.html"}),
        (7, "skipped", "a record without a type"),
    ]
    assert [one.html for one in found if isinstance(one, Entry)] == [PAGE] * 3


THREE = Archive().add(PAGE, status="404 Gone").add(PAGE).add(LONG).bytes()
WRONG_LENGTH = "no record follows the next one; the Content-Length of that one may be wrong"
#: Where the second and the third record begin.
SECOND, THIRD = (match.start() for match in list(re.finditer(rb"WARC/1\.", THREE))[1:])


@pytest.mark.parametrize(
    ("content", "read_before", "said"),
    [
        (THREE[: THIRD + 5], 2, "Invalid WARC record"),
        (THREE[: THIRD + 60], 2, "no Content-Length"),
        (THREE[: THREE.index(b"HTTP/", THIRD)], 2, "the file ends within the next record"),
        (THREE[: THREE.index(b"HTTP/", THIRD) + 20], 2, "the file ends within the next record"),
        (THREE[:-20_000], 2, "the file ends within the next record"),
        (THREE[:SECOND] + b"rubbish\r\n" + THREE[SECOND:], 1, "Invalid WARC record, first line: rubbish"),
        (THREE + b"rubbish\r\n", 3, "Invalid WARC record, first line: rubbish"),
        (re.sub(rb"Content-Length: \d+", b"Content-Length: 70", THREE, count=1), 0, WRONG_LENGTH),
        (re.sub(rb"Content-Length: \d+", b"Content-Length: many", THREE, count=1), 0, "no Content-Length"),
        (THREE[:-5], 2, "the file ends within the next record"),
        (THREE[:THIRD] + THREE[THIRD:].replace(b"Content-Length: 10", b"Content-Length: 9", 1), 2, WRONG_LENGTH),
        (b"no archive at all", 0, "Invalid WARC record, first line: no archive at all"),
        (b"https://a.example/ 127.0.0.1 20240501000000 text/html 5\r\nhello\r\n", 0, "Invalid WARC record"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_an_archive_is_broken_the_last_record_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, read_before: int, said: str
) -> None:
    file = tmp_path / "crawl.warc"
    file.write_bytes(content)
    found, error = read_until_error(file)
    assert said in error
    assert len(found) == read_before
    assert f"{file} cannot be read {f'after record {len(found)}' if found else 'from its start'}: " in error
    assert [one.html for one in found if isinstance(one, Entry)] == [PAGE, LONG][: max(len(found) - 1, 0)]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", ["plain", "packed", "packed by record"])
def test_wherever_an_archive_ends_nothing_is_lost_in_silence(tmp_path: Path, kind: str) -> None:
    made = Archive(gzipped=kind == "packed by record").add(PAGE)
    first = len(made.bytes())
    whole = made.add(PAGE * 9).bytes()
    # Between two records, and within the empty lines behind the last one that are all that is missing, it may end.
    sound = {first} if kind == "packed by record" else set()
    if kind == "plain":
        sound = {*range(first - 4, first + 1), *range(len(whole) - 4, len(whole))}
    if kind == "packed":
        whole = gzip.compress(whole)
    file = tmp_path / ("crawl.warc" if kind == "plain" else "crawl.warc.gz")
    for end in {*range(2, len(whole), 3), *sound}:
        file.write_bytes(whole[:end])
        if end in sound:
            assert len(read(file)) == 1 + (end > first)
        else:
            found, error = read_until_error(file)
            assert len(found) < 2
            assert f"cannot be read {'after record 1' if found else 'from its start'}: " in error
