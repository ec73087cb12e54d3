"""What the site adds to Sphinx: a generated reference, links from names to it, two languages, a Chinese search."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import neardup_reference as reference
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.search import SearchLanguage, languages
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

logger = logging.getLogger(__name__)

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
LANGUAGES = {"en": "English", "zh": "中文"}
#: Words of the theme, which has none in Chinese.
THEME = {
    "Back to top": "回到顶部",
    "Home": "首页",
    "Next": "下一页",
    "On this page": "本页内容",
    "Previous": "上一页",
    "Skip to content": "跳到正文",
}

_GENERATED = re.compile(r"<!-- generated: ([\w-]+) -->.*?<!-- end -->", re.DOTALL)
_INCLUDED = re.compile(r"<!-- included: ([\w.-]+) -->.*?<!-- end -->", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)+|(?=[\w.]+(?:/|\.md)))([^)#\s]*)(#[^)\s]*)?\)")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_WORD = re.compile(r"[A-Za-z0-9_]+")


def repository() -> str:
    """The address under which the files of the repository are shown; empty where the build does not know it."""
    if name := os.environ.get("GITHUB_REPOSITORY"):
        return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}/blob/main"
    clone = os.environ.get("READTHEDOCS_GIT_CLONE_URL", "")
    return f"{clone.removesuffix('.git')}/blob/main" if clone.startswith("https://") else ""


def language_of(folder: Path) -> str:
    """The language of a source folder: its name."""
    return folder.name


def expanded(text: str, language: str) -> str:
    """The source of a page with its generated and included parts."""
    words = reference.Catalogue.of(language)
    text = _GENERATED.sub(lambda found: reference.SECTIONS[found[1]](words), text)
    return _INCLUDED.sub(lambda found: _included(found[1], language), text)


def _included(name: str, language: str) -> str:
    """A file of the repository without its title, with links that work in the site."""
    text = ROOT.joinpath(name).read_text(encoding="utf-8").partition("\n")[2]
    return _LINK.sub(lambda link: _from_root(link, language), text)


def _from_root(link: re.Match[str], language: str) -> str:
    words, path, anchor = link[1], link[3], link[4] or ""
    if page := re.fullmatch(r"docs/en/(.+\.md)", path):
        return f"[{words}](/{page[1]}{anchor if language == 'en' else ''})"
    return _outside(words, path)


def _outside(words: str, path: str) -> str:
    """A link to a file of the repository that is no page; its words alone where the address is not known."""
    return f"[{words}]({repository()}/{path})" if repository() else words


def _expand(app: Sphinx, docname: str, source: list[str]) -> None:
    language = language_of(Path(app.srcdir))
    for name in _INCLUDED.findall(source[0]):
        app.env.note_dependency(str(ROOT / name))
    if _GENERATED.search(source[0]):
        app.env.note_reread()  # the code may have changed since
    folder = Path(app.srcdir, docname).parent

    def rewritten(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / (link[2] + link[3])))
        if not link[2] or not link[3] or target.is_relative_to(app.srcdir) or not target.is_relative_to(ROOT):
            return link[0]
        return _outside(link[1], target.relative_to(ROOT).as_posix())

    source[0] = expanded(_LINK.sub(rewritten, source[0]), language)


class ChineseLines(SphinxPostTransform):
    """Join the lines of a Chinese paragraph without the space that a line end would show."""

    default_priority = 4

    def run(self, **_: Any) -> None:
        """Remove line ends between two wide characters; each line end is a node."""
        for one in list(self.document.findall(nodes.Text)):
            if one == "\n" and not isinstance(one.parent, nodes.literal_block):
                place = one.parent.index(one)
                around = one.parent.children[place - 1 : place] + one.parent.children[place + 1 : place + 2]
                if len(around) == 2 and ord(around[0].astext()[-1:] or " ") > 255 < ord(around[1].astext()[:1] or " "):
                    one.parent.remove(one)


class NamesToReference(SphinxPostTransform):
    """Link each name of a setting, stat or command to the reference; warn of a name that does not exist."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Replace the first mention of a name in each section."""
        if self.app.builder.format != "html":
            return
        linked: set[tuple[int, str]] = set()
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext()
            if wrong := reference.unknown_name(text):
                logger.warning("There is no %s.", wrong, location=literal, type="neardup", subtype="name")
            target = reference.target(text)
            if target is None or target.page == self.env.docname or _is_linked(literal):
                continue
            place = id(_section(literal)), target.anchor or text
            if place in linked:
                continue
            linked.add(place)
            anchor = nodes.make_id(target.anchor) if target.anchor else ""
            made = make_refnode(self.app.builder, self.env.docname, target.page, anchor, literal.deepcopy())
            literal.replace_self(made)


def _ancestors(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def _is_linked(node: nodes.Node) -> bool:
    return any(isinstance(one, (nodes.reference, pending_xref, nodes.title)) for one in _ancestors(node))


def _section(node: nodes.Node) -> nodes.Node | None:
    return next((one for one in _ancestors(node) if isinstance(one, nodes.section)), None)


class SearchPairs(SearchLanguage):
    """Search by pairs of Chinese characters, which the browser can cut as well: it has no dictionary.

    ``重复网页`` is filed and asked for as ``重复``, ``复网`` and ``网页``; all of them must be found.
    """

    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = r"""
const han = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+/g;
const pairsOf = (run) => run.length < 3 ? [run] : Array.from({length: run.length - 1}, (_, i) => run.slice(i, i + 2));
var splitQuery = (query) => [
  ...(query.match(han) || []).flatMap(pairsOf),
  ...(query.replace(han, " ").match(/[\p{Letter}\p{Number}_]+/gu) || []),
];
"""

    def split(self, input: str) -> list[str]:
        """Pairs and single characters of Chinese, and whole words of everything else."""
        runs = _HAN.findall(input)
        return [
            *(run[start : start + 2] for run in runs for start in range(len(run) - 1)),
            *(character for run in runs for character in run),
            *_WORD.findall(input),
        ]

    def stem(self, word: str) -> str:
        """The word in lower case, as the browser asks for it."""
        return word.lower()


def _switch(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the template the same page in the other language, or its first page where there is none."""
    here = language_of(Path(app.srcdir))
    up = "../" * (len(PurePosixPath(pagename).parts))
    found = []
    for code, name in LANGUAGES.items():
        is_there = pagename in ("search", "genindex") or DOCS.joinpath(code, f"{pagename}.md").exists()
        href = f"{up}{code}/{pagename if is_there else 'index'}.html"
        found.append({"code": code, "name": name, "here": code == here, "href": href})
    context["site_languages"] = found
    context["metatags"] = context.get("metatags", "") + "".join(
        f'<link rel="alternate" hreflang="{one["code"]}" href="{one["href"]}">\n' for one in found
    )


def _translate_theme(app: Sphinx) -> None:
    """Give the templates of a Chinese build the words that Sphinx does not translate."""
    templates = getattr(app.builder, "templates", None)
    if language_of(Path(app.srcdir)) == "zh" and templates is not None:
        known = templates.environment.globals["gettext"]
        templates.environment.globals["gettext"] = lambda text: THEME.get(text.strip()) or known(text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    languages["zh"] = SearchPairs
    app.connect("builder-inited", _translate_theme)
    app.connect("source-read", _expand)
    app.connect("html-page-context", _switch)
    app.add_post_transform(ChineseLines)
    app.add_post_transform(NamesToReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
