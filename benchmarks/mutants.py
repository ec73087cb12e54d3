"""Puts one small fault at a time into modules of the package, and lists those that no test finds.

    python benchmarks/mutants.py --count 60 --seed 0 judge state kv crawl text

Rooms and files of the package are named as they stand below ``scrapy_neardup/``. The faults go into a copy of the
checkout. First all quick tests run once, to learn which test calls which function. Then each mutant meets the tests
that call its function, the fastest first; where these are few, those of its file, too, first those that call little
else. A mutant that passes them meets the slow tests of its room, of hashing and of crawls.
While you work on a room, ``--tests tests/text --no-slow`` is quicker. ``--learned FILE`` keeps what the first run
learns, and ``--skip 20`` goes on behind the first 20 mutants.

A fault that changes no behaviour is named in ``mutants.txt`` with its reason, and is left out.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "scrapy_neardup"
EQUIVALENT = Path(__file__).with_suffix(".txt")
#: Environment variables for the plugin: where to write which test calls what; which tests to run.
TRACE, CHOSEN = "NEARDUP_MUTANTS_TRACE", "NEARDUP_MUTANTS_CHOSEN"
#: Tests that call a function; if they are fewer, those of its file run, too.
FEW = 10
#: Tests that run first: they find most faults, and lie in few files.
FIRST = 30
#: Seconds after which a test hangs, which finds a fault too.
HANGS = 100
#: Tests for the second stage, beside those of the mutant's own room.
WIDE = ("tests/crawl", "tests/hashing", "tests/test_deduplicator.py")

OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
REMOVABLE = (ast.Expr, ast.AugAssign, ast.Assign, ast.Raise, ast.Continue, ast.Break, ast.Delete)


@dataclass(frozen=True)
class Mutant:
    """One fault: ``old`` in these bytes of a file becomes ``new``; ``function`` is the first line of its function."""

    path: str
    line: int
    function: int
    start: int
    end: int
    old: str
    new: str

    @property
    def summary(self) -> str:
        """The change on one line."""
        return f"{' '.join(self.old.split())} -> {' '.join(self.new.split())}"

    @property
    def key(self) -> str:
        """The name of the fault in ``mutants.txt``, which holds as long as its code does."""
        return f"{self.path}: {self.summary}"

    @property
    def room(self) -> str:
        """The first folder below the package, or the file."""
        return Path(self.path).relative_to(PACKAGE).parts[0].removesuffix(".py")

    def mutate(self, source: bytes) -> bytes:
        """The file with the fault."""
        return source[: self.start] + self.new.encode() + source[self.end :]


# Which faults there are


def mutants_of(root: Path, path: str) -> Iterator[Mutant]:
    """All faults that may be put into a file."""
    source = (root / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def visit(node: ast.AST, function: int) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = first_line(node)
            parts: Sequence[ast.AST] = node.body
        elif isinstance(node, ast.ClassDef):
            parts = node.body
        elif isinstance(node, ast.AnnAssign):
            parts = [node.value] if node.value is not None else []
        elif isinstance(node, ast.Assert) or is_overload(node):
            return
        else:
            parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.expr | ast.stmt):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
            old = source[start:end].decode()
            for new in faults(node):
                yield Mutant(path, node.lineno, function, start, end, old, new)
        for one in parts:
            yield from visit(one, function)

    yield from visit(ast.parse(source), 0)


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The first line of a function with its decorators."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def is_overload(node: ast.AST) -> bool:
    """Whether the statement is for the type checker alone."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def faults(node: ast.AST) -> Iterator[str]:
    """The faulty versions of one piece of code."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPPOSITES:
            yield f"({ast.unparse(ast.Compare(left, [OPPOSITES[type(op)]()], [right]))})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS and not is_text(left, right):
            yield f"({ast.unparse(ast.BinOp(left, OPERATORS[type(op)](), right))})"
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"({ast.unparse(operand)})"
        case ast.Constant(value=bool() as value):
            yield repr(not value)
        case ast.Constant(value=int() as value):
            yield from (repr(value + 1), f"({value - 1})")
        case ast.Constant(value=float() as value):
            yield from (repr(new) for new in (value * 1.25 + 0.01, value * 0.8) if new != value)
        case ast.Call(func=func, args=[first, second, *rest], keywords=keywords) if not is_starred(first, second):
            yield ast.unparse(ast.Call(func, [second, first, *rest], keywords))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield f"({ast.unparse(ast.IfExp(test, orelse, body))})"
        case ast.Return(value=ast.expr() as value) if not is_none(value):
            yield "return None"
    if isinstance(node, REMOVABLE) and not is_docstring(node):
        yield "pass"


def is_text(*nodes: ast.AST) -> bool:
    """Whether one of these is a string, which has no other operator."""
    return any(isinstance(one, ast.JoinedStr) or isinstance(getattr(one, "value", 0), str | bytes) for one in nodes)


def is_starred(*nodes: ast.AST) -> bool:
    """Whether one of these stands for several arguments."""
    return any(isinstance(one, ast.Starred) for one in nodes)


def is_none(node: ast.expr) -> bool:
    """Whether the expression is None."""
    return isinstance(node, ast.Constant) and node.value is None


def is_docstring(node: ast.AST) -> bool:
    """Whether the statement is a string or an ellipsis, which does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def choose(root: Path, rooms: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Draw mutants, as many from each room."""
    equivalent = {line.partition("  #")[0].strip() for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()}
    chosen: list[Mutant] = []
    for number, room in enumerate(rooms):
        place = root / PACKAGE / room
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        found = [one for file in files for one in mutants_of(root, file.relative_to(root).as_posix())]
        found = [one for one in found if one.key not in equivalent]
        share = (count + number) // len(rooms)
        chosen += random.Random(f"{seed} {room}").sample(found, min(share, len(found)))
    return chosen


# The tests, in a process of pytest: this file is its plugin


def pytest_configure(config: pytest.Config) -> None:
    """Note calls if a file for them is named. That takes time, which no test must mind."""
    if os.environ.get(TRACE):
        settings.register_profile("traced", deadline=None, suppress_health_check=list(HealthCheck))
        settings.load_profile("traced")
        config.pluginmanager.register(Tracer(Path(os.environ[TRACE])))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the chosen tests, in their order."""
    if os.environ.get(CHOSEN):
        wanted = {id: place for place, id in enumerate(json.loads(Path(os.environ[CHOSEN]).read_text("utf-8")))}
        items[:] = sorted((one for one in items if one.nodeid in wanted), key=lambda one: wanted[one.nodeid])


def note_calls() -> set[tuple[str, int]]:
    """From now on modules of the package are imported with functions that note their file and first line here."""
    calls: set[tuple[str, int]] = set()
    prefix, compile_source = f"{Path.cwd()}/{PACKAGE}/", SourceFileLoader.source_to_code

    def compile_noting(loader: Any, source: Any, path: Any, **options: Any) -> Any:
        if str(path).startswith(prefix):
            source = ast.parse(source)
            for node in ast.walk(source):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    begin = int(is_docstring(node.body[0]))
                    node.body[begin:begin] = ast.parse(f"__noted__(({path!r}, {first_line(node)}))").body
        return compile_source(loader, source, path, **options)

    setattr(builtins, "__noted__", calls.add)  # noqa: B010 - no module imports it
    setattr(SourceFileLoader, "source_to_code", compile_noting)  # noqa: B010
    return calls


#: Filled from here on: the tests import the package before they are configured.
CALLS = note_calls() if os.environ.get(TRACE) else set[tuple[str, int]]()


class Tracer:
    """Notes which functions of the package each test calls, its processor time, and whether it passes."""

    def __init__(self, out: Path) -> None:
        self._out = out.with_suffix(f".{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.json")
        self._tests: dict[str, Any] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note the calls of one test with its fixtures."""
        CALLS.clear()
        began = time.process_time()  # a busy machine makes no test slower
        try:
            return (yield)
        finally:
            self._tests[item.nodeid] = [time.process_time() - began, sorted(CALLS)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Forget a test that fails without a fault."""
        if report.failed:
            print(f"fails without a fault, and is left out: {report.nodeid}")
            self._tests.pop(report.nodeid, None)

    def pytest_sessionfinish(self) -> None:
        """Write what was noted."""
        self._out.write_text(json.dumps(self._tests))


# The check


class Checkout:
    """A copy of the checkout for the faults."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        self._folder = folder
        skipped = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", ".hypothesis", "build", "*.egg-info")
        shutil.copytree(ROOT, self.root, ignore=skipped)
        #: Tests by the functions that they call, the fastest first, and by files, each with the share of its calls.
        self.calls: dict[tuple[str, int], list[str]] = defaultdict(list)
        self.files: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self.seconds: dict[str, float] = {}

    def pytest(self, *arguments: str, limit: float, **variables: str) -> subprocess.CompletedProcess[str] | None:
        """Run tests on the copy; None if they take longer than ``limit`` seconds."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.mutants", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(self.root), **variables}
        arguments = (*arguments, "--hypothesis-seed=0", "-o", f"timeout={HANGS}")
        with subprocess.Popen(
            [*command, *arguments],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as running:
            try:
                out, _ = running.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, 9)
                return None
        return subprocess.CompletedProcess(command, running.returncode, out)

    def learn(self, tests: Sequence[str], limit: float) -> dict[str, Any]:
        """Run the quick tests once; returns the seconds of each, and which functions it calls."""
        # The bytecode of functions that note their calls must not stay.
        variables = {TRACE: str(self._folder / "calls"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = self.pytest(*tests, "-m", "not slow", "-n2", limit=limit, **variables)
        if done is None or done.returncode not in (0, 1):
            raise SystemExit(f"The tests do not run:\n{done.stdout[-2000:] if done else 'too slow; raise --learn'}")
        print(*(line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), sep="\n")
        noted: dict[str, Any] = {}
        for part in self._folder.glob("calls.*.json"):
            for name, (seconds, calls) in json.loads(part.read_text()).items():
                noted[name] = seconds, [(Path(file).relative_to(self.root).as_posix(), line) for file, line in calls]
        return noted

    def use(self, noted: dict[str, Any]) -> None:
        """List for each function and each file the tests that call it, the fastest first."""
        for name, (seconds, calls) in sorted(noted.items(), key=lambda one: one[1][0]):
            self.seconds[name] = seconds
            for file, many in Counter(file for file, _ in calls).items():
                self.files[file].append((many / len(calls), name))
            for file, line in calls:
                self.calls[file, line].append(name)

    def finder(self, mutant: Mutant, limit: float, *, slow: bool) -> str:
        """The test that finds the fault; empty if none does."""
        file = self.root / mutant.path
        source = file.read_bytes()
        replace(file, mutant.mutate(source))
        try:
            found = self._run_chosen(mutant, limit)
            if not found and slow:
                places = [place for place in (f"tests/{mutant.room}", *WIDE) if (self.root / place).exists()]
                found = failure(self.pytest(*places, "-m", "slow and not soak", "-n2", "-x", limit=10 * limit))
            return found
        finally:
            replace(file, source)

    def _run_chosen(self, mutant: Mutant, limit: float) -> str:
        """Run as many of the tests that call the function as take ``limit`` seconds in all.

        A function that keeps its result is called by few of the tests that need it. Then those of the file run, too.
        """
        names = self.calls.get((mutant.path, mutant.function), []) if mutant.function else []
        if len(names) < FEW:
            names = [*names, *(name for _, name in sorted(self.files.get(mutant.path, ()), reverse=True))]
        spent = 0.0
        wanted = [name for name in dict.fromkeys(names) if (spent := spent + self.seconds[name]) <= limit]
        chosen = self._folder / "chosen.json"
        for tests in filter(None, (wanted[:FIRST], wanted[FIRST:])):
            chosen.write_text(json.dumps(tests))
            files = dict.fromkeys(name.partition("::")[0] for name in tests)
            done = self.pytest(*files, "-n0", "-x", limit=10 * limit + HANGS, **{CHOSEN: str(chosen)})
            if done is None or failure(done):
                return "tests that do not end" if done is None else failure(done)
        return ""


def replace(file: Path, source: bytes) -> None:
    """Write a module, and remove its bytecode, which may be of the same second and size."""
    for cached in file.parent.glob(f"__pycache__/{file.stem}.*"):
        cached.unlink()
    file.write_bytes(source)


def failure(done: subprocess.CompletedProcess[str] | None) -> str:
    """The name of the test that failed; empty if all passed, or were not finished."""
    if done is None or done.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
        return ""
    named = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return named[0] if named else "an import"


def main() -> None:
    """Run the check; the exit code is 1 if more mutants survive than ``--allow``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="+", help="rooms or files of the package, as judge or text/quotes.py")
    parser.add_argument("--count", type=int, default=60, help="mutants in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", default=["tests", PACKAGE], help="tests and folders that may find them")
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds of quick tests for one mutant, as they take without a fault"
    )
    parser.add_argument("--learn", type=float, default=3000, help="seconds for the first run of all quick tests")
    parser.add_argument("--learned", type=Path, help="a file that keeps what the first run learns, for a later one")
    parser.add_argument("--skip", type=int, default=0, help="mutants at the beginning that are left out")
    parser.add_argument(
        "--no-slow", action="store_true", help="do not run slow tests on those that pass the quick ones"
    )
    parser.add_argument("--allow", type=int, default=3, help="survivors with which the check succeeds")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    options = parser.parse_args()
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        checkout = Checkout(Path(folder))
        mutants = choose(checkout.root, options.rooms, options.count, options.seed)
        if options.list:
            print(*(f"{one.path}:{one.line}: {one.summary}" for one in mutants), sep="\n")
            return
        if options.learned and options.learned.exists():
            noted = json.loads(options.learned.read_text())
        else:
            noted = checkout.learn(options.tests, options.learn)
            if options.learned:
                options.learned.write_text(json.dumps(noted))
        checkout.use(noted)
        for number, mutant in enumerate(mutants[options.skip :], 1 + options.skip):
            finder = checkout.finder(mutant, options.limit, slow=not options.no_slow)
            survivors += [] if finder else [mutant]
            how = f"found by {finder}" if finder else "SURVIVED"
            print(f"{number}/{len(mutants)} {mutant.path}:{mutant.line}: {mutant.summary}: {how}", flush=True)
    tried = len(mutants) - options.skip
    print(f"\nfound {tried - len(survivors)} of {tried}; survived:")
    print(*(f"{one.path}:{one.line}: {one.summary}" for one in survivors), sep="\n")
    sys.exit(len(survivors) > options.allow)


if __name__ == "__main__":
    main()
