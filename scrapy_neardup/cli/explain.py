"""``scrapy neardup explain``: show what the state knows about a page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from scrapy_neardup.cli.opening import add_store, snapshot_state
from scrapy_neardup.cli.options import add_json, check_minimum, config_of
from scrapy_neardup.cli.output import (
    describe_missing,
    format_count,
    format_facts,
    format_time,
    progress,
    to_line,
    write_result,
)
from scrapy_neardup.inspect.lookup import Known, KnownSite, Nearest, known, method_of, near_urls, nearest
from scrapy_neardup.judge.manual_verdicts import ManualKind
from scrapy_neardup.model import ROW, Kind
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import Config
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

NAME = "explain"
HELP = "Show what the state knows about a page: verdict, original, evidence, group."
EXAMPLES = """\
output:
  The verdict and its evidence, as recorded when the page was judged. Of an updated page the state knows only the last
  version. With NEARDUP_KEEP = "nothing" it keeps no kinds, titles or common sentences.

  For a page that passed, also the most similar original now, and the decision on the two by the present counts of the
  site.

  If a URL is not in the state, the command lists known URLs that differ only in spelling: http or https, www., a final
  slash, a fragment, percent-encoding. The exit code is then 1.

examples:
  scrapy neardup explain https://a.example/ferry
  scrapy neardup explain https://a.example/1 https://a.example/2 --store sqlite:///var/crawls/state.sqlite --json
"""

_LIKE = {"excerpt": "an excerpt of", "same_title": "the same title as"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("urls", metavar="URL", nargs="+", help="a page, by its URL as crawled")
    add_store(parser)
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="pages to list of a group, the newest (default: 20)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain each page; return 1 if one is not in the state."""
    check_minimum(arguments, "limit", 0)
    config = config_of(arguments)
    with snapshot_state(arguments.store, config) as store:
        records = {url: store.find(url) for url in arguments.urls}
        found = [record for record in records.values() if record is not None]
        pages = {one.record.url: _explain(store, one, config) for one in known(store, found, arguments.limit, progress)}
        near = {url: near_urls(store, url) for url, record in records.items() if record is None}
        data = {
            "store": store.location,
            "as_of": format_time(store.as_of),
            "in_use": store.is_held,
            "pages": [
                _data(pages[url]) if url in pages else {"url": url, "found": False, "near": near[url]}
                for url in records
            ],
        }
        location = store.location
    texts = (_text(pages[url]) if url in pages else describe_missing(url, near[url], location) for url in records)
    write_result(arguments, data, texts)
    return 1 if near else 0


@dataclass(frozen=True, slots=True)
class _Explanation:
    """A page of the state. ``passage`` says why it passed, if it is an original."""

    known: Known
    passage: _Passage | None
    is_sealed: bool


@dataclass(frozen=True, slots=True)
class _Passage:
    """Why an original passed, as far as the state knows: the nearest original, the counts of its site, a sentence."""

    nearest: Nearest | None
    site: KnownSite
    reason: str


def _explain(store: PageStore, known: Known, config: Config) -> _Explanation:
    passage = _explain_passage(store, known, config) if known.record.is_original else None
    return _Explanation(known, passage, not store.is_pending(known.record.id))


def _explain_passage(store: PageStore, known: Known, config: Config) -> _Passage:
    record, method = known.record, method_of(store, config.make_method())
    method = None if record.former else method
    found = nearest(store, record, method, config.also_copies) if method else None
    if known.said is not None and known.said.kind is ManualKind.KEEP:
        reason = "a manual verdict says that it is no copy"
    elif method is None:
        reason = "unknown: the method of this state is neither built in nor in the settings"
    else:
        reason = _describe_nearest(found)
    return _Passage(found, KnownSite.of(store, site_of(record.url)), reason)


def _describe_nearest(found: Nearest | None) -> str:
    if found is None:
        return "no other original shares a distinctive key with it"
    figures = f"similarity {found.comparison.similarity:.4f}, containment {found.comparison.containment:.4f}"
    if not found.is_copy:
        return f"{figures}: {found.decision}"
    if not found.came_first:
        return f"{figures}: a copy now, but the other page came later"
    return (
        f"{figures}: it would be a copy now. When it came, the state knew less about its site, or copies passed. "
        f"{found.decision}"
    )


def _data(page: _Explanation) -> dict[str, Any]:
    known, passage = page.known, page.passage
    record, evidence, verdict = known.record, known.evidence, known.said
    return {
        "url": record.url,
        "found": True,
        "verdict": known.verdict.value,
        "kind": _kind(evidence),
        "first_seen": format_time(record.first_seen),
        "last_seen": format_time(known.last_seen),
        "original": _page_data(known.original, known.title) if known.original else None,
        "original_is_gone": known.original_is_gone,
        "superseded": known.is_superseded,
        "like": _page_data(known.like, known.title) if known.like else None,
        "similarity": known.similarity or None,
        "containment": (evidence.containment or None) if evidence else None,
        "title": (evidence.title or None) if evidence else None,
        "characters": evidence.letters if evidence else None,
        "shared": list(evidence.shared) if evidence else [],
        "same_bytes": _has_same_bytes(known),
        "evidence": evidence is not None,
        "witness": record.is_witness,
        "delivered": known.was_delivered,
        "judged": (
            {"said": verdict.kind.value, "other": verdict.other or None, "when": format_time(verdict.when)}
            if verdict
            else None
        ),
        "similar_id": _group_name(known) if known.verdict is not Kind.UNJUDGED else None,
        "group": {
            "size": known.size,
            "pages": [
                {"url": one.url, "first_seen": format_time(one.first_seen), "kind": _kind(evidence)}
                for one, evidence in known.newest
            ],
        },
        "nearest": _nearest_data(passage.nearest) if passage and passage.nearest else None,
        "passed": passage.reason if passage else None,
        "site": asdict(passage.site) if passage else None,
        "sealed": page.is_sealed,
    }


