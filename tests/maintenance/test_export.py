"""The file of an export: what stands in it, that a state comes out as it went in, and which files are refused."""

from __future__ import annotations

import gzip
import json
import random
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_neardup.errors import NearDupError, StoreMismatch
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict, manual_verdicts, write_manual_verdicts
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.export import (
    ExportFile,
    OpenState,
    PageEntry,
    check_recipes,
    counts_of,
    verdicts_of,
    write_export,
)
from scrapy_neardup.maintenance.merge import merge, take_verdicts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import unpack_block
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import STORES
from tests.maintenance.states import RECIPE, Killed, check, exported, killed_before, packed, pages, rows, state

Change = Callable[[list[dict[str, Any]]], object]
SCHEMES = [scheme for scheme in STORES if scheme != "leveldb" or find_spec("plyvel")]

ORIGINAL = Record(0x1A, "https://a.example/渡口", 0x1A, 1.0, (0, 2**40 - 1), b"\x00\xff sketch")
VARIANT = Record(0x1B, "https://b.example/", 0x1A, 52428 / 65535, (7,), b"other")
COPY = Record(0x1C, "https://c.example/", 0x1A, 1.0)
UNJUDGED = Record(0x1D, "https://d.example/", 0x1D, 0.0, (), b"\x01" * 8)
LIKE = Record(0x1E, "https://e.example/", 0x1E)
TOLD = Evidence("excerpt", 0x1A, 0.2, 0.9512, 812, "渡轮", ("渡轮明天开航。",), "")
KINDS = [
    PageEntry(ORIGINAL, 1714521600),
    PageEntry(VARIANT, 1714521601, Evidence("near", 0, 0.8, 0.9, 800, "渡轮")),
    PageEntry(COPY, 0, Evidence()),
    PageEntry(UNJUDGED, 2**32 - 1),
    PageEntry(LIKE, 1714521602, TOLD),
]
HEAD = (
    '{"scrapy-neardup":"state","version":5,"recipe":{"hash":"none","method":"somebody.Elses","parameters":'
    '{"n":[5,3],"ü":"新"},"secret":"cf37fb19e6c8dd50"},'
    '"secret":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}'
)


KEEP = ManualVerdict("http://例子.example/\ud800", ManualKind.KEEP, "", 5)
COPIED = ManualVerdict("http://b.example/", ManualKind.COPY, "https://a.example/渡口", 4)


def test_a_file_has_a_head_a_line_for_each_page_and_a_checksum(tmp_path: Path) -> None:
    found = packed(state(KINDS))
    assert found[:8] == bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0])  # no name and no time
    lines = gzip.decompress(found)
    head, first, *_, last = lines.decode().splitlines()
    assert head == HEAD
    assert json.loads(first) == {
        "id": "000000000000001a",
        "url": "https://a.example/渡口",
        "seen": 1714521600,
        "record": encoded(ORIGINAL.pack()),
    }
    digest = sha256(b"".join(lines.splitlines(keepends=True)[:-1])).hexdigest()
    assert last == f'{{"pages":5,"sha256":"{digest}"}}'
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(lines[:400], 1) + gzip.compress(lines[400:], 1, mtime=5))
    source, opened = ExportFile(path), OpenState(state(KINDS))
    assert list(source.rows(b"")) == []
    assert source.recipe == {**RECIPE, "parameters": {"n": [5, 3], "ü": "新"}, "secret": "cf37fb19e6c8dd50"}
    assert source.secret == Secret(bytes(range(32)))
    assert list(source.pages()) == list(opened.pages()) == KINDS
    assert (opened.recipe, opened.secret) == (source.recipe, source.secret)


def test_counts_and_manual_verdicts_stand_behind_the_pages(tmp_path: Path) -> None:
    store = state(KINDS, notes=3)
    write_manual_verdicts(store, KEEP, COPIED)
    lines = [json.loads(line) for line in gzip.decompress(packed(store)).splitlines()]
    rows = [*store.counted().items(), *store.rows(b"n")]
    assert len(rows) > 3
    assert lines[6:-1] == [{"row": encoded(key), "value": encoded(value)} for key, value in rows]
    source = exported(store, tmp_path / "file")
    assert list(source.rows(b"")) == rows
    for one in (source, OpenState(store)):
        assert counts_of(one).blocks() == {unpack_block(key): packed for key, packed in store.counted().items()}
        assert sorted(verdicts_of(one, store.hashes), key=lambda verdict: verdict.when) == [COPIED, KEEP]
    copy = memory_state(RECIPE)
    merge(source, copy)
    assert sorted(manual_verdicts(copy), key=lambda one: one.when) == [COPIED, KEEP]
    assert packed(copy) == packed(store)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages(), st.integers(0, 3))
def test_an_imported_state_is_the_same_and_makes_the_same_file(
    tmp_path: Path, filed: list[PageEntry], notes: int
) -> None:
    store = state(filed, notes if filed else 0)
    copy = memory_state(RECIPE)
    assert merge(exported(store, tmp_path / "file"), copy).added == len(filed)
    assert rows(copy) == rows(store)
    assert packed(copy) == packed(store)
    check(copy)


