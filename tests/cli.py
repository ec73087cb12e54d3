"""Commands in this process and in processes of their own.

``run("check", "--store", url, NEARDUP_METHOD="minhash")`` runs a command in this process and returns its exit code;
keywords are settings, and errors are raised. The fixture ``invoke`` takes the same and returns a ``Result`` with the
output; errors are raised. The fixture ``neardup`` takes the same and never raises: an error is exit code 2 and a
sentence in ``err``, as in a shell. ``run_scrapy`` runs ``scrapy neardup`` in this process, with the project of a
folder; ``run_process`` does so in a process of its own, which takes a second.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
from scrapy.cmdline import execute
from scrapy.settings import Settings

from scrapy_neardup.cli import load, make_parser
from scrapy_neardup.cli.opening import config_of
from scrapy_neardup.errors import NearDupError

Completed = subprocess.CompletedProcess[str]


class Result(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Invoke(Protocol):
    """Runs a command in this process and captures what it prints."""

    def __call__(self, command: str, *arguments: str | Path, **settings: Any) -> Result: ...


def run(command: str, *arguments: str | Path, **settings: Any) -> int:
    """Run a command in this process; returns the exit code."""
    parsed = make_parser(command).parse_args([str(one) for one in arguments])
    return load(command).run(parsed, config_of(parsed, Settings(settings)))


def run_safely(command: str, *arguments: str | Path, **settings: Any) -> int:
    """Run a command in this process; returns the exit code, also after an error, which goes to standard error."""
    try:
        return run(command, *arguments, **settings)
    except NearDupError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except SystemExit as end:  # the parser refuses an argument, or printed the help
        return int(end.code or 0)


def is_clean(output: str) -> bool:
    """Whether nothing in it could steer a terminal, and no line is forged."""
    printable = output.replace("\n", "").replace("\u3000", "").isprintable()
    return printable and not any(line.startswith("forged") for line in output.split("\n"))


def command_line(*arguments: str) -> list[str]:
    """The arguments of a process that runs a command."""
    return [sys.executable, "-m", "scrapy", "neardup", *arguments]


def environment() -> dict[str, str]:
    """Without settings of whoever runs the tests, and with UTF-8 on all streams."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    return {**kept, "PYTHONUTF8": "1"}


class Stream(io.TextIOWrapper):
    """A standard stream that keeps what is written, also as bytes."""

    def __init__(self) -> None:
        self.written = io.BytesIO()
        super().__init__(self.written, encoding="utf-8")


def run_scrapy(*arguments: str | Path, cwd: Path) -> Completed:
    """Run ``scrapy neardup`` in this process as a shell does: with the project of the folder, and all of Scrapy."""
    out, err = Stream(), Stream()
    project, code = {entry.stem for entry in cwd.iterdir() if entry.suffix == ".py" or entry.is_dir()}, 0

    def forget_project() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] in project]:
            del sys.modules[name]

    forget_project()  # another test may have imported one of the same name from another folder
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(cwd)
        for name in set(os.environ) - set(environment()):
            patched.delenv(name)
        patched.setattr(sys, "path", [*sys.path])
        patched.setattr(sys, "argv", ["scrapy", "neardup", *map(str, arguments)])
        patched.setattr(sys, "stdout", out)
        patched.setattr(sys, "stderr", err)
        try:
            execute()
        except SystemExit as end:
            code = int(end.code or 0)
        os.environ.pop("SCRAPY_SETTINGS_MODULE", None)
    forget_project()
    for stream in (out, err):
        stream.flush()
    return subprocess.CompletedProcess([], code, out.written.getvalue().decode(), err.written.getvalue().decode())


def run_process(*arguments: str | Path, cwd: Path) -> Completed:
    """Run a command as a process of its own."""
    return start_scrapy("neardup", *arguments, cwd=cwd)


def start_scrapy(*arguments: str | Path, cwd: Path, **variables: str) -> Completed:
    """Run a command of Scrapy as a process of its own, which also finds the tests."""
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *map(str, arguments)],
        cwd=cwd,
        env={**environment(), "PYTHONPATH": str(Path(__file__).parents[1]), **variables},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )


def make_project(folder: Path) -> Path:
    """A Scrapy project without spiders."""
    package = folder / "shop"
    package.mkdir()
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text('BOT_NAME = "shop"\nADDONS = {"scrapy_neardup.Addon": 500}\n')
    return folder


def add_spider(folder: Path, name: str) -> None:
    """Add a spider that requests nothing to a project."""
    spider = f"import scrapy\n\n\nclass News(scrapy.Spider):\n    name = {name!r}\n"
    (folder / "shop" / "spiders.py").write_text(spider, encoding="utf-8")
    with (folder / "shop" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write('SPIDER_MODULES = ["shop.spiders"]\n')
