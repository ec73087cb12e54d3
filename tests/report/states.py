"""A state whose pages do all that a page may do to a reader."""

from __future__ import annotations

from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

SECOND = 10**9
#: The id of the first page, and so when it was first seen.
FIRST = 1_750_000_000 * SECOND
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


def text(number: int) -> str:
    own = f"Sentence number {number} is all my own <i>and</i> nobody else has it"
    return f"{SENTENCES[0]}. {own}.\n{SENTENCES[1]}。<script>alert('text')</script> {SENTENCES[2]}"


def hostile(pages: int = 80) -> PageStore:
    """A state in memory: every other page is a copy of the one before."""
    store = open_store("memory:", {"method": "cascade", "version": 1, "parameters": {"certain": 0.76, "base": 0.54}})
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