def test_an_import_that_is_killed_leaves_no_page(tmp_path: Path) -> None:
    """Before each of its writes: the generation, the pages, the counts, their seal, the end of the generation."""
    source = exported(state(KINDS, notes=1), tmp_path / "file")
    for writes in range(len(KINDS) + 4):
        store = open_at(SQLite, str(tmp_path / f"state {writes}"), source.recipe)
        with killed_before(store, writes), pytest.raises(Killed):
            merge(source, store)
        store.kv.close()
        store = open_at(SQLite, store.location, source.recipe)
        sealed = writes > len(KINDS) + 2
        assert store.pages == (len(KINDS) if sealed else 0)
        assert store.rolled_back.pages == (0 if sealed else min(len(KINDS), max(0, writes - 1)))
        check(store)
        store.close()
    with killed_before(whole := memory_state(RECIPE), len(KINDS) + 4):
        merge(source, whole)  # there is no further write


# Damage.


def lines_of() -> list[dict[str, Any]]:
    store = state(KINDS, notes=1)
    write_manual_verdicts(store, KEEP)
    return [json.loads(line) for line in gzip.decompress(packed(store)).splitlines()]


def written(path: Path, lines: list[dict[str, Any]], *, sealed: bool = True) -> Path:
    """A file of these lines, with a checksum that fits them."""
    plain = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
    if sealed:
        lines[-1]["sha256"] = sha256(plain).hexdigest()
    path.write_bytes(gzip.compress(plain + json.dumps(lines[-1]).encode() + b"\n"))
    return path


def test_a_byte_that_was_flipped_is_found_wherever_it_is(tmp_path: Path) -> None:
    whole, counted = packed(state(KINDS, notes=1)), state(KINDS, notes=1).counted()
    path = tmp_path / "file"
    chance = random.Random(1)
    same = 0
    for at in range(0, len(whole), 2):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
        try:
            source = ExportFile(path)
        except NearDupError:
            continue
        same += 1  # a flag, the time or the system in the head, or a bit that fills up the last byte: it says the same
        assert list(source.pages()) == KINDS
        assert dict(source.rows(b"b")) == counted
    assert same < 10


def test_a_file_that_was_cut_is_refused_wherever_that_is(tmp_path: Path) -> None:
    whole = packed(state(KINDS, notes=1))
    path = tmp_path / "file"
    for end in [*range(0, len(whole) - 20, 5), *range(len(whole) - 20, len(whole))]:
        path.write_bytes(whole[:end])
        with pytest.raises(NearDupError, match=r"is no export of a state|is damaged: line \d+: "):
            ExportFile(path)
    lines = gzip.decompress(whole).splitlines(keepends=True)
    for end in range(1, len(lines)):
        path.write_bytes(gzip.compress(b"".join(lines[:end])))
        with pytest.raises(NearDupError, match=f"line {end + 1}: "):
            ExportFile(path)


_LINES = 13


def on(line: int, **values: Any) -> tuple[Change, int]:
    """Wrong values of a line, counted from 0 or from the end, and its number."""
    return lambda lines: lines[line].update(values), line + 1 if line >= 0 else _LINES + line + 1


def encoded(packed: bytes) -> str:
    return b64encode(packed).decode()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        *(on(0, secret=wrong) for wrong in ("00" * 32, 5, "no")),
        (lambda lines: lines[0]["recipe"].pop("secret"), 1),
        *((lambda lines, name=name: lines[1].pop(name), 2) for name in ("id", "url", "seen", "record")),
        *(on(1, id=wrong) for wrong in ("x", 26, "0" * 16, "8" + "0" * 15)),
        *(on(1, seen=wrong) for wrong in (-1, 2**32, "1")),
        *(on(1, record=wrong) for wrong in ("AP8*", 5, encoded(ORIGINAL.pack()[:20]), encoded(COPY.pack()))),
        *(on(1, url=wrong) for wrong in (None, "https://else.example/")),
        on(1, colour="red"),
        *(on(2, evidence=wrong) for wrong in (5, "AP8*", encoded(b"noise"))),
        *((lambda lines, extra=extra: lines.insert(1, lines[extra]), 3) for extra in (1, 2)),
        *(on(6, value=wrong) for wrong in ("*", 3)),
        *(on(-2, row=wrong) for wrong in ("*", None, encoded(b"r" + bytes(8)), "")),
        *(on(-1, pages=4), on(-1, more=4)),
        (lambda lines: lines.pop(3), 12),
    ],
)
def test_a_wrong_line_is_named_even_if_the_checksum_fits(tmp_path: Path, change: Change, line: int) -> None:
    lines = lines_of()
    change(lines)
    with pytest.raises(NearDupError, match=rf"is damaged: line {line}: .*export the state again\."):
        ExportFile(written(tmp_path / "file", json.loads(json.dumps(lines))))


