"""``scrapy neardup explain``: what the state knows of a page."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Any

from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import as_json, counted, facts, iso, line, missing, progress, verdict, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.manual_verdicts import ManualVerdict, Opinion
from scrapy_neardup.maintenance.lookup import Known, KnownSite, Nearest, known, method_of, near_urls, nearest
from scrapy_neardup.model import Kind
from scrapy_neardup.page.sites import site_of
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
_NOT_KEPT = 'not kept (NEARDUP_KEEP was "nothing")'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("urls", metavar="URL", nargs="+", help="a page, by its URL as crawled")
    add_store(parser)
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="pages to list of a group, the newest (default: 20)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Tell of each URL; 1 if one of them is not in the state."""
    if arguments.limit < 0:
        raise SettingsError(f"--limit is {arguments.limit}. Give 0 or more.")
    config = Config.from_settings(arguments.settings)
    with looked(arguments.store, config) as store:
        records = {url: store.find(url) for url in arguments.urls}
        found = [record for record in records.values() if record is not None]
        told = {one.record.url: one for one in known(store, found, arguments.limit, progress)}
        passed = {url: _passed(store, one, config) for url, one in told.items() if one.record.is_original}
        near = {url: near_urls(store, url) for url, record in records.items() if record is None}
        unsealed = {record.id for record in found if store.is_pending(record.id)}
        location = store.location
        moment = {"as_of": iso(store.as_of), "in_use": store.is_held}
    if arguments.json:
        pages = [
            {**as_data(told[url]), **_passed_data(passed.get(url)), "sealed": told[url].record.id not in unsealed}
            if url in told
            else _as_missing(url, near[url])
            for url in records
        ]
        write(as_json({"store": location, **moment, "pages": pages}) + "\n")
    else:
        texts = (
            _as_text(told[url], passed.get(url), sealed=told[url].record.id not in unsealed)
            if url in told
            else missing(url, near[url], location)
            for url in records
        )
        write("\n".join(texts))
    return 1 if near else 0


@dataclass(frozen=True, slots=True)
class _Passed:
    """Why a page passed, as far as the state knows: what it is most like now, and what is counted of its site.

    ``is_known``: whether the method of the state can be asked here.
    """

    nearest: Nearest | None
    site: KnownSite
    is_known: bool
    is_kept: bool

    def sentence(self) -> str:
        """What decided."""
        if self.is_kept:
            return "a manual verdict says that it is no copy"
        if not self.is_known:
            return "unknown: the method of this state is neither built in nor in the settings"
        if self.nearest is None:
            return "no other original shares a distinctive key with it"
        compared = self.nearest.comparison
        figures = f"similarity {compared.similarity:.4f}, containment {compared.containment:.4f}"
        if not self.nearest.is_copy:
            return f"{figures}: {self.nearest.decision}"
        if not self.nearest.came_first:
            return f"{figures}: a copy now, but the other page came later"
        return (
            f"{figures}: it would be a copy now. When it came, the state knew less about its site, or copies passed. "
            f"{self.nearest.decision}"
        )


def _passed(store: PageStore, one: Known, config: Config) -> _Passed:
    record, method = one.record, method_of(store, config.make_method())
    found = nearest(store, record, method, config.also_copies) if method and not record.former else None
    is_kept = one.said is not None and one.said.said is ManualVerdict.KEEP
    return _Passed(found, KnownSite.of(store, site_of(record.url)), bool(method) and not record.former, is_kept)


def _passed_data(passed: _Passed | None) -> dict[str, Any]:
    """The same for JSON; of a page that is no original, or could not be judged, there is nothing."""
    found = passed.nearest if passed else None
    nearest = (
        {
            **_other_page(found.original, found.title),
            "similarity": round(found.comparison.similarity, 4),
            "containment": round(found.comparison.containment, 4),
            "is_copy": found.is_copy,
            "came_first": found.came_first,
            "decision": found.decision,
        }
        if found
        else None
    )
    return {
        "nearest": nearest,
        "passed": passed.sentence() if passed else None,
        "site": asdict(passed.site) if passed else None,
    }


def as_data(known: Known) -> dict[str, Any]:
    """What is known of a page, for JSON."""
    record, evidence = known.record, known.evidence
    judged = known.verdict is not Kind.UNJUDGED
    return {
        "url": record.url,
        "found": True,
        "verdict": known.verdict.value,
        "kind": (evidence.likeness or None) if evidence else None,
        "first_seen": iso(record.first_seen),
        "last_seen": iso(known.last_seen),
        "original": _other_page(known.original, known.title) if known.original else None,
        "original_is_gone": known.original_is_gone,
        "superseded": known.is_superseded,
        "like": _other_page(known.like, known.title) if known.like else None,
        "similarity": known.similarity or None,
        "containment": (evidence.containment or None) if evidence else None,
        "title": (evidence.title or None) if evidence else None,
        "characters": evidence.letters if evidence else None,
        "shared": list(evidence.shared) if evidence else [],
        "same_bytes": _has_same_bytes(known),
        "evidence": evidence is not None,
        "witness": record.is_witness,
        "delivered": known.was_delivered,
        "judged": _judged(known.said),
        "similar_id": f"{record.original:016x}" if judged else None,
        "group": {
            "size": known.size,
            "pages": [{**_page(one), "kind": _kind(told)} for one, told in known.newest],
        },
    }