def _page_data(record: Record, title: str) -> dict[str, Any]:
    return {"url": record.url, "first_seen": format_time(record.first_seen), "title": title or None}


def _nearest_data(found: Nearest) -> dict[str, Any]:
    return {
        **_page_data(found.original, found.title),
        "similarity": round(found.comparison.similarity, 4),
        "containment": round(found.comparison.containment, 4),
        "is_copy": found.is_copy,
        "came_first": found.came_first,
        "decision": found.decision,
    }


def _has_same_bytes(known: Known) -> bool:
    """Whether the last responses of a page and of its original had the same bytes."""
    return known.original is not None and known.record.body == known.original.body > 0


def _kind(evidence: Evidence | None) -> str | None:
    return (evidence.likeness or None) if evidence else None


def _group_name(known: Known) -> str:
    return f"{known.record.original:016x}"


def _text(page: _Explanation) -> str:
    return f"{to_line(page.known.record.url)}\n{format_facts(_facts(page))}"


def _facts(page: _Explanation) -> Iterator[tuple[str, object]]:
    known, passage = page.known, page.passage
    record, evidence = known.record, known.evidence
    yield "verdict", _describe_verdict(known)
    yield from _other_page(known)
    if known.said:
        relation = "keep: no copy of" if known.said.kind is ManualKind.KEEP else "a copy of"
        other = to_line(known.said.other) or "any page"
        yield "manual", f"{relation} {other}\nsince {format_time(known.said.when)}, for when it comes again"
    if known.is_copy or known.similarity:
        yield "similarity", f"{known.similarity:.4f}"
    if evidence and evidence.containment:
        yield "containment", f"{evidence.containment:.4f}"
    if evidence and (evidence.title or evidence.likeness or evidence.text):  # else it serves a keep policy only
        yield "title", to_line(evidence.title) or "(none)"
        yield "length", format_count(evidence.letters, "character")
    elif known.is_copy:
        yield "evidence", 'not kept (NEARDUP_KEEP was "nothing")'
    if _has_same_bytes(known):
        yield "bytes", "identical with its original"
    yield "first seen", format_time(record.first_seen)
    yield "last seen", format_time(known.last_seen)
    if not page.is_sealed:
        yield "sealed", "no: its feed is not stored; if it never is, the next crawl rolls the page back"
    if record.is_witness:
        yield "witness", "yes: it differs much from its original, so later pages are compared with it too"
    if record.delivered:
        yield "delivered", "yes: its item came through, so the same text is unchanged next time"
    if evidence and evidence.shared:
        yield "both contain", "\n".join(map(to_line, evidence.shared))
    if passage is not None:
        if found := passage.nearest:
            later = "" if found.came_first else ", after this page"
            yield "nearest now", _describe_page(found.original, found.title) + later
        yield "it passed", passage.reason
        site = passage.site
        pages = format_count(site.pages, "page")
        yield "its site", f"{to_line(site.name)}: {pages} counted, {site.forms:.0%} of the last share a template"
    if known.verdict is not Kind.UNJUDGED:
        yield "group", "\n".join(_group_lines(known))


def _describe_verdict(known: Known) -> str:
    kind = ROW if known.record.is_row else _kind(known.evidence)
    return f"{known.verdict.value} ({to_line(kind)})" if kind else known.verdict.value


def _other_page(known: Known) -> Iterator[tuple[str, object]]:
    """Yield the page that decided the verdict, if there was one."""
    if known.original_is_gone:
        yield "original", f"{_group_name(known)}, no longer in the state (updated or forgotten)"
    elif known.original is not None:
        yield "superseded by" if known.is_superseded else "original", _describe_page(known.original, known.title)
    elif known.evidence and known.evidence.likeness:
        relation = _LIKE.get(known.evidence.likeness, "like")
        other = to_line(known.like.url) if known.like else "a page no longer in the state"
        yield "like", f"{relation} {other}{_second_line(known.title)}"


def _describe_page(record: Record, title: str) -> str:
    return f"{to_line(record.url)}{_second_line(title)}\nfirst seen {format_time(record.first_seen)}"


def _second_line(title: str) -> str:
    return f'\n"{to_line(title)}"' if title else ""


def _group_lines(known: Known) -> Iterator[str]:
    if known.size == 1:
        yield f"{_group_name(known)}, no other page"
        return
    newest = "" if known.size <= len(known.newest) else f", the newest {len(known.newest)} of them"
    yield f"{_group_name(known)}, {format_count(known.size, 'page')}{newest}:"
    for record, evidence in known.newest:
        kind = to_line(_kind(evidence) or "copy") if record.original != record.id else "superseded"
        if known.standing is not None and record.id == known.standing.id:
            kind = "original"
        yield f"{format_time(record.first_seen)}  {kind:<10}  {to_line(record.url)}"
