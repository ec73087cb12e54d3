"""The hashes that stand in every state: their values are written down here and never change."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from scrapy_neardup.hashing import HASH_NAME, compiled, farmhash, fingerprint64, mix64
from scrapy_neardup.hashing.farmhash import python_fingerprint

FINGERPRINTS: dict[str, int] = {
    "": 0x9AE16A3B2F90404F,
    "a": 0xB3454265B6DF75E3,
    "ferry": 0xABD7F89BDED797BC,
    "The new ferry left the bank this morning.": 0xE0651E08DF114A58,
    "渡口": 0x9B5118CA480A56CC,
    "新渡口今天清晨开航，第一班船载着三十六位乘客。": 0x48A73E4F9A54C58E,
    "新渡口今天清晨開航": 0x4234E3A3F1198BCB,
    "渡口 ferry 7": 0xE8E428DE36FF5C36,
    "🚢": 0x2CD0D4317475EF7D,
    "title 开航 渡口": 0x018DD6717BF2C047,
    "河湾镇的渡口" * 40: 0xE2800266386D9314,
}

MIXED: dict[int, int] = {
    0x0: 0x0000000000000000,
    0x1: 0xB456BCFC34C2CB2C,
    0x2: 0x3ABF2A20650683E7,
    0xFF: 0x1200A2A61D248B28,
    0x123456789ABCDEF0: 0x18B8C062F6F42398,
    0x8000000000000000: 0x8F780810AF31A493,
    0xFFFFFFFFFFFFFFFF: 0x64B5720B4B825F21,
}


def test_a_text_has_the_fingerprint_that_is_written_down() -> None:
    for text, value in FINGERPRINTS.items():
        assert fingerprint64(text) == value
        assert python_fingerprint(text.encode()) == value


def make_strings(count: int) -> Iterator[bytes]:
    """Random bytes: of every length up to 300, then of any up to 5000."""
    random = Random(64)
    return (random.randbytes(at if at <= 300 else random.randrange(5000)) for at in range(count))


@pytest.mark.skipif(compiled.kernels is None, reason="The compiled module was not built here.")
def test_compiled_and_in_python_the_fingerprint_is_the_same() -> None:
    assert compiled.kernels is not None
    for data in make_strings(1000):
        assert compiled.kernels.fingerprint64(data) == python_fingerprint(data), data.hex()


def test_without_pyfarmhash_the_package_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "farmhash", None)
    assert farmhash._choose() in (python_fingerprint, compiled.kernels and compiled.kernels.fingerprint64)
    monkeypatch.setattr(compiled, "kernels", None)
    assert farmhash._choose() is python_fingerprint


def test_it_is_the_fingerprint_of_farmhash() -> None:
    library = pytest.importorskip("farmhash", reason="pyfarmhash has no wheel here.")
    for data in make_strings(1000):
        assert python_fingerprint(data) == library.fingerprint64(data), data.hex()


def test_the_hash_has_a_name_and_takes_a_lone_surrogate_for_a_question_mark() -> None:
    assert fingerprint64("河\ud800湾") == fingerprint64("河?湾")
    assert HASH_NAME == "blake2b under a secret, farmhash.fingerprint64"


def test_a_number_is_mixed_into_the_one_that_is_written_down() -> None:
    for value, mixed in MIXED.items():
        assert mix64(np.array([value], np.uint64)).tolist() == [mixed]
    values = np.array([1, 2, 3], np.uint64)
    mix64(values)
    assert values.tolist() == [1, 2, 3]
