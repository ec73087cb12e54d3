"""The file: what stands in it, and that a state comes out of it as it went in."""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64encode
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.export import ExportFile, OpenState, import_state
from scrapy_neardup.maintenance.lines import Filed, page_from_data, page_to_data
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.opening import STORES, memory_state, open_at
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record
from tests.maintenance.exchange_states import (
    RECIPE,
    Killed,
    check,
    exported,
    fill,
    killed_before,
    packed,
    pages,
    rows,
    state,
)

SMALL = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SCHEMES = [scheme for scheme in STORES if scheme != "leveldb" or find_spec("plyvel")]

ORIGINAL = Record(0x1A, "https://a.example/渡口", 0x1A, 1.0, (0, 2**40 - 1), b"\x00\xff sketch")
WITNESS = Record(0x1B, "https://b.example/", 0x1A, 52428 / 65535, (7,), b"other")
COPY = Record(0x1C, "https://c.example/", 0x1A, 1.0)
UNJUDGED = Record(0x1D, "https://d.example/", 0x1D, 0.0, (), b"\x01" * 8)
LIKE = Record(0x1E, "https://e.example/", 0x1E)
TOLD = Evidence("excerpt", 0x1A, 0.2, 0.9512, 812, "渡轮", ("渡轮明天开航。",), "")
KINDS = [
    Filed(ORIGINAL, 1714521600),
    Filed(WITNESS, 1714521601, Evidence("near", 0, 0.8, 0.9, 800, "渡轮")),
    Filed(COPY, 0, Evidence()),
    Filed(UNJUDGED, 2**32 - 1),
    Filed(LIKE, 1714521602, TOLD),
]
GOLDEN = """\
{"scrapy-neardup":"state","version":3,"recipe":{"hash":"none","method":"somebody.Elses","parameters":{"n":[5,3],"ü":"新"},"secret":"cf37fb19e6c8dd50"},"secret":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}
{"id":"000000000000001a","url":"https://a.example/渡口","seen":1714521600,"keys":["0000000000000000","000000ffffffffff"],"sketch":"AP8gc2tldGNo"}
{"id":"000000000000001b","url":"https://b.example/","seen":1714521601,"original":"000000000000001a","similarity":0.8,"keys":["0000000000000007"],"sketch":"b3RoZXI=","evidence":{"likeness":"near","similarity":0.8,"containment":0.9,"letters":800,"title":"渡轮"}}
{"id":"000000000000001c","url":"https://c.example/","seen":0,"original":"000000000000001a","evidence":{}}
{"id":"000000000000001d","url":"https://d.example/","seen":4294967295,"similarity":0.0,"sketch":"AQEBAQEBAQE="}
{"id":"000000000000001e","url":"https://e.example/","seen":1714521602,"evidence":{"likeness":"excerpt","like":"000000000000001a","similarity":0.2,"containment":0.9512,"letters":812,"title":"渡轮","shared":["渡轮明天开航。"]}}
"""


def last_line(lines: str, pages: int) -> str:
    return f'{{"pages":{pages},"sha256":"{sha256(lines.encode()).hexdigest()}"}}\n'


def test_the_lines_of_a_file_are_these() -> None:
    assert gzip.decompress(packed(state(KINDS))).decode() == GOLDEN + last_line(GOLDEN, 5)


def test_a_file_of_this_form_is_read_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl.gz"
    path.write_bytes(gzip.compress((GOLDEN + last_line(GOLDEN, 5)).encode()))
    source = ExportFile(path)
    assert (source.size, source.counts.blocks()) == (5, {})
    assert source.recipe == {**RECIPE, "parameters": {"n": [5, 3], "ü": "新"}, "secret": "cf37fb19e6c8dd50"}
    assert source.secret == Secret(bytes(range(32)))
    assert list(source.pages()) == KINDS


def test_a_key_that_is_longer_than_its_form_has_them_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl.gz"
    lines = GOLDEN.replace("000000ffffffffff", "000001ffffffffff")
    path.write_bytes(gzip.compress((lines + last_line(lines, 5)).encode()))
    with pytest.raises(NearDupError, match="line 2: a key of its page has more than 40 bits"):
        ExportFile(path)


def test_counted_sentences_stand_behind_the_pages(tmp_path: Path) -> None:
    store = state(KINDS, notes=3)
    lines = [json.loads(line) for line in gzip.decompress(packed(store)).splitlines()]
    blocks = store.counted()
    assert len(blocks) > 1
    assert lines[6:-1] == [{"block": block, "counts": b64encode(blocks[block]).decode()} for block in sorted(blocks)]
    assert exported(store, tmp_path / "file").counts.blocks() == blocks


def test_the_head_of_the_file_holds_no_name_and_no_time() -> None:
    found = packed(state(KINDS))
    assert found == packed(state(KINDS))
    assert found[:8] == bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0])


