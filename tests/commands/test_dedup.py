"""``scrapy neardup dedup``: records of files dropped or tagged as in a crawl, and nothing lost on the way."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.kv import leveldb
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.state.opening import close_store, open_store
from tests.build import BAKERY, PEARS, join_text, state_url, story
from tests.cli import Invoke, run_scrapy
from tests.files import samples
from tests.files.samples import Archive, fields

FIRST: dict[str, Any] = {"id": "ferry", "title": "渡口恢复通航", "text": join_text(*PEARS)}
COPY: dict[str, Any] = {"id": "copy", "title": "七个月后，船又开了", "text": join_text(*PEARS[:7], "转载请联系本站")}
OTHER: dict[str, Any] = {"id": "other", "title": "The library stays", "text": join_text(*BAKERY)}
EXCERPT: dict[str, Any] = {"id": "excerpt", "title": "二十三名乘客", "text": join_text(*PEARS[:3])}
SHORT: dict[str, Any] = {"id": "short", "title": "短", "text": "太短。"}
RECORDS = [FIRST, COPY, OTHER, EXCERPT, SHORT]
SAID = "5 records: 3 unique, 1 duplicate, 0 unchanged, 0 updated, 1 unjudged."


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in records)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the commands, with a feed."""
    (tmp_path / "feed.jsonl").write_bytes(lines(*RECORDS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(invoke: Invoke) -> Invoke:
    return partial(invoke, "dedup")


def test_with_tag_every_line_is_there_with_its_verdict_behind_the_last_field(run: Invoke, folder: Path) -> None:
    out = run("feed.jsonl", "--tag", "-o", "out.jsonl").out
    assert out.startswith(f"{SAID} 5 written to out.jsonl.\n  kinds: 1 retitled, 1 excerpt\n")
    written = (folder / "out.jsonl").read_bytes().splitlines()
    for line, record in zip(written, RECORDS, strict=True):
        assert line.startswith(lines(record).rstrip(b"}\n") + b', "neardup": {"verdict": ')
    tags = [record["neardup"] for record in read(folder / "out.jsonl")]
    assert [[tag[name] for name in ("verdict", "kind", "reason", "original", "like")] for tag in tags] == [
        ["unique", None, None, None, None],
        ["duplicate", "retitled", None, "ferry", None],
        ["unique", None, None, None, None],
        ["unique", "excerpt", None, None, "ferry"],
        ["unjudged", None, "too_short", None, None],
    ]
    first, copy, other, excerpt, short = tags
    assert (copy["similar_id"], short["similar_id"]) == (first["similar_id"], None)
    assert len({first["similar_id"], other["similar_id"], excerpt["similar_id"]}) == 3
    assert copy["first_seen"].startswith("20")
    assert 0.7 < copy["similarity"] < 1
    assert set() < set(copy["shared"]) < set(PEARS)
    assert (first["similarity"], first["shared"]) == (None, [])


def test_standard_input_to_standard_output(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(*RECORDS))))
    done = run_scrapy("dedup", "-", cwd=folder)
    assert done.stdout == lines(FIRST, OTHER, EXCERPT, SHORT).decode()
    assert done.stderr.splitlines()[0] == f"{SAID} 4 written to standard output."
    assert done.returncode == 0


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_feed_that_was_tagged_is_tagged_anew(format: str, run: Invoke) -> None:
    run("feed.jsonl", "--tag", "-o", f"once.{format}")
    assert run(f"once.{format}", "--tag", "-o", f"twice.{format}").out.startswith(SAID)
    once, twice = (fields(samples.read(f"{name}.{format}")) for name in ("once", "twice"))
    assert [list(record) for record in twice] == [list(record) for record in once]
    verdicts = [one["neardup.verdict"] if format != "jsonl" else one["neardup"]["verdict"] for one in twice]
    assert verdicts == ["unique", "duplicate", "unique", "unique", "unjudged"]


