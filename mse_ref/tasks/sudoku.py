"""Sudoku: fill a 9×9 grid so that every row, column and 3×3 box holds the digits 1-9 (paper: Solving Sudoku).

A puzzle is a ``[9, 9]`` integer array with 0 for an empty cell. The network sees it as tokens, where 0 is
the padding around the grid: an empty cell is 1 and digit d is d+1. The label of a cell is its digit.

This file is the slow, clear oracle; ``mse_fast.sudoku`` has the fast twin of every function.
"""

from collections.abc import Iterator
from functools import cache
from itertools import islice

import numpy as np

SIDE, BOX = 9, 3
EMPTY_TOKEN = 1
DIGITS = frozenset(range(1, SIDE + 1))


@cache
def peers(row: int, column: int) -> np.ndarray:
    """Cells that may not repeat the digit of this one, True in [9, 9]; the cell itself is not among them.

    >>> int(peers(4, 4).sum())
    20
    """
    r, c = np.indices((SIDE, SIDE))
    same_box = (r // BOX == row // BOX) & (c // BOX == column // BOX)
    found = (r == row) | (c == column) | same_box
    found[row, column] = False
    found.setflags(write=False)  # every caller gets the same array
    return found


def conflicts(grid: np.ndarray) -> np.ndarray:
    """Filled cells whose digit appears again among their peers, True in [9, 9].

    >>> grid = np.zeros((9, 9), dtype=int)
    >>> grid[0, 0] = grid[0, 8] = 5
    >>> np.argwhere(conflicts(grid)).tolist()
    [[0, 0], [0, 8]]
    """
    clash = np.zeros((SIDE, SIDE), dtype=bool)
    for row, column in np.argwhere(grid > 0).tolist():
        clash[row, column] = (grid[peers(row, column)] == grid[row, column]).any()
    return clash


def is_solution(grid: np.ndarray, puzzle: np.ndarray | None = None) -> bool:
    """Is the grid full and free of conflicts, and does it keep the givens of the puzzle?

    >>> is_solution(pattern()), is_solution(np.ones((9, 9), dtype=int))
    (True, False)
    """
    keeps = puzzle is None or bool((grid == puzzle)[puzzle > 0].all())
    return keeps and bool((grid > 0).all()) and not conflicts(grid).any()


def solutions(puzzle: np.ndarray) -> Iterator[np.ndarray]:
    """Every solution of a puzzle, by trying the cell with the fewest candidates first.

    >>> puzzle = pattern()
    >>> puzzle[:2] = 0  # two empty rows of one band: three cycles of columns, each either way round
    >>> len(list(solutions(puzzle)))
    8
    """
    if not conflicts(puzzle).any():
        yield from _fill(puzzle)


def _fill(puzzle: np.ndarray) -> Iterator[np.ndarray]:
    empty = np.argwhere(puzzle == 0)
    if len(empty) == 0:
        yield puzzle.copy()
        return
    choices = [sorted(DIGITS.difference(puzzle[peers(*cell)].tolist())) for cell in empty.tolist()]
    best = min(range(len(empty)), key=lambda i: len(choices[i]))
    for digit in choices[best]:
        trial = puzzle.copy()
        trial[tuple(empty[best])] = digit
        yield from _fill(trial)


def count_solutions(puzzle: np.ndarray, limit: int = 2) -> int:
    """How many solutions there are, counting no further than ``limit``."""
    return len(list(islice(solutions(puzzle), limit)))


def pattern() -> np.ndarray:
    """One solution written down: every row is the row above it, shifted.

    >>> pattern()[:4, :5]
    array([[1, 2, 3, 4, 5],
           [4, 5, 6, 7, 8],
           [7, 8, 9, 1, 2],
           [2, 3, 4, 5, 6]])
    """
    r, c = np.indices((SIDE, SIDE))
    return (BOX * r + r // BOX + c) % SIDE + 1


def random_line_order(rng: np.random.Generator) -> np.ndarray:
    """An order of the nine rows (or columns) that keeps bands together: 3!·(3!)³ possibilities."""
    return np.concatenate([BOX * band + rng.permutation(BOX) for band in rng.permutation(BOX)])


def random_digits(rng: np.random.Generator) -> np.ndarray:
    """New names for the digits [10]; an empty cell keeps its 0."""
    return np.concatenate([[0], 1 + rng.permutation(SIDE)])


def symmetric(
    grid: np.ndarray, rows: np.ndarray, columns: np.ndarray, digits: np.ndarray, transpose: bool
) -> np.ndarray:
    """Apply one element of the symmetry group of Sudoku: ``digits[grid[rows][:, columns]]``, then transpose.

    >>> identity = np.arange(9)
    >>> bool((symmetric(pattern(), identity, identity, np.arange(10), True) == pattern().T).all())
    True
    """
    moved = digits[grid[np.ix_(rows, columns)]]
    return moved.T if transpose else moved


def sample_sudoku(n: int, rng: np.random.Generator) -> np.ndarray:
    """Tokens [n, n] of a puzzle with exactly one solution and 30-60 givens, in the top-left corner."""
    order, digits = random_line_order(rng), random_digits(rng)
    puzzle = symmetric(pattern(), order, random_line_order(rng), digits, bool(rng.integers(2)))
    givens = rng.integers(30, 61)
    for row, column in rng.permutation(np.argwhere(puzzle > 0)):
        if (puzzle > 0).sum() <= givens:
            break
        without = puzzle.copy()
        without[row, column] = 0
        if count_solutions(without) == 1:
            puzzle = without
    return encode(puzzle, n)


def label_sudoku(tokens: np.ndarray) -> np.ndarray:
    """The digits of the solution where the grid is, 0 around it."""
    grid = decode(tokens)
    found = list(islice(solutions(grid), 2))
    if len(found) != 1:
        count = "no solution" if not found else "several solutions"
        raise ValueError(f"a Sudoku needs exactly one solution, this one has {count}: check its givens")
    return np.pad(found[0], (0, len(tokens) - SIDE))


def encode(puzzle: np.ndarray, n: int) -> np.ndarray:
    """Tokens [n, n] of a puzzle [9, 9]: padding 0, empty 1, digit d as d+1.

    >>> encode(pattern(), 16)[8:, 6:11].tolist()[:2]
    [[7, 8, 9, 0, 0], [0, 0, 0, 0, 0]]
    """
    return np.pad(np.asarray(puzzle, dtype=np.int64) + EMPTY_TOKEN, (0, n - SIDE))


def decode(tokens: np.ndarray) -> np.ndarray:
    """The puzzle [9, 9] in the corner of tokens [n, n]."""
    grid, rest = tokens[:SIDE, :SIDE], tokens.copy()
    rest[:SIDE, :SIDE] = 0
    if (grid < EMPTY_TOKEN).any() or rest.any():
        raise ValueError("a Sudoku fills the top-left 9×9 cells with tokens 1-10, and only those")
    return grid - EMPTY_TOKEN
