"""XML as Scrapy exports it: every child of the root is a record, and its children are the fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from lxml import etree

from scrapy_neardup.files.entry import Entry, InputRecord, Malformed, guarded

#: Scrapy's name for elements of a list.
_VALUE = "value"


def read_xml(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Yield every child of the root. Raises NearDupError where the markup is broken.

    A field of ``value`` elements is a list, one of other elements a mapping, one of mixed content all its text;
    repeated names make a list. Attributes of a record are fields; attributes of a field and namespaces are ignored.
    Memory is bounded: no entities are resolved, nothing is fetched, and a text has at most 10 MB.
    """
    for number, element in enumerate(guarded(_children(file), source, "item"), 1):
        if why := _what_is_wrong(element):
            yield Malformed(source, number, "item", why, etree.tostring(element, encoding="utf-8", with_tail=False))
        else:
            attributes = {str(name): str(value) for name, value in element.items()}
            yield Entry(source, number, "item", attributes | _fields(element))


def _children(file: BinaryIO) -> Iterator[etree._Element]:
    """Yield the children of the root, and remove each from the tree afterwards."""
    parsed = etree.iterparse(
        file, events=("end",), resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    for _, element in parsed:
        root = element.getparent()
        if root is None or root.getparent() is not None:
            continue
        yield element
        element.clear()
        while root[0] is not element:
            del root[0]


def _what_is_wrong(element: etree._Element) -> str:
    """Say why an element is malformed; empty if it is not."""
    for entity in element.iter(etree.Entity):
        return f"the entity {entity.text} is not resolved"
    if _has_own_text(element):
        return "text outside of a field"
    return ""


def _has_own_text(element: etree._Element) -> bool:
    """Whether there is text between its children."""
    return any((text or "").strip() for text in (element.text, *(child.tail for child in element)))


def _fields(element: etree._Element) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    several = set()
    for child in element:
        name, value = etree.QName(child).localname, _value(child)
        if name not in fields:
            fields[name] = value
        elif name in several:
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
            several.add(name)
    return fields


def _value(element: etree._Element) -> Any:
    if len(element) == 0:
        return element.text or ""
    if _has_own_text(element):
        return "".join(element.itertext())
    if all(etree.QName(child).localname == _VALUE for child in element):
        return [_value(child) for child in element]
    return _fields(element)
