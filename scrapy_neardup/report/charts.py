"""The charts of a report."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from html import escape
from importlib.util import find_spec
from math import ceil
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.report.data import Count, Report, Similarities, Times
from scrapy_neardup.report.words import ENGLISH, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Formats of a bar's full time, by the word in its unit.
_DATE_FORMATS = {"second": "%Y-%m-%d %H:%M:%S", "day": "%Y-%m-%d", "week": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
_MINUTE = "%Y-%m-%d %H:%M"


def number(value: int) -> str:
    """Format a number with commas.

    >>> number(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def short(value: int, language: str = "en") -> str:
    """Format a large number in few characters; Chinese counts in ten thousands.

    >>> short(950), short(28_344), short(2_340_000), short(3_000_000_000)
    ('950', '28.3 k', '2.34 M', '3.00 G')
    >>> short(28_344, "zh"), short(3_000_000_000, "zh")
    ('2.83 万', '30.00 亿')
    """
    if value < 10_000:
        return number(value)
    units = ((10**8, "亿"), (10**4, "万")) if language == "zh" else ((10**9, "G"), (10**6, "M"))
    for factor, unit in units:
        if value >= factor:
            return f"{value / factor:,.0f} {unit}" if value >= 100 * factor else f"{value / factor:.2f} {unit}"
    return f"{value / 1000:.1f} k"


def percent(share: float, language: str = "en") -> str:
    """Format a share with one decimal. Only exact 0 and 1 become 0 and 100.

    >>> percent(0.2503), percent(0.00001), percent(0.99999), percent(1)
    ('25.0 %', '< 0.1 %', '> 99.9 %', '100 %')
    >>> percent(0.2503, "zh")
    '25.0%'
    """
    if share in (0, 1):
        text = f"{share:.0%}"
    elif share < 0.0005:
        text = "< 0.1%"
    else:
        text = "> 99.9%" if share > 0.9995 else f"{share:.1%}"
    return text if language == "zh" else text.replace("%", " %")


def size(bytes: int) -> str:
    """Format bytes in powers of ten.

    >>> size(820), size(53_200), size(1_240_000)
    ('820 B', '53.2 kB', '1.2 MB')
    """
    value, unit = float(bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):  # the last one stays
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def moment(seconds: int) -> str:
    """Format a time to the minute, in UTC.

    >>> moment(1_763_718_041)
    '2025-11-21 09:40'
    """
    return _utc(seconds).strftime(_MINUTE)


def tick(unit: str, seconds: int, words: Words) -> str:
    """Format the beginning of a bar, in a unit of ``Times``.

    >>> english = Words("en")
    >>> tick("15 seconds", 1_763_718_041, english), tick("week", 1_763_718_041, english)
    ('09:40:41', '21 Nov')
    """
    return _utc(seconds).strftime(words(f"tick.{_word(unit)}"))


def unit_name(unit: str, words: Words) -> str:
    """Return the name of a unit of ``Times``.

    >>> unit_name("5 minutes", Words("en")), unit_name("5 minutes", Words("zh")), unit_name("hour", Words("zh"))
    ('5 minutes', ' 5 分钟', '小时')
    """
    many = unit.partition(" ")[0]
    return words(f"unit.{_word(unit)}", int(many) if many.isdigit() else 1)


def full(unit: str, seconds: int) -> str:
    """Format the beginning of a bar in full.

    >>> full("5 minutes", 1_763_718_041), full("month", 1_763_718_041)
    ('2025-11-21 09:40', '2025-11')
    """
    return _utc(seconds).strftime(_DATE_FORMATS.get(_word(unit), _MINUTE))


def _word(unit: str) -> str:
    return unit.split()[-1].removesuffix("s")


def _utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, tz=timezone.utc)


# The SVG takes colours and fonts from the page. Equal drawings give equal bytes under one version of matplotlib.


