"""A file takes its place whole, or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.errors import NearDupError


def test_a_file_is_replaced_at_the_end_and_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "out.jsonl.gz", tmp_path / "link.gz"
    path.write_text("before")
    link.symlink_to(path)
    for name, before, after in [(path, "before", "after"), (link, "after", "later")]:
        with replace_file(name) as draft:
            assert (draft.parent, draft.suffix) == (tmp_path, ".gz")
            draft.write_text(after)
            assert path.read_text() == before
        assert path.read_text() == after
    assert link.is_symlink()
    assert {*tmp_path.iterdir()} == {path, link}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, BrokenPipeError])
def test_an_error_leaves_the_earlier_file(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")

    def fail() -> None:
        with replace_file(path) as draft:
            draft.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with replace_file(pipe) as draft:
        draft.write_text("through")
    reader.join(10)
    assert read == ["through"]
    assert pipe.is_fifo()


def test_a_missing_folder_or_a_full_disk_has_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "reports"
    with (
        pytest.raises(NearDupError, match=r"Name another place, or make the folder .*reports"),
        replace_file(folder / "a.txt") as draft,
    ):
        draft.write_text("new")
    folder.mkdir()

    monkeypatch.setattr(Path, "replace", Mock(side_effect=OSError(28, "No space left on device")))
    with (
        pytest.raises(NearDupError, match=r"No space left on device.*make room"),
        replace_file(folder / "a.txt") as draft,
    ):
        draft.write_text("new")
