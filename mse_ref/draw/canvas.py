"""What every figure shares: the palette, labelled matrices, wires, and files that are the same every time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

try:
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
    from matplotlib.path import Path as Curve
except ImportError as error:  # drawing is optional; the reference itself never needs it
    raise ImportError("mse_ref.draw needs matplotlib; install it with: pip install 'matrix-se[draw]'") from error

# Okabe & Ito's palette keeps its contrasts under every common form of colour blindness.
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILLION, PURPLE, INK = "#0072B2", "#D55E00", "#CC79A7", "#222222"
GREY, PALE = "#9A9A9A", "#E8E8E8"
QUADRANTS = (SKY, ORANGE, GREEN, PURPLE)  # digit 0, 1, 2, 3: top-left, top-right, bottom-left, bottom-right
Wire = tuple[float, float, float, float]  # from (x, y) to (x, y)
TINTS = ("#BBDDF5", "#F5D999", "#99D8C7", "#EBC9DC")  # the same, light enough to write on


def quaternary(position: int, digits: int) -> str:
    """The base-4 digits of a position, highest first.

    >>> quaternary(6, 3)
    '012'
    """
    return np.base_repr(position, 4).zfill(digits)


def digits_of(n: int) -> int:
    """k of n = 2**k, for a side that can be drawn.

    >>> digits_of(8)
    3
    >>> digits_of(6)
    Traceback (most recent call last):
    ValueError: n must be a power of two from 2 to 64, got 6; use 2, 4, 8, 16, 32 or 64
    """
    if n not in (2, 4, 8, 16, 32, 64):
        raise ValueError(f"n must be a power of two from 2 to 64, got {n}; use 2, 4, 8, 16, 32 or 64")
    return n.bit_length() - 1


def canvas(
    width: float, height: float, panels: int = 1, ratios: Sequence[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """A white figure with bare panels side by side: no frames, no ticks, equal units."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    grid = figure.add_gridspec(1, panels, width_ratios=ratios)
    axes = [figure.add_subplot(grid[0, i]) for i in range(panels)]
    for ax in axes:
        ax.set_axis_off()
        ax.set_aspect("equal")
    return figure, axes


def cells(
    ax: Axes,
    colours: Sequence[str],
    labels: Sequence[str] | None = None,
    *,
    n: int,
    corner: tuple[float, float] = (0.0, 0.0),
    side: float = 1.0,
    gid: str = "cell",
    size: float = 8.0,
    bold: Sequence[bool] | None = None,
) -> None:
    """An n×n matrix whose raster cell i has ``colours[i]`` and, if given, ``labels[i]``; row 0 is on top."""
    x0, y0 = corner
    for i in range(n * n):
        row, column = divmod(i, n)
        x, y = x0 + column * side, y0 - (row + 1) * side
        ax.add_patch(
            Rectangle(
                (x, y),
                side,
                side,
                facecolor=colours[i],
                edgecolor="white",
                lw=min(1.0, side),
                gid=f"{gid}-{row}-{column}",
            )
        )
        if labels is not None and labels[i]:
            weight = "bold" if bold is not None and bold[i] else "normal"
            ax.text(
                x + side / 2,
                y + side / 2,
                labels[i],
                ha="center",
                va="center_baseline",
                fontsize=size,
                color=INK,
                weight=weight,
            )


def wires(
    ax: Axes,
    ends: Sequence[Wire],
    colours: str | Sequence[str],
    *,
    width: float,
    gid: str,
    z: float = 1.0,
) -> None:
    """Smooth wires from (x, y) to (x', y'), leaving and arriving horizontally."""
    shades = [colours] * len(ends) if isinstance(colours, str) else list(colours)
    joined: dict[str, list[tuple[float, float]]] = {}
    for (x, y, x1, y1), shade in zip(ends, shades, strict=True):
        middle = (x + x1) / 2
        joined.setdefault(str(shade), []).extend([(x, y), (middle, y), (middle, y1), (x1, y1)])
    # One compound path per colour keeps the files small; every MOVETO in it starts a wire.
    codes = [Curve.MOVETO, *[Curve.CURVE4] * 3]
    paths = [Curve(points, codes * (len(points) // 4)) for points in joined.values()]
    if paths:
        collection = PathCollection(paths, facecolor="none", edgecolor=list(joined), lw=width, gid=gid, zorder=z)
        ax.add_collection(collection, autolim=False)


def box(
    ax: Axes,
    x: float,
    y: float,
    width: float,
    height: float,
    text: str,
    colour: str,
    *,
    gid: str,
    size: float = 9.0,
) -> None:
    """A rounded box centred on (x, y)."""
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=colour, edgecolor=INK, lw=0.9, gid=gid, zorder=2,
        )
    )  # fmt: skip
    ax.text(x, y, text, ha="center", va="center", fontsize=size, color=INK, zorder=3)


def arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    colour: str = INK,
    bend: float = 0.0,
    width: float = 1.2,
) -> None:
    style = f"arc3,rad={bend}"
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=11,
            lw=width,
            color=colour,
            connectionstyle=style,
            shrinkA=0,
            shrinkB=0,
            zorder=2,
        )
    )


def frame(ax: Axes, left: float, right: float, bottom: float, top: float) -> None:
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)


def save(figure: Figure, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write ``name.svg`` and ``name.png``; the same figure always gives the same bytes."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context({"svg.hashsalt": "matrix-se", "path.simplify": False}):
        for suffix, metadata in ((".svg", {"Date": None, "Creator": None}), (".png", {"Software": None})):
            path = out / (name + suffix)
            part = out / f".{name}.part{suffix}"
            figure.savefig(part, dpi=110, metadata=metadata)
            part.replace(path)  # a reader never sees half a figure
            written.append(path)
    return written