@pytest.mark.slow
@SMALL
@given(pages(), st.integers(0, 3))
def test_what_was_exported_and_imported_is_the_same_state_and_the_same_file(
    tmp_path: Path, filed: list[Filed], notes: int
) -> None:
    store = state(filed, notes)
    copy = memory_state(RECIPE)
    assert import_state(exported(store, tmp_path / "file"), copy) == len(filed)
    assert rows(copy) == rows(store)
    assert packed(copy) == packed(store)
    check(copy)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_state_goes_from_any_store_to_any_other(tmp_path: Path, scheme: str) -> None:
    store = fill(open_at(STORES[scheme], str(tmp_path / "from"), RECIPE), KINDS, notes=3)
    source = exported(store, tmp_path / "file")
    for other in SCHEMES:
        copy = open_at(STORES[other], str(tmp_path / f"to {other}"), source.recipe)
        assert import_state(source, copy) == 5
        assert rows(copy) == rows(store)
        assert copy.new_id() > LIKE.id
        copy.close()
        if other != "memory":
            copy = open_at(STORES[other], str(tmp_path / f"to {other}"), RECIPE)
            assert (rows(copy), copy.taken_back.pages) == (rows(store), 0)
            check(copy)
            copy.close()
    store.close()


def test_a_copy_that_was_delivered_is_told_to_be_one() -> None:
    filed = Filed(Record(0x1C, "https://c.example/", 0x1A, 1.0, (), b"\x01", delivered=True), 0)
    data = page_to_data(filed)
    assert data["delivered"] is True
    assert page_from_data(data) == filed
    with pytest.raises(ValueError, match="its delivered must be of the type bool"):
        page_from_data({**data, "delivered": 1})


def test_what_is_left_out_of_a_line_is_as_most_pages_have_it() -> None:
    plain = Filed(Record(26, "", 26), 0)
    assert page_to_data(plain) == {"id": "000000000000001a", "url": "", "seen": 0}
    assert page_from_data(page_to_data(plain)) == plain


@pytest.mark.parametrize("steps", [0, 1, 2, 32767, 32768, 52428, 65533, 65534, 65535])
def test_the_decimals_of_a_similarity_tell_each_step(steps: int) -> None:
    record = Record(5, "", 4, steps / 65535)
    back = page_from_data(json.loads(json.dumps(page_to_data(Filed(record, 0))))).record
    assert back.pack() == record.pack()


def test_every_step_of_a_similarity_is_told_apart() -> None:
    assert all(round(round(step / 65535, 5) * 65535) == step for step in range(65536))


def test_where_there_are_pages_nothing_is_imported(tmp_path: Path) -> None:
    store = state(KINDS[:1])
    before = rows(store)
    with pytest.raises(NearDupError, match=r"already has 1 pages.*scrapy neardup merge"):
        import_state(exported(state(KINDS), tmp_path / "file"), store)
    assert rows(store) == before


def test_an_import_that_is_killed_leaves_no_page(tmp_path: Path) -> None:
    """Before each of its writes: the generation, the pages, their seal, the end of the generation, the counts."""
    source = exported(state(KINDS, notes=1), tmp_path / "file")
    for writes in range(len(KINDS) + 4):
        store = open_at(SQLite, str(tmp_path / f"state {writes}"), source.recipe)
        with killed_before(store, writes), pytest.raises(Killed):
            import_state(source, store)
        store.kv.close()
        store = open_at(SQLite, store.location, source.recipe)
        sealed = writes > len(KINDS) + 1
        assert store.pages == (len(KINDS) if sealed else 0)
        assert store.taken_back.pages == (0 if sealed else max(0, writes - 1))
        check(store)
        store.close()
    with killed_before(whole := memory_state(RECIPE), len(KINDS) + 4):
        import_state(source, whole)  # there is no further write


def test_a_file_that_was_packed_again_in_another_way_is_read_all_the_same(tmp_path: Path) -> None:
    store = state(KINDS, notes=2)
    plain = gzip.decompress(packed(store))
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(plain[:400], 1) + gzip.compress(plain[400:], 1, mtime=5))
    copy = memory_state(RECIPE)
    import_state(ExportFile(path), copy)
    assert rows(copy) == rows(store)


def test_the_pages_of_an_open_state_are_those_of_its_file(tmp_path: Path) -> None:
    store = state(KINDS, notes=2)
    source, file = OpenState(store), exported(store, tmp_path / "file")
    assert source.recipe == file.recipe
    assert list(source.pages()) == list(file.pages()) == KINDS
    assert source.counts.blocks() == file.counts.blocks() == store.counted()
    assert all(map(zlib.decompress, store.counted().values()))
    assert source.secret == file.secret == store.secret