#: Colours to draw with; variables of report.css replace them.
INK, LINE, COPY, OTHER, FAINT = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES = {INK: "--soft", LINE: "--line", COPY: "--accent", OTHER: "--neutral", FAINT: "--faint"}
#: Our settings of matplotlib, whatever the user's are. Sizes are units of the SVG.
_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 12.0,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.edgecolor": LINE,
    "axes.linewidth": 1.0,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.major.pad": 7.0,
    "ytick.major.pad": 7.0,
}
_TRIFLES = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|\n *", re.DOTALL)
# One or two declarations, depending on the version of matplotlib.
_FONT = re.compile(r"font: ([\d.]+)px [^;\"]*")
_FAMILY = re.compile(r"font-family: [^;\"]*(; )?")
_IDS = re.compile(r' id="([^"]*)"')
_LINKS = re.compile(r'((?:xlink:)?href="#|url\(#)([^")]+)')
_OPENING = re.compile(r"<svg[^>]*>")


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a drawing and its margins, in units of the SVG."""

    width: int
    height: int
    left: int
    right: int
    above: int
    below: int


def svg(name: str, label: str, frame: Frame, draw: Callable[[Axes], None]) -> str:
    """Return the drawing of ``draw`` as an element whose ids begin with ``name``; screen readers read ``label``.

    It has proportions but no size.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with (
        rc_context(),
        io.StringIO() as file,
        catch_warnings(),
    ):  # undone at its end; pyplot, with its figures for all, is left alone
        # The browser draws the letters, so matplotlib may lack their glyphs.
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        _take_style(name)
        figure = Figure(figsize=(frame.width / 72, frame.height / 72), facecolor="none")
        FigureCanvasSVG(figure)
        width, height = frame.width - frame.left - frame.right, frame.height - frame.above - frame.below
        axes = figure.add_axes(
            (frame.left / frame.width, frame.below / frame.height, width / frame.width, height / frame.height)
        )
        axes.spines[["top", "right", "left"]].set_visible(False)
        draw(axes)
        figure.savefig(file, format="svg", metadata={"Date": None})
        drawn = file.getvalue()
    return _embedded(drawn[drawn.index("<svg") :], name, label, frame)


def _take_style(name: str) -> None:
    from matplotlib import rcdefaults, rcParams

    rcdefaults()
    rcParams.update({**_STYLE, "svg.hashsalt": name})


def _embedded(drawn: str, name: str, label: str, frame: Frame) -> str:
    """Remove the size, use colours of the page, and make ids unique."""
    text = _TRIFLES.sub(" ", drawn)
    used = {found[1] for found in _LINKS.findall(text)}
    text = _IDS.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    text = _LINKS.sub(lambda found: f"{found[1]}{name}-{found[2]}", text)
    text = _FAMILY.sub("", _FONT.sub(r"font-size: \1px", text))
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    opening = f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{escape(label)}">'
    return _OPENING.sub(lambda _: opening, text, count=1).strip()


# Charts show numbers, dates and our own names, never a string of a page. Each is drawn for wide and for narrow screens,
# as letters must not shrink.


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


def check() -> None:
    """Raise NearDupError without matplotlib."""
    if find_spec("matplotlib") is None:
        raise NearDupError("Charts need matplotlib. Run: pip install 'scrapy-neardup[report]'")


def kinds(report: Report, words: Words = ENGLISH) -> Chart:
    """Draw copies by kind, and below them pages that passed though they resemble an earlier one."""
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
    """Draw pages over time."""
    if not found.buckets:
        return Chart()
    label = words("times.label", unit=unit_name(found.unit, words))

    def drawn(name: str, width: int, ticks: int) -> str:
        return svg(
            name, label, Frame(width, 250, 52, 12, 12, 28), partial(_times, found=found, words=words, ticks=ticks)
        )

    return Chart(drawn("times-wide", _FULL, 8), drawn("times-narrow", _NARROW, 3))


def similarities(found: Similarities, words: Words = ENGLISH) -> Chart:
    """Draw copies and passed pages by similarity, with the thresholds of the method."""
    if not any((*found.copies, *found.passed)):
        return Chart()
    label = words("similarities.label")
    above = 16 + 16 * len(found.thresholds)

    def drawn(name: str, width: int) -> str:
        return svg(name, label, Frame(width, 220 + above, 52, 14, above, 28), partial(_similarities, found=found))

    return Chart(drawn("similarities-wide", _HALF), drawn("similarities-narrow", _NARROW))


def kind(name: str, words: Words, *, copy: bool = True) -> str:
    """Return the name of a kind."""
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
    """Draw a dashed line for each threshold, named above the axes, one per line."""
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
    """Return the height of the chart, so that one very long bar does not hide the others.

    >>> _top([3, 5, 4]), _top([3, 5, 900])
    (5, 9)
    """
    second, first = sorted([0, *heights])[-2:]
    return max(1, int(second * 1.8)) if second and first > _OUTLIER * second else max(1, first)


def _counted(axes: Axes, top: int) -> None:
    """Format the axis of counts."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_ylim(0, top * 1.04)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(round(value))))
    axes.grid(axis="y", color=LINE, linewidth=1)
    axes.set_axisbelow(True)