def test_formulas_in_a_table_are_a_warning_or_written_as_text(run: Invoke, folder: Path) -> None:
    (folder / "feed.csv").write_text("id,=note,text\n1,=A1,短\n2,-12,短\n", encoding="utf-8", newline="\r\n")
    _, _, warned = run("feed.csv", "-o", "out.csv")
    assert (folder / "out.csv").read_bytes() == (folder / "feed.csv").read_bytes()
    assert "2 cells" in warned
    assert "--spreadsheet" in warned
    assert run("feed.csv", "-o", "out.csv", "--spreadsheet").err == ""
    assert "1,'=A1,短" in (folder / "out.csv").read_text(encoding="utf-8")


def test_if_no_record_has_content_the_fields_that_are_there_are_named(run: Invoke, folder: Path) -> None:
    code, said, warned = run("feed.jsonl", "-o", "out.jsonl", "--text", "body")
    assert (code, said.splitlines()[1]) == (0, "  unjudged: 5 no_content")
    assert all(word in warned for word in ("'body'", "'html'", "id, title, text", "--text", "--html"))
    assert (folder / "out.jsonl").read_bytes() == lines(*RECORDS)


def test_records_are_known_by_id_by_url_or_by_place(run: Invoke, folder: Path) -> None:
    body = FIRST["text"]
    (folder / "ids.jsonl").write_bytes(
        lines(
            {"id": 7, "url": "http://a.example/", "text": body},
            {"id": 8, "url": "http://a.example/", "text": body},
            {"id": None, "url": "http://b.example/", "text": body},
            {"text": body},
            {"id": 7, "url": "http://a.example/", "text": body},
            {"id": 7, "text": join_text(*BAKERY)},
        )
    )
    a = "http://a.example/"
    for options, expected in (
        ((), ["unique", "7", "7", "7", "unchanged", "updated"]),
        (("--id", ""), ["unique", "unchanged", a, a, "unchanged", "unique"]),
    ):
        run("ids.jsonl", "-o", "out.jsonl", "--tag", *options)
        tags = [record["neardup"] for record in read(folder / "out.jsonl")]
        assert [tag["original"] if tag["verdict"] == "duplicate" else tag["verdict"] for tag in tags] == expected


