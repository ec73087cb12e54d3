"""Keyed hashes: the same everywhere under one secret, others under another, and no way from farmhash to them."""

from __future__ import annotations

from hashlib import blake2b, md5

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.hashing import fingerprint64
from scrapy_neardup.hashing.keyed import OPEN, Keyed

SECRET = bytes(range(32))
KEYED = Keyed(SECRET)
UNITS = st.lists(st.integers(0, 2**32), max_size=40).map(lambda units: np.array(units, np.uint64))
#: Two texts with one farmhash; see tests/crawl/forging.py.
ALIKE = "http://paper.example/900", "http://evil.exa5qo9xalqr5c6rk4eo"


@given(st.text(max_size=200), st.binary(max_size=64))
def test_the_hash_is_blake2b_under_the_secret(text: str, secret: bytes) -> None:
    data = text.encode("utf-8", "replace")
    assert Keyed(secret).of(text) == int.from_bytes(blake2b(data, key=secret, digest_size=8).digest(), "big")
    assert Keyed(secret).short(text) == Keyed(secret).of(text) % 2**32
    assert Keyed(secret).md5(data) == int.from_bytes(md5(secret + data).digest()[:8], "big")
    assert Keyed(secret).digest("md5", text) == Keyed(secret).md5(data)
    assert Keyed(secret).digest("blake2b", text) == Keyed(secret).of(text)


def test_each_text_has_its_hash_in_order_also_with_lone_surrogates() -> None:
    assert KEYED.of("河\ud800湾") == KEYED.of("河?湾")
    assert KEYED.place("河\ud800湾") == KEYED.place("河?湾")
    texts = ["渡口", "", "渡口", "ferry"]
    assert KEYED.each(texts).tolist() == [KEYED.of(text) for text in texts]
    assert KEYED.each([]).shape == (0,)


@given(UNITS, st.integers(1, 9))
def test_n_grams_are_the_same_wherever_they_stand_and_others_are_not(units: np.ndarray, n: int) -> None:
    found = KEYED.n_grams(units, n)
    assert len(found) == (max(1, len(units) - n + 1) if len(units) else 0)
    known: dict[tuple[int, ...], int] = {}
    for place, value in enumerate(found.tolist()):
        assert known.setdefault(tuple(units[place : place + n].tolist()), value) == value
    assert len(set(known.values())) == len(known)


@given(UNITS)
def test_different_numbers_have_different_hashes(units: np.ndarray) -> None:
    assert len(set(KEYED.numbers(units).tolist())) == len(set(units.tolist()))


def test_another_secret_gives_other_hashes_of_everything() -> None:
    units, other = np.arange(50, dtype=np.uint64), Keyed(b"another")
    for one in (OPEN, other):
        assert one.of("渡口") != KEYED.of("渡口")
        assert one.place("渡口") != KEYED.place("渡口")
        assert one.md5(b"x") != KEYED.md5(b"x")
        assert not set(one.numbers(units).tolist()) & set(KEYED.numbers(units).tolist())
        assert not set(one.n_grams(units, 3).tolist()) & set(KEYED.n_grams(units, 3).tolist())


def test_texts_with_one_farmhash_share_a_place_and_no_hash() -> None:
    assert len(set(map(fingerprint64, ALIKE))) == 1
    assert len(set(map(KEYED.place, ALIKE))) == 1
    for hashed in (OPEN.of, KEYED.of, KEYED.short):
        assert len(set(map(hashed, ALIKE))) == 2


def test_the_values_are_written_down() -> None:
    """States outlive releases."""
    grams = KEYED.n_grams(np.array([1, 2, 3], np.uint64), 3)
    assert [KEYED.of("渡口"), KEYED.place("渡口"), *KEYED.numbers(np.array([7], np.uint64)), *grams] == GOLDEN


GOLDEN = [12538735214236407211, 5307163163579935922, 10736804857508061067, 4313477328895369072]
