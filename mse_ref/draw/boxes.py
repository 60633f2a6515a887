"""Figures of boxes and boards: the switch unit, the convolutional baseline, a Sudoku."""

from __future__ import annotations

import numpy as np

from mse_ref.draw.canvas import (
    BLUE,
    INK,
    PALE,
    TINTS,
    Axes,
    Figure,
    arrow,
    box,
    canvas,
    cells,
    frame,
)


def _chain(
    ax: Axes,
    x: float,
    top: float,
    steps: list[tuple[str, str]],
    gid: str,
    *,
    width: float = 3.4,
    size: float = 9,
) -> float:
    """Boxes below one another, joined by arrows; returns the y of the last."""
    y = top
    for i, (text, colour) in enumerate(steps):
        y = top - 1.25 * i
        box(ax, x, y, width, 0.8, text, colour, gid=f"{gid}-{i}", size=size)
        if i:
            arrow(ax, (x, y + 0.85), (x, y + 0.4))
    return y


def draw_switch() -> Figure:
    """The Quaternary Switch Unit, from left to right.

    >>> draw_switch().axes[0].get_title()
    'Quaternary Switch Unit'

    Paper: definition of the QSU.
    """
    figure, (ax,) = canvas(10.5, 3.3)
    for i in range(4):
        y = 1.5 - i
        box(ax, 0.55, y, 0.9, 0.7, f"$i_{i + 1}$", TINTS[i], gid=f"in-{i}", size=11)
        box(ax, 17.2, y, 0.9, 0.7, f"$o_{i + 1}$", TINTS[i], gid=f"out-{i}", size=11)
        ax.plot([1.0, 2.0], [y, 0], color=INK, lw=1, zorder=1)
        ax.plot([15.7, 16.75], [0, y], color=INK, lw=1, zorder=1)
    stages = [
        (3.1, 1.7, "Z\n4m → 8m"), (5.6, 1.9, "RMSNorm"), (8.0, 1.5, "GELU"),
        (10.4, 1.7, "W, b\n8m → 4m"), (12.7, 1.2, "× h"),
    ]  # fmt: skip
    left = 2.0
    for i, (x, width, text) in enumerate(stages):
        box(ax, x, 0, width, 1.3, text, PALE, gid=f"stage-{i}", size=9.5)
        arrow(ax, (left, 0), (x - width / 2, 0))
        left = x + width / 2
    box(ax, 15.2, 0, 1.0, 1.0, "+", "white", gid="sum", size=14)
    arrow(ax, (left, 0), (14.7, 0))
    ax.plot([1.9, 1.9, 15.2], [0, -1.9, -1.9], color=BLUE, lw=1.6, gid="residual", zorder=1)
    arrow(ax, (15.2, -1.9), (15.2, -0.5), colour=BLUE, width=1.6)
    box(ax, 8.0, -1.9, 2.4, 0.9, "⊙ σ(s)", "white", gid="gate", size=10)
    ax.set_title("Quaternary Switch Unit", fontsize=11)
    frame(ax, 0, 17.8, -2.5, 2.1)
    return figure


def draw_resnet() -> Figure:
    """The convolutional baseline: a residual block (left) and the whole ResNet-29 (right).

    >>> [ax.get_title() for ax in draw_resnet().axes]
    ['one residual block', 'ResNet-29']

    Paper: appendix C.
    """
    figure, (unit, whole) = canvas(8, 5.6, 2)
    norm, act, conv = (
        ("layer normalization", TINTS[0]),
        ("ReLU", TINTS[1]),
        ("3×3 convolution, 128 maps", TINTS[2]),
    )
    unit.text(0, 1.15, "x", ha="center", va="center", fontsize=11, color=INK)
    arrow(unit, (0, 0.95), (0, 0.4))
    end = _chain(unit, 0, 0, [norm, act, conv, norm, act, conv], "unit")
    box(unit, 0, end - 1.25, 0.8, 0.7, "+", "white", gid="unit-sum", size=13)
    arrow(unit, (0, end - 0.4), (0, end - 0.9))
    unit.plot([0, 2.6, 2.6], [0.7, 0.7, end - 1.25], color=BLUE, lw=1.6, gid="unit-skip")
    arrow(unit, (2.6, end - 1.25), (0.4, end - 1.25), colour=BLUE, width=1.6)
    unit.set_title("one residual block", fontsize=11)
    frame(unit, -2, 3, end - 1.8, 1.5)
    steps = [("embedding", PALE), conv, ("14 residual blocks", TINTS[3]), norm, act, ("linear readout", PALE)]
    end = _chain(whole, 0, 0, steps, "net")
    whole.set_title("ResNet-29", fontsize=11)
    frame(whole, -2.5, 2.5, end - 1.8, 1.5)
    return figure


def draw_sudoku(givens: np.ndarray, *answers: np.ndarray, titles: tuple[str, ...] = ()) -> Figure:
    """A Sudoku and, beside it, any number of answers; givens are bold on a tint.

    >>> board = np.zeros((9, 9), dtype=int)
    >>> len(draw_sudoku(board, board).axes)
    2

    Paper: appendix A.

    :param givens: [9, 9] digits 1..9, 0 where empty.
    :param answers: boards of the same shape.
    :param titles: one for each board drawn.
    """
    boards = [np.asarray(givens), *map(np.asarray, answers)]
    for board in boards:
        if board.shape != (9, 9) or board.min() < 0 or board.max() > 9:
            raise ValueError(f"a Sudoku is a 9×9 board of digits 0..9 (0: empty), got shape {board.shape}")
    figure, axes = canvas(3.3 * len(boards), 3.6, len(boards))
    given = boards[0].ravel() > 0
    for i, (ax, board) in enumerate(zip(axes, boards, strict=True)):
        colours = [TINTS[0] if g else "#F7F7F7" for g in given]
        labels = [str(d) if d else "" for d in board.ravel()]
        cells(ax, colours, labels, n=9, gid=f"board{i}", size=11, bold=list(given))
        for line in range(4):
            ax.plot([3 * line, 3 * line], [0, -9], color=INK, lw=1.6)
            ax.plot([0, 9], [-3 * line, -3 * line], color=INK, lw=1.6)
        ax.set_title(titles[i] if i < len(titles) else "", fontsize=10)
        frame(ax, -0.1, 9.1, -9.1, 0.1)
    return figure
