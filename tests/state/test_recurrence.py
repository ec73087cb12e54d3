"""The table of recurring sentences: what it counts, what it forgets, and that it never grows."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.state.boilerplate import _BUCKETS, _WAYS, COMMON_HERE, Recurrence, Sentences

#: The bytes of a bucket, without the block's compression; the sites and the repeats in it.
BUCKET, SITES_AT, REPEATS_AT = 76, 32, 64
SITE, OTHER_SITE = 5, 6
Pages = list[tuple[list[int], int]]


def array(*sentences: int) -> Sentences:
    return np.array(sentences, np.uint32)


def of(bucket: int, number: int) -> int:
    """One of the many fingerprints that belong into a bucket."""
    return number * _BUCKETS + bucket


WAYS = [of(3, one) for one in range(_WAYS)]


def counts(table: Recurrence, *sentences: int) -> list[int]:
    repeats: list[int] = (table.pages(array(*sentences)) - table.sites(array(*sentences))).tolist()
    return repeats


def noted(pages: Pages) -> Recurrence:
    table = Recurrence()
    for sentences, site in pages:
        table.note(array(*sentences), site)
    return table


def full(repeats: list[int]) -> Recurrence:
    """A table whose bucket 3 holds sentences 0 to 7 with so many repeats."""
    return noted([([of(3, way) for way in range(_WAYS) if repeats[way] >= page], SITE) for page in range(256)])


def reloaded(table: Recurrence) -> Recurrence:
    copy = Recurrence()
    for block, packed in table.blocks().items():
        copy.load(block, packed)
    return copy


def merged(one: Recurrence, other: Recurrence, in_both: int = 0) -> Recurrence:
    table = reloaded(one)
    table.merge(other, in_both)
    return table


def plain(table: Recurrence, *, changed: bool = True) -> dict[int, bytes]:
    """What is written; of the compressed bytes each zlib has its own."""
    return {block: zlib.decompress(packed) for block, packed in table.blocks(changed=changed).items()}


# Counting


def test_a_sentence_has_a_repeat_for_each_page_after_the_first() -> None:
    for pages in [1, 2, 15, 16, 255, 256, 257, 600]:
        for sentence in [0, 1, _BUCKETS, 2**31, 2**32 - 1]:
            assert counts(noted([([sentence], SITE)] * pages), sentence) == [min(pages - 1, 255)], sentence
    table = noted([([8, 9], SITE), ([8], SITE), ([8], SITE)])
    assert counts(table, 9, 8, 7, 8) == [0, 2, 0, 2]


def test_of_new_sentences_that_find_no_way_the_count_goes_down_once_a_page() -> None:
    """The largest comes first. A page of nine needs all ways but takes one from none, as all were free."""
    table = noted([([of(3, one) for one in range(9)], SITE)])
    ways = [of(3, one) for one in (7, 6, 5, 4, 3, 2, 1, 0)]
    assert list(table.entries(3)) == ways
    table.note(array(*ways), SITE)
    table.note(array(*(of(3, one) for one in range(20, 40))), SITE)
    assert counts(table, *ways) == [0] * _WAYS
    table.note(array(of(3, 50), ways[2], ways[0]), SITE)
    assert list(table.entries(3).items())[-2:] == [(ways[0], (1 << SITE, 1)), (of(3, 50), (1 << SITE, 0))]
    assert counts(table, *ways) == [1, 0, 1, 0, 0, 0, 0, 0]
    assert ways[1] not in table.entries(3)
    table = full([255] * _WAYS)
    for page, repeats in ([of(3, 50)], 254), (WAYS, 255), (WAYS, 255):
        table.note(array(*page), SITE)
        assert counts(table, *WAYS) == [repeats] * _WAYS


def test_a_sentence_has_a_bit_for_each_site_however_often_it_stands_there() -> None:
    for sites, bits in [
        *(([], 0), ([SITE] * 300, 1), ([0, 2**64 - 1], 2), ([SITE, OTHER_SITE] * 20, 2)),
        *(([SITE, SITE + 32] * 20, 1), ([SITE, OTHER_SITE, 7, 8] * 10, 4), ([*range(100)], 32)),
    ]:
        table = noted([([7, 9], site) for site in sites])
        assert table.sites(array(9, of(7, 1), 7)).tolist() == [bits, 0, bits]
        assert table.sites(array()).tolist() == [], sites


def one_off(chance: np.random.Generator, number: int = 40) -> Sentences:
    return chance.integers(0, 2**32, number, dtype=np.uint32)


@pytest.mark.slow
@pytest.mark.parametrize(("every", "pages"), [(50, 2000), (200, 8000)])
def test_a_sentence_that_comes_back_among_a_great_many_that_do_not_is_common(every: int, pages: int) -> None:
    """80,000 that stand once do not fill the table; 320,000 fill it more than twice."""
    chance, table = np.random.default_rng(12), Recurrence()
    for number in range(pages):
        table.note(one_off(chance), SITE)
        if number % every == 0:
            table.note(array(77), SITE)
    assert counts(table, 77) == [pages // every - 1]
    assert pages // every >= COMMON_HERE


# What is written


def test_the_bytes_of_a_block_are_the_same_on_every_machine() -> None:
    table = noted([([0x12344003], 1)] + [([0x12344003, 0xFFFFC003], 31)] * 3)
    expected = bytearray(64 * BUCKET)
    at = 3 * BUCKET
    expected[at : at + 8] = bytes.fromhex("0340341203c0ffff")
    expected[at + SITES_AT : at + SITES_AT + 8] = bytes.fromhex("0200008000000080")
    expected[at + REPEATS_AT : at + REPEATS_AT + 2] = b"\2\2"
    assert plain(table) == {0: expected}


def test_only_blocks_that_were_changed_are_written_and_until_they_are_saved() -> None:
    table = Recurrence()
    table.note(array(of(0, 1), of(64, 1), of(_BUCKETS - 1, 1)), SITE)
    for _ in range(2):  # the write may have failed
        assert list(table.blocks(changed=True)) == list(table.blocks()) == [0, 1, 255]
    table.saved()
    table.pages(array(of(0, 1)))
    assert table.blocks(changed=True) == reloaded(table).blocks(changed=True) == {}
    table.note(array(of(130, 1)), SITE)
    assert list(table.blocks(changed=True)) == [2]


def test_an_empty_way_is_taken_for_no_sentence_also_after_it_was_written_and_read() -> None:
    for bucket in [0, 1, 63]:
        smallest = of(bucket, 0)
        for table in (Recurrence(), reloaded(noted([([of(one, 9) for one in range(64)], SITE)]))):
            assert table.pages(array(smallest)).tolist() == [0]
            for page in ([smallest], [of(bucket, 1)], [smallest, of(bucket, 1)]):
                table.note(array(*page), SITE)
            assert counts(table, smallest, of(bucket, 1), of(bucket, 2)) == [1, 1, 0]


def block_with(at: int, byte: int) -> bytes:
    """Block 0 with one sentence, and one byte as it should not be."""
    (content,) = plain(noted([([of(3, 1)], SITE)])).values()
    return zlib.compress(content[:at] + bytes([byte]) + content[at + 1 :])


def test_what_is_no_block_is_refused_and_nothing_of_it_is_taken() -> None:
    size = 64 * BUCKET
    for block, packed, told in [
        *((3, packed, "cannot be unpacked") for packed in (b"", b"garbage", zlib.compress(bytes(size))[:-1])),
        *((3, zlib.compress(bytes(wrong)), f"{wrong} bytes") for wrong in (size - 1, size + 1)),
        *((block, zlib.compress(bytes(size)), f"no block {block}") for block in (256, -1)),
        (0, block_with(3 * BUCKET, 2), "cannot stand there"),  # a sentence of another bucket
        (0, block_with(3 * BUCKET + SITES_AT + 8, 2), "cannot stand there"),  # behind an empty way
        (1, block_with(0, 0), "cannot stand there"),  # a block under the number of another
    ]:
        table = noted([([of(3, 1)], SITE)] * 5)
        before = bytes(table.memory)
        with pytest.raises(ValueError, match=told):
            table.load(block, packed)
        assert table.memory == before, block
        table.load(0, block_with(0, 0))  # as it should be
        assert counts(table, of(3, 1)) == [0], block


# Two tables as one


def test_a_table_that_goes_into_an_empty_one_is_the_same_there_and_an_empty_one_changes_nothing() -> None:
    chance = np.random.default_rng(16)
    table = noted([(one_off(chance).tolist() + list(range(number % 20)), number % 3) for number in range(300)])
    assert plain(merged(Recurrence(), table)) == plain(table) == plain(table, changed=False)
    assert plain(merged(table, Recurrence())) == {}


def test_equal_sentences_add_their_repeats_less_the_pages_that_were_noted_in_both() -> None:
    for ours, theirs, in_both, expected in [
        *((3, 4, 0, 7), (3, 4, 2, 5), (3, 4, 3, 4), (3, 4, 99, 4)),
        *((200, 200, 0, 255), (255, 255, 255, 255), (0, 0, 5, 0)),
    ]:
        one, other = noted([([7], SITE)] * (ours + 1)), noted([([7], OTHER_SITE)] * (theirs + 1))
        assert merged(one, other, in_both).entries(7) == {7: (1 << SITE | 1 << OTHER_SITE, expected)}


def test_of_more_than_eight_those_with_most_repeats_stay_less_those_of_the_ninth() -> None:
    one, other = full([9, 1, 8, 2, 7, 3, 6, 4]), noted([([of(3, 60)], SITE)] * 6 + [([of(3, 61), of(3, 4)], SITE)])
    left = ((7, 4), (6, 6), (5, 3), (4, 7), (3, 2), (2, 8), (0, 9), (60, 5))  # in the order of replacement
    found = merged(one, other).entries(3)
    assert [(sentence, repeats) for sentence, (_, repeats) in found.items()] == [(of(3, n), r - 1) for n, r in left]


MANY = [of(bucket, number) for bucket in (0, 3) for number in range(12)]
SOME_PAGES = st.lists(
    st.tuples(st.lists(st.sampled_from(MANY), max_size=12), st.sampled_from([0, 1, 31, 33, 2**64 - 1])), max_size=60
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(SOME_PAGES, SOME_PAGES, SOME_PAGES)
def test_after_a_merge_no_count_is_too_high(ours: Pages, theirs: Pages, both: Pages) -> None:
    table = merged(noted(ours + both), noted(both + theirs), len(both))
    for sentence in MANY:
        # Pages on whose site, or one that shares its bit, the sentence had stood before.
        sites = [site % 32 for sentences, site in ours + both + theirs if sentence in sentences]
        assert counts(table, sentence)[0] <= len(sites) - len(set(sites))
    assert reloaded(table).memory == merged(table, Recurrence()).memory
    assert reloaded(table).blocks() == table.blocks()
