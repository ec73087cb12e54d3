"""A headless Chromium that is on the machine already; nothing is fetched for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: What keeps it from asking the network for anything of its own. A container's root has no sandbox.
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Seen:
    """Messages and requests of a page; a good page is quiet."""

    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def executable() -> str:
    """The path of the browser; without one skip the test, or fail if NEARDUP_TEST_BROWSER is "required"."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = "There is no Chromium; install it, on Debian with: apt-get install chromium"
        if os.environ.get("NEARDUP_TEST_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    path = executable()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=SWITCHES)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def shown(started: Any, file: Path, *, width: int = 1280, dark: bool = False) -> Iterator[tuple[Any, Seen]]:
    """A page with the file in it, and what is seen of it."""
    scheme = "dark" if dark else "light"
    page = started.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    seen = Seen()

    def dismiss(dialog: Any) -> None:
        seen.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda message: seen.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.said.append(f"error: {error}"))
    page.on("dialog", dismiss)
    page.on("request", lambda request: seen.asked.append(request.url))
    page.goto(file.as_uri())
    try:
        yield page, seen
    finally:
        page.close()
