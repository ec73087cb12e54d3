"""Pages as files: one, or a folder of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, Malformed, entry, read_folder
from tests.files.samples import PACKERS, fields, read


def fill(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def test_every_page_below_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    names = ["b/2.htm", "b/10.XHTML", "a.html", "b.shtml", "b/c/d/桥.html", "B/x.html", "z.html.gz"]
    fill(tmp_path, {name: PACKERS[".gz" if name.endswith("gz") else ""](name.encode()) for name in names})
    fill(tmp_path, {"b/style.css": b"x", "html": b"x", "notes.txt": b"x", "docs.jsonl": b"{}", "c.html.bak": b"x"})
    found = [one for one in read(tmp_path) if isinstance(one, Entry)]
    paths = ["a.html", "b.shtml", "z.html.gz", "B/x.html", "b/10.XHTML", "b/2.htm", "b/c/d/桥.html"]
    assert [one.fields for one in found] == [{"path": path} for path in paths]
    assert [one.html for one in found] == [path.encode() for path in paths]
    assert [one.place for one in found] == [(tmp_path / path).as_posix() for path in paths]
    assert [one.number for one in found] == list(range(1, 8))


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_page_is_read_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    raw = "<meta charset=gbk>渡口".encode("gbk")
    fill(tmp_path, {f"pages/a.htm{suffix}": PACKERS[suffix](raw)})
    monkeypatch.chdir(tmp_path)
    name = f"pages/a.htm{suffix}"
    assert read(name) == [Entry(name, 1, "", {"path": name}, html=raw)]


def test_a_folder_without_pages_may_hold_texts(tmp_path: Path) -> None:
    fill(tmp_path, {"b/c.txt": "\ufeff桥".encode(), "a.TXT": b"A ferry", "cafe.txt": "caf\xe9".encode("latin-1")})
    first, third, second = read(tmp_path)
    assert fields([first, second]) == [{"path": "a.TXT", "text": "A ferry"}, {"path": "b/c.txt", "text": "桥"}]
    assert isinstance(third, Malformed)
    assert (third.place, third.raw) == ((tmp_path / "cafe.txt").as_posix(), b"caf\xe9")
    assert third.why == "not UTF-8: unexpected end of data at byte 4"
    assert fields(read(tmp_path / "a.TXT")) == [{"path": (tmp_path / "a.TXT").as_posix(), "text": "A ferry"}]
    fill(tmp_path, {"c/b.pdf": b"x"})
    with pytest.raises(NearDupError, match="no HTML or"):
        read(tmp_path / "c")


def test_pages_that_cannot_be_read_are_named_among_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "LARGEST", 50)
    fill(tmp_path, {"a.html": b"", "b.html": b"x" * 51, "c.html.gz": b"no gzip", "e.html": b"x" * 50})
    fill(tmp_path, {"f.html.xz": PACKERS[".xz"](b"word " * 9)[:-8]})
    (tmp_path / "d.html").symlink_to("gone.html")
    found = read(tmp_path)
    assert [one.number for one in found] == [1, 2, 3, 4, 5, 6]
    assert [(Path(one.place).name, one.why) for one in found if isinstance(one, Malformed)] == [
        ("a.html", "an empty file"),
        ("b.html", "larger than 50 bytes"),
        ("c.html.gz", "cannot be read: Not a gzipped file (b'no')"),
        ("d.html", "cannot be read: No such file or directory"),
        ("f.html.xz", "cannot be read: Compressed file ended before the end-of-stream marker was reached"),
    ]


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"a/1.html": b"x", "b/2.html": b"x", "c/3.html": b"x"})
    listed = os.scandir

    def refuse(folder: str) -> object:
        if Path(folder).name == "b":
            raise PermissionError(13, "Permission denied", folder)
        return listed(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    found = read(tmp_path)
    assert [Path(one.place).name for one in found] == ["1.html", "b", "3.html"]
    assert isinstance(found[1], Malformed)
    assert found[1].why == "cannot be read: Permission denied"


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    fill(tmp_path, {"elsewhere/x/1.html": b"x", "site/2.html": b"x", "site/sub/3.html": b"x"})
    (tmp_path / "site" / "linked").symlink_to("../elsewhere")
    (tmp_path / "site" / "sub" / "up").symlink_to("..")
    (tmp_path / "elsewhere" / "x" / "again").symlink_to("../../site")
    paths = [one.fields["path"] for one in read(tmp_path / "site") if isinstance(one, Entry)]
    assert paths == ["2.html", "linked/x/1.html", "sub/3.html"]


def test_pipes_in_a_folder_are_ignored(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes with names here")
    fill(tmp_path, {"a.html": b"x"})
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "link.html").symlink_to("pipe.html")
    found = read_folder(str(tmp_path))
    assert [Path(one.place).name for one in found] == ["a.html"]


def test_a_name_that_is_no_utf8_can_be_written_down(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.html")).write_bytes(b"x")
    except OSError:
        pytest.skip("such names cannot be here")
    (found,) = read(tmp_path)
    assert isinstance(found, Entry)
    assert (found.fields, found.html) == ({"path": "caf\\xe9.html"}, b"x")
    found.place.encode()
