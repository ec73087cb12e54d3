"""Commands as they are run by a user."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Result(NamedTuple):
    """How a command in this process ended."""

    code: int
    out: str
    err: str


#: Takes the module of a command, its arguments, and settings.
Invoke = Callable[..., Result]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "scrapy", "neardup", *arguments]


def environment() -> dict[str, str]:
    """Without settings of whoever runs the tests, and with UTF-8 on all streams."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    return {**kept, "PYTHONUTF8": "1"}


def scrapy_neardup(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*map(str, arguments)),
        cwd=cwd,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def project(folder: Path) -> Path:
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
