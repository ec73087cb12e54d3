"""The Chinese pages: which are behind the English ones, and what must be the same in both."""

from __future__ import annotations

import json
import re
from pathlib import Path

import neardup_reference as reference
import pytest
import translations

from tests.docs.pages import DOCS, blocks

PAGES = translations.english_pages()
TRANSLATED = [page for page in PAGES if translations.status(page) in ("current", "behind")]


def test_pages_of_both_languages_match_and_none_is_behind() -> None:
    chinese = {path.relative_to(DOCS / "zh").as_posix() for path in DOCS.joinpath("zh").rglob("*.md")}
    assert chinese == set(PAGES)
    behind = [page for page in PAGES if translations.status(page) == "behind"]
    assert behind == [], "translate the changes, then: python docs/_ext/translations.py --stamp PAGE"
    assert [page for page in PAGES if translations.status(page) == translations.UNTRANSLATED] == []


def test_the_reference_is_translated() -> None:
    known = json.loads(DOCS.joinpath("zh", "reference.json").read_text(encoding="utf-8"))
    asked = reference.all_texts()
    assert set(known) <= set(asked), "these texts are gone; take them out of docs/zh/reference.json"
    code = re.compile(r"`[^`]+`")
    assert [text for text in known if set(code.findall(text)) != set(code.findall(known[text]))] == []
    assert [text for text in asked if text not in known] == [], "translate these texts in docs/zh/reference.json"


def test_a_translated_page_has_the_same_code() -> None:
    for page in TRANSLATED:
        english, chinese = (
            [
                (block.language, block.without_comments)
                for block in blocks(f"docs/{language}/{page}")
                if block.language != "text"
            ]
            for language in ("en", "zh")
        )
        assert english == chinese, page


def test_a_page_is_behind_once_its_source_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translations, "DOCS", tmp_path)
    english = tmp_path / "en" / "start.md"
    english.parent.mkdir()
    english.write_text("# Start\n", encoding="utf-8")
    assert translations.status("start.md") == "missing"
    assert translations.main(["--stubs"]) == 1
    assert translations.status("start.md") == "untranslated"
    assert translations.main(["--stamp", "start.md"]) == 0
    assert translations.status("start.md") == "current"
    english.write_text("# Begin\n", encoding="utf-8")
    assert translations.status("start.md") == "behind"
