"""Folders of pages: every file of HTML below them, else docs.jsonl, else every text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import BinaryIO

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs.documents import HTML, TEXT, html_page, readable, text_page
from scrapy_neardup.inputs.entry import InputRecord, Malformed
from scrapy_neardup.inputs.guard import FAILURES
from scrapy_neardup.inputs.jsonl import read_jsonl_file
from scrapy_neardup.inputs.packed import find_file, open_packed, unpacked_name

_Page = Callable[[BinaryIO, str, int, str], InputRecord]


def read_folder(name: str, format: str = "") -> Iterator[InputRecord]:
    """The pages of a folder, plain or packed, in the order of their names; those that cannot be read are malformed.

    ``format``: only html, only text, or, if empty, the first that is there. Raises NearDupError if nothing is.
    """
    if format not in ("", "html", "text"):
        raise NearDupError(f"{name} is a folder. Name the {format} files in it.")
    found = False
    for record in _pages(Path(name), HTML, html_page) if format != "text" else ():
        found = True
        yield record
    if not found and not format and (docs := find_file(Path(name), "docs.jsonl")):
        yield from read_jsonl_file(docs)
        return
    for record in _pages(Path(name), TEXT, text_page) if not found and format != "html" else ():
        found = True
        yield record
    if not found:
        what = {"html": "HTML files", "text": ".txt files"}.get(format, "HTML files, docs.jsonl or .txt files")
        raise NearDupError(f"{name} contains no {what}. Name another folder, or the files.")


def _pages(root: Path, suffixes: tuple[str, ...], page: _Page) -> Iterator[InputRecord]:
    for number, (path, why) in enumerate(_walk(root, suffixes, frozenset()), 1):
        source = readable(path)
        if why:
            yield Malformed(source, number, "", why)
            continue
        try:
            with open_packed(path) as file:
                record = page(file, source, number, readable(path.relative_to(root)))
        except FAILURES as error:
            record = Malformed(source, number, "", _said(error))
        yield record


def _walk(folder: Path, suffixes: tuple[str, ...], above: frozenset[tuple[int, int]]) -> Iterator[tuple[Path, str]]:
    """The files with one of the suffixes, and the folders that cannot be read with the reason why.

    One folder's names are in memory at a time. Links are followed, but never to a folder ``above``, known by device
    and number.
    """
    try:
        stat = folder.stat()
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda one: one.name)
    except OSError as error:
        yield folder, _said(error)
        return
    own = (stat.st_dev, stat.st_ino)
    if own in above:
        return
    for one in inside:
        if one.is_dir():
            yield from _walk(folder / one.name, suffixes, above | {own})
        elif PurePath(unpacked_name(one.name)).suffix.lower() in suffixes and _is_file(one):
            yield folder / one.name, ""


def _is_file(one: os.DirEntry[str]) -> bool:
    """Whether it is a file, or a link to nothing, which is to be named; no pipe, for which one would wait for ever."""
    return one.is_file() or (one.is_symlink() and not Path(one.path).exists())


def _said(error: BaseException) -> str:
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"