def _has_same_bytes(known: Known) -> bool:
    """Whether a page and its original were made from the very same bytes when they were last looked at."""
    return known.original is not None and known.record.body == known.original.body > 0


def _judged(said: Opinion | None) -> dict[str, Any] | None:
    return {"said": said.said.value, "other": said.other or None, "when": iso(said.when)} if said else None


def _page(record: Record) -> dict[str, Any]:
    return {"url": record.url, "first_seen": iso(record.first_seen)}


def _other_page(record: Record, title: str) -> dict[str, Any]:
    return {**_page(record), "title": title or None}


def _kind(evidence: Evidence | None) -> str | None:
    return (evidence.likeness or None) if evidence else None


def _as_missing(url: str, near: list[str]) -> dict[str, Any]:
    return {"url": url, "found": False, "near": near}


def _as_text(known: Known, passed: _Passed | None, *, sealed: bool) -> str:
    record, evidence = known.record, known.evidence
    told: list[tuple[str, object]] = [("verdict", verdict(known)), *_other(known)]
    if known.said:
        what = "keep: no copy of" if known.said.said is ManualVerdict.KEEP else "a copy of"
        other = line(known.said.other) or "any page"
        told.append(("manual", f"{what} {other}\nsince {iso(known.said.when)}, for when it comes again"))
    if known.is_copy or known.similarity:
        told.append(("similarity", f"{known.similarity:.4f}"))
    if evidence and evidence.containment:
        told.append(("containment", f"{evidence.containment:.4f}"))
    if evidence and (evidence.title or evidence.likeness or evidence.text):  # not only what a policy weighs by
        told.append(("title", line(evidence.title) or "(none)"))
        told.append(("length", counted(evidence.letters, "character")))
    elif known.is_copy:
        told.append(("evidence", _NOT_KEPT))
    if _has_same_bytes(known):
        told.append(("bytes", "identical with its original"))
    told.append(("first seen", iso(record.first_seen)))
    told.append(("last seen", iso(known.last_seen)))
    if not sealed:
        told.append(("sealed", "no: its feed is not stored; if it never is, the next crawl rolls the page back"))
    if record.is_witness:
        told.append(("witness", "yes: it differs much from its original, so later pages are compared with it too"))
    if record.delivered:
        told.append(("delivered", "yes: its item came through, so the same text is unchanged next time"))
    if evidence and evidence.shared:
        told.append(("both contain", "\n".join(map(line, evidence.shared))))
    if passed is not None:
        if passed.nearest is not None:
            told.append(("nearest now", _nearest(passed.nearest)))
        told.append(("it passed", passed.sentence()))
        many, forms = counted(passed.site.pages, "page"), passed.site.forms
        told.append(("its site", f"{line(passed.site.name)}: {many} counted, {forms:.0%} of the last share a template"))
    if known.verdict is not Kind.UNJUDGED:
        told.append(("group", _group(known)))
    return f"{line(record.url)}\n{facts(told)}"


def _other(known: Known) -> list[tuple[str, object]]:
    """The page that decided, if there was one."""
    if known.original_is_gone:
        return [("original", f"{known.record.original:016x}, no longer in the state (updated or forgotten)")]
    title = f'\n"{line(known.title)}"' if known.title else ""
    if known.original is not None:
        what = "superseded by" if known.is_superseded else "original"
        return [(what, f"{line(known.original.url)}{title}\nfirst seen {iso(known.original.first_seen)}")]
    if known.evidence and known.evidence.likeness:
        how = _LIKE.get(known.evidence.likeness, "like")
        return [("like", f"{how} {line(known.like.url) if known.like else 'a page no longer in the state'}{title}")]
    return []


def _nearest(found: Nearest) -> str:
    title = f'\n"{line(found.title)}"' if found.title else ""
    later = "" if found.came_first else ", after this page"
    return f"{line(found.original.url)}{title}\nfirst seen {iso(found.original.first_seen)}{later}"


def _group(known: Known) -> str:
    name = f"{known.record.original:016x}"
    if known.size == 1:
        return f"{name}, no other page"
    more = "" if known.size <= len(known.newest) else f", the newest {len(known.newest)} of them"
    lines = [f"{name}, {counted(known.size, 'page')}{more}:"]
    for record, evidence in known.newest:
        kind = line(_kind(evidence) or "copy") if record.original != record.id else "superseded"
        if known.standing is not None and record.id == known.standing.id:
            kind = "original"
        lines.append(f"{iso(record.first_seen)}  {kind:<10}  {line(record.url)}")
    return "\n".join(lines)
