"""Grouping by union-find: the copy of a copy, groups that drift, and the limits that a crawl has too."""

from __future__ import annotations

from collections.abc import Set
from typing import ClassVar

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.evaluate import Joined, evaluate
from scrapy_neardup.methods.base import Method, Parameters
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Page

FILLER = "这一段话没有别的意思只是为了让每一页都有足够多的字可以被判断不至于因为太短而被放过去所以写得长一些"


class Steps(Method):
    """Pages are numbers: duplicates if they are one apart, under one key all."""

    name = "steps"
    version = 1
    parameters_type = Parameters
    common: ClassVar[int] = 6

    def fingerprint(self, page: Page) -> Fingerprint:
        return Fingerprint((1,), page.title.encode())

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        near = abs(int(new.sketch) - int(old)) <= 1
        return Comparison(1.0 if near else 0.0, 0.0, near, near, identical=False)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        return ()


class _Parameters(Parameters):
    method: ClassVar[str] = "steps"


def page(step: int) -> Page:
    return Page(f"page {step}", str(step), text=FILLER)


def steps() -> Steps:
    return Steps(_Parameters())


def test_a_chain_is_one_group_though_its_ends_have_nothing_in_common() -> None:
    joined = Joined(steps(), min_letters=40)
    verdicts = [joined.judge(page(step)) for step in (0, 1, 2, 3)]
    assert [verdict.kind for verdict in verdicts] == [Kind.UNIQUE, *[Kind.DUPLICATE] * 3]
    assert [verdict.match.url for verdict in verdicts if verdict.match] == ["page 0"] * 3
    assert joined.groups.groups() == [["page 0", "page 1", "page 2", "page 3"]]


def test_a_page_between_two_groups_joins_them() -> None:
    joined = Joined(steps(), min_letters=40)
    kinds = [joined.judge(page(step)).kind for step in (0, 2, 9, 1)]
    assert kinds == [Kind.UNIQUE, Kind.UNIQUE, Kind.UNIQUE, Kind.DUPLICATE]
    assert joined.groups.groups() == [["page 0", "page 2", "page 1"], ["page 9"]]


def test_a_key_that_too_many_share_finds_nothing_more() -> None:
    joined = Joined(steps(), min_letters=40)
    assert all(joined.judge(page(10 * step)).kind is Kind.UNIQUE for step in range(Steps.common))
    assert joined.judge(page(1)).kind is Kind.UNIQUE


def test_a_page_with_too_little_text_is_not_judged_and_in_no_group() -> None:
    joined = Joined(steps(), min_letters=40)
    assert joined.judge(Page("short", "1", text="太短")).kind is Kind.UNJUDGED
    assert joined.groups.groups() == []


def test_the_state_grows_with_the_pages() -> None:
    joined = Joined(steps(), min_letters=40)
    sizes = [joined.size()]
    for step in range(3):
        joined.judge(page(step))
        sizes.append(joined.size())
    assert sizes == sorted(set(sizes))


def test_an_evaluation_groups_as_it_is_told() -> None:
    documents = [Document(str(step), str(step), FILLER) for step in (0, 1, 2)]
    labels = {"0": "neg", "1": "pos", "2": "pos"}
    single = evaluate(steps(), documents, labels)
    joined = evaluate(steps(), documents, labels, grouping="union-find")
    assert (single.missed, joined.missed) == (1, 0)


@pytest.mark.parametrize(
    ("grouping", "store", "said"),
    [
        ("by colour", "memory:", "'by colour'.*single-pass or union-find"),
        ("union-find", "sqlite:", "works only with the store memory:"),
    ],
)
def test_what_cannot_be_is_refused(grouping: str, store: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        evaluate(steps(), [], {}, grouping=grouping, store_url=store)
