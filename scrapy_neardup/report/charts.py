"""The charts of a report as SVG. The style of the page gives colours and fonts by class.

Charts show numbers, dates and our own names, never a string of a page. Each is drawn for wide and for narrow screens,
because letters must not shrink.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import takewhile
from math import ceil

from scrapy_neardup.report.data import Report, Similarities, Threshold, Times
from scrapy_neardup.report.formats import format_number, format_percent, format_tick, format_unit
from scrapy_neardup.report.words import ENGLISH, Words

#: Widths in units: the whole page, half of it, a narrow screen.
_FULL, _HALF, _NARROW = 1040, 500, 320
_ROW = 32
#: A bar is cut off if it is more than this many times as long as the next.
_OUTLIER = 4


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart for wide and for narrow screens; empty if there is nothing to draw."""

    wide: str = ""
    narrow: str = ""


def draw_kinds(report: Report, words: Words = ENGLISH) -> Chart:
    """Draw copies by kind, and below them pages that passed though they resemble an earlier one."""
    bars = [(one, "copy") for one in report.kinds] + [(one, "other") for one in report.passed]
    if not bars:
        return Chart()
    names = [words(f"kind.{one.name}") for one in report.kinds]
    names += [words("passed", kind=words(f"kind.{one.name}")) for one in report.passed]
    counts = [format_number(one.pages) for one, _ in bars]
    shares = [format_percent(one.pages / report.totals.pages, words.language) for one, _ in bars]
    label = words("kinds.bars", bars=words("comma").join(map(" ".join, zip(names, counts, strict=True))))

    def draw(width: int, room: float) -> str:
        plot = _Plot(width, _ROW * len(bars) + 8, (4, 4, 4, 150), (0, max(one.pages for one, _ in bars) * room), 1)
        parts = []
        for row, ((one, colour), name, count, share) in enumerate(zip(bars, names, counts, shares, strict=True)):
            middle = 4 + _ROW * (row + 0.5)
            parts += [
                _text(name, plot.left - 7, middle, anchor="end", middle=True),
                _rectangle(colour, plot.left, middle - 10, plot.x(one.pages), middle + 10),
                _text(f"{count}  ({share})", plot.x(one.pages) + 8, middle, middle=True),
            ]
        return plot.drawn(label, parts)

    return Chart(draw(_HALF, 1.5), draw(_NARROW, 2.1))


def draw_times(times: Times, words: Words = ENGLISH) -> Chart:
    """Draw pages over time."""
    buckets = times.buckets
    if not buckets:
        return Chart()
    label = words("times.label", unit=format_unit(times.unit, words))
    aside = max(0, 12 - len(buckets)) / 2  # a few bars are not as wide as the page
    top = max(one.copies + one.originals + one.unjudged for one in buckets)

    def draw(width: int, ticks: int) -> str:
        plot = _Plot(width, 250, (12, 12, 28, 52), (-0.6 - aside, len(buckets) - 0.4 + aside), top * 1.04)
        parts = list(plot.counts())
        for at, one in enumerate(buckets):
            stack = (("copy", one.copies), ("other", one.originals), ("faint", one.unjudged))
            parts += plot.stacked(at - 0.39, at + 0.39, stack)
        step = ceil((len(buckets) + 2 * aside) / ticks)
        shown = [(at, format_tick(times.unit, one.start, words)) for at, one in enumerate(buckets)][::step]
        return plot.drawn(label, [*parts, *plot.axis(shown)])

    return Chart(draw(_FULL, 8), draw(_NARROW, 3))


def draw_similarities(found: Similarities, words: Words = ENGLISH) -> Chart:
    """Draw copies and passed pages by similarity, with the thresholds of the method."""
    heights = [copies + passed for copies, passed in zip(found.copies, found.passed, strict=True)]
    if not any(heights):
        return Chart()
    bins, top = len(heights), _top(heights)
    thresholds = sorted(found.thresholds, key=lambda one: one.value)
    above = 16 + 16 * len(thresholds)
    first = min(next(at for at, height in enumerate(heights) if height) / bins, 0.9)
    low = max(0.0, min([first, *(one.value for one in thresholds)]) - 0.04)

    def draw(width: int) -> str:
        plot = _Plot(width, 220 + above, (above, 14, 28, 52), (low, 1.005), top * 1.04)
        parts = list(plot.counts())
        for at, (copies, passed) in enumerate(zip(found.copies, found.passed, strict=True)):
            lower = min(passed, top)
            stack = (("other", lower), ("copy", min(copies, top - lower)))
            parts += plot.stacked((at + 0.08) / bins, (at + 0.92) / bins, stack)
            if heights[at] > top:
                name = f"{format_number(heights[at])} ↑"
                parts.append(_text(name, plot.x((at + 0.5) / bins), plot.y(top) - 4, anchor="middle"))
        parts += plot.axis([(at / 10, f"{at / 10:.1f}") for at in range(11) if low <= at / 10])
        return plot.drawn(label, [*parts, *_marked(plot, thresholds)])

    label = words("similarities.label")
    return Chart(draw(_HALF), draw(_NARROW))


