"""Where the states of one kind of store lie, and what can be asked of them without opening one."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar
from urllib.parse import SplitResult
from urllib.request import url2pathname

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores.damaged import DamagedCopy

#: Characters that no path of a state may have: the system refuses NUL, a terminal acts on the others.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: What names the state of a crawl; a command has an option for it.
SETTING = "NEARDUP_STORE"


class Place(ABC):
    """The places of one kind. As it stands, they are paths; a kind that lies elsewhere has URLs of its own."""

    #: The scheme of the URLs that open it.
    scheme: ClassVar[str]
    #: Whether a state outlives the store that made it; one that does not has no place, and nothing is ever there.
    lasts: ClassVar[bool] = True

    @classmethod
    def form(cls) -> str:
        """How its URLs look, for a message."""
        return f"{cls.scheme}:///path"

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        """The location in a URL of this scheme, the same for all that name one place.

        Raises ValueError that goes on after the URL: "which …".
        """
        if parts.netloc or not parts.path.startswith("/") or not parts.path.strip("/"):
            raise ValueError(f"which names no absolute path. Write three slashes: {cls.form()}")
        if parts.query or parts.fragment:
            raise ValueError("which has a ? or a # in its path. Write %3F for the question mark, %23 for the hash")
        path = url2pathname(parts.path)
        if _CONTROL.search(path):
            raise ValueError("which has a control character in its path. Name another path")
        return os.path.realpath(path)

    @classmethod
    def url(cls, location: str) -> str:
        """The URL of a location."""
        return cls.scheme + Path(location).as_uri().removeprefix("file")

    @classmethod
    def misplaced(cls, location: str) -> str:
        """Of a new state in the root of the disk a sentence that shows the URL of one in the working directory."""
        path = Path(location)
        if str(path.parent) != path.anchor or cls.exists(location):
            return ""
        here = cls.url(str(Path(path.name).absolute()))
        return f"{location} is in the root directory. For the working directory, write {here}."

    @classmethod
    @abstractmethod
    def exists(cls, location: str) -> bool:
        """Whether there is a state, which opening would make if there is none; it need not be whole."""

    @classmethod
    def witness_of(cls, location: str) -> Path | None:
        """The small file that tells how far the state had come (see ``Witness``); None for a kind that keeps none."""
        return None

    @classmethod
    def parts(cls, location: str) -> str:
        """What is to be moved or copied together, for a message."""
        return location

    @classmethod
    def pieces(cls, location: str) -> tuple[Path, ...]:
        """The files and folders of a state that is closed, for whoever moves it; none for a kind that has no such."""
        return ()

    @classmethod
    def lock_of(cls, location: str) -> Path:
        """The file that is locked while a state is used, and gone otherwise."""
        return Path(f"{location}.lock")

    @classmethod
    def damaged_copy(cls, location: str, folder: Path) -> AbstractContextManager[DamagedCopy]:
        """The state, locked while it is copied into ``folder``, which is the caller's to remove, to be read from there.

        Raises StoreLocked while a crawl uses the state, StoreError if it cannot be copied, or nothing of it can be
        opened.
        """
        raise StoreError(f"A {cls.scheme} state cannot be repaired. Restore it from a backup.")
