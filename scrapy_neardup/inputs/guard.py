"""Errors of files and of the libraries that read them, as sentences that name the place."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from scrapy_neardup.errors import NearDupError

T = TypeVar("T")
#: What reading raises where a file, or the packing of a file, is not whole.
FAILURES = (OSError, EOFError, lzma.LZMAError, zlib.error)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Whatever can be wrong with a file, at its opening or in its middle, as a NearDupError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise NearDupError(f"{name} does not exist. Name a file or a folder that exists.") from None
    except IsADirectoryError:
        raise NearDupError(f"{name} is a folder, but a file is needed. Name the files in it.") from None
    except PermissionError:
        raise NearDupError(f"You may not read {name}. Change its permissions.") from None
    except FAILURES as error:
        raise NearDupError(f"{name} cannot be read to its end: {error}. Check that the file is complete.") from None


@contextmanager
def library_errors(source: str, unit: str, last: int = 0) -> Iterator[None]:
    """Any exception of a library, which broken files make raise nearly all there are, as the error of ``broken``."""
    try:
        yield
    except Exception as error:
        raise broken(source, unit, last, error) from error


def guarded(items: Iterable[T], source: str, unit: str) -> Iterator[T]:
    """What a library reads; where it breaks down, a NearDupError tells after which unit.

    For libraries only, as any exception counts: broken files make them raise nearly all there are.
    """
    iterator, number = iter(items), 0
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            raise broken(source, unit, number, error) from error
        number += 1
        yield item


def broken(source: str, unit: str, last: int, why: object) -> NearDupError:
    """The error for a file of which nothing can be read after the unit of number ``last``.

    'feed.xml cannot be read after item 17: no end tag. Repair the file there, or cut off the rest.'
    'feed.xml cannot be read on after item 17: no end tag; repair it there, or cut it off.'
    """
    said = " ".join(str(why).split()) or type(why).__name__
    where = f"after {unit} {last}" if last else "from its start"
    return NearDupError(
        f"{source} cannot be read {where}: {said.rstrip('.;')}. Repair the file there, or cut off the rest."
    )
