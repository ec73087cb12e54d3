"""States made by hand: of a few pages, of more than a report shows, and of pages that do all that a page may do."""

from __future__ import annotations

from typing import Any

from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record

SECOND = 10**9
#: When the first page of most states is first seen, in seconds since 1970, and the id that follows from it.
BEGIN = 1_750_000_000
FIRST = BEGIN * SECOND
RECIPE: dict[str, Any] = {"method": "cascade", "version": 1, "parameters": {}}
TITLES = [
    "<script>alert('title')</script>",
    '"><img src=x onerror="alert(\'attribute\')">',
    "</title></script><script>alert('end')</script>",
    "'\"` {{ 7 * 7 }} {% raw %} ${alert(1)} &amp; &lt;b&gt;",
    "right \u202eto left\u202c and \u2066back\u2069 שלום",
    "🚢 渡口恢复通航 👩‍👩‍👧 \U0001f1e8\U0001f1f3",
    "bell \x07 null \x00 escape \x1b[31m line\u2028end\u2029",
    "half a pair \ud83d",
    "",
]
URLS = [
    "http://{}.example/<script>alert('url')</script>",
    'http://{}.example/"onmouseover="alert(1)',
    "javascript:alert('{}')",
    "data:text/html,<script>alert('{}')</script>",
    "http://{}.example/\u202egpj.exe",
    "http://{}.example/{{{{ 7 * 7 }}}}",
    "HTTPS://{}.example/x?a=1&b=<2>#</script>",
    "{}-no-url",
]
SENTENCES = [
    "The <b>ferry</b> sails again at nine</mark>",
    "渡口今天清晨恢复通航，头一班船载着二十三名乘客离岸",
    "<!-- \u202e",
]
KINDS = ["identical", "near", "retitled", "excerpt"]


class State:
    """Pages that are made one after the other, a minute apart."""

    def __init__(self, recipe: dict[str, Any] | None = None, step: int = 60) -> None:
        self.store = memory_state(RECIPE if recipe is None else recipe)
        self._step = step
        self._next = FIRST

    def add(
        self, url: str, of: int = 0, similarity: float = 1.0, evidence: Evidence | None = None, *, seen: int = 0
    ) -> int:
        """Put in an original, or a copy ``of`` another page; returns its id."""
        id, self._next = self._next, self._next + self._step * SECOND
        self.store.add(Record(id, url, of or id, similarity), evidence, seen=seen or id // SECOND)
        return id

    def copy(self, url: str, of: int, kind: str = "near", similarity: float = 0.8, **evidence: Any) -> int:
        """Put in a copy with evidence."""
        return self.add(url, of, similarity, Evidence(kind, 0, similarity, **evidence))


def large() -> PageStore:
    """More groups, sites and copies of one page than a report shows."""
    state = State()
    first = state.add("https://first.example/", evidence=Evidence(title="First"))
    for n in range(120):
        original = state.add(f"https://of{n}.example/", evidence=Evidence(title=f"Of {n}"))
        if n % 3:
            state.copy(f"https://on{n}.example/", original, KINDS[n % 4], letters=100, title=f"On {n}")
        else:
            state.add(f"https://on{n}.example/", original, 0.5)
    for n in range(30):
        state.copy(f"https://mirror{n}.example/", first, letters=n)
        state.add(f"https://like{n}.example/", evidence=Evidence(("excerpt", "same_title")[n % 2], first, 0.3))
    return state.store


def text(number: int) -> str:
    own = f"Sentence number {number} is all my own <i>and</i> nobody else has it"
    return f"{SENTENCES[0]}. {own}.\n{SENTENCES[1]}。<script>alert('text')</script> {SENTENCES[2]}"


def hostile(pages: int = 80) -> PageStore:
    """A state in memory: every other page is a copy of the one before."""
    store = memory_state({**RECIPE, "parameters": {"certain": 0.76, "base": 0.54}})
    for number in range(pages):
        id = FIRST + number * 600 * SECOND
        url = URLS[number % len(URLS)].format(f"site{number % 7}") + f"/{number}"
        title = TITLES[number % len(TITLES)]
        if number % 2 == 0:
            store.add(Record(id, url, id), Evidence(letters=100, title=title, text=text(number)), seen=id // SECOND)
            continue
        similarity = 0.5 + number / (2 * pages)
        evidence = Evidence(
            KINDS[number // 2 % len(KINDS)],
            similarity=similarity,
            containment=0.9,
            letters=100,
            title=f"{title} {number}",
            shared=tuple(SENTENCES),
            text=text(number) if number % 4 == 1 else "",
        )
        store.add(Record(id, url, id - 600 * SECOND, similarity), evidence, seen=id // SECOND)
    return store
