"""Documents from every kind of file, and what is said of those that are malformed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from pathlib import Path

import pytest
import zstandard

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files.compression import find_file
from scrapy_neardup.lab.documents import Document, read_documents, with_distinct_ids
from scrapy_neardup.model import Page
from tests.files.samples import PACKERS

TWO = '{"id": "a", "title": "渡口", "text": "船来了。"}\n{"id": "b", "text": "The boat is here."}\n'.encode()
A, B = Document("a", "渡口", "船来了。"), Document("b", "", "The boat is here.")


@pytest.mark.parametrize("suffix", PACKERS)
def test_json_lines_are_read_plain_and_packed(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"crawl.jsonl{suffix}"
    file.write_bytes(PACKERS[suffix](TWO))
    assert list(read_documents(file)) == [A, B]


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_text_file_is_one_document_whose_first_line_is_no_title(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"桥.txt{suffix}"
    file.write_bytes(PACKERS[suffix]("\ufeff旧桥\n修好了。\n".encode()))
    assert list(read_documents(file)) == [Document(f"桥.txt{suffix}", "", "旧桥\n修好了。\n")]


@pytest.mark.parametrize("suffix", PACKERS)
def test_of_a_folder_the_documents_file_is_read(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"docs.jsonl{suffix}").write_bytes(PACKERS[suffix](TWO))
    (tmp_path / "notes.txt").write_text("no part of it")
    assert list(read_documents(tmp_path)) == [A, B]
    assert find_file(tmp_path, "docs.jsonl") == tmp_path / f"docs.jsonl{suffix}"
    assert find_file(tmp_path, "pairs.jsonl") is None


def test_a_text_without_a_word_is_a_document_too(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert list(read_documents(tmp_path)) == [Document("empty.txt")]


def test_several_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(TWO)
    (tmp_path / "b.txt").write_text("by itself")
    found = read_documents(tmp_path / "b.txt", tmp_path / "a.jsonl")
    assert list(found) == [Document("b.txt", "", "by itself"), A, B]


def test_of_a_folder_without_one_every_text_file_is_read_by_name(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.html"):
        (tmp_path / name).write_text(f"text of {name}")
    assert [(one.id, one.text) for one in read_documents(tmp_path)] == [
        ("a.txt", "text of a.txt"),
        ("b.txt", "text of b.txt"),
    ]


@pytest.mark.parametrize(
    ("line", "document"),
    [
        ('{"text": "t"}', Document("line 2", "", "t")),
        ('{"id": null, "title": null, "text": "t", "keywords": null}', Document("line 2", "", "t")),
        ('{"id": 7, "text": ""}', Document("7")),
        ('{"id": "x", "text": "t", "keywords": "桥, 船；塔"}', Document("x", "", "t", ("桥", "船", "塔"))),
        (
            '{"id": "x", "text": "t", "keywords": ["old bridge", "boat"]}',
            Document("x", "", "t", ("old bridge", "boat")),
        ),
        (
            '{"id": "x", "text": "t", "description": "d", "url": "http://a.example/", "date": 5}',
            Document("x", "", "t", (), "d", "http://a.example/"),
        ),
        ('{"id": "x", "text": "half \\ud83d a smile"}', Document("x", "", "half \ud83d a smile")),
        ('{"id": "x", "text": "one\u2028document"}', Document("x", "", "one\u2028document")),
    ],
)
def test_fields_of_a_line(tmp_path: Path, line: str, document: Document) -> None:
    file = tmp_path / "crawl.jsonl"
    file.write_text(f"\n{line}\r\n  \n", encoding="utf-8")
    assert list(read_documents(file)) == [document]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "crawl.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + TWO)
    assert list(read_documents(file)) == [A, B]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"a,b,c", "is not JSON: Expecting value at character 1; each line must be"),
        (b'{"id": "c", "text": "\xff"}', "is not UTF-8: invalid start byte at byte 22; each line must be"),
        (b"[" * 100_000, "is JSON with lists or objects nested too deeply"),
        (b"[1, 2]", "is not an object but a list; each line must be"),
        (b"null", "is not an object but null; each line must be"),
        (b'{"id": "c", "title": "no text"}', "has no text"),
        (b'{"id": "c", "text": null}', "text must be a string, not None"),
        (b'{"id": "c", "text": 5}', "text must be a string, not 5"),
        (b'{"id": "c", "text": "t", "title": ["t"]}', r"title must be a string, not \['t'\]"),
        (b'{"id": 1.5, "text": "t"}', "id must be a string or a whole number, not 1.5"),
        (b'{"id": true, "text": "t"}', "id must be a string or a whole number, not True"),
        (b'{"id": "c", "text": "t", "keywords": ["t", 1]}', "keywords must be a string or a list of strings"),
    ],
)
def test_a_malformed_line_is_named_after_those_before_it(tmp_path: Path, line: bytes, said: str) -> None:
    file = tmp_path / "crawl.jsonl"
    file.write_bytes(TWO + line + b"\n")
    read = read_documents(file)
    assert [next(read), next(read)] == [A, B]
    with pytest.raises(NearDupError, match=f"{re.escape(str(file))}, line 3:? {said}"):
        next(read)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cut.jsonl.gz", gzip.compress(TWO, mtime=0)[:-9], "cannot be read to its end"),
        ("cut.jsonl.xz", lzma.compress(TWO)[:-9], "cannot be read to its end"),
        ("cut.jsonl.bz2", bz2.compress(TWO)[:-9], "cannot be read to its end"),
        ("cut.jsonl.zst", zstandard.compress(TWO)[:-9], "cannot be read to its end"),
        ("plain.jsonl.gz", TWO, "cannot be read to its end"),
        ("plain.jsonl.xz", TWO, "cannot be read to its end"),
        ("plain.txt.bz2", TWO, "cannot be read to its end"),
        ("plain.txt.zst", TWO, "cannot be read to its end"),
        ("latin.txt", "Straße".encode("latin-1"), "is not UTF-8: .* at byte 5"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NearDupError, match=f"{re.escape(name)} {said}"):
        list(read_documents(tmp_path / name))


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NearDupError, match=r"gone\.jsonl does not exist"):
        list(read_documents(tmp_path / "gone.jsonl"))
    with pytest.raises(NearDupError, match=r"contains neither docs\.jsonl"):
        list(read_documents(tmp_path))


def test_documents_are_read_one_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "crawl.jsonl"
    file.write_bytes(TWO + b"broken")
    assert next(read_documents(file)) == A


def test_a_page_goes_by_the_id_of_its_document_and_keeps_its_site() -> None:
    document = Document("d1", "标题", "正文", ("词",), "摘要", "http://a.example/")
    assert document.page() == Page("d1", "标题", ("词",), "摘要", "正文", site="a.example")


def test_an_id_that_comes_twice_is_refused_when_it_comes() -> None:
    read = with_distinct_ids([A, B, A])
    assert [next(read), next(read)] == [A, B]
    with pytest.raises(NearDupError, match="Two documents have the id 'a'"):
        next(read)
