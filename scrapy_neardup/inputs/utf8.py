"""Text in UTF-8 from bytes, or in words why they are none."""

from __future__ import annotations

#: The byte order mark, with which some programs begin a file.
BOM = b"\xef\xbb\xbf"


def decode_utf8(raw: bytes) -> str:
    """The text, of which a byte order mark would be a part; raises ValueError that names the first wrong byte.

    >>> decode_utf8("café".encode("latin-1"))
    Traceback (most recent call last):
    ValueError: not UTF-8: unexpected end of data at byte 4
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from None
