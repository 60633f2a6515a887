"""All solutions of a puzzle by search, fast enough to be the oracle of a training loop.

A set of digits is nine bits. For every row, column and box one mask holds the digits that are still
missing; the candidates of a cell are the AND of its three masks. The search fills the cell with the fewest
candidates, or the digit with only one place left in a row, column or box; it backtracks over an explicit
stack of the cells filled so far.
"""

import numpy as np
from numba import njit

__all__ = ["count_solutions", "solve", "solve_many"]

ALL = 0x1FF  # nine candidates
_ROW = np.arange(81) // 9
_COLUMN = np.arange(81) % 9
_BOX = _ROW // 3 * 3 + _COLUMN // 3
UNIT_OF = np.stack([_ROW, 9 + _COLUMN, 18 + _BOX], axis=1).astype(np.int64)  # [81, 3]: of the 27 units
CELLS_OF = np.stack([np.flatnonzero(np.isin(UNIT_OF, unit).any(axis=1)) for unit in range(27)])  # [27, 9]
BITS = np.array([bin(mask).count("1") for mask in range(512)], dtype=np.int64)


def solve(puzzle: np.ndarray) -> np.ndarray | None:
    """The first solution found [9, 9], or None if there is none.

    >>> from mse_ref.tasks.sudoku import pattern
    >>> puzzle = pattern()
    >>> puzzle[:, :2] = 0
    >>> int((solve(puzzle) > 0).sum()), solve(np.full((9, 9), 1))
    (81, None)
    """
    grid = _flat(puzzle)
    return grid.reshape(9, 9) if _search(grid, 1) else None


def count_solutions(puzzle: np.ndarray, limit: int = 2) -> int:
    """How many solutions there are, counting no further than ``limit``.

    >>> count_solutions(np.zeros((9, 9), dtype=int), limit=5)
    5
    """
    if limit < 1:
        raise ValueError(f"limit is {limit}, but at least 1 solution must be looked for")
    return int(_search(_flat(puzzle), limit))


def solve_many(puzzles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solutions [N, 9, 9] and how many there are, up to 2 [N]; a puzzle without solution stays as it is."""
    grids = np.ascontiguousarray(puzzles, dtype=np.int8).reshape(len(puzzles), 81).copy()
    counts = np.empty(len(grids), dtype=np.int64)
    for i, grid in enumerate(grids):
        counts[i] = _search(grid, 2)
    return grids.reshape(-1, 9, 9), counts


def _flat(puzzle: np.ndarray) -> np.ndarray:
    puzzle = np.asarray(puzzle)
    if puzzle.shape != (9, 9):
        raise ValueError(f"a Sudoku has shape [9, 9], not {list(puzzle.shape)}")
    if puzzle.min() < 0 or puzzle.max() > 9:
        raise ValueError(f"cells hold 0 (empty) to 9, not {puzzle.min()} to {puzzle.max()}")
    return puzzle.astype(np.int8).reshape(81).copy()


@njit(cache=True)
def _pick(grid, missing, unit_of, cells_of, bits):  # pragma: no cover - compiled
    """The most constrained empty cell and its candidates: (-1, 0) when full; no candidates: a dead end."""
    best, best_mask, fewest = -1, 0, 10
    for cell in range(81):
        if grid[cell] == 0:
            mask = missing[unit_of[cell, 0]] & missing[unit_of[cell, 1]] & missing[unit_of[cell, 2]]
            if bits[mask] < fewest:
                best, best_mask, fewest = cell, mask, bits[mask]
                if fewest <= 1:
                    return best, best_mask
    if fewest > 9:
        return best, best_mask  # nothing is empty
    for unit in range(27):
        once, twice = 0, 0
        for place in range(9):
            cell = cells_of[unit, place]
            if grid[cell] == 0:
                mask = missing[unit_of[cell, 0]] & missing[unit_of[cell, 1]] & missing[unit_of[cell, 2]]
                twice |= once & mask
                once |= mask
        if once != missing[unit]:
            return cells_of[unit, 0], 0  # a missing digit has no place in this unit
        single = once & ~twice
        if single:
            lowest = single & -single
            for place in range(9):
                cell = cells_of[unit, place]
                if grid[cell] == 0:
                    mask = missing[unit_of[cell, 0]] & missing[unit_of[cell, 1]] & missing[unit_of[cell, 2]]
                    if mask & lowest:
                        return cell, lowest
    return best, best_mask


@njit(cache=True)
def _search_compiled(grid, limit, unit_of, cells_of, bits):  # pragma: no cover - compiled
    """Count solutions up to ``limit``; ``grid`` [81] becomes the first one found."""
    missing = np.full(27, ALL, dtype=np.int64)
    for cell in range(81):
        if grid[cell] > 0:
            bit = 1 << (grid[cell] - 1)
            for k in range(3):
                if not missing[unit_of[cell, k]] & bit:
                    return 0  # the givens contradict each other
                missing[unit_of[cell, k]] ^= bit
    first = grid.copy()
    cells = np.empty(81, dtype=np.int64)  # the stack: which cell was filled ...
    untried = np.empty(81, dtype=np.int64)  # ... and with which digits it can still be filled
    depth, found = 0, 0
    cell, mask = _pick(grid, missing, unit_of, cells_of, bits)
    while True:
        if cell < 0:  # full
            found += 1
            if found == 1:
                first[:] = grid
            if found >= limit:
                break
            mask = 0
        if mask == 0:  # dead end, or looking for more: back to the last cell with another candidate
            while depth > 0:
                depth -= 1
                cell, mask = cells[depth], untried[depth]
                bit = 1 << (grid[cell] - 1)
                grid[cell] = 0
                for k in range(3):
                    missing[unit_of[cell, k]] ^= bit
                if mask:
                    break
            if mask == 0:
                break
        bit = mask & -mask
        cells[depth], untried[depth] = cell, mask ^ bit
        depth += 1
        digit = 1
        while bit >> digit:
            digit += 1
        grid[cell] = digit
        for k in range(3):
            missing[unit_of[cell, k]] ^= bit
        cell, mask = _pick(grid, missing, unit_of, cells_of, bits)
    if found:
        grid[:] = first
    return found


def _search(grid: np.ndarray, limit: int) -> int:
    return _search_compiled(grid, limit, UNIT_OF, CELLS_OF, BITS)
