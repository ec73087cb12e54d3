"""The counts of a report as charts: numbers, dates and names of this package, never a string of a page.

Each is drawn twice, for wide and for narrow screens, as letters must not shrink with the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import ceil
from typing import TYPE_CHECKING

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.report.data import Count, Report, Similarities, Times
from scrapy_neardup.report.formats import number, percent, tick, unit_name
from scrapy_neardup.report.svg import COPY, FAINT, INK, LINE, OTHER, Frame, svg
from scrapy_neardup.report.words import ENGLISH, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Units of a wide chart over the whole page, of one beside another, and of a narrow one.
_FULL, _HALF, _NARROW = 1040, 500, 320
_ROW = 32
#: A bar is cut off if it is more than so many times as long as the next.
_OUTLIER = 4


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart for wide and for narrow screens, as SVG elements; empty where there is nothing to draw."""

    wide: str = ""
    narrow: str = ""


def check() -> None:
    """Raise NearDupError if there is nothing to draw with."""
    if find_spec("matplotlib") is None:
        raise NearDupError("Charts need matplotlib. Run: pip install 'scrapy-neardup[report]'")


def kinds(report: Report, words: Words = ENGLISH) -> Chart:
    """Copies by kind, and below them the pages that passed though they are like an earlier one."""
    bars = [(one, True) for one in report.kinds] + [(one, False) for one in report.passed]
    if not bars:
        return Chart()
    names = [kind(one.name, words, copy=copy) for one, copy in bars]
    shares = [percent(one.pages / report.totals.pages, words.language) for one, _ in bars]
    told = (f"{name} {number(one.pages)}" for name, (one, _) in zip(names, bars, strict=True))
    label = words("kinds.bars", bars=words("comma").join(told))
    height = _ROW * len(bars) + 8

    def drawn(name: str, width: int, room: float) -> str:
        frame = Frame(width, height, 150, 4, 4, 4)
        return svg(name, label, frame, partial(_kinds, bars=bars, names=names, shares=shares, room=room))

    return Chart(drawn("kinds-wide", _HALF, 1.5), drawn("kinds-narrow", _NARROW, 2.1))


def times(found: Times, words: Words = ENGLISH) -> Chart:
    """Pages by the time at which they were first seen."""
    if not found.buckets:
        return Chart()
    label = words("times.label", unit=unit_name(found.unit, words))

    def drawn(name: str, width: int, ticks: int) -> str:
        return svg(
            name, label, Frame(width, 250, 52, 12, 12, 28), partial(_times, found=found, words=words, ticks=ticks)
        )

    return Chart(drawn("times-wide", _FULL, 8), drawn("times-narrow", _NARROW, 3))


def similarities(found: Similarities, words: Words = ENGLISH) -> Chart:
    """Copies, and pages that passed, by similarity, with the thresholds of the method."""
    if not any((*found.copies, *found.passed)):
        return Chart()
    label = words("similarities.label")
    above = 16 + 16 * len(found.thresholds)

    def drawn(name: str, width: int) -> str:
        return svg(name, label, Frame(width, 220 + above, 52, 14, above, 28), partial(_similarities, found=found))

    return Chart(drawn("similarities-wide", _HALF), drawn("similarities-narrow", _NARROW))


def kind(name: str, words: Words, *, copy: bool = True) -> str:
    """What a kind is called, of a copy or of a page that passed."""
    called = words(f"kind.{name}")
    return called if copy else words("passed", kind=called)


def _kinds(
    axes: Axes, bars: Sequence[tuple[Count, bool]], names: Sequence[str], shares: Sequence[str], room: float
) -> None:
    places = range(len(bars))
    counts = [one.pages for one, _ in bars]
    axes.barh(places, counts, 0.62, color=[COPY if copy else OTHER for _, copy in bars])
    for place, count in zip(places, counts, strict=True):
        text = f"{number(count)}  ({shares[place]})"
        axes.annotate(text, (count, place), (8, 0), textcoords="offset points", va="center_baseline")
    axes.set_yticks(places, names)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, max(counts) * room)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)


def _times(axes: Axes, found: Times, words: Words, ticks: int) -> None:
    buckets = found.buckets
    places = range(len(buckets))
    stacks = (
        ([one.copies for one in buckets], COPY),
        ([one.originals for one in buckets], OTHER),
        ([one.unjudged for one in buckets], FAINT),
    )
    below = [0] * len(buckets)
    for heights, colour in stacks:
        axes.bar(places, heights, 0.78, below, color=colour)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    aside = max(0, 12 - len(buckets)) / 2
    axes.set_xlim(-0.6 - aside, len(buckets) - 0.4 + aside)
    step = ceil((len(buckets) + 2 * aside) / ticks)
    axes.set_xticks(places[::step], [tick(found.unit, one.start, words) for one in buckets[::step]])
    _counted(axes, max(below))


def _similarities(axes: Axes, found: Similarities) -> None:
    bins = len(found.copies)
    heights = [copies + passed for copies, passed in zip(found.copies, found.passed, strict=True)]
    top = _top(heights)
    for at, (copies, passed) in enumerate(zip(found.copies, found.passed, strict=True)):
        if passed:
            axes.bar((at + 0.5) / bins, min(passed, top), 0.84 / bins, color=OTHER)
        if copies:
            axes.bar((at + 0.5) / bins, min(copies, top - min(passed, top)), 0.84 / bins, min(passed, top), color=COPY)
        if heights[at] > top:
            axes.annotate(
                f"{number(heights[at])} ↑", ((at + 0.5) / bins, top), (0, 4), textcoords="offset points", ha="center"
            )
    lowest = min(next(at for at, height in enumerate(heights) if height) / bins, 0.9)
    low = max(0.0, min([lowest, *(one.value for one in found.thresholds)]) - 0.04)
    axes.set_xlim(low, 1.005)
    _counted(axes, top)
    axes.set_xticks(
        [at / 10 for at in range(11) if low <= at / 10], [f"{at / 10:.1f}" for at in range(11) if low <= at / 10]
    )
    _thresholds(axes, found, low)


def _thresholds(axes: Axes, found: Similarities, low: float) -> None:
    """A dashed line for each, named above the axes, one name a line as values may lie close together."""
    for row, one in enumerate(sorted(found.thresholds, key=lambda threshold: threshold.value)):
        up = 18 + 16 * row
        axes.axvline(one.value, color=INK, linewidth=1.2, dashes=(4, 3))
        right = one.value > (1 + low) / 2
        axes.annotate(
            f"{one.name} {one.value:g}",
            (one.value, 1),
            (-4 if right else 4, up),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="right" if right else "left",
        )


def _top(heights: Sequence[int]) -> int:
    """Up to where bars are drawn: so that one that is much longer than the others does not hide them.

    >>> _top([3, 5, 4]), _top([3, 5, 900])
    (5, 9)
    """
    second, first = sorted([0, *heights])[-2:]
    return max(1, int(second * 1.8)) if second and first > _OUTLIER * second else max(1, first)


def _counted(axes: Axes, top: int) -> None:
    """Counts upwards, with few lines across."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_ylim(0, top * 1.04)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(round(value))))
    axes.grid(axis="y", color=LINE, linewidth=1)
    axes.set_axisbelow(True)
