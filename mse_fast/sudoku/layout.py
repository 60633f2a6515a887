"""Where the 81 cells of a grid stand in the n×n matrix the network sees."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

__all__ = ["LINES", "Layout", "cut_out", "place"]

Layout = Literal["corner", "boxes"]
# Rows (and columns) of the matrix that the nine rows of a grid occupy. "boxes" leaves every fourth line free, so
# that a box lies in one 4×4 square of the Z-order.
LINES: dict[str, list[int]] = {"corner": [0, 1, 2, 3, 4, 5, 6, 7, 8], "boxes": [0, 1, 2, 4, 5, 6, 8, 9, 10]}


def place(grids: Tensor, n: int, layout: Layout) -> Tensor:
    """Grids [B, 9, 9] in matrices [B, n, n], 0 everywhere else.

    >>> import torch
    >>> place(torch.ones(1, 9, 9, dtype=torch.int64), 16, "boxes")[0, 0]
    tensor([1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0])
    """
    lines = LINES[layout]
    if n <= lines[-1]:
        raise ValueError(f"the layout {layout!r} needs a side of at least {lines[-1] + 1}, not {n}")
    if layout == "corner":
        return F.pad(grids, (0, n - 9, 0, n - 9))
    made = grids.new_zeros(len(grids), n, n)
    index = grids.new_tensor(lines)
    made[:, index[:, None], index] = grids
    return made


def cut_out(matrices: Tensor, layout: Layout) -> Tensor:
    """The cells of the grid in matrices [B, n, n, ...]: [B, 9, 9, ...], what `place` put there."""
    lines = LINES[layout]
    return matrices[:, lines][:, :, lines]
