"""The Markdown pages of the project, their code blocks, and the commands in these."""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import neardup_site

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
READMES = ("README.md", "README.zh-CN.md")

_FENCE = re.compile(r"^( *)(```+|:::+)([^\n]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!-- (.+?) -->\s*\Z")
_COMMENT = re.compile(r"(^|\s+)#[^\n]*")
#: What ends a command of a shell, and what sends its output elsewhere.
_ENDS, _REDIRECTIONS = {"&&", "||", "|", ";", "(", ")", "&"}, {">", ">>", "<"}


def pages() -> list[str]:
    """Both READMEs and all pages of the site, by their path in the repository."""
    found = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.glob("[ez][nh]/**/*.md"))
    return [*READMES, *found]


def source(page: str) -> str:
    return ROOT.joinpath(page).read_text(encoding="utf-8")


def text(page: str) -> str:
    language = "zh" if page.startswith("docs/zh/") else "en"
    return neardup_site.expanded(source(page), language) if page.startswith("docs/") else source(page)


@dataclass(frozen=True)
class Block:
    """A code block: where it stands, what it holds, and the comment of HTML before it."""

    place: str
    language: str
    code: str
    marker: str

    @property
    def is_fragment(self) -> bool:
        """Whether it is a part of a spider's callback."""
        return self.code.startswith("# in a spider")

    @property
    def runnable(self) -> str:
        """The code as it can be compiled: a fragment as the body of a function that nobody calls."""
        return (
            f"async def parse(self, response):\n{textwrap.indent(self.code, '    ')}" if self.is_fragment else self.code
        )

    @property
    def is_settings(self) -> bool:
        body = ast.parse(self.runnable).body
        return bool(body) and all(
            isinstance(one, ast.Assign)
            and all(isinstance(name, ast.Name) and name.id.isupper() for name in one.targets)
            for one in body
        )

    @property
    def without_comments(self) -> str:
        """The code as it must be in both languages."""
        return "\n".join(line for line in _COMMENT.sub("", self.code).splitlines() if line.strip())

    def commands(self) -> Iterator[list[str]]:
        """The words of each command of a block for a shell."""
        for line in self.code.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(_COMMENT.sub("", line), posix=True, punctuation_chars=True)
            lexer.commenters = ""
            lexer.whitespace_split = True
            words: list[str] = []
            skipped = False
            for word in lexer:
                if word in _ENDS:
                    yield from [words] if words else []
                    words = []
                elif word in _REDIRECTIONS or skipped:
                    skipped = not skipped
                else:
                    words.append(word)
            yield from [words] if words else []


def blocks(page: str) -> list[Block]:
    """The code blocks of a page in their order; directives of MyST are none."""
    content = text(page)
    found = []
    for fence in _FENCE.finditer(content):
        language = fence[3].strip()
        if fence[2].startswith(":") or language.startswith("{"):
            continue
        marker = _MARKER.search(content[: fence.start()])
        line = content.count("\n", 0, fence.start()) + 1
        found.append(Block(f"{page}:{line}", language, textwrap.dedent(fence[4]), marker[1] if marker else ""))
    return found


def anchors(page: str) -> set[str]:
    """The anchors of a page: its headings, as on GitHub."""
    content = _FENCE.sub("", text(page))
    headings = re.findall(r"^#+ (.+)$", content, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one).strip().lower().replace(" ", "-") for one in headings}


def links(page: str) -> list[str]:
    """The links of a page that lead into the repository."""
    prose = re.sub(r"(`+).+?\1", "", _FENCE.sub("", source(page)), flags=re.DOTALL)
    return re.findall(r"\]\(((?!https?:|mailto:)[^)\s]+)\)", prose)
