"""Sudoku for the trainer: puzzles from a pool, moved by a random symmetry, with more of the solution revealed."""

from functools import cache

import numpy as np
import torch
from torch import Tensor

from mse_fast.sudoku.generator import generate
from mse_fast.sudoku.layout import Layout, place
from mse_fast.sudoku.reader import PuzzleError, read_puzzles
from mse_fast.sudoku.symmetry import augment
from mse_fast.tasks import Task, TaskSpec
from mse_ref.tasks.sudoku import EMPTY_TOKEN, SIDE

__all__ = ["BoxedSudoku", "EasySudoku", "Sudoku", "reveal"]

IN_CLASSES, OUT_CLASSES = 11, 10  # padding, empty and nine digits; padding and nine digits
GENERATED = 200  # puzzles in the pool that stands in for a file
GENERATED_GIVENS = 24
EASIEST = 70  # most givens in training: eleven empty cells
START = 40  # fewest givens when training begins


class Sudoku(Task):
    """Puzzles of 17-34 givens, reached by a curriculum that starts with half-full grids.

    >>> task = Sudoku()
    >>> inputs, labels = task.sample(2, 9, torch.Generator().manual_seed(0))
    >>> filled = inputs > EMPTY_TOKEN
    >>> bool((inputs - EMPTY_TOKEN == labels)[filled].all())
    True

    ``--data FILE`` names the pool of puzzles with solutions (see `mse_fast.sudoku.reader`); without one, a small
    pool is generated, good enough to try things out. In training the fewest givens go linearly from 40 down
    to ``givens[0]`` over the first ``DESCENT`` of the run, and every puzzle's number of givens is uniform between
    that and 70, so that easy cases are never forgotten. Evaluations draw from ``givens``.
    """

    spec = TaskSpec("sudoku", IN_CLASSES, OUT_CLASSES, (SIDE,), SIDE, "pad-weighted", "solve a Sudoku of 17-34 givens")
    one_size = True
    givens = (17, 34)
    layout: Layout = "corner"
    DESCENT = 0.5

    def __init__(self):
        self.pool: Tensor | None = None  # [N, 2, 9, 9] int8: puzzles and their solutions
        self.range = self.givens

    def read(self, path: str) -> None:
        puzzles, solutions = read_puzzles(path)
        if solutions is None:
            raise PuzzleError(f"{path}: training needs `puzzle,solution` lines, these have no solutions")
        self.pool = torch.from_numpy(np.stack([puzzles, solutions], axis=1))

    def stage(self, progress: float | None) -> None:
        if progress is None:
            self.range = self.givens
        else:
            left = max(0.0, 1 - progress / self.DESCENT)
            self.range = (round(self.givens[0] + left * (START - self.givens[0])), EASIEST)

    def sample(self, batch: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        if self.pool is None:
            self.pool = generated_pool()
        device = generator.device
        self.pool = self.pool.to(device)
        chosen = torch.randint(len(self.pool), (batch,), generator=generator, device=device)
        puzzles, solutions = augment(self.pool[chosen].long(), generator).unbind(1)  # [B, 2, 9, 9] -> 2 × [B, 9, 9]
        low, high = self.range
        targets = torch.randint(low, high + 1, (batch,), generator=generator, device=device)
        inputs = reveal(puzzles, solutions, targets, generator) + EMPTY_TOKEN
        return place(inputs, n, self.layout), place(solutions, n, self.layout)  # [B, n, n]


class EasySudoku(Sudoku):
    """Puzzles of 24-36 givens, the paper's easy set."""

    spec = TaskSpec(
        "sudoku-easy", IN_CLASSES, OUT_CLASSES, (SIDE,), SIDE, "pad-weighted", "solve a Sudoku of 24-36 givens"
    )
    givens = (24, 36)


class BoxedSudoku(Sudoku):
    """Puzzles of 17-34 givens with every box padded to 4×4 cells, so that boxes are squares of the Z-order.

    In the corner layout a box straddles the quadrants of the network, which then learns rows and columns long
    before boxes. The network is the same.
    """

    spec = TaskSpec(
        "sudoku-boxes",
        IN_CLASSES,
        OUT_CLASSES,
        (16,),
        16,
        "pad-weighted",
        "solve a Sudoku of 17-34 givens, boxes apart",
    )
    layout: Layout = "boxes"


def reveal(puzzles: Tensor, solutions: Tensor, givens: Tensor, generator: torch.Generator) -> Tensor:
    """Copy random cells of the solution into each puzzle until it has so many givens [B]; none is removed.

    >>> puzzles, solutions = torch.zeros(2, 9, 9, dtype=torch.int64), torch.ones(2, 9, 9, dtype=torch.int64)
    >>> more = reveal(puzzles, solutions, torch.tensor([3, 70]), torch.Generator().manual_seed(0))
    >>> (more > 0).sum((1, 2)).tolist()
    [3, 70]
    """
    filled = puzzles > 0
    order = torch.rand(puzzles.shape, generator=generator, device=puzzles.device) - filled.float()  # givens first
    rank = order.flatten(1).argsort(1).argsort(1).view_as(puzzles)  # [B, 9, 9]
    return torch.where(filled | (rank < givens.view(-1, 1, 1)), solutions, 0)


@cache
def generated_pool() -> Tensor:
    """A fixed pool of generated puzzles with 24 givens, [N, 2, 9, 9]."""
    rng = np.random.default_rng(0)
    return torch.from_numpy(np.stack([generate(GENERATED_GIVENS, rng) for _ in range(GENERATED)]))
