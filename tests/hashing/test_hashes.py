"""The hashes of states and of the literature: values that never change, and other values under another secret."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b, md5
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import HASH_NAME, compiled, farmhash, fingerprint64, mix64, projections
from scrapy_neardup.hashing.classic import CLASSIC, classic_hash
from scrapy_neardup.hashing.farmhash import python_fingerprint
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.hashing.projections import minima

KEYED = Keyed(bytes(range(32)))
#: Two texts with one farmhash; see tests/crawl/forging.py.
ALIKE = "http://paper.example/900", "http://evil.exa5qo9xalqr5c6rk4eo"
UNITS = st.lists(st.integers(0, 2**32), max_size=40).map(lambda units: np.array(units, np.uint64))
FINGERPRINTS: dict[str, int] = {
    "": 0x9AE16A3B2F90404F,
    "a": 0xB3454265B6DF75E3,
    "渡口": 0x9B5118CA480A56CC,
    "title 开航 渡口": 0x018DD6717BF2C047,
    "The new ferry left the bank this morning.": 0xE0651E08DF114A58,
    "河湾镇的渡口" * 40: 0xE2800266386D9314,
}
MIXED: dict[int, int] = {0: 0, 1: 0xB456BCFC34C2CB2C, 0xFF: 0x1200A2A61D248B28, 2**64 - 1: 0x64B5720B4B825F21}
GOLDEN = [12538735214236407211, 5307163163579935922, 10736804857508061067, 4313477328895369072]


def test_values_are_written_down_because_states_outlive_releases() -> None:
    assert HASH_NAME == "blake2b under a secret, farmhash.fingerprint64"
    for text, value in FINGERPRINTS.items():
        assert fingerprint64(text) == python_fingerprint(text.encode()) == value
    numbers = np.array(list(MIXED), np.uint64)
    assert mix64(numbers).tolist() == list(MIXED.values())
    assert numbers.tolist() == list(MIXED)
    grams = KEYED.n_grams(np.array([1, 2, 3], np.uint64), 3)
    assert [KEYED.of("渡口"), KEYED.place("渡口"), *KEYED.numbers(np.array([7], np.uint64)), *grams] == GOLDEN


def make_strings(count: int) -> Iterator[bytes]:
    """Random bytes: of every length up to 300, then of any up to 5000."""
    random = Random(64)
    return (random.randbytes(at if at <= 300 else random.randrange(5000)) for at in range(count))


def test_library_module_and_python_have_one_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in make_strings(1000):
        expected = python_fingerprint(data)
        assert farmhash.fingerprint_bytes(data) == expected, data.hex()
        assert compiled.kernels is None or compiled.kernels.fingerprint64(data) == expected, data.hex()
    monkeypatch.setitem(sys.modules, "farmhash", None)
    assert farmhash._choose() == (compiled.kernels.fingerprint64 if compiled.kernels else python_fingerprint)
    monkeypatch.setattr(compiled, "kernels", None)
    assert farmhash._choose() is python_fingerprint


def test_minima_of_a_long_text_are_made_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = minima(values := np.arange(300, dtype=np.uint64) << np.uint64(30), 16).tolist()
    for block in (1, 999):
        monkeypatch.setattr(projections, "_BLOCK", block)
        assert minima(values, 16).tolist() == expected
    assert minima(values[:0], 3).tolist() == [2**32 - 1] * 3


# Under a secret


@given(st.text(max_size=200), st.binary(max_size=64))
def test_texts_are_hashed_by_blake2b_or_md5_under_the_secret(text: str, secret: bytes) -> None:
    keyed, data = Keyed(secret), text.encode("utf-8", "replace")
    assert keyed.of(text) == int.from_bytes(blake2b(data, key=secret, digest_size=8).digest(), "big")
    assert keyed.short(text) == keyed.of(text) % 2**32
    assert keyed.digest("md5", text) == keyed.md5(data) == int.from_bytes(md5(secret + data).digest()[:8], "big")
    assert keyed.digest("blake2b", text) == keyed.of(text)
    assert keyed.each([text, "", text]).tolist() == [keyed.of(text), keyed.of(""), keyed.of(text)]


def test_a_lone_surrogate_is_a_question_mark() -> None:
    hashes: list[Callable[[str], int]] = [fingerprint64, KEYED.of, KEYED.place]
    hashes += [partial(classic_hash, name) for name in CLASSIC]
    for hashed in hashes:
        assert hashed("河\ud800湾") == hashed("河?湾")


@given(UNITS, st.integers(1, 9))
def test_n_grams_are_the_same_wherever_they_stand_and_others_are_not(units: np.ndarray, n: int) -> None:
    found = KEYED.n_grams(units, n)
    assert len(found) == (max(1, len(units) - n + 1) if len(units) else 0)
    known: dict[tuple[int, ...], int] = {}
    for place, value in enumerate(found.tolist()):
        assert known.setdefault(tuple(units[place : place + n].tolist()), value) == value
    assert len(set(known.values())) == len(known)
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
    assert [len({hashed(text) for text in ALIKE}) for hashed in (fingerprint64, KEYED.place)] == [1, 1]
    assert [len({hashed(text) for text in ALIKE}) for hashed in (OPEN.of, KEYED.of, KEYED.short)] == [2, 2, 2]


# Of the literature

#: The key of Partow's test programs, and a word. Each hash has three values: the printed one of the key, and those of
#: the word in 32 and in 64 bits. They never change, because users may keep them.
KEY, WORD = "abcdefghijklmnopqrstuvwxyz1234567890", "近似网页去重"
PUBLISHED: dict[str, tuple[int, int, int]] = {
    "rs": (4097835502, 1999765947, 1961758041371181499),
    "js": (1651003062, 2597821604, 1412015015521615742),
    "pjw": (126631744, 90874541, 2791164959038093),
    "elf": (126631744, 90874541, 39185511342401789),
    "bkdr": (3153586616, 2853983637, 2507366717296760213),
    "sdbm": (3449571336, 3446909449, 4380893055120812553),
    "djb": (729241521, 3912418520, 16761894206300144856),
    "ap": (882643939, 1180825860, 4238191372228502154),
}


def test_classic_hashes_have_their_published_values_and_no_other_names_or_widths() -> None:
    assert tuple(PUBLISHED) == CLASSIC
    for name, values in PUBLISHED.items():
        assert (classic_hash(name, KEY), classic_hash(name, WORD), classic_hash(name, WORD, 64)) == values, name
    for name, first in (("js", 1315423911), ("djb", 5381), ("ap", 0xAAAAAAAA)):
        assert classic_hash(name, "", 32) == classic_hash(name, "", 64) == first
    for name in ("", "SDBM", "fnv", "md5"):
        with pytest.raises(SettingsError, match=rf"^There is no classic hash '{name}'\. Use one of: rs, js, .*, ap\.$"):
            classic_hash(name, "a")
    for bits in (0, -32, 16, 33, 128):
        with pytest.raises(SettingsError, match=rf"^A classic hash cannot have {bits} bits\. Use one of: 32, 64\.$"):
            classic_hash("ap", "a", bits)
