"""Pages name existing things, link to existing places, and stay short."""

from __future__ import annotations

import re
from typing import get_args

import neardup_reference as reference

from scrapy_neardup.errors import REASONS, Reason
from tests.docs.pages import DOCS, READMES, ROOT, anchors, blocks, links, pages, source

#: Other pages of the repository, which link to the site.
OTHERS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md", "example_project/README.md"]
#: What a reader has time for: lines of a README, English words without the generated reference.
README_LINES, WORDS = 150, 24_500


def test_settings_stats_and_commands_exist() -> None:
    for page in [*pages(), *OTHERS]:
        wrong = [name for line in source(page).splitlines() if (name := reference.unknown_name(line))]
        assert wrong == [], page


def test_a_name_that_does_not_exist_is_found() -> None:
    assert reference.unknown_name("NEARDUP_KEEP") == ""
    assert reference.unknown_name("set NEARDUP_KEPT") == "setting NEARDUP_KEPT"
    assert reference.unknown_name("neardup/rolled_back, neardup/unjudged/quotes, neardup/kind/near") == ""
    assert reference.unknown_name("`neardup/rolled`") == "stat neardup/rolled"
    assert reference.unknown_name("scrapy neardup keeps") == "command keeps"


def test_every_link_leads_somewhere() -> None:
    for page in [*pages(), *OTHERS]:
        assert [link for link in links(page) if not leads_somewhere(page, link)] == []


def leads_somewhere(page: str, link: str) -> bool:
    """Whether there is such a file, and in it such a heading."""
    path, _, heading = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    if not target.exists() or not heading:
        return target.exists()
    return heading in anchors(target.resolve().relative_to(ROOT).as_posix())


def test_readmes_and_pages_are_short_and_have_the_same_code() -> None:
    for readme in READMES:
        assert len(source(readme).splitlines()) <= README_LINES
    english = [page for page in pages() if page.startswith("docs/en/") or page == "README.md"]
    words = {page: len(source(page).split()) for page in english}
    assert sum(words.values()) <= WORDS, words
    one, other = (
        [(block.language, block.without_comments) for block in blocks(name) if block.language != "text"]
        for name in READMES
    )
    assert one == other


def test_everything_in_the_reference_has_a_description() -> None:
    """A field, a constant or a parameter without its comment raises KeyError or ValueError here."""
    words = reference.Catalogue({})
    made = {name: section(words) for name, section in reference.SECTIONS.items()}
    assert all(made.values())
    assert "" not in words.asked
    assert set(REASONS) == set(get_args(Reason))
    used = {
        name
        for page in DOCS.joinpath("en", "reference").glob("*.md")
        for name in re.findall(r"<!-- generated: ([\w-]+)", page.read_text("utf-8"))
    }
    assert used == set(reference.SECTIONS)
