"""What is no export, or no longer one, is refused in words, and nothing of it is taken."""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError, StoreMismatch
from scrapy_neardup.maintenance.export import ExportFile, OpenState, check_recipes, import_state, write_export
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.recipe import Secret
from tests.maintenance.exchange_states import RECIPE, packed, rows, state
from tests.maintenance.test_export import KINDS

Change = Callable[[list[dict[str, Any]]], object]


def lines_of(notes: int = 1) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(packed(state(KINDS, notes))).splitlines()]


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
    told, same = set(), 0
    for at in range(0, len(whole), 2):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
        try:
            source = ExportFile(path)
        except NearDupError as error:
            told.add(re.sub("^.*/file|:.*", "", str(error)))
        else:  # a flag, the time or the system in the head, or a bit that fills up the last byte: it says the same
            same += 1
            assert list(source.pages()) == KINDS
            assert source.counts.blocks() == counted
    assert same < 10
    assert told == {" is damaged", " is no export of a state, or its start is damaged. Make an export with"}


def test_a_file_that_was_cut_is_refused_wherever_that_is(tmp_path: Path) -> None:
    whole = packed(state(KINDS, notes=1))
    path = tmp_path / "file"
    for end in [*range(0, len(whole) - 20, 5), *range(len(whole) - 20, len(whole))]:
        path.write_bytes(whole[:end])
        with pytest.raises(NearDupError, match=r"is no export of a state|is damaged: line \d+: "):
            ExportFile(path)


@pytest.mark.parametrize("cut", range(1, 12))
def test_lines_that_are_missing_at_the_end_are_missed(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "file"
    lines = gzip.decompress(packed(state(KINDS, notes=1))).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-cut])))
    with pytest.raises(NearDupError, match=rf"line {13 - cut}: the file ends here, before its last line"):
        ExportFile(path)


BLOCK = {"block": 0, "counts": b64encode(zlib.compress(bytes(4672))).decode()}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: lines[0].update(secret="00" * 32), "line 1: its secret is not that of the recipe"),
        (lambda lines: lines[0].update(secret=5), "line 1: its secret is not that of the recipe"),
        (lambda lines: lines[0].update(secret="no"), "line 1: "),
        (lambda lines: lines[0]["recipe"].pop("secret"), "line 1: its secret is not that of the recipe"),
        (lambda lines: lines[1].pop("id"), "line 2: its id is missing"),
        (lambda lines: lines[1].update(id="1a"), "line 2: its id must be 16 hexadecimal digits, not '1a'"),
        (lambda lines: lines[1].update(id=26), "line 2: its id must be 16 hexadecimal digits, not 26"),
        (lambda lines: lines[1].update(id="0" * 16), "line 2: an id, a time or a number of keys is out of range"),
        (lambda lines: lines[5].update(id="8" + "0" * 15), "line 6: an id, a time or a number of keys is out of"),
        (lambda lines: lines[1].update(seen=-1), "line 2: an id, a time or a number of keys is out of range"),
        (lambda lines: lines[1].update(seen=2**32), "line 2: an id, a time or a number of keys is out of range"),
        (lambda lines: lines[1].update(keys=["0" * 16] * 256), "line 2: an id, a time or a number of keys is out of"),
        (lambda lines: lines[1].update(seen=True), "line 2: its seen must be of the type int, not True"),
        (lambda lines: lines[1].update(url=None), "line 2: its url must be of the type str, not None"),
        (lambda lines: lines[1].update(keys=["0" * 17]), "line 2: its keys must be 16 hexadecimal digits"),
        (lambda lines: lines[1].update(sketch="AP8*"), "line 2: its sketch is no base64"),
        (lambda lines: lines[2].update(similarity=1.5), "line 3: its similarity must be a number from 0 to 1, not 1.5"),
        (lambda lines: lines[2].update(similarity=float("nan")), "line 3: its similarity must be a number from 0 to 1"),
        (lambda lines: lines[2].update(original=5), "line 3: its original must be 16 hexadecimal digits, not 5"),
        (lambda lines: lines[2].update(evidence=[]), r"line 3: its evidence must be of the type dict, not \[\]"),
        (lambda lines: lines[5]["evidence"].update(shared=[1]), "line 6: its shared must be of the type str, not 1"),
        (lambda lines: lines[5]["evidence"].update(like=1), "line 6: its like must be 16 hexadecimal digits, not 1"),
        (lambda lines: lines[5]["evidence"].update(mood="good"), "line 6: 'mood' is no field of evidence"),
        (lambda lines: lines[1].update(colour="red"), "line 2: 'colour' is no field of a page"),
        (lambda lines: lines.insert(1, lines[2]), "line 3: its page is out of order"),
        (lambda lines: lines.insert(1, lines[1]), "line 3: its page is out of order"),
        (lambda lines: lines.insert(1, BLOCK), "line 3: its page is out of order"),
        (lambda lines: lines.insert(6, dict(lines[6])), "line 8: its block of counts is out of order"),
        (lambda lines: lines[6].update(block="0"), "line 7: its block of counts is out of order"),
        (lambda lines: lines[6].update(more=1), "line 7: its block of counts is out of order"),
        (lambda lines: lines[6].update(counts="*"), "line 7: "),
        (lambda lines: lines[6].update(counts=3), "line 7: its counts must be a string"),
        (
            lambda lines: lines[6].update(counts=""),
            r"is damaged: block \d+ of the counted sentences cannot be unpacked",
        ),
        (lambda lines: lines[-2].update(block=513), "is damaged: there is no block"),
        (lambda lines: lines[-1].update(pages=4), "line 12: it does not fit the lines before it"),
        (lambda lines: lines[-1].update(more=4), "line 12: it does not fit the lines before it"),
        (lambda lines: lines.pop(3), "line 11: it does not fit the lines before it"),
    ],
)
def test_a_line_that_is_none_is_named_even_if_the_checksum_fits(tmp_path: Path, change: Change, told: str) -> None:
    lines = lines_of()
    change(lines)
    path = written(tmp_path / "file", lines)
    with pytest.raises(NearDupError, match=told) as raised:
        ExportFile(path)
    assert str(raised.value).endswith("export the state again.")


