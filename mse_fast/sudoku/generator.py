"""Random puzzles with exactly one solution, for any number of givens down to the low twenties."""

import numpy as np

from mse_fast.sudoku.exact import count_solutions, solve

__all__ = ["FEWEST_GIVENS", "generate", "random_solution"]

FEWEST_GIVENS = 22  # below this, removing cells one by one hardly ever succeeds
ATTEMPTS = 10_000


def random_solution(rng: np.random.Generator) -> np.ndarray:
    """A complete grid [9, 9].

    The three boxes of the diagonal are filled at random (no rule connects them), random digits are added
    as long as they leave a solution, and the solver completes the grid.

    >>> from mse_ref.tasks.sudoku import is_solution
    >>> is_solution(random_solution(np.random.default_rng(0)))
    True
    """
    grid = np.zeros((9, 9), dtype=np.int8)
    for box in (0, 3, 6):
        grid[box : box + 3, box : box + 3] = 1 + rng.permutation(9).reshape(3, 3)
    # A few more random digits keep the search from always choosing the lowest one.
    while (grid > 0).sum() < 36:
        trial = grid.copy()
        empty = np.argwhere(grid == 0)
        row, column = empty[rng.integers(len(empty))]
        trial[row, column] = rng.integers(1, 10)
        if count_solutions(trial, limit=1):
            grid = trial
    solution = solve(grid)
    assert solution is not None  # every accepted digit left one
    return solution


def generate(givens: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A puzzle with exactly so many givens and one solution, and that solution: two arrays [9, 9].

    >>> puzzle, solution = generate(30, np.random.default_rng(0))
    >>> int((puzzle > 0).sum()), count_solutions(puzzle)
    (30, 1)
    """
    if not FEWEST_GIVENS <= givens <= 81:
        raise ValueError(f"givens is {givens}, but must be between {FEWEST_GIVENS} and 81")
    for _ in range(ATTEMPTS):
        solution = random_solution(rng)
        puzzle = solution.copy()
        left = 81
        for cell in rng.permutation(81):
            if left == givens:
                return puzzle, solution
            row, column = divmod(int(cell), 9)
            puzzle[row, column] = 0
            if count_solutions(puzzle) == 1:
                left -= 1
            else:
                puzzle[row, column] = solution[row, column]
        if left == givens:
            return puzzle, solution
    raise RuntimeError(f"no puzzle with {givens} givens in {ATTEMPTS} attempts: ask for more givens")
