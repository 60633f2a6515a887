"""Figures of where things are: the Z-order curve, the shuffle, the butterfly on the matrix."""

from __future__ import annotations

import numpy as np

from mse_ref.draw.canvas import (
    GREY,
    INK,
    PALE,
    TINTS,
    Figure,
    canvas,
    cells,
    digits_of,
    frame,
    quaternary,
)
from mse_ref.shuffle import qrotate
from mse_ref.zorder import zorder


def _slots(n: int) -> np.ndarray:
    """The Z-order position of every raster cell."""
    return np.argsort(zorder(n))  # (n*n,)


def _corner_colours(n: int, positions: np.ndarray) -> list[str]:
    """The colour of the quadrant a Z-order position belongs to: its highest digit."""
    return [TINTS[p // (n * n // 4)] for p in positions]


def draw_zorder(n: int = 8) -> Figure:
    """The Z-order curve: one line through the matrix that never jumps further than it must.

    Each cell shows its position on the curve; its colour is its quadrant (the highest base-4 digit).

    >>> draw_zorder(4).axes[0].get_title()
    'Z-order of a 4×4 matrix'

    Paper: Z-Order flatten.

    :param n: the side of the matrix, a power of two.
    """
    k = digits_of(n)
    figure, (ax,) = canvas(5, 5.3)
    slots = _slots(n)
    cells(ax, _corner_colours(n, slots), n=n)
    row, column = np.divmod(zorder(n), n)
    ax.plot(column + 0.5, -row - 0.5, color=INK, lw=max(0.6, 10 / n), marker="o", ms=max(1.0, 32 / n), gid="curve")
    for p in range(n * n if n <= 16 else 0):
        ax.text(column[p] + 0.08, -row[p] - 0.07, str(p), va="top", fontsize=min(10, 60 / n), color=INK)
    ax.set_title(f"Z-order of a {n}×{n} matrix", fontsize=12)
    ax.text(
        n / 2,
        -n - 0.05 * n,
        f"position = {k} base-4 digits; digit j = (row bit j, column bit j)",
        ha="center",
        fontsize=8.5,
        color=INK,
    )
    frame(ax, 0, n, -n * 1.08, 0)
    return figure


def draw_shuffle(n: int = 4) -> Figure:
    """A quaternary shuffle on the matrix: interleave the row halves, then the column halves.

    Labels are Z-order positions in base 4. ``y = x[qrotate(k)]``: slot 01 receives what slot 10 held.

    >>> [ax.get_title() for ax in draw_shuffle(4).axes]
    ['Z-order', 'row halves interleaved', 'then column halves: QShuffle']

    Paper: Fig. 2.

    :param n: the side of the matrix, a power of two.
    """
    k = digits_of(n)
    figure, axes = canvas(10.5, 3.9, 3)
    before = _slots(n).reshape(n, n)
    halves = np.arange(n).reshape(2, n // 2).T.ravel()  # 0, n/2, 1, n/2+1, ...
    rows = before[halves]
    after = np.empty(n * n, dtype=int)
    after[zorder(n)] = qrotate(k)
    titles = ("Z-order", "row halves interleaved", "then column halves: QShuffle")
    for ax, title, matrix in zip(axes, titles, (before.ravel(), rows.ravel(), after), strict=True):
        labels = [quaternary(p, k) for p in matrix] if n <= 16 else None
        cells(ax, _corner_colours(n, matrix), labels, n=n, size=min(13, 56 / n))
        ax.set_title(title, fontsize=11)
        frame(ax, 0, n, -n, 0)
    return figure


def draw_butterfly(n: int = 8) -> Figure:
    """A switch layer on digit j mixes 2×2 patches dilated by 2^j: one panel per digit.

    The four cells of one patch are marked a, b, c, d and joined.

    >>> len(draw_butterfly(8).axes)
    3

    :param n: the side of the matrix, a power of two.
    """
    k = digits_of(n)
    figure, axes = canvas(3.3 * k, 3.9, k)
    for j, ax in enumerate(axes):
        step = 2**j
        row = column = (n // 2 - step) // (2 * step) * 2 * step + (step - 1) // 2  # a patch near the middle
        patch = [(row, column), (row, column + step), (row + step, column), (row + step, column + step)]
        colours, labels = [PALE] * (n * n), [""] * (n * n)
        for (r, c), colour, label in zip(patch, TINTS, "abcd", strict=True):
            colours[r * n + c], labels[r * n + c] = colour, label
        cells(ax, colours, labels, n=n, size=min(13, 80 / n), bold=[True] * (n * n))
        centres = [(c + 0.5, -r - 0.5) for r, c in patch]
        for first in range(4):
            for second in range(first):
                (x, y), (x1, y1) = centres[first], centres[second]
                ax.plot([x, x1], [y, y1], color=GREY, lw=1.2, alpha=0.7, gid=f"mix-{j}-{second}{first}", zorder=2)
        ax.set_title(f"digit {j}: rows r, r+{step}; columns c, c+{step}", fontsize=10)
        frame(ax, 0, n, -n, 0)
    return figure
