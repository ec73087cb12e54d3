"""Robustness: what is counted, that it repeats, and the picture of it."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.lab.curves import check_drawable, draw_curves
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.edits import EDITS
from scrapy_neardup.lab.robustness import AMOUNTS, CONTROL, Point, format_method, measure_robustness, sample_documents
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Comparison, Fingerprint, Page
from tests.lab.corpus import article, document
from tests.lab.methods import First


def documents(count: int = 8) -> list[Document]:
    """Articles of which each has sentences of its own."""
    return [document(f"d{number}", article(number, chinese=True), f"第{number}封信") for number in range(count)]


#: In one of the documents only.
THIRD = documents()[2].page.text[:20]


class Fake(First):
    """Gives fixed answers, under keys that two versions share or not."""

    def __init__(self, name: str, *, says: bool, filed: bool = True, fails_on: str = "\0") -> None:
        super().__init__()
        self.name = name  # type: ignore[misc]  # a fake has one of its own
        self.says, self.filed, self.fails_on = says, filed, fails_on
        self.seen: list[Page] = []

    def fingerprint(self, page: Page) -> Fingerprint:
        if self.fails_on in page.text:
            raise NearDupError("no lexicon for this page")
        self.seen.append(page)
        return Fingerprint((1,) if self.filed else (len(self.seen) + 1,), page.text.encode())

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        return Comparison(1.0, 1.0, self.says, self.says, identical=False)


def test_there_is_a_point_for_each_method_edit_and_amount_and_the_control() -> None:
    points = measure_robustness([Fake("yes", says=True), Fake("no", says=False)], documents())
    steps = [(name, amount) for name, edit in EDITS.items() for amount in (AMOUNTS if edit.has_amount else (0.0,))]
    steps.append((CONTROL, 0.0))
    assert [(point.method, point.edit, point.amount) for point in points] == [
        (method, *step) for method in ("yes", "no") for step in steps
    ]
    assert {point.pages for point in points if point.edit != CONTROL} == {8}
    assert {point.pages for point in points if point.edit == CONTROL} == {8 * 7}


def test_a_page_is_recognised_if_it_is_found_and_judged_a_copy() -> None:
    for method, expected in (
        (Fake("always", says=True), (1.0, 1.0)),
        (Fake("never", says=False), (0.0, 0.0)),
        (Fake("lost", says=True, filed=False), (0.0, 1.0)),
    ):
        points = measure_robustness([method], documents(4))
        assert {(point.recognised, point.compared) for point in points} == {expected}, method.name


def test_cascade_bears_small_edits_and_tells_other_pages_apart() -> None:
    points = {
        (point.edit, point.amount): point
        for point in measure_robustness([make_method("cascade", {})], documents(), amounts=(0.01, 0.05, 0.6))
    }
    for step in (("add", 0.01), ("delete", 0.01), ("add", 0.05), ("retitle", 0.0), ("wrap", 0.0), ("width", 0.0)):
        assert points[step].recognised == 1.0, step
    assert points["delete", 0.6].recognised == 0.0
    assert points["replace", 0.6].recognised == 0.0
    assert points[CONTROL, 0.0].recognised == 0.0


def test_every_method_sees_the_same_edits_which_depend_on_the_seed() -> None:
    alone, first, second, other = (Fake(name, says=True) for name in ("alone", "first", "second", "other"))
    measure_robustness([alone], documents(3))
    measure_robustness([first, second], documents(3))
    measure_robustness([other], documents(3), seed=2)
    assert alone.seen == first.seen == second.seen != other.seen
    for one in documents(3):
        assert alone.seen.count(one.page) == 1


def test_a_page_is_edited_with_parts_of_others_only() -> None:
    texts = ["甲甲甲。甲。甲甲。" * 9, "乙乙乙。乙。乙乙。" * 9]
    method = Fake("", says=True)
    measure_robustness(
        [method], [document(text[0], text, text[0]) for text in texts], edits=["add", "retitle", "replace"]
    )
    edits = [page for page in method.seen if page.text not in texts]
    assert len(edits) == 2 * 12
    assert all(set(page.text) - {"\n"} == {"甲", "乙", "。"} for page in edits)


def test_a_page_without_a_change_does_not_count() -> None:
    english = [document(str(n), f"Boat number {n} left the harbour at {n} with {n + 3} people.") for n in range(3)]
    points = measure_robustness([Fake("yes", says=True)], english, edits=["script", "retitle", "reorder", "width"])
    assert [(point.edit, point.pages, point.recognised) for point in points[:4]] == [
        ("script", 0, 0.0),
        ("retitle", 0, 0.0),
        ("reorder", 0, 0.0),
        ("width", 3, 1.0),
    ]


def test_fewer_than_two_different_texts_are_refused() -> None:
    one = documents(1)
    for given in ([], one, [*one, document("empty", title="标题")], one * 3):
        with pytest.raises(NearDupError, match=r"only [01] differ.*two or more"):
            measure_robustness([Fake("yes", says=True)], given)


def test_a_failing_method_is_reported_once_and_left_out() -> None:
    messages: list[str] = []
    with pytest.raises(NearDupError, match=r"^weak: no lexicon for this page$"):
        measure_robustness([Fake("weak", says=True, fails_on=THIRD)], documents())
    methods = [Fake("weak", says=True, fails_on=THIRD), Fake("yes", says=True)]
    points = measure_robustness(
        methods, documents(), edits=["wrap"], on_failure=lambda error: messages.append(str(error))
    )
    assert messages == ["weak: no lexicon for this page"]
    assert [(point.method, point.edit, point.pages) for point in points] == [("yes", "wrap", 8), ("yes", CONTROL, 56)]


def test_a_label_names_changed_parameters() -> None:
    assert format_method(make_method("cascade", {})) == "cascade"
    assert format_method(make_method("cascade", {"base": 0.7, "short": 120})) == "cascade:base=0.7"
    methods = [make_method("cascade", {"base": base}) for base in (0.7, 0.8)]
    points = measure_robustness(methods, documents(2), edits=["width"])
    assert {point.method for point in points} == {"cascade:base=0.7", "cascade:base=0.8"}


def test_documents_are_drawn_with_equal_chances() -> None:
    whole = documents(6)
    assert sample_documents(iter(whole), 6, 1) == sample_documents(iter(whole), 9, 2) == whole
    assert sample_documents(whole, 2, 1) == sample_documents(whole, 2, 1)
    counts = dict.fromkeys((one.id for one in whole), 0)
    for seed in range(600):
        few = sample_documents(iter(whole), 2, seed)
        assert len({one.id for one in few}) == 2
        for one in few:
            counts[one.id] += 1
    assert all(150 < count < 250 for count in counts.values()), counts


def some_points(names: tuple[str, ...] = ("cascade", "simhash:distance=6", "other")) -> list[Point]:
    return [
        Point(name, edit, amount, 1.0 / (number + 1), 1.0, 10)
        for number, name in enumerate(names)
        for edit, amount in [*(("add", one) for one in AMOUNTS), ("delete", 0.1), ("wrap", 0.0), (CONTROL, 0.0)]
    ]


SVG = "{http://www.w3.org/2000/svg}"


def draw(folder: Path, points: list[Point]) -> ET.Element:
    draw_curves(points, folder / "curves.svg")
    return ET.parse(folder / "curves.svg").getroot()


def test_the_picture_has_a_line_for_each_method_and_edit_and_they_differ_without_colour(tmp_path: Path) -> None:
    names = tuple("abcdefgh")
    lines = {group.get("id") or "": group for group in draw(tmp_path, some_points(names)).iter(f"{SVG}g")}
    assert {id for id in lines if id[:4] in ("add ", "dele")} == {
        f"{edit} {n}" for edit in ("add", "delete") for n in names
    }
    looks = set()
    for name in names:
        line = lines[f"add {name}"]
        assert len(list(line.iter(f"{SVG}use"))) == len(AMOUNTS)
        style = next(path.get("style", "") for path in line.iter(f"{SVG}path"))
        marker = next(path.get("d") for path in line.find(f"{SVG}defs").iter(f"{SVG}path"))  # type: ignore[union-attr]
        looks.add((marker, *(part for part in style.split(";") if "dasharray" in part)))
    assert len(looks) == len(names)


def test_a_picture_of_little_is_drawn_and_the_settings_of_matplotlib_stay(tmp_path: Path) -> None:
    import matplotlib as mpl

    before = mpl.rcParams.copy()
    for points in (
        [Point("one", "add", 0.1, 0.5, 0.5, 4)],
        [Point("one", CONTROL, 0.0, 0.0, 0.0, 4)],
        [Point("one", "script", 0.0, 0.0, 0.0, 0), Point("two", "add", 0.1, 0.0, 0.0, 0)],
    ):
        assert draw(tmp_path, points).tag == f"{SVG}svg"
    assert mpl.rcParams.copy() == before


def test_a_file_that_cannot_be_drawn_is_refused_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, said in (("curves.jpg", r"\.svg or \.png or \.pdf"), ("none/curves.svg", "does not exist")):
        with pytest.raises(SettingsError, match=said):
            check_drawable(tmp_path / name)
    (tmp_path / "curves.svg").mkdir()
    with pytest.raises(NearDupError, match=r"curves\.svg cannot be written"):
        draw_curves(some_points(), tmp_path / "curves.svg")
    monkeypatch.setattr("scrapy_neardup.lab.curves.find_spec", lambda name: None)
    with pytest.raises(NearDupError, match=r"scrapy-neardup\[plot\]"):
        check_drawable(tmp_path / "other.svg")
