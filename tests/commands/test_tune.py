"""``scrapy neardup tune``: the dialogue, and what is read back."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.state.evidence import Keep
from tests.build import make_state
from tests.cli import Invoke, run
from tests.lab.corpus import drafts, write_feed


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    return write_feed(tmp_path)


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def labels(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def is_copy(row: dict[str, Any]) -> bool:
    """An honest reader: one has half of the other's sentences at least."""
    again = int(row["b"].rpartition("/")[2]) if "/again/" in row["b"] else -1
    return row["a"].endswith(f"/{again}") and again % 10 <= 5


def read_through(feed: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, pairs: int = 20) -> Path:
    """The labels of a reader who knows which pages are copies."""
    file = folder / "read.jsonl"
    typed(monkeypatch, *["skip"] * pairs)
    assert run("tune", feed, "-o", file, "--pairs", str(pairs)) == 0
    said = [json.dumps({**row, "label": "copy" if is_copy(row) else "different"}) + "\n" for row in labels(file)]
    file.write_text("".join(said), encoding="utf-8")
    return file


def test_answers_are_kept_at_once_and_the_rest_is_asked_the_next_time(
    feed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    out = tmp_path / "labels.jsonl"
    options = (feed, "-o", out, "--pairs", "6")
    typed(monkeypatch, "y", "what?", "N", "quit")
    _, shown, message = invoke("tune", *options)
    assert [one["label"] for one in labels(out)] == ["copy", "different"]
    assert "Pair 3 of 6" in shown
    assert "Pair 4 of 6" not in shown
    assert "by 2 labels" in shown
    assert "4 pairs left" in message
    typed(monkeypatch, "skip", "yes", "no", "s")
    _, shown, message = invoke("tune", *options)
    assert "has answers to 2 of 6 pairs" in shown
    assert shown.index("Pair 3 of 6") < shown.index("Pair 6 of 6")
    assert [one["label"] for one in labels(out)] == ["copy", "different", "skip", "copy", "different", "skip"]
    assert len({(one["a"], one["b"]) for one in labels(out)}) == 6
    assert message == ""
    typed(monkeypatch)
    assert "Pair" not in invoke("tune", *options).out


def test_labels_predict_errors(feed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    read = read_through(feed, tmp_path, monkeypatch, pairs=1000)
    found = invoke("tune", feed, "--labels", read, "--json").data
    rows = labels(read)
    assert found["labels"] == found["candidates"] == len(rows)
    by_value = {one["value"]: one for one in found["values"]}
    assert set(by_value) >= {0.4, 0.52, 0.75}
    copies = sum(is_copy(row) for row in rows)
    for one in found["values"]:  # all is labelled, so all is known
        assert one["wrong"]["low"] == one["wrong"]["estimate"] == one["wrong"]["high"]
        assert one["called"] - one["wrong"]["estimate"] + one["missed"]["estimate"] == pytest.approx(copies)
    costs = {value: one["wrong"]["estimate"] + one["missed"]["estimate"] for value, one in by_value.items()}
    assert costs[found["chosen"]] == min(costs.values())
    assert found["parameters"] == ({} if found["chosen"] == 0.52 else {"base": found["chosen"]})


def test_tune_prints_settings(feed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    read = read_through(feed, tmp_path, monkeypatch)
    shown = invoke("tune", feed, "--labels", read, "--method", "minhash:n=4").out
    assert "0.75 (now)" in shown
    assert "NEARDUP_METHOD = 'minhash'" in shown
    [line] = [one for one in shown.splitlines() if "NEARDUP_PARAMETERS" in one]
    values: dict[str, Any] = {}
    exec(line.strip(), values)
    assert values["NEARDUP_PARAMETERS"]["n"] == 4


def test_a_state_is_read_if_it_has_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    with pytest.raises(NearDupError, match='NEARDUP_KEEP = "texts"'):
        run("tune", make_state("sqlite", tmp_path))
    typed(monkeypatch, "y", "y", "y")
    (tmp_path / "texts").mkdir()
    url = make_state("sqlite", tmp_path / "texts", keep=Keep.TEXTS)
    shown = invoke("tune", url, "-o", tmp_path / "labels.jsonl").out
    assert "EARLIER: 秋月梨早熟\nhttps://orchard.example/pears" in shown
    assert {one["a"] for one in labels(tmp_path / "labels.jsonl")} >= {"https://orchard.example/pears"}


def test_tune_refuses_wrong_options_before_it_reads(tmp_path: Path, feed: Path) -> None:
    with pytest.raises(SettingsError, match="--cost"):
        run("tune", tmp_path / "missing.jsonl", "--cost", "0")
    with pytest.raises(NearDupError, match="does not exist"):
        run("tune", feed, "--labels", tmp_path / "missing.jsonl")
    with pytest.raises(NearDupError, match="nothing to tune"):
        run("tune", write_feed(tmp_path, drafts(of=1)[:1]))
    other = tmp_path / "other.jsonl"
    other.write_text('{"a": 1}\n')
    with pytest.raises(NearDupError, match=r"other\.jsonl"):
        run("tune", tmp_path / "missing.jsonl", "-o", other)


def test_a_terminal_has_colours(feed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    typed(monkeypatch, "y", "n", "q")
    shown = invoke("tune", feed, "-o", tmp_path / "labels.jsonl", "--pairs", "3").out
    assert "by 2 labels" in shown
    assert ("\x1b[32m" in shown) == (sys.platform != "win32")
    assert [one["label"] for one in labels(tmp_path / "labels.jsonl")] == ["copy", "different"]
