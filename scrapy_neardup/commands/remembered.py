"""Two pages of a state of which one is known as a copy and no more: what was said of them when it was judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scrapy_neardup.commands.wording import iso, line
from scrapy_neardup.stores import Evidence, Record, Store


@dataclass(frozen=True, slots=True)
class Remembered:
    """A copy and the page that it is compared with: its original, or ``other``, a second copy of that original."""

    copy: Record
    evidence: Evidence | None
    original: Record
    other: Record
    #: As they were asked for.
    names: tuple[str, str]

    @property
    def is_of_original(self) -> bool:
        """Whether the copy is compared with its original."""
        return self.other.id == self.original.id


def remembered(store: Store, a: str, b: str) -> Remembered | None:
    """What is known of two URLs where nothing is kept to compare one of them by; None where they can be compared.

    Also None where the copy has another original: nothing is known of the two, then.
    """
    one, two = store.find(a), store.find(b)
    if one is None or two is None or one.id == two.id:
        return None
    bare = [record for record in (two, one) if _is_bare(store, record)]  # the second is the one that is judged
    if not bare or one.original != two.original:
        return None
    copy, other = (two, one) if bare[0] is two else (one, two)
    original = store.record(copy.original)
    return None if original is None else Remembered(copy, store.evidence(copy.id), original, other, (a, b))


def _is_bare(store: Store, record: Record) -> bool:
    kept = store.evidence(record.id)
    return record.is_light and not (kept and kept.text)


def as_lines(known: Remembered) -> Iterator[str]:
    """The verdict of that time, with its evidence."""
    copy, evidence = known.copy, known.evidence
    yield sentence(known)
    for name, url in zip("AB", known.names, strict=True):
        title = f', "{line(evidence.title)}"' if evidence and evidence.title and url == copy.url else ""
        yield f"{name} is {line(url)}{title}"
    if not known.is_of_original:
        yield f"Both are copies of {line(known.original.url)}. Copies are compared with originals only."
    yield f"This verdict is from {iso(copy.first_seen)}, when the copy was first seen. Its text is not kept."
    if evidence and evidence.shared:
        yield from ("", "It shares with its original, among others:")
        yield from (f"  {line(one)}" for one in evidence.shared)
    yield ""
    yield (
        "For features and marked texts, name a file with the copy, or set this before the next crawl: "
        'NEARDUP_KEEP = "texts".'
    )


def as_data(known: Remembered) -> dict[str, Any]:
    """The same for JSON, under the names that two pages have which can be compared."""
    evidence = known.evidence
    return {
        "verdict": "duplicate",
        "kind": (evidence.likeness or None) if evidence else None,
        "reason": None,
        "sentence": sentence(known),
        "remembered": True,
        "original": known.original.url,
        "first_seen": iso(known.copy.first_seen),
        "similarity": round(known.copy.similarity, 4),
        "containment": round(evidence.containment, 4) if evidence else None,
        "shared": list(evidence.shared) if evidence else [],
        "features": None,
        "a": {"name": known.names[0], "text": None},
        "b": {"name": known.names[1], "text": None},
    }


def sentence(known: Remembered) -> str:
    """The verdict, as it is said first."""
    kind = f" ({known.evidence.likeness})" if known.evidence and known.evidence.likeness else ""
    copy, other = ("A", "B") if known.copy.url == known.names[0] else ("B", "A")
    similarity = f"similarity {known.copy.similarity:.2f}"
    if known.is_of_original:
        return f"duplicate{kind}: {copy} is a copy of {other}, {similarity}."
    return f"duplicate{kind}: {copy} and {other} are copies of one page; {copy} has {similarity} to it."
