"""``%(name)s`` in the URL of a state: one state for each spider, or whatever attribute of it is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from glob import escape, glob
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.stores.place import SETTING
from scrapy_neardup.stores.redis_place import without_password

#: As printf has them; other percent signs of a URL stay.
_PLACEHOLDER = re.compile(r"%\((\w+)\)([-#0 +]*\d*(?:\.\d+)?[diouxXeEfFgGrsa])")
_MARK = "\ue000"  # nothing that a path would have
#: Ends of files that stand beside a state, and are none.
_BESIDE = (".witness", ".lock", "-wal", "-shm", ".draft")
#: What can be no part of a file's name on some system, or would lead out of its directory; and the escape itself.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|%\ud800-\udfff]|^[. ]+$|[. ]+$')


def safe_name(value: str) -> str:
    """A value as the name of a file: the same names for the same values alone, and none that leads elsewhere.

    >>> safe_name("news.example"), safe_name("a/b"), safe_name(".."), safe_name("100%")
    ('news.example', 'a%2Fb', '%2E%2E', '100%25')
    """
    return _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")), value
    )


def has_placeholders(url: str) -> bool:
    """Whether the URL is one for each of several."""
    return "%(" in url


def placeholders_filled(url: str, value_of: Callable[[str], object], named_by: str = SETTING) -> str:
    """The URL with its placeholders replaced by what ``value_of`` their names gives, as a part of a file's name.

    Raises SettingsError for a placeholder that cannot be read, and a value that is empty or no text, number or date.
    """

    shown = without_password(url)

    def fill(found: re.Match[str]) -> str:
        value = value_of(found[1])
        if not isinstance(value, (str, int, float, date)):
            raise SettingsError(
                f"{named_by} is {shown!r}, but the spider's {found[1]} is {value!r:.80}, which cannot be part of a "
                "name. Use an attribute that is a string or a number, such as %(name)s."
            )
        try:
            filled = f"%{found[2]}" % value
        except (TypeError, ValueError) as error:
            raise SettingsError(f"{named_by} is {shown!r}, but {found[0]} cannot be filled in: {error}.") from None
        if not filled:
            raise SettingsError(
                f"{named_by} is {shown!r}, but the spider's {found[1]} is empty. Give it a value, or use another "
                "attribute, such as %(name)s."
            )
        return quote(safe_name(filled), safe="")

    placeholders_checked(url, named_by)
    return _PLACEHOLDER.sub(fill, url)


def placeholders_checked(url: str, named_by: str = SETTING) -> str:
    """A URL such as those that come of it; raises SettingsError for a placeholder that cannot be read."""
    shown, one = without_password(url), _PLACEHOLDER.sub("x", url)
    if has_placeholders(one):
        raise SettingsError(
            f"{named_by} is {shown!r}, which has an incomplete placeholder. Write it as %(name)s, with the s. "
            "If %( is part of a name, write %25(."
        )
    return one


def matching(url: str) -> Iterator[str]:
    """The paths that there are for a URL with placeholders, whatever these are filled with."""
    path = url2pathname(urlsplit(_PLACEHOLDER.sub(_MARK, url)).path)
    found = sorted(glob("*".join(map(escape, path.split(_MARK)))))  # noqa: PTH207 - it leaves hidden names out
    yield from (one for one in found if not one.endswith(_BESIDE))
