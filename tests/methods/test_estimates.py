"""Methods that estimate, on many random pairs: their errors, and how often two pages share a key."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.literature.vectors import SimHashParameters, cosine, cut_keys, vector
from scrapy_neardup.model import Fingerprint

NONE: frozenset[int] = frozenset()


def test_simhashes_within_the_distance_share_a_table() -> None:
    for distance, blocks, tables, width in [
        (0, 0, 1, 64),
        (1, 0, 2, 32),
        (3, 0, 4, 16),
        (3, 6, 20, 31),
        (6, 0, 28, 16),
        (8, 0, 165, 16),
    ]:
        masks, chance = SimHashParameters(distance=distance, blocks=blocks).tables, random.Random(distance)
        assert len(set(masks)) == len(masks) == tables
        assert min(mask.bit_count() for mask in masks) == width
        for _ in range(300):
            flips = sum(1 << place for place in chance.sample(range(64), distance))
            assert any(not mask & flips for mask in masks), distance


@pytest.mark.parametrize(
    ("name", "parameters", "bits", "most"),
    [
        ("simhash", {"distance": 0}, 64, 0),
        ("simhash", {"distance": 3}, 64, 3),
        ("random_projection", {"similarity": 240 / 256}, 256, 16),
        ("random_projection", {"similarity": 1.0, "bits": 384}, 384, 0),
    ],
)
def test_the_number_of_different_bits_decides(name: str, parameters: dict[str, float], bits: int, most: int) -> None:
    method, chance, size = make_method(name, parameters), random.Random(4), bits // 8
    value = chance.getrandbits(bits)
    for different in (0, 1, most, most + 1, bits):
        flipped = value ^ sum(1 << bit for bit in chance.sample(range(bits), different))
        one, other = (bytes([n]) + bytes(12) + v.to_bytes(size, "big") for n, v in enumerate((value, flipped)))
        found = method.compare(Fingerprint((), one), other, NONE)
        assert (found.similarity, found.duplicate) == (1 - different / bits, different <= most)


def test_a_key_changes_with_the_bits_of_its_run_alone() -> None:
    for tables, width in [(16, 16), (3, 60), (8, 64)]:
        bits, value = 256, random.Random(7).getrandbits(256)
        keys = cut_keys(value, bits, tables, width, OPEN)
        assert len(set(cut_keys(0, bits, tables, width, OPEN))) == tables  # equal bits in another run are another key
        for bit in range(bits):
            changed = cut_keys(value ^ 1 << bit, bits, tables, width, OPEN)
            expected = [(bit - table * bits // tables) % bits < width for table in range(tables)]
            assert [one != other for one, other in zip(keys, changed, strict=True)] == expected, tables


@pytest.mark.slow
@pytest.mark.parametrize("similarity", [0.3, 0.8, 0.95])
def test_the_prefix_filter_finds_every_pair_that_brute_force_finds(similarity: float) -> None:
    """Of texts over one vocabulary, in families of five: of each word how often it stands in the text."""
    chance, size, texts = np.random.default_rng(1), 2000, list[npt.NDArray[np.float64]]()
    hashes, idf = chance.integers(0, 2**64, size, dtype=np.uint64), chance.choice([0.5, 1.0, 3.0, 6.0, 11.95], size)
    for family in range(60):
        drawn = [chance.geometric(0.5, size) * (chance.permutation(size) < 5 + 3 * family) for _ in range(2)]
        texts += [np.where(chance.random(size) < share, *drawn) * 1.0 for share in (0.0, 0.02, 0.1, 0.3, 0.6)]
    signatures = [vector(hashes[text > 0], idf[text > 0], text[text > 0], similarity) for text in texts]
    exact = np.array([text * idf / np.linalg.norm(text * idf) for text in texts])
    exact, above = exact @ exact.T, 0
    for one, other in combinations(range(len(texts)), 2):
        if exact[one, other] >= similarity:
            above += 1
            assert not set(signatures[one][0]).isdisjoint(signatures[other][0])
            assert cosine(signatures[one][1], signatures[other][1]) == pytest.approx(exact[one, other], abs=2e-6)
    assert above > 50
    assert max(len(keys) for keys, _ in signatures) < 255
    assert sum(len(keys) for keys, _ in signatures) < np.count_nonzero(texts)
