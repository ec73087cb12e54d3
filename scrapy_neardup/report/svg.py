"""A drawing of matplotlib as an SVG element that takes colours and fonts from the page around it.

The same drawing gives the same SVG, byte by byte, under one version of matplotlib.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colours to draw with, and by what they are replaced: variables of report.css.
INK, LINE, COPY, OTHER, FAINT = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES = {INK: "--soft", LINE: "--line", COPY: "--accent", OTHER: "--neutral", FAINT: "--faint"}
#: Whatever the user's own settings of matplotlib are; sizes are units of the SVG.
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
# Written as one or as two, by the version of matplotlib.
_FONT = re.compile(r"font: ([\d.]+)px [^;\"]*")
_FAMILY = re.compile(r"font-family: [^;\"]*(; )?")
_IDS = re.compile(r' id="([^"]*)"')
_LINKS = re.compile(r'((?:xlink:)?href="#|url\(#)([^")]+)')
_OPENING = re.compile(r"<svg[^>]*>")


@dataclass(frozen=True, slots=True)
class Frame:
    """A drawing's size, and the room around its axes: left, right, above and below, all in units of the SVG."""

    width: int
    height: int
    left: int
    right: int
    above: int
    below: int


def svg(name: str, label: str, frame: Frame, draw: Callable[[Axes], None]) -> str:
    """What ``draw`` draws, as an element whose ids all begin with ``name``; ``label`` is read to those who cannot see.

    It has no size of its own, only proportions.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with (
        rc_context(),
        io.StringIO() as file,
        catch_warnings(),
    ):  # undone at its end; pyplot, with its figures for all, is left alone
        # Letters are drawn by whoever shows the page: it does not matter which of them matplotlib has.
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
    """Without a size, with colours of the page, and with ids of its own where an id is needed."""
    text = _TRIFLES.sub(" ", drawn)
    used = {found[1] for found in _LINKS.findall(text)}
    text = _IDS.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    text = _LINKS.sub(lambda found: f"{found[1]}{name}-{found[2]}", text)
    text = _FAMILY.sub("", _FONT.sub(r"font-size: \1px", text))
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    opening = f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{escape(label)}">'
    return _OPENING.sub(lambda _: opening, text, count=1).strip()