@pytest.mark.parametrize(
    "change",
    [
        *(on(6, **wrong) for wrong in ({"value": ""}, {"row": encoded(b"b\2\1")}, {"row": encoded(b"b\0")})),
        *(on(-2, **wrong) for wrong in ({"value": ""}, {"value": encoded(b'["a", "burn", "", 1]')}, {"row": "bg=="})),
    ],
)
def test_rows_that_are_none_are_refused(tmp_path: Path, change: tuple[Change, int]) -> None:
    lines = lines_of()
    change[0](lines)
    store = memory_state(RECIPE)
    with pytest.raises(NearDupError, match="is damaged: "):
        merge(ExportFile(written(tmp_path / "file", lines)), store)
    assert store.pages == 0


@pytest.mark.parametrize("extra", [b"[]\n", b"\xff\n", b"[" * 100_000 + b"\n", b"\n", b'{"sha256":'])
def test_a_line_must_be_an_object(tmp_path: Path, extra: bytes) -> None:
    plain = gzip.decompress(packed(state(KINDS))).splitlines(keepends=True)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"".join([*plain[:3], extra, *plain[3:]])))
    with pytest.raises(NearDupError, match="is damaged: line 4: "):
        ExportFile(path)


def test_the_checksum_must_fit_and_nothing_may_follow(tmp_path: Path) -> None:
    lines = lines_of()
    lines[1]["seen"] = 1
    with pytest.raises(NearDupError, match="line 13: "):
        ExportFile(written(tmp_path / "file", lines, sealed=False))
    for content in (gzip.compress(gzip.decompress(packed(state(KINDS))) + b"{}\n"), packed(state(KINDS)) + b"more"):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(NearDupError, match="line 7: "):
            ExportFile(tmp_path / "file")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\x1f", b"SQLite format 3\0", b"{}\n"),
        *(gzip.compress(line, mtime=0) for line in (b"{}\n", b"\xff\n")),
        gzip.compress(b'{"scrapy-neardup":"lexicon","version":1,"recipe":{}}\n', mtime=0),
        gzip.compress(b'{"scrapy-neardup":"state","version":"4","recipe":{}}\n', mtime=0),
        gzip.compress(b'{"scrapy-neardup":"state","version":5,"recipe":[]}\n', mtime=0),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NearDupError, match="file is no export of a state, or its start is damaged"):
        ExportFile(path)
    for missing in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(NearDupError, match="cannot be read: "):
            ExportFile(missing)


@pytest.mark.parametrize("version", [0, 4, 99])
def test_another_version_is_refused_with_the_way_to_read_it(tmp_path: Path, version: int) -> None:
    lines = lines_of()
    lines[0]["version"] = version
    with pytest.raises(NearDupError, match=rf"format {version}, .*--upgrade"):
        ExportFile(written(tmp_path / "file", lines))


def test_a_file_that_is_replaced_while_it_is_read_is_not_taken_for_the_first(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(packed(state(KINDS)))
    source = ExportFile(path)
    path.write_bytes(packed(state(KINDS))[:-9])
    store = memory_state(RECIPE)
    with pytest.raises(NearDupError, match="is damaged"):
        merge(source, store)
    assert store.pages == 0


def test_another_recipe_or_secret_is_refused_with_what_differs() -> None:
    ours = state(KINDS)
    before = rows(ours)
    theirs = memory_state({**RECIPE, "hash": "md5", "parameters": {"n": (5, 4), "ü": "新"}})
    with pytest.raises(StoreMismatch, match=r"hash is 'md5'.*parameters\.n is \[5, 4\]"):
        check_recipes([OpenState(ours), OpenState(theirs)], ours.recipe)
    for secret in (Secret(b"another"), Secret.shared("a secret of several states")):
        theirs = memory_state({**RECIPE, "hash": "md5"}, secret=secret)
        with pytest.raises(StoreMismatch, match="NEARDUP_SECRET"):
            check_recipes([OpenState(ours), OpenState(theirs)], ours.recipe)
    check_recipes([OpenState(ours), OpenState(ours)], ours.recipe)
    assert rows(ours) == before


def test_a_full_disk_leaves_no_half_of_a_file_unnoticed() -> None:
    class Full:
        failed = False

        def write(self, data: bytes) -> int:
            if not self.failed:  # later than that, when it is tidied up, nobody could be told
                self.failed = True
                raise OSError(28, "No space left on device")
            return len(data)

        def flush(self) -> None: ...

    with pytest.raises(OSError, match="No space left"):
        write_export(state(KINDS), Full())  # type: ignore[arg-type]


def test_of_two_manual_verdicts_the_newer_one_stays_whichever_state_it_is_in() -> None:
    older, newer = (ManualVerdict("a", ManualKind.KEEP, "", 4), ManualVerdict("a", ManualKind.COPY, "x", 5))
    for here, there, taken in ((older, newer, 1), (newer, older, 0)):
        store = memory_state({})
        write_manual_verdicts(store, here)
        assert take_verdicts([there, KEEP], store) == (taken + 1, 1)
        assert {one.url: one for one in manual_verdicts(store)} == {newer.url: newer, KEEP.url: KEEP}
        assert take_verdicts([older, newer, KEEP], store)[0] == 0, "the same once more changes nothing"
