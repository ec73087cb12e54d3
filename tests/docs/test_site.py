"""The site as it is built: without a warning, in two languages, with a search that finds Chinese words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS
from tests.report.browser import browser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(make_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    return make_once("docs", build)


def build(target: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    running = {
        language: subprocess.Popen(
            [*command, "-d", str(target / f"trees-{language}"), str(DOCS / language), str(target / language)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for language in ("en", "zh")
    }
    said = {language: process.communicate()[1] for language, process in running.items()}
    assert [process.returncode for process in running.values()] == [0, 0], said


def test_settings_link_to_their_reference_and_unknown_ones_do_not_build(built: Path, tmp_path: Path) -> None:
    page = built.joinpath("en", "reference", "verdicts.html").read_text(encoding="utf-8")
    assert 'href="settings.html#setting-neardup-policy"' in page
    for name in ("conf.py", "index.md"):
        (tmp_path / name).write_bytes(DOCS.joinpath("en", name).read_bytes())
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS)!r})\nfrom conf_shared import *\nhtml_theme = 'basic'\n"
        "html_static_path = html_css_files = templates_path = []\nhtml_sidebars = html_theme_options = {}\n"
    )
    (tmp_path / "index.md").write_text("# Title\n\nSet `NEARDUP_KEPT`.\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(tmp_path), str(tmp_path / "html")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "setting NEARDUP_KEPT" in done.stderr


def test_each_page_links_to_itself_in_the_other_language(built: Path) -> None:
    for language, other in (("en", "zh"), ("zh", "en")):
        for path in built.joinpath(language).rglob("*.html"):
            name = path.relative_to(built / language)
            if name.name in ("genindex.html", "search.html"):
                continue
            up = "../" * len(name.parts)
            assert f'hreflang="{other}" href="{up}{other}/{name.as_posix()}"' in path.read_text(encoding="utf-8"), name
            assert built.joinpath(other, name).exists()


def test_a_search_finds_the_pages_of_its_words_also_in_chinese(built: Path) -> None:
    address = built.as_uri()
    with browser() as chromium:
        page: Any = chromium.new_page()  # type: ignore[attr-defined]  # the library is imported late

        def search(language: str, words: str) -> set[str]:
            page.goto(f"{address}/{language}/search.html?q={words}")
            page.wait_for_function("document.querySelector('#search-results p.search-summary')?.textContent")
            page.wait_for_timeout(300)
            links: list[str] = page.eval_on_selector_all("ul.search li > a", "all => all.map(one => one.href)")
            return {link.removeprefix(f"{address}/{language}/").partition("?")[0].partition("#")[0] for link in links}

        assert "reference/settings.html" in search("en", "NEARDUP_SCOPE")
        assert "reference/exit-codes.html" in search("zh", "退出码")
        assert search("zh", "退出码骆驼") == set()
        for words in ("指纹", "重复", "NEARDUP_SCOPE", "副本"):
            assert search("zh", words), words
