"""The output of each command, as text and as JSON, on small states and feeds.

After an intended change run ``UPDATE_SNAPSHOTS=1 pytest tests/commands/test_snapshots.py`` and read the difference.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from scrapy_neardup.cli import COMMANDS
from scrapy_neardup.state.record import Keep
from tests import build
from tests.build import BAKERY, PAGES, PEARS, join_text, make_state
from tests.cli import Invoke
from tests.page.pages import ARTICLE

SNAPSHOTS = Path(__file__).parent / "snapshots"
URLS = {name: getattr(build, name) for name in ("PEAR", "BREAD", "EDITED", "EXCERPT", "POWER", "SAME", "SHORT")}
URLS |= {"AGAIN": build.POWER_AGAIN, "LOST": "https://nowhere.example/1"}
#: Command lines for each command. STATE has eight pages with their evidence, TEXTS the same with their texts.
LINES = {
    "dedup": [
        "dedup feed.jsonl -o kept.jsonl",
        "dedup feed.jsonl -o kept.jsonl --json",
        "dedup texts.jsonl -o tagged.jsonl --tag",
        "dedup texts.jsonl -o kept.csv --text body",
    ],
    "batch": [
        "batch feed.jsonl -o verdicts.parquet --kept kept.jsonl",
        "batch feed.jsonl -o verdicts.parquet --json",
        "batch none.jsonl -o verdicts.parquet",
        "batch feed.jsonl -o verdicts.parquet --memory 1MB",
    ],
    "report": ["report --store TEXTS", "report --store STATE -o other.html"],
    "explain": [
        "explain {PEAR} {EDITED} {AGAIN} {SHORT} {PEAR}/ {LOST} --store STATE",
        "explain {PEAR} {EDITED} {AGAIN} {SHORT} {PEAR}/ --store STATE --json",
    ],
    "stats": ["stats --store STATE", "stats --store STATE --json"],
    "dropped": [
        "dropped --last --store STATE",
        "dropped --site mirror.example --store STATE --json",
        "dropped --since 1s --site none.example --store STATE",
    ],
    "keep": [
        "keep {EDITED} {LOST} --store STATE",
        "keep --last --store TEXTS --json",
        "keep --remove {EDITED} {SAME} --store STATE",
        "keep --remove {EDITED} --store TEXTS --json",
    ],
    "copy": [
        "copy {EXCERPT} {PEAR} --store STATE",
        "copy {LOST} {SAME} --store STATE --json",
        "copy {PEAR} {EDITED} --store STATE",
        "copy {PEAR} {PEAR} --store STATE",
        "copy {PEAR} {LOST} --store STATE",
        "keep --remove {EXCERPT} --store STATE",
    ],
    "judgements": [
        "judgements --store STATE",
        "keep {BREAD} --store STATE",
        "copy {EXCERPT} {PEAR} --store STATE",
        "judgements --store STATE",
        "judgements --store STATE --json",
        "explain {EXCERPT} --store STATE",
    ],
    "compare": [
        "compare {PEAR} {EDITED} --store TEXTS",
        "compare {POWER} {AGAIN} --store TEXTS",
        "compare {PEAR} {SHORT} --store TEXTS",
        "compare {SAME} {PEAR} --store STATE",
        "compare texts.jsonl#0 texts.jsonl#4",
        "compare {PEAR} texts.jsonl#2 --store STATE --json",
        "compare {PEAR} {SHORT} --store TEXTS --json",
    ],
    "extract": ["extract page.html --url https://daily.example/1 --store TEXTS", "extract page.html --json"],
    "forget": [
        "forget {PEAR} {LOST} --store STATE --dry-run",
        "forget --host mirror.example --store STATE --dry-run --json",
        "forget --host none.example --store STATE",
        "forget {PEAR} {SHORT} --store STATE",
    ],
    "check": [
        "check --store STATE",
        "check --store STATE --json",
        "check --store STATE --repair repaired.sqlite",
        "check --store STATE --repair again.sqlite --json",
    ],
    "export": ["export -o copy.sqlite --store STATE", "export -o copy.sqlite --store STATE"],
    "merge": [
        "export -o copy.sqlite --store STATE",
        "merge copy.sqlite --store sqlite://FOLDER/new.sqlite",
        "merge copy.sqlite STATE --store sqlite://FOLDER/all.sqlite",
        "merge copy.sqlite --store STATE --json",
    ],
    "migrate": [
        "migrate --store STATE",
        "migrate --store TEXTS --to sqlite://FOLDER/to.sqlite",
        "migrate --store TEXTS --to sqlite://FOLDER/too.sqlite --json",
    ],
    "evaluate": [
        "evaluate texts.jsonl --pairs gold.jsonl --method minhash",
        "evaluate texts.jsonl --pairs gold.jsonl --json",
    ],
}
#: What differs from run to run: times, ids, sizes, figures under a random secret, and the width of tables.
MASKS = {
    r"\d{4}-\d\d-\d\d[T-]?[\d:]*(\+00:00)?": "TIME",
    r"(trafilatura|jieba) [\w.]+": r"\1 VERSION",
    r"\d[\d.,]* (bytes|B|kB|MB)\b": "SIZE",
    r'("bytes\w*"): [\d.]+': r"\1: SIZE",
    r"-?\b\d+\.\d+(e-\d+)?\b": "N.N",
    r"\b[0-9a-f]{16}\b": "ID",
    r"\b\d+ of B's \d+ keys": "N of B's N keys",
    r'"(shared|of)": \d+': r'"\1": N',
    r"(?<=\S) +(?=.*\|$)": " ",
    r"-{3,}(?=.*\|$)": "--",
    r"^(\| (?:cascade|minhash|texts|words) .*\|) [\d.,N]+ \|( \d+ \|)?$": r"\1 TIME |\2",
}
GOLD = [("0", "2", "yes"), ("0", "4", "no"), ("5", "6", "unsure")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two states, feeds, labels and a page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    rows = [{"id": str(n), "url": url, "title": title, "text": text} for n, (url, title, text) in enumerate(PAGES)]
    rows.append({"id": "20", "url": "https://more.example/", "title": "Bread", "text": join_text(*BAKERY, *PEARS[:2])})
    texts = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    gold = [{"a": a, "b": b, "drop": drop} for a, b, drop in GOLD]
    files = {
        "texts.jsonl": texts,
        "feed.jsonl": texts + '{"broken\n',
        "gold.jsonl": "".join(json.dumps(one) + "\n" for one in gold),
        "page.html": ARTICLE,
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def masked(text: str, folder: Path) -> str:
    text = text.replace(str(folder.resolve()), "FOLDER")
    for pattern, shown in MASKS.items():
        text = re.sub(pattern, shown, text, flags=re.MULTILINE)
    return text


def test_every_command_has_a_snapshot() -> None:
    assert set(LINES) == set(COMMANDS) == {path.stem for path in SNAPSHOTS.glob("*.txt")}


@pytest.mark.skipif(sys.platform == "win32", reason="paths look otherwise")
@pytest.mark.parametrize("command", LINES)
def test_output(command: str, folder: Path, neardup: Invoke) -> None:
    states = {}
    for name, keep in (("STATE", Keep.EVIDENCE), ("TEXTS", Keep.TEXTS)):
        (folder / name.lower()).mkdir()
        states[name] = make_state("sqlite", folder / name.lower(), keep=keep)
    shown = []
    for line in LINES[command]:
        filled = line.format(**URLS).replace("FOLDER", str(folder))
        for name, url in states.items():
            filled = filled.replace(f"--store {name}", f"--store {url}").replace(f" {name} ", f" {url} ")
        done = neardup(*shlex.split(filled))
        errors = f"--- standard error\n{done.err}" if done.err else ""
        shown.append(f"$ {line}\n--- exit code {done.code}\n{done.out}{errors}")
    text, file = masked("\n".join(shown), folder), SNAPSHOTS / f"{command}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
