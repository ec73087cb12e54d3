"""What a state tells of its pages, and how pages and all that is known of them go."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.tally import KEY, check_bytes
from scrapy_neardup.model import Kind, Match, Page
from scrapy_neardup.state import layout
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Keep, Record, evidence
from tests.state.test_contract import place, store

__all__ = ["place", "store"]

RECIPE = {"method": "any", "version": 1}


def put(store: PageStore, name: str, told: Evidence | None = None, *, generation: int = 0, original: int = 0) -> Record:
    id = store.new_id()
    record = Record(id, f"http://{name}.example/", original or id, keys=(7, id % 2**40), sketch=b"sketch")
    store.add(record, told, generation=generation)
    return record


text = st.text(st.characters(), max_size=50) | st.text(st.characters(codec="gbk"), max_size=50)  # also surrogates, NUL


@given(
    st.builds(
        Evidence,
        kind=text,
        like=st.integers(0, 2**64 - 1),
        similarity=st.floats(0, 1),
        containment=st.floats(0, 1),
        letters=st.integers(0, 2**40),
        title=text,
        shared=st.lists(text, max_size=4).map(tuple),
        text=text,
    )
)
def test_evidence_comes_back_as_it_was(told: Evidence) -> None:
    assert Evidence.unpack(told.pack()) == told
    title = json.dumps(told.title, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert len(Evidence(title=told.title).pack()) <= 16 + len(title)


def test_what_is_no_evidence_is_refused() -> None:
    for packed in [
        *(b"", b"u", b"u\xff", b"g\xff", b"u3", b"u{}", b'u[1,"",3,4,5,6,7]', b"no zlib", b"U[]", b"x[]"),
        *(b"u" + zlib.compress(b"[]"), b"U" + zlib.compress(b"["), b"u[" + b"0," * 13 + b"0]"),
    ]:
        with pytest.raises(ValueError, match=r"."):
            Evidence.unpack(packed)


SHARED = ("渡口今天早上开航了", "第一班船是空的")
MATCH = Match(12, "http://a.example/", 0.0, 0.87654, 0.91, SHARED)
PAGE = Page("http://b.example/", "渡口开航", text="渡口今天早上开航了。第一班船是空的。")


def test_what_is_kept_of_a_page() -> None:
    for kind, match, copy, keep, expected in [
        (Kind.NEAR, MATCH, True, Keep.NOTHING, None),
        (None, None, False, Keep.NOTHING, None),
        (None, None, False, Keep.EVIDENCE, Evidence(letters=18, title="渡口开航")),
        (None, MATCH, False, Keep.EVIDENCE, Evidence(letters=18, title="渡口开航")),
        (Kind.NEAR, MATCH, True, Keep.EVIDENCE, Evidence("near", 0, 0.8765, 0.91, 18, "渡口开航", SHARED)),
        (Kind.EXCERPT, MATCH, False, Keep.EVIDENCE, Evidence("excerpt", 12, 0.8765, 0.91, 18, "渡口开航", SHARED)),
        (None, None, False, Keep.TEXTS, Evidence(letters=18, title="渡口开航", text=PAGE.text)),
        (Kind.NEAR, MATCH, True, Keep.TEXTS, Evidence("near", 0, 0.8765, 0.91, 18, "渡口开航", SHARED, PAGE.text)),
    ]:
        assert evidence(PAGE, kind, match, copy=copy, keep=keep) == expected
    match = Match(12, "http://a.example/", 0.0, 1.0, 1.0, ("长" * 1000,))
    told = evidence(Page("u", title="题" * 1000, text="x"), Kind.NEAR, match, copy=True, keep=Keep.EVIDENCE)
    assert told is not None
    assert (len(told.title), [len(one) for one in told.shared]) == (200, [300])


def test_what_copies_share_takes_less_room_in_gbk() -> None:
    shared = ("渡口今天早上开航，往来的人很多。", "两岸的人都在等着看灯。")
    told = Evidence("identical", 0, 1.0, 1.0, 900, "渡口开航", shared)
    assert told.pack().startswith(b"G")
    # The lone surrogate, which GBK does not have, keeps all of it in UTF-8.
    assert len(told.pack()) < 0.9 * len(replace(told, title="渡口开航\ud83d").pack())


def test_evidence_is_found_by_the_page_and_goes_with_it(store: PageStore) -> None:
    told = Evidence("near", 0, 0.5, 0.75, 100, "渡口", ("开航",))
    kept, lost = put(store, "kept", told), put(store, "lost", told)
    assert store.evidence(kept.id) == told
    assert store.evidence(put(store, "silent").id) is None
    store.journal.roll_back(0, lost.id)
    assert store.evidence(lost.id) is None
    assert store.evidence(kept.id) == told
    record = put(store, "a")
    store.kv.write(Changes({layout.evidence_key(record.id): b"scribble"}), sync=False)
    with pytest.raises(StoreDamaged, match="are no evidence"):
        store.evidence(record.id)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (layout.meta_key("recipe"), b"\xff", "its recipe cannot be read"),
        (layout.meta_key("recipe"), b"[]", "its recipe cannot be read"),
        (KEY, b"many", "its tally cannot be read"),
        (layout.generation_key(5), b"noise", "the row of a crawl cannot be read"),
        (layout.generation_key(5), b"{}", "the row of a crawl cannot be read"),
    ],
)
def test_what_is_damaged_at_the_opening_is_named(key: bytes, value: bytes, words: str, tmp_path: Path) -> None:
    place = f"sqlite://{tmp_path}/state"
    store = open_store(place, RECIPE)
    store.kv.write(Changes({key: value}), sync=True)
    close_store(store)
    with closing(sqlite3.connect(tmp_path / "state")) as db:
        if key == KEY:  # which the store itself has written once more
            db.execute("INSERT OR REPLACE INTO kv VALUES (?, ?)", (key, value + check_bytes(key, value)))
            db.commit()
        before = db.execute("SELECT * FROM kv").fetchall()
        for recipe in (RECIPE, None):
            with pytest.raises(StoreDamaged, match=words) as refused:
                open_store(place, recipe)
            assert "check --repair" in str(refused.value)
        assert db.execute("SELECT * FROM kv").fetchall() == before


@pytest.mark.parametrize(
    "packed", [b"", b"\x01\x05\x00", bytes(38), b"\x01\0\0\2" + bytes(34) + b"\xff\xfe", b"\1\1" + bytes(36)]
)
def test_a_damaged_record_is_told_in_a_sentence(packed: bytes, store: PageStore) -> None:
    record = put(store, "a")
    store.kv.write(Changes({layout.record_key(record.id): packed}), sync=False)
    for read in (lambda: store.record(record.id), lambda: store.find(record.url), lambda: list(store.records())):
        with pytest.raises(StoreDamaged, match=f"the record {record.id:016x} cannot be read"):
            read()