def _marked(plot: _Plot, thresholds: Sequence[Threshold]) -> Iterator[str]:
    """Draw a dashed line for each threshold, named above the bars, one per line."""
    for row, one in enumerate(thresholds):
        x = plot.x(one.value)
        yield _line("threshold", x, plot.above, x, plot.bottom)
        right = one.value > sum(plot.columns) / 2
        name = f"{one.name} {one.value:g}"
        yield _text(name, x + (-4 if right else 4), plot.above - 18 - 16 * row, anchor="end" if right else "start")


def _top(heights: Sequence[int]) -> int:
    """Return the height of the chart, so that one very long bar does not hide the others.

    >>> _top([3, 5, 4]), _top([3, 5, 900])
    (5, 9)
    """
    second, first = sorted([0, *heights])[-2:]
    return max(1, int(second * 1.8)) if second and first > _OUTLIER * second else max(1, first)


def _ticks(top: float) -> Iterator[int]:
    """Yield at most six round numbers from 0.

    >>> list(_ticks(1)), list(_ticks(7)), list(_ticks(260))
    ([0, 1], [0, 2, 4, 6], [0, 50, 100, 150, 200, 250])
    """
    steps = (factor * 10**power for power in range(20) for factor in (1, 2, 5))
    step = next(step for step in steps if top / step < 6)
    return takewhile(lambda tick: tick <= top, range(0, int(top) + 1, step))


@dataclass(frozen=True, slots=True)
class _Plot:
    """An area for bars: its size and ``margins`` (top, right, bottom, left) in units, the values at its left and right
    ends, and the value at its upper end. The lower end is 0.
    """

    width: int
    height: int
    margins: tuple[int, int, int, int]
    columns: tuple[float, float]
    top: float

    @property
    def above(self) -> int:
        return self.margins[0]

    @property
    def left(self) -> int:
        return self.margins[3]

    @property
    def right(self) -> int:
        return self.width - self.margins[1]

    @property
    def bottom(self) -> int:
        return self.height - self.margins[2]

    def x(self, value: float) -> float:
        low, high = self.columns
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - value / self.top * (self.bottom - self.above)

    def counts(self) -> Iterator[str]:
        """Draw lines at round counts."""
        for count in _ticks(self.top):
            yield _line("grid", self.left, self.y(count), self.right, self.y(count))
            yield _text(format_number(count), self.left - 7, self.y(count), anchor="end", middle=True)

    def axis(self, ticks: Iterable[tuple[float, str]]) -> Iterator[str]:
        """Draw the lower axis with its names."""
        yield _line("axis", self.left, self.bottom, self.right, self.bottom)
        for value, name in ticks:
            yield _text(name, self.x(value), self.bottom + 19, anchor="middle")

    def stacked(self, left: float, right: float, stack: Iterable[tuple[str, int]]) -> Iterator[str]:
        """Draw counts above each other, each in its colour."""
        below = 0
        for colour, count in stack:
            if count:
                yield _rectangle(colour, self.x(left), self.y(below + count), self.x(right), self.y(below))
            below += count

    def drawn(self, label: str, parts: Iterable[str]) -> str:
        """Return the SVG with its parts. It has proportions but no size; screen readers read ``label``."""
        opening = f'<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(label)}">'
        return "".join([opening, *parts, "</svg>"])


def _rectangle(colour: str, left: float, top: float, right: float, bottom: float) -> str:
    at = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"'
    return f'<rect class="{colour}" {at}/>'


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(text: str, x: float, y: float, *, anchor: str = "start", middle: bool = False) -> str:
    """``middle``: ``y`` is the middle of the line instead of its foot."""
    shift = ' dy="0.35em"' if middle else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{shift} text-anchor="{anchor}">{escape(text)}</text>'
