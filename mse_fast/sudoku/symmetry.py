"""The symmetry group of Sudoku on batches of grids, in torch: what turns 40,000 puzzles into any number.

Renaming the digits (9!), exchanging bands and stacks (3! each), rows within a band and columns within a stack
(3! each) and transposing (2) map every puzzle to an equally hard one, and its solution along with it.
"""

import torch
from torch import Tensor

__all__ = ["augment", "draw_line_orders"]


def draw_line_orders(batch: int, generator: torch.Generator) -> Tensor:
    """Orders of nine rows (or columns) that keep bands together, [B, 9].

    >>> order = draw_line_orders(1, torch.Generator().manual_seed(0))[0]
    >>> (order // 3).tolist()  # the band of every line
    [2, 2, 2, 0, 0, 0, 1, 1, 1]
    """
    band = _draw((batch, 3, 1), generator).argsort(1)
    within = _draw((batch, 3, 3), generator).argsort(2)
    return (3 * band + within).view(batch, 9)  # [B, 3, 3] -> [B, 9]


def augment(grids: Tensor, generator: torch.Generator) -> Tensor:
    """One random symmetry per instance, the same for all of its grids: [B, G, 9, 9] -> [B, G, 9, 9].

    >>> from mse_ref.tasks.sudoku import is_solution, pattern
    >>> grids = torch.from_numpy(pattern()).expand(5, 2, 9, 9)
    >>> moved = augment(grids, torch.Generator().manual_seed(0))
    >>> all(is_solution(grid) for grid in moved[:, 0].numpy()), bool((moved[:, 0] == moved[:, 1]).all())
    (True, True)

    ``grids`` holds digits, 0 for an empty cell, on ``generator.device``; G is 2 for puzzles with their solutions.
    """
    batch, together = grids.shape[:2]
    rows, columns = draw_line_orders(batch, generator), draw_line_orders(batch, generator)
    cells = 9 * rows[:, :, None] + columns[:, None, :]  # [B, 9, 9]: which cell each one is filled from
    turned = _draw((batch, 1, 1), generator) < 0.5
    cells = torch.where(turned, cells.mT, cells)
    moved = grids.reshape(batch, together, 81).gather(2, cells.reshape(batch, 1, 81).expand(-1, together, -1))
    names = 1 + _draw((batch, 9), generator).argsort(1)  # [B, 9]
    names = torch.nn.functional.pad(names, (1, 0))  # [B, 10]: an empty cell keeps its 0
    return names.gather(1, moved.reshape(batch, -1)).view(batch, together, 9, 9)


def _draw(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device)