@pytest.mark.parametrize("extra", [b"[]\n", b"\xff\n", b"[" * 100_000 + b"\n", b"\n", b'{"sha256":'])
def test_what_is_no_object_is_no_line(tmp_path: Path, extra: bytes) -> None:
    plain = gzip.decompress(packed(state(KINDS))).splitlines(keepends=True)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"".join([*plain[:3], extra, *plain[3:]])))
    with pytest.raises(NearDupError, match="is damaged: line 4: "):
        ExportFile(path)


def test_a_checksum_that_does_not_fit_is_told_of(tmp_path: Path) -> None:
    lines = lines_of()
    lines[1]["url"] = "https://other.example/"
    with pytest.raises(NearDupError, match="line 12: it does not fit the lines before it"):
        ExportFile(written(tmp_path / "file", lines, sealed=False))


def test_nothing_may_stand_behind_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(gzip.decompress(packed(state(KINDS))) + b"{}\n"))
    with pytest.raises(NearDupError, match="line 7: it should be the last"):
        ExportFile(path)
    path.write_bytes(packed(state(KINDS)) + b"more")
    with pytest.raises(NearDupError, match="line 7: it cannot be unpacked"):
        ExportFile(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x1f",
        b"SQLite format 3\0",
        b"{}\n",
        gzip.compress(b"{}\n", mtime=0),
        gzip.compress(b"\xff\n", mtime=0),
        gzip.compress(b'{"scrapy-neardup":"lexicon","version":1,"recipe":{}}\n', mtime=0),
        gzip.compress(b'{"scrapy-neardup":"state","version":"3","recipe":{}}\n', mtime=0),
        gzip.compress(b'{"scrapy-neardup":"state","version":3,"recipe":[]}\n', mtime=0),
    ],
)
def test_what_is_no_export_is_told_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NearDupError, match="file is no export of a state, or its start is damaged"):
        ExportFile(path)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_form_is_refused_with_the_way_to_read_it(tmp_path: Path, version: int) -> None:
    lines = lines_of()
    lines[0]["version"] = version
    with pytest.raises(NearDupError, match=rf"format {version}, but this release reads format 3.*--upgrade"):
        ExportFile(written(tmp_path / "file", lines))


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NearDupError, match=r"nowhere cannot be read: No such file or directory"):
        ExportFile(tmp_path / "nowhere")
    with pytest.raises(NearDupError, match=r"cannot be read: Is a directory\."):
        ExportFile(tmp_path)


def test_a_file_that_is_replaced_while_it_is_read_is_not_taken_for_the_first(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(packed(state(KINDS)))
    source = ExportFile(path)
    path.write_bytes(packed(state(KINDS))[:-9])
    store = memory_state(RECIPE)
    with pytest.raises(NearDupError, match="is damaged"):
        import_state(source, store)
    assert len(list(store.kv.scan(b"j"))) == len(KINDS)  # nothing is sealed


def test_another_recipe_is_refused_with_all_that_differs() -> None:
    ours = state(KINDS)
    theirs = memory_state({**RECIPE, "hash": "md5", "parameters": {"n": (5, 4), "ü": "新"}})
    before = rows(ours)
    told = r"hash is 'md5' in the state and 'none' here; parameters.n is \[5, 4\] in the state and \[5, 3\] here"
    with pytest.raises(StoreMismatch, match=told):
        check_recipes([OpenState(ours), OpenState(theirs)], ours.recipe)
    check_recipes([OpenState(ours), OpenState(ours)], ours.recipe)
    assert ours.secret is not None
    check_recipes([OpenState(ours)], {**RECIPE, "secret": ours.secret.name})
    assert rows(ours) == before


def test_another_secret_is_refused_before_anything_else() -> None:
    ours = state(KINDS)
    for secret in (Secret(b"another"), Secret.shared("a secret of several states")):
        theirs = memory_state({**RECIPE, "hash": "md5"}, secret=secret)
        with pytest.raises(StoreMismatch, match=r"another secret.*the same NEARDUP_SECRET from"):
            check_recipes([OpenState(ours), OpenState(theirs)], ours.recipe)


def test_a_disk_that_is_full_leaves_no_half_of_a_file_unnoticed() -> None:
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
