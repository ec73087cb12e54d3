"""Runs: they go on after a kill and after an earlier run; what they leave is complete."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scrapy_neardup.batch import pages, runs
from scrapy_neardup.batch.judging import find_shared
from scrapy_neardup.batch.pages import malformed_records
from scrapy_neardup.batch.results import export_state, judged_pages, write_kept, write_verdicts
from scrapy_neardup.batch.rows import ROWS, Topic, make_rows
from scrapy_neardup.batch.runners import LocalRunner, SparkRunner, judge_if_new
from scrapy_neardup.batch.runs import ArchivePart, BatchRun, new_arrow
from scrapy_neardup.deduplicator import Deduplicator
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files.writers import open_output
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.model import Outcome
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.record import Keep
from tests.batch import OPTIONS, InlineRunner, Killed, completed, judge_in_order, make_run, verdicts_of, write_records
from tests.batch.test_equality import drawn, one_footer
from tests.build import article_text, story
from tests.processes import wait_until

RECORDS = drawn(4, 60)


@pytest.fixture
def name(tmp_path: Path) -> str:
    return write_records(tmp_path / "pages.jsonl", RECORDS)


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, name: str) -> None:
    whole = make_run(tmp_path / "whole", [name], 20)
    runner = InlineRunner(whole)
    runner.run()
    for ends in range(1, runner.tasks + 1, max(1, runner.tasks // 9)):
        folder = tmp_path / str(ends)
        with pytest.raises(Killed):
            InlineRunner(make_run(folder, [name], 20), ends).run()
        run = make_run(folder, [name], 20)
        assert not run.is_complete
        InlineRunner(run).run()
        assert verdicts_of(run) == verdicts_of(whole) == judge_in_order([name])
    InlineRunner(whole, ends=1).run()  # a complete run does nothing more


def test_a_run_that_is_killed_once_a_part_is_written_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is written again if its pages asked something unforeseen, perhaps by the next command only."""
    name, written, write = write_records(tmp_path / "pages.jsonl", one_footer()), list[int](), ArchivePart.write
    ends = 0

    def write_and_end(part: ArchivePart, *tables: Any) -> None:
        write(part, *tables)
        written.append(part.number)
        if len(written) == ends:
            raise Killed

    monkeypatch.setattr(ArchivePart, "write", write_and_end)
    whole = completed(tmp_path / "whole", [name], 7)
    twice = [at for at in range(1, len(written)) if written[at - 1] == written[at]]
    assert twice
    for ends in (*twice, len(written)):
        folder = tmp_path / str(ends)
        written.clear()
        with pytest.raises(Killed):
            InlineRunner(make_run(folder, [name], 7)).run()
        run = completed(folder, [name], 7)
        assert [one.digest() for one in run.parts] == [one.digest() for one in whole.parts]
        assert verdicts_of(run) == judge_in_order([name])


