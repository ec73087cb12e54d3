"""A feed of two sites in which articles come again, from hardly to heavily edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab.corpus import article, edited, lines


def drafts(*, of: int = 24) -> list[dict[str, Any]]:
    """Articles, then each once more with 0 to 9 of its 12 sentences replaced; every second one on the same site."""
    made = [
        {"url": f"https://daily.example/{seed}", "title": f"Article {seed}", "text": article(seed, chinese=False)}
        for seed in range(of)
    ]
    again = []
    for seed, one in enumerate(made):
        changed = seed % 10
        text = edited(one["text"], changed, chinese=False) if changed else one["text"]
        site = "daily" if seed % 2 else "mirror"
        again.append({"url": f"https://{site}.example/again/{seed}", "title": f"Article {seed}, again", "text": text})
    return made + again


def write_feed(folder: Path, records: list[dict[str, Any]] | None = None) -> Path:
    """The feed as a file."""
    file = folder / "feed.jsonl"
    file.write_text(lines(drafts() if records is None else records), encoding="utf-8")
    return file
