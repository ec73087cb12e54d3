"""Which Chinese pages are behind their English ones.

Each page of ``docs/zh`` records the hash of the English page that it translates, in its front matter::

    ---
    source_hash: 3f2a9c01b7de
    ---

    python docs/_ext/translations.py                        # list the pages that are missing, untranslated or behind
    python docs/_ext/translations.py --stamp guides/x.md    # after translating: record the hash
    python docs/_ext/translations.py --stubs                # make a page for each one that is missing
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

DOCS = Path(__file__).parents[1]
#: The hash of a page that exists only to have its place in the navigation.
UNTRANSLATED = "untranslated"

_FRONT_MATTER = re.compile(r"\A---\nsource_hash: (\S+)\n---\n")
_STUB = "本页尚未译成中文。请在侧栏切换到英文页面。"


def english_pages() -> list[str]:
    """The English pages, by their path below ``docs/en``."""
    folder = DOCS / "en"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))


def digest(page: str) -> str:
    """The hash of an English page."""
    return sha256(DOCS.joinpath("en", page).read_bytes()).hexdigest()[:12]


def recorded(page: str) -> str:
    """The hash that a Chinese page records; empty if there is no such page, or no hash in it."""
    path = DOCS / "zh" / page
    found = _FRONT_MATTER.match(path.read_text(encoding="utf-8")) if path.exists() else None
    return found[1] if found else ""


def status(page: str) -> str:
    """``missing``, ``untranslated``, ``behind`` or ``current``."""
    if not DOCS.joinpath("zh", page).exists():
        return "missing"
    hash = recorded(page)
    return UNTRANSLATED if hash == UNTRANSLATED else "current" if hash == digest(page) else "behind"


def stamp(page: str) -> None:
    """Record the present hash of the English page."""
    path = DOCS / "zh" / page
    text = _FRONT_MATTER.sub("", path.read_text(encoding="utf-8"))
    path.write_text(f"---\nsource_hash: {digest(page)}\n---\n{text}", encoding="utf-8")


def make_stub(page: str) -> None:
    """A page with the English title and nothing else."""
    title = DOCS.joinpath("en", page).read_text(encoding="utf-8").partition("\n")[0]
    path = DOCS / "zh" / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nsource_hash: {UNTRANSLATED}\n---\n{title}\n\n{_STUB}\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; 1 if a page is not current."""
    parser = argparse.ArgumentParser(description="Which Chinese pages are behind their English ones.")
    parser.add_argument("--stamp", nargs="+", metavar="PAGE", default=[], help="pages that were just translated")
    parser.add_argument("--stubs", action="store_true", help="make a page for each one that is missing")
    given = parser.parse_args(arguments)
    for page in given.stamp:
        stamp(page)
    pages = {page: status(page) for page in english_pages()}
    for page, found in pages.items():
        if found == "missing" and given.stubs:
            make_stub(page)
        elif found != "current":
            sys.stdout.write(f"{found:<12}  {page}\n")
    return int(set(pages.values()) != {"current"})


if __name__ == "__main__":
    raise SystemExit(main())