def test_a_run_goes_on_after_a_full_disk(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of pages is closed while the next one is read."""
    replace = Path.replace
    for group in (0, 8):  # the first and the last one

        def fill(draft: Path, target: Path, full: str = f"{group:09}.arrow") -> Path:
            if target.name.endswith(full):
                raise OSError(28, "No space left on device")
            return replace(draft, target)

        run = make_run(tmp_path / str(group), [name], 7)
        monkeypatch.setattr(Path, "replace", fill)
        with pytest.raises(NearDupError, match="No space left on device"):
            InlineRunner(run).run()
        monkeypatch.undo()
        (run.folder / "pages" / ".part.killed").touch()
        InlineRunner(run).run()
        assert verdicts_of(run) == judge_in_order([name])
        assert not [*run.folder.glob("*/.part*")]


def test_two_tasks_may_write_one_file_at_once(tmp_path: Path) -> None:
    """As on Spark, which repeats a slow task. The first one is read while the second one writes."""
    file, tables = tmp_path / "file.arrow", [make_rows(Topic.COUNT, 1, np.array([5]), count) for count in (3, 4)]
    with new_arrow(file, ROWS) as first:
        with new_arrow(file, ROWS) as second:
            second.write_table(tables[0])
        assert pa.ipc.open_file(pa.memory_map(str(file))).read_all() == tables[0]
        first.write_table(tables[1])
    assert pa.ipc.open_file(pa.memory_map(str(file))).read_all() == tables[1]


def test_a_page_whose_shared_sentences_cannot_be_found_ends_no_run(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", [name], 20)
    monkeypatch.setattr(ArchivePart, "write_shared", lambda *others: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # as on a full disk
        InlineRunner(run).run()
    assert not run.is_complete
    monkeypatch.undo()
    monkeypatch.setattr(Cascade, "shared", lambda *others: 1 / 0)
    InlineRunner(run).run()
    monkeypatch.undo()
    assert verdicts_of(run) == [one | {"shared": []} for one in judge_in_order([name])]


def test_long_pages_make_small_batches_and_parts(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_CHARACTERS", 500)
    run = completed(tmp_path / "run", [name], 30)
    assert max(len(batch) for part in run.parts for batch in part.batches()) < 10
    names = write_records(tmp_path / "names.jsonl", [{"id": f"{at:0600}", **one} for at, one in enumerate(RECORDS)])
    assert all(len(batch) < 2 for part in completed(tmp_path / "names", [names], 30).parts for batch in part.batches())
    assert all(pa.ipc.open_file(pa.memory_map(str(one.shared))).num_record_batches > 3 for one in run.parts)
    parts = len(run.parts)
    monkeypatch.setattr(runs, "_SENTENCES", 1)
    run = make_run(tmp_path / "small", [name], 30)
    run.records_of_file = 10
    InlineRunner(run).run()
    assert len(run.parts) > parts
    assert verdicts_of(run) == judge_in_order([name])


def test_a_part_is_judged_again_if_an_answer_differs(tmp_path: Path, name: str) -> None:
    run = completed(tmp_path / "run", [name], 7)
    one, other = (make_rows(Topic.COUNT, 1, np.array([5]), np.array([count])) for count in (3, 4))
    cases = [(one, True), (one, False), (pa.concat_tables([one, one]), False), (other, True), (one.slice(1), True)]
    for given, judged in cases:
        assert judge_if_new(OPTIONS, run.parts[1], given, run.parts[:1], None) is judged


def test_a_part_whose_files_do_not_belong_together_is_judged_again(tmp_path: Path, name: str) -> None:
    run, other = (completed(tmp_path / folder, [name], 7) for folder in ("run", "other"))
    for part in other.parts[1:]:
        judge_if_new(OPTIONS, part, make_rows(Topic.KEY, part.number, np.zeros(0, np.int64)), [], None)
        find_shared(OPTIONS, part)
    assert verdicts_of(run) != verdicts_of(other)
    given = [part.digest() for part in run.parts]
    for suffix in (".judged", ".arrow", ".shared"):
        for lonely in other.folder.glob(f"rows/*{suffix}"):
            shutil.copy(lonely, run.folder / "rows")
        (run.folder / "complete").unlink()
        InlineRunner(run).run()
        assert [part.digest() for part in run.parts] == given
        assert verdicts_of(run) == judge_in_order([name])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for the processes in /proc")
def test_readers_end_with_a_killed_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pages.jsonl")  # the readers wait for it
    program = "import sys; from tests.batch import LocalRunner, Path, make_run; folder = Path(sys.argv[1])\n"
    program += "LocalRunner(make_run(folder / 'run', [str(folder / 'pages.jsonl')], 60), 2).run()"
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) as run:
        wait_until(lambda: [*niceness(run.pid).values()].count(min(os.nice(0) + 10, 19)) == 2)
        started = [Path(f"/proc/{process}/cmdline") for process in niceness(run.pid)]
        run.kill()
    wait_until(lambda: not any(one.exists() and one.read_bytes() for one in started))


def niceness(process: int) -> dict[int, int]:
    """The niceness of all processes that a process started, and that these started."""
    found = dict[int, int]()
    for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        found |= {int(child): os.getpriority(os.PRIO_PROCESS, int(child)), **niceness(int(child))}
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="no process is nice")
def test_a_reader_that_gives_way_has_more_time_for_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "nice", lambda step: 19)
    html = "<title>题</title>" + "".join(f"<p><a><b>{sentence}</b></a></p>" for sentence in story(3, 5000))
    name = write_records(tmp_path / "pages.jsonl", [{"url": "http://a.example/", "html": html}])
    run = make_run(tmp_path / "run", [name], 10)
    run.options = replace(OPTIONS, config=Config(max_seconds=0.1))
    InlineRunner(run).run()
    assert [one["reason"] for one in verdicts_of(run)] == [None]


def test_three_runs_in_a_row_equal_one(tmp_path: Path, name: str) -> None:
    names = [write_records(tmp_path / f"{at}.jsonl", RECORDS[at : at + 20]) for at in range(0, 60, 20)]
    run: BatchRun | None = None
    for at, one in enumerate(names):
        earlier = BatchRun.load(run.folder, OPTIONS) if run else None
        run = completed(tmp_path / f"run{at}", [one], 7, earlier)
    assert run is not None
    assert verdicts_of(run) == judge_in_order([name])
    write_verdicts(run, tmp_path / "last.parquet")
    assert len(pq.read_table(tmp_path / "last.parquet")) == 20


def test_a_folder_of_another_run_is_refused(tmp_path: Path, name: str) -> None:
    make_run(tmp_path / "run", [name], 30)
    with pytest.raises(NearDupError, match="--run"):
        make_run(tmp_path / "run", [write_records(tmp_path / "other.jsonl", [])], 30)
    with pytest.raises(NearDupError, match="not complete"):
        BatchRun.load(tmp_path / "run", OPTIONS)
    with pytest.raises(NearDupError, match="--previous"):
        BatchRun.load(tmp_path / "nothing", OPTIONS)
    with pytest.raises(NearDupError, match="other settings or fields"):
        BatchRun.load(tmp_path / "run", replace(OPTIONS, id_field=""))


def test_bad_records_and_damaged_inputs_are_set_apart(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"url": "http://a.example/\\ud83d", "text": "' + article_text(1) + '"}\n{"url\n')
    cut = tmp_path / "cut.jsonl.gz"
    packed = gzip.compress(b"".join(b'{"text": "%d"}\n' % number for number in range(3000)))
    cut.write_bytes(packed[: len(packed) // 2])
    good = write_records(tmp_path / "good.jsonl", [{"url": "http://b.example/", "text": article_text(1)}])
    run = completed(tmp_path / "run", [str(bad), str(cut), good], 10_000)
    write_verdicts(run, tmp_path / "verdicts.parquet")
    assert pq.read_table(tmp_path / "verdicts.parquet")["original"][-1].as_py() == "http://a.example/\\ud83d"
    assert "http://a.example/\ud83d" in {one.page.url for part in run.parts for one in judged_pages(part)}
    places = [one.place for one in malformed_records(run)]
    assert places == [f"{bad}, line 2", str(cut)]


def test_kept_records_come_from_the_inputs_as_they_were(tmp_path: Path, name: str) -> None:
    run = completed(tmp_path / "run", [name], 30)
    kept, lines = tmp_path / "kept.jsonl", Path(name).read_text().splitlines(keepends=True)
    for changed in (lines[:-1], [*lines, lines[0]], ["no JSON\n", *lines[1:]]):
        Path(name).write_text("".join(changed))
        with (
            pytest.raises(NearDupError, match="has changed since it was read"),
            open_output(str(kept), "jsonl", "neardup") as out,
        ):
            write_kept(run, out, lambda verdict: True)
        assert not kept.exists()


def test_an_input_may_have_no_page_at_all(tmp_path: Path, name: str) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{broken\n" * 3)
    for inputs, count, malformed in ([str(broken), name, str(broken)], 60, 6), ([str(broken)], 0, 3):
        run = completed(tmp_path / f"run{count}", inputs, 60)
        assert (len(verdicts_of(run)), len([*malformed_records(run)])) == (count, malformed)
        assert next(iter(write_verdicts(run, tmp_path / "verdicts.parquet"))).total() == count


def test_a_crawl_goes_on_with_the_exported_state(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"url": f"http://{version}.example/{family}", "title": f"题{family}", "text": article_text(family, version)}
        for version in range(2)
        for family in range(5)
    ]
    run = completed(tmp_path / "run", [write_records(tmp_path / "pages.jsonl", records)], 4)
    url = f"sqlite:///{tmp_path}/state.sqlite"
    store = open_store(url, state_recipe(OPTIONS.make_method(), None), "store", OPTIONS.secret)
    assert export_state(run, store, Keep.EVIDENCE) == 10
    with pytest.raises(NearDupError, match="--store"):
        export_state(run, store, Keep.EVIDENCE)
    assert (store.pages, store.on_site("0.example").pages()) == (10, 5)
    close_store(store)
    with Deduplicator(store=url) as deduplicator:
        first, copy = (deduplicator.check(**records[at]) for at in (0, 5))
        assert (first.outcome, copy.outcome) == (Outcome.UNCHANGED, Outcome.DUPLICATE)
        new = deduplicator.check(url="http://new.example/", title="题3", text=article_text(3, 9))
        assert [one.match and one.match.url for one in (copy, new)] == [records[at]["url"] for at in (0, 3)]


def test_memory_decides_the_sizes() -> None:
    few, many = (LocalRunner.plan(size, 8) for size in (600_000_000, 16_000_000_000))
    assert few[1] < many[1]
    assert (few[0], many[0]) == (1, 8)
    assert LocalRunner.plan(10**12, 200)[0] == 61, "Windows waits for no more"
    assert 8 * SparkRunner.plan(2_000_000_000, 8)[1] * 7_000 < 2_000_000_000
    for runner, size, processes in (LocalRunner, 100_000_000, 1), (SparkRunner, 2_000_000_000, 10):
        with pytest.raises(NearDupError, match="--memory"):
            runner.plan(size, processes)
