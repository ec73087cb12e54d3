"""``scrapy neardup report``: the file, the JSON, and what is refused."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from unittest.mock import Mock

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.report.gather import gather
from tests.build import KINDS, make_state, open_state, state_url
from tests.cli import Invoke, run


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name the file is written where the command is run."""
    monkeypatch.chdir(tmp_path)


def test_the_language_is_that_of_the_setting(sqlite: str, invoke: Invoke) -> None:
    for language, settings, said in (
        ("en", {}, "report.html: 8 pages, 2 copies in 1 group ("),
        ("zh", {"NEARDUP_LANG": "zh"}, "report.html：8 个网页，2 个副本，分为 1 组（"),
    ):
        assert invoke("report", "--store", sqlite, **settings).out.startswith(said)
        assert Path("report.html").read_text(encoding="utf-8").partition('lang="')[2][:2] == language


@pytest.mark.parametrize("kind", KINDS)
def test_json_holds_the_whole_report(tmp_path: Path, kind: str, invoke: Invoke) -> None:
    url = make_state(kind, tmp_path)
    with open_state(url) as store:
        expected = json.loads(json.dumps(asdict(gather(store))))
    found = invoke("report", "--store", url, "--json").data
    expected["totals"].pop("bytes"), found["totals"].pop("bytes")  # of LevelDB that changes with its log
    assert found == expected
    assert found["totals"]["kinds"] == {"identical": 1, "retitled": 1}
    assert not list(tmp_path.glob("*.html"))


def test_a_failed_report_leaves_the_earlier_file(tmp_path: Path, sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("report.html").write_text("the one of before")
    monkeypatch.setattr(Path, "replace", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(NearDupError, match="make room"):
        run("report", "--store", sqlite)
    assert Path("report.html").read_text() == "the one of before"
    assert not list(tmp_path.glob(".part*"))


def test_a_missing_library_is_named_before_the_state_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(NearDupError, match=r"Run: pip install 'scrapy-neardup\[report\]'"):
        run("report", "--store", state_url("sqlite", tmp_path / "none"))
    assert run("report", "--store", make_state("sqlite", tmp_path), "--json") == 0, "it draws nothing"
