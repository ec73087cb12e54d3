"""The page of pairs for labels: its text, and its keys in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lxml.html
import pytest

from scrapy_neardup.report.tuning import SHOWN, Question, make_question, render_questions
from tests.report.browser import shown

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=alert(1)>\u202e\x1b[2J"


def pair(number: int, *, hostile: bool = False) -> Question:
    evil = HOSTILE if hostile else ""
    one = (
        f"a{number}{evil}",
        f"渡口 {number}{evil}",
        f"https://a.example/{number}",
        f"渡口九点开航。\n{evil} The end.",
    )
    other = (f"b{number}", "javascript", f"javascript:alert({number}){evil}", "渡口八点开航。\nThe end.")
    row = {"a": one[0], "b": other[0], "jaccard": 0.5, "containment": 0.6, "stratum": f"near {evil}", "stratum_size": 4}
    return make_question(one, other, row)


def written(folder: Path, pairs: list[Question]) -> Path:
    file = folder / "pairs.html"
    file.write_text(
        render_questions(pairs, "scrapy neardup tune 'my feed.jsonl' --labels labels.jsonl"), encoding="utf-8"
    )
    return file


def test_differences_are_marked_and_hostile_strings_are_text() -> None:
    root = lxml.html.document_fromstring(render_questions([pair(1, hostile=True)], "tune <b>"))
    assert root.xpath("string(//section[1]//div[@class='text']/mark[1])") == "九"
    assert "八" in [one.text_content() for one in root.xpath("//section[2]//div[@class='text']/mark")]
    assert len(root.xpath("//script")) == 2
    assert root.xpath("//img | //b | //*[@onerror]") == []
    assert [one.get("href") for one in root.xpath("//a")] == ["https://a.example/1"]
    visible = root.text_content()
    assert "<img src=x" in visible
    assert "\u202e" not in visible.replace(json.dumps(HOSTILE), "")
    rows = json.loads(root.get_element_by_id("data").text or "")["rows"]
    assert rows == [dict(pair(1, hostile=True).row)]  # as they came, or the labels would name no document


def test_a_long_text_is_cut_and_says_so() -> None:
    row = {"a": "a", "b": "b"}
    long = make_question(("a", "", "", "渡" * (3 * SHOWN)), ("b", "", "", "短"), row)
    assert long.sides[0].is_cut
    assert not long.sides[1].is_cut
    assert sum(len(part.text) for part in long.sides[0].parts) == SHOWN
    assert f"has {3 * SHOWN:,} characters" in render_questions([long], "", language="en")
    assert f"共 {3 * SHOWN:,} 个字符" in render_questions([long], "")


def test_the_page_is_in_the_language_of_most_pages() -> None:
    root = lxml.html.document_fromstring(render_questions([pair(1)], ""))
    assert root.get("lang") == "en"  # one of two titles is Chinese: not most of them
    chinese = make_question(
        ("a", "渡口开航", "", "渡口九点开航。"), ("b", "渡口恢复", "", "渡口八点开航。"), {"a": "a", "b": "b"}
    )
    root = lxml.html.document_fromstring(render_questions([chinese], ""))
    assert root.get("lang") == "zh"
    assert root.xpath("string(//button[@data-answer='copy'])").startswith("是副本")
    assert lxml.html.document_fromstring(render_questions([chinese], "", language="en")).get("lang") == "en"


def where(page: Any) -> str:
    return str(page.inner_text("#where"))


def saved(page: Any) -> list[dict[str, Any]]:
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "labels.jsonl"
    return [json.loads(line) for line in Path(download.value.path()).read_text(encoding="utf-8").splitlines()]


def test_keys_and_buttons_answer_and_the_labels_are_saved(chromium: Any, tmp_path: Path) -> None:
    pairs = [pair(number, hostile=True) for number in range(4)]
    file = written(tmp_path, pairs)
    with shown(chromium, file) as (page, seen):
        assert page.title() == "Are these copies? 4 pairs"
        assert where(page) == "Pair 1 of 4, 0 answered."
        assert page.is_disabled("#save")
        page.keyboard.press("y")
        page.keyboard.press("n")
        page.keyboard.press("u")
        assert where(page) == "Pair 2 of 4, 2 answered."
        assert page.get_attribute("[data-answer=different]", "aria-pressed") == "true"
        page.keyboard.press("y")  # thought better of it
        page.click("[data-answer=skip]")
        assert page.eval_on_selector_all("article:not([hidden])", "all => all.length") == 1
        page.keyboard.press("Control+n")  # the browser's own
        assert where(page) == "Pair 4 of 4, 3 answered."
        rows = saved(page)
        assert [one.pop("label") for one in rows] == ["copy", "copy", "skip"]
        assert rows == [dict(one.row) for one in pairs[:3]]
        page.click("[data-answer=different]")
        assert "That was the last one" in page.inner_text("#end")
        assert "'my feed.jsonl' --labels" in page.inner_text("#end")
        assert len(saved(page)) == 4
        page.reload()
        assert where(page) == "4 of 4 answered."  # the browser remembers
        assert seen.said == []
        assert {one for one in seen.asked if not one.startswith("blob:")} == {file.as_uri()}


def test_answers_belong_to_a_page_and_work_without_storage(chromium: Any, tmp_path: Path) -> None:
    file = written(tmp_path, [pair(number) for number in range(2)])
    context = chromium.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('barred'); }})")
    page = context.new_page()
    page.goto(file.as_uri())
    page.keyboard.press("y")
    assert where(page) == "Pair 2 of 2, 1 answered."
    assert "does not remember" in page.inner_text("#kept")
    assert [one["label"] for one in saved(page)] == ["copy"]
    context.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_sticks_out_and_marks_can_be_seen(chromium: Any, tmp_path: Path, width: int, dark: bool) -> None:
    with shown(chromium, written(tmp_path, [pair(1)]), width=width, dark=dark) as (page, seen):
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate("getComputedStyle(document.querySelector('.text mark')).backgroundColor") in (
            "rgb(90, 74, 18)" if dark else "rgb(255, 226, 160)",
        )
        foot = page.eval_on_selector("#answers", "one => one.getBoundingClientRect().bottom")
        assert foot == 900
        assert seen.said == []
