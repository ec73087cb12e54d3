"""Union-find against a plain search for connected pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.lab.evaluate import UnionFind

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40)


def connected(members: list[int], pairs: list[tuple[int, int]]) -> list[list[int]]:
    """The groups, by walking from each member to all that it is joined to."""
    found, seen = [], set()
    for member in members:
        if member in seen:
            continue
        group, open_ends = {member}, [member]
        while open_ends:
            end = open_ends.pop()
            near = {other for pair in pairs if end in pair for other in pair} - group
            group |= near
            open_ends += near
        seen |= group
        found.append([one for one in members if one in group])
    return found


@given(PAIRS)
def test_groups_are_what_is_connected(pairs: list[tuple[int, int]]) -> None:
    groups: UnionFind[int] = UnionFind(range(31))
    for one, other in pairs:
        groups.join(one, other)
    assert groups.groups() == connected(list(range(31)), pairs)


@given(PAIRS)
def test_the_first_member_names_the_group_whatever_the_order_of_joining(pairs: list[tuple[int, int]]) -> None:
    groups: UnionFind[int] = UnionFind(range(31))
    for one, other in reversed(pairs):
        groups.join(other, one)
    for group in groups.groups():
        assert {groups.name(member) for member in group} == {group[0]}


def test_a_chain_is_one_group_however_long() -> None:
    groups: UnionFind[int] = UnionFind()
    for number in range(5000):
        groups.join(number, number + 1)
    assert len(groups.groups()) == 1
    assert groups.name(5000) == 0


def test_a_stranger_has_no_group() -> None:
    with pytest.raises(KeyError):
        UnionFind(["a"]).name("b")