def test_malformed_records_are_counted_named_and_kept(folder: Path) -> None:
    bad = [b'{"id": "half', b"[1, 2]", b'{"id": "\xff"}']
    (folder / "bad.jsonl").write_bytes(lines(FIRST) + b"\n".join(bad) + b"\n" + lines(COPY))
    done = run_scrapy("dedup", "bad.jsonl", "-o", "out.jsonl", cwd=folder)
    said = done.stdout.splitlines()
    assert (done.returncode, said[0][:34]) == (1, "2 records: 1 unique, 1 duplicate, ")
    assert said[2:] == ["3 malformed records written to out.jsonl.rejects.jsonl, with the reason."]
    places = [f"bad.jsonl, line {number}" for number in (2, 3, 4)]
    rejects = read(folder / "out.jsonl.rejects.jsonl")
    assert [one["place"] for one in rejects if one["why"]] == places
    assert [one["record"] for one in rejects] == ['{"id": "half', "[1, 2]", '{"id": "\\xff"}']
    assert read(folder / "out.jsonl") == [FIRST]
    done = run_scrapy("dedup", "bad.jsonl", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("scrapy neardup dedup: bad.jsonl, line 2: ")
    assert done.stderr.endswith("--rejects.\n")


def truncated(folder: Path) -> str:
    (folder / "half.jsonl.gz").write_bytes(gzip.compress(lines(*RECORDS))[:-20])
    return "half.jsonl.gz"


@pytest.mark.parametrize("make", [truncated, lambda _: "nowhere.jsonl", lambda _: "feed.doc"])
def test_an_input_that_breaks_off_changes_nothing(make: Callable[[Path], str], run: Invoke, folder: Path) -> None:
    (folder / "out.jsonl").write_text("before")
    state = state_url("sqlite", folder / "state.sqlite")
    with pytest.raises(NearDupError):
        run("feed.jsonl", make(folder), "-o", "out.jsonl", "--store", state)
    assert (folder / "out.jsonl").read_text() == "before"
    assert not list(folder.glob("*.part*")) + list(folder.glob(".part*"))
    code, said, warned = run("feed.jsonl", "-o", "out.jsonl", "--store", state)
    assert (code, said.splitlines()[0]) == (0, f"{SAID} 4 written to out.jsonl.")
    assert "4 pages are rolled back" in warned


def test_an_output_that_is_an_input_is_refused(run: Invoke, folder: Path) -> None:
    (folder / "link.jsonl").symlink_to("feed.jsonl")
    for outputs in (["-o", "link.jsonl"], ["-o", "out.jsonl", "--rejects", "feed.jsonl"]):
        with pytest.raises(NearDupError, match="is also an input"):
            run("feed.jsonl", *outputs)
    with pytest.raises(NearDupError, match="is named for two outputs"):
        run("feed.jsonl", "-o", "out.jsonl", "--rejects", str(folder / "out.jsonl"))
    assert (folder / "feed.jsonl").read_bytes() == lines(*RECORDS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["feed.jsonl", "-o", "out.doc"], "out.doc names no output format"),
        (["feed.jsonl", "-o", "missing/out.jsonl"], "cannot be written"),
        (["feed.jsonl", "-o", "out.jsonl", "--store", "file:///x"], "--store is 'file:///x'"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(arguments: list[str], words: str, run: Invoke, folder: Path) -> None:
    (folder / "feed.jsonl").write_bytes(lines({"id": "1", "a b": 1}))
    with pytest.raises(NearDupError, match=words):
        run(*arguments)


def test_exact_counts_judge_alike_and_read_every_record(run: Invoke, folder: Path) -> None:
    (folder / "pages").mkdir()
    for name in ("one", "two", "three"):
        html = f"<title>Bakery</title><p>{join_text(*BAKERY)}"
        (folder / "pages" / f"{name}.html").write_text(html, encoding="utf-8")
    found = {}
    for counts in ("fixed", "exact"):
        run("feed.jsonl", "pages", "-o", "out.jsonl", "--tag", "--counts", counts)
        found[counts] = [record["neardup"] for record in read(folder / "out.jsonl")]
    assert [tag["verdict"] for tag in found["exact"][-3:]] == ["duplicate"] * 3
    for tags in found.values():
        for tag in tags:
            for name in ("similar_id", "first_seen"):
                tag.pop(name)
    assert found["fixed"] == found["exact"]
    for store, policy in (("sqlite:///x", "first"), ("memory:", "longest")):
        with pytest.raises(NearDupError, match=r"--counts exact works without a state, and keeps the first"):
            run("feed.jsonl", "--counts", "exact", "--store", store, NEARDUP_KEEP_POLICY=policy)


@pytest.mark.parametrize("scheme", ["sqlite", "leveldb"])
def test_a_state_that_lasts_is_made_used_again_and_known_to_a_crawl(scheme: str, run: Invoke, folder: Path) -> None:
    state = state_url(scheme, folder / "state")
    urls = [{**one, "url": f"http://{one['id']}.example/"} for one in RECORDS]
    (folder / "urls.jsonl").write_bytes(lines(*urls))
    arguments = ("urls.jsonl", "-o", "out.jsonl", "--id", "", "--store", state)
    assert run(*arguments)[1].startswith(f"{SAID} 4 written")
    assert run(*arguments)[1].startswith("5 records: 0 unique, 1 duplicate, 4 unchanged, 0 updated, 0 unjudged. 0 wri")
    method = make_method("cascade", {})
    store = open_store(state, state_recipe(method, None))
    assert (store.pages, store.rolled_back.pages) == (5, 0)
    evidence = store.evidence(next(one.id for one in store.records() if not one.is_original))
    assert evidence is not None
    assert (evidence.kind, evidence.title) == ("retitled", COPY["title"])
    detector = Detector(method, store, who="crawl")
    verdict = detector.judge_now(Page("http://mirror.example/", text=COPY["text"]), sealed=True)
    close_store(store)
    assert verdict.match is not None
    assert (verdict.outcome, verdict.match.url) == (Outcome.DUPLICATE, "http://ferry.example/")


@pytest.mark.parametrize("method", ["cascade", "cosine"])
def test_a_state_in_memory_will_do_and_leaves_nothing(method: str, run: Invoke, folder: Path) -> None:
    before = set(folder.iterdir())
    for _ in range(2):
        assert run("feed.jsonl", "-o", "out.jsonl", "--store", "memory:", NEARDUP_METHOD=method)[0] == 0
        assert {one.name for one in set(folder.iterdir()) - before} == {"out.jsonl"}
        assert 0 < len(read(folder / "out.jsonl")) <= len(RECORDS)


HTML = "<html><head><title>{}</title><meta name=keywords content='渡口,船'></head>"
HTML += "<body><article>{}</article></body></html>"


def test_documents_are_written_as_texts(run: Invoke, folder: Path) -> None:
    (folder / "site" / "a").mkdir(parents=True)
    body = "".join(f"<p>{one}。</p>" for one in PEARS)
    (folder / "site" / "a" / "one.html").write_bytes(HTML.format("渡口", body).encode("gbk"))
    (folder / "site" / "b.htm").write_text(HTML.format("又是渡口", body), encoding="utf-8")
    (folder / "site" / "c.html").write_bytes(b"%PDF-1.4")
    code, said, _ = run("site", "-o", "out.jsonl", "--tag")
    assert (code, said.splitlines()[0]) == (
        0,
        "3 records: 1 unique, 1 duplicate, 0 unchanged, 0 updated, 1 unjudged. 3 written to out.jsonl.",
    )
    first, broken, copy = read(folder / "out.jsonl")  # the files of a folder come before those of its subfolders
    assert (first["path"], first["title"], first["keywords"]) == ("b.htm", "又是渡口", ["渡口", "船"])
    assert (broken["path"], broken["neardup"]["reason"]) == ("c.html", "not_html")
    assert (copy["path"], copy["title"], copy["neardup"]["verdict"]) == ("a/one.html", "渡口", "duplicate")
    assert copy["text"] == "\n".join(f"{one}。" for one in PEARS)


def test_a_web_archive_gives_its_pages_and_counts_the_rest(run: Invoke, folder: Path) -> None:
    body = HTML.format("渡口", "".join(f"<p>{one}。</p>" for one in PEARS)).encode("gbk")
    archive = Archive().add(body, url="http://a.example/1", headers=[("Content-Type", "text/html; charset=gbk")])
    archive.add(b"gone", status="404 Not Found").add(b"\x89PNG", headers=[("Content-Type", "image/png")])
    (folder / "crawl.warc").write_bytes(archive.bytes())
    code, said, _ = run("crawl.warc", "-o", "out.jsonl", "--json")
    found = json.loads(said)
    assert (code, found["records"], found["written"], sum(found["skipped"].values())) == (0, 1, 1, 2)
    [page] = read(folder / "out.jsonl")
    assert (page["url"], page["title"], PEARS[0] in page["text"]) == ("http://a.example/1", "渡口", True)


def test_dedup_drops_by_the_policy_of_the_project(run: Invoke, folder: Path) -> None:
    run("feed.jsonl", "-o", "out.jsonl", NEARDUP_POLICY={"retitled": "tag", "excerpt": "drop"})
    assert [one["id"] for one in read(folder / "out.jsonl")] == ["ferry", "copy", "other", "short"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(run: Invoke, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leveldb, "_MOST", 500)  # rows that a state in memory holds

    def peak(count: int) -> int:
        with (folder / "many.jsonl").open("wb") as file:
            for number in range(count):
                judged = number % 20 == 0
                file.write(lines({"id": number, "text": FIRST["text"] if judged else f"{number} " + "x\n" * 300}))
        tracemalloc.start()
        _, said, _ = run("many.jsonl", "-o", "out.jsonl")
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert said.startswith(f"{count:,} records")
        return held

    few = min(peak(500), peak(500))  # the first run imports modules
    assert peak(3000) - few < 750_000  # 2,200,000 bytes were read, and as many written


# Better copies: NEARDUP_KEEP_POLICY


TEXT = story(70, 24)


def item(host: str, sentences: int = 20, **more: Any) -> dict[str, Any]:
    text = "\n".join([*TEXT[:sentences], f"{host}供稿。"])
    return {"url": f"http://{host}.example/1", "title": "渡口清晨开航", "text": text, **more}


WIRE, PAPER, TIMES, BLOG = (item(host) for host in ("wire", "paper", "times", "blog"))
ELSEWHERE = {"url": "http://other.example/1", "title": "河道清淤", "text": "\n".join(story(71, 20))}
TOO_SHORT = {"url": "http://short.example/1", "title": "短", "text": "太短。"}
BEST = {"NEARDUP_KEEP_POLICY": ["times.example", "paper.example"]}


def feed(*items: dict[str, Any]) -> str:
    lines = [json.dumps(one, ensure_ascii=False) for one in items]
    Path("feed.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "feed.jsonl"


def hosts(name: str = "out.jsonl") -> list[str]:
    found = [json.loads(line)["url"] for line in Path(name).read_text(encoding="utf-8").splitlines()]
    return [url.split("/")[2].removesuffix(".example") for url in found]


def test_dedup_writes_the_best_of_each_group_in_its_place_in_the_input(invoke: Invoke) -> None:
    name = feed(WIRE, ELSEWHERE, PAPER, TOO_SHORT, BLOG, TIMES)
    done = invoke("dedup", name, "-o", "out.jsonl", **BEST)
    assert hosts() == ["other", "short", "times"]
    assert done.out.startswith(
        "6 records: 2 unique, 1 duplicate, 0 unchanged, 0 updated, 2 better, 1 unjudged. 3 written"
    )
    invoke("dedup", name, "-o", "out.jsonl")
    assert hosts() == ["wire", "other", "short"]
    update = {**PAPER, "text": PAPER["text"] + "更正：第一班船是空的。"}
    invoke("dedup", feed(WIRE, PAPER, update, TIMES), "-o", "out.jsonl", **BEST)
    assert hosts() == ["times"], "also after an update"


def test_dedup_writes_lines_of_json_unchanged_and_tables_with_their_columns(invoke: Invoke) -> None:
    text = "".join(TEXT[:20])
    line = f'{{"url":  "http://times.example/1", "n": 1.10, "title": "渡口清晨开航", "text": "{text}"}}'
    Path("feed.jsonl").write_text(json.dumps(WIRE, ensure_ascii=False) + "\n" + line + "\n", encoding="utf-8")
    invoke("dedup", "feed.jsonl", "-o", "out.jsonl", **BEST)
    assert Path("out.jsonl").read_text(encoding="utf-8") == line + "\n"
    invoke("dedup", feed(WIRE, TIMES), "-o", "out.csv", **BEST)
    assert Path("out.csv").read_text(encoding="utf-8").splitlines()[1].startswith("http://times.example/1,")


def test_the_best_page_is_the_original_of_its_group_in_all_commands(invoke: Invoke) -> None:
    store = "sqlite:///" + str(Path("state.sqlite").absolute())
    given = ("-o", "out.jsonl", "--store", store)
    invoke("dedup", feed(WIRE, PAPER), *given, **BEST)
    assert hosts() == ["paper"]
    invoke("dedup", feed(BLOG, WIRE, PAPER, TIMES, ELSEWHERE), *given, **BEST)
    assert hosts() == ["times", "other"], "it is better than the one that the first run wrote"
    urls = [one["url"] for one in (BLOG, WIRE, PAPER, TIMES)]
    page, *others = invoke("explain", *urls, "--store", store, "--json").data["pages"]
    assert [one["superseded"] for one in (page, *others)] == [False, True, True, False]
    assert (page["original"]["url"], page["group_size"]) == (TIMES["url"], 4)
    assert [one["url"] for one in page["group"] if one["kind"] is None] == [WIRE["url"]]
    [shown] = invoke("report", "--store", store, "--json").data["groups"]
    assert (shown["original"]["url"], shown["copies"]) == (TIMES["url"], 3)
    assert [page["url"] for page in shown["pages"]] == [one["url"] for one in (WIRE, PAPER, BLOG)]
    found = invoke("stats", "--store", store, "--json").data
    assert (found["copies"], found["better"], found["copies_without_original"]) == (3, 2, 0)
    assert invoke("check", "--store", store, "--json").data["sound"]
