"""The curves of a robustness test as a picture.

The picture is readable without colours: methods differ in marker and dashes too. Equal points give equal bytes under
one version of matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.lab.robustness import CONTROL, Point

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Metadata by suffix that leaves out the time of drawing.
_METADATA: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
_MARKERS = "osD^vPX<>ph*"
_DASHES = ("-", "--", "-.", ":")
#: Colours of Okabe and Ito for colour-blind readers, without yellow and black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#666666")
#: Our settings of matplotlib, whatever the user's are. Letters are outlines, as fonts have other widths.
_STYLE: Any = {
    "svg.hashsalt": "scrapy-neardup",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
}


def check_drawable(path: Path) -> None:
    """Raise SettingsError for an unknown suffix or folder, and NearDupError without matplotlib."""
    if path.suffix not in _METADATA:
        raise SettingsError(f"{path} is no picture. Give it the suffix {' or '.join(_METADATA)}.")
    if not path.parent.is_dir():
        raise SettingsError(f"The folder {path.parent} does not exist. Make it, or name another.")
    if find_spec("matplotlib") is None:
        raise NearDupError('Curves need matplotlib. Run: pip install "scrapy-neardup[plot]"')


def draw_curves(points: Sequence[Point], path: Path) -> None:
    """Write the curves of all methods: a panel for each edit with amounts, bars for the others.

    Raises the errors of ``check_drawable``, and NearDupError if the file cannot be written.
    """
    check_drawable(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(point.method for point in points))
    with rc_context(_STYLE):  # without pyplot, whose figures and backend are global
        figure = Figure(figsize=(10, 7.5), layout="constrained")
        FigureCanvasAgg(figure)
        _fill(figure, points, methods)
        try:
            figure.savefig(path, dpi=120, metadata=_METADATA[path.suffix])
        except OSError as error:
            raise NearDupError(f"{path} cannot be written: {error}. Name another file.") from None


def _fill(figure: Figure, points: Sequence[Point], methods: Sequence[str]) -> None:
    gradual = list(dict.fromkeys(point.edit for point in points if point.amount))
    others = list(dict.fromkeys(point.edit for point in points if not point.amount and point.edit != CONTROL))
    others += [CONTROL] * any(point.edit == CONTROL for point in points)
    rows = bool(gradual) + bool(others)
    grid = figure.add_gridspec(rows, max(1, len(gradual)))
    for column, edit in enumerate(gradual):
        _draw_lines(figure.add_subplot(grid[0, column]), edit, points, methods, first=column == 0)
    if others:
        _draw_bars(figure.add_subplot(grid[-1, :]), others, points, methods)
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = max(1, 120 // (8 + max(map(len, handles), default=1)))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False)


def _draw_lines(axes: Axes, edit: str, points: Sequence[Point], methods: Sequence[str], *, first: bool) -> None:
    for number, method in enumerate(methods):
        own = [point for point in points if point.edit == edit and point.method == method and point.pages]
        if not own:
            continue
        axes.plot(
            [100 * point.amount for point in own],
            [100 * point.recognised for point in own],
            label=method,
            linestyle=_DASHES[number % len(_DASHES)],
            linewidth=1.4,
            gid=f"{edit} {method}",
            **_choose_marker(number),
        )
    axes.set_title(edit)
    axes.set_xlabel("% of the text")
    axes.set_xlim(left=0)
    _format_percent_axis(axes, "recognised, %" if first else "")


def _draw_bars(axes: Axes, edits: Sequence[str], points: Sequence[Point], methods: Sequence[str]) -> None:
    shares = {(point.edit, point.method): 100 * point.recognised for point in points if point.pages}
    thickness = 0.84 / len(methods)
    for number, method in enumerate(methods):
        there = [place for place, edit in enumerate(edits) if (edit, method) in shares]
        places = [place + (number - (len(methods) - 1) / 2) * thickness for place in there]
        heights = [shares[edits[place], method] for place in there]
        if not there:
            continue
        marker = _choose_marker(number)
        axes.bar(places, heights, 0.8 * thickness, color=marker["color"], alpha=0.45)
        axes.plot(places, heights, label=method, linestyle="none", **marker)
    axes.set_xticks(range(len(edits)), [f"{edit}\n(0 is best)" if edit == CONTROL else edit for edit in edits])
    axes.set_title("edits without an amount, and pages that are no copies")
    _format_percent_axis(axes, "recognised, %")


def _choose_marker(number: int) -> dict[str, Any]:
    """Return a method's marker; colours repeat with hollow markers."""
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 5,
        "markerfacecolor": None if number < len(_COLOURS) else "white",
        "clip_on": False,
    }


def _format_percent_axis(axes: Axes, label: str) -> None:
    axes.set_ylim(0, 102)
    axes.set_ylabel(label)
    axes.grid(axis="y", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
