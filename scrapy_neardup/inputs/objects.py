"""One object of JSON from bytes, or in words why it is none."""

from __future__ import annotations

import json
from typing import Any

from scrapy_neardup.inputs.utf8 import decode_utf8

#: How what JSON holds instead of an object is called.
_KINDS = {
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def parse_object(raw: bytes) -> dict[str, Any]:
    """The object that the bytes hold; raises ValueError that says what they are instead.

    NaN and Infinity, which Python writes and few others read, are taken. The encoding is never guessed.

    >>> parse_object(b'{"title": "Ferry"}')
    {'title': 'Ferry'}
    >>> parse_object(b'[1]')
    Traceback (most recent call last):
    ValueError: not an object but a list
    """
    try:
        found = json.loads(decode_utf8(raw))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("JSON with lists or objects nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"not an object but {_KINDS[type(found)]}")
    return found
