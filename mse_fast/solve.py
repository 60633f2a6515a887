"""Solve Sudoku puzzles with the recurrent Matrix-SE: ``python -m mse_fast.solve PUZZLE_OR_FILE``.

A puzzle is 81 characters, 0 or . for empty; a file has one on each line (optionally ``puzzle,solution``, .gz, .xz).

Exit codes: 0 every puzzle is solved (with --exact: by whichever solver); 1 the network left one unsolved;
2 the input is no puzzle: unreadable, contradictory givens, or no solution at all.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from mse_fast.checkpoint import write_atomically
from mse_fast.config import OneLineParser, UsageError, check_numbers, fail
from mse_fast.recurrent import MatrixSERecurrent
from mse_fast.sudoku.answer import Answers, answer, follows_rules, load_solver
from mse_fast.sudoku.exact import count_solutions, solve
from mse_fast.sudoku.layout import Layout
from mse_fast.sudoku.reader import ALLOWED, CELLS, looks_like_a_grid, parse_grid, read_puzzles
from mse_ref.tasks.sudoku import conflicts

Solver = tuple[MatrixSERecurrent, Layout]
SURE, LIKELY = 0.9, 0.5  # confidence from which a digit is printed plainly, and with a question mark


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = OneLineParser(
        prog="python -m mse_fast.solve",
        description=(__doc__ or "").partition("\n\n")[0],
        epilog=(__doc__ or "").rpartition("\n\n")[2],
    )
    parser.add_argument("puzzle", metavar="PUZZLE_OR_FILE", help="81 characters, or a file of puzzles")
    parser.add_argument("--model", default="sudoku", help="folder of a run, or name in the zoo (default sudoku)")
    parser.add_argument("--steps", type=int, default=30, help="applications of the network (default 30)")
    parser.add_argument("--exact", action="store_true", help="let the exact solver finish what the network cannot")
    parser.add_argument("--out", type=Path, metavar="FILE", help="files: write `puzzle,answer` lines")
    parser.add_argument("--batch", type=int, default=64, help="files: puzzles solved together (default 64)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: PyTorch's choice")
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, default=True, help="progress bar")
    options = parser.parse_args(arguments)
    check_numbers(options, steps=1, batch=1, threads=0)
    return options


def draw(digits: np.ndarray, confidence: np.ndarray) -> str:
    """A grid for reading: sure digits plainly, likely ones with a question mark, the rest as dots.

    >>> grid = np.tile(np.arange(1, 10), (9, 1))
    >>> print(draw(grid, np.tile([1.0, 0.7, 0.3], (9, 3))).split(chr(10))[0])
    1  2? .  | 4  5? .  | 7  8? .
    """
    lines = []
    for row in range(9):
        cells = [_cell(d, c) for d, c in zip(digits[row], confidence[row], strict=True)]
        lines.append("| ".join(" ".join(cells[box : box + 3]) + " " for box in (0, 3, 6)).rstrip())
        if row in (2, 5):
            lines.append("---------+----------+---------")
    return "\n".join(lines)


def _cell(digit: int, confidence: float) -> str:
    return f"{digit} " if confidence >= SURE else f"{digit}?" if confidence >= LIKELY else ". "


def check_puzzle(puzzle: np.ndarray) -> str:
    """Refuse a puzzle nobody can solve; returns a remark on one with several solutions, else nothing."""
    clash = np.argwhere(conflicts(puzzle))
    if len(clash):
        cells = " and ".join(f"row {r + 1} column {c + 1}" for r, c in clash[:2])
        digit = puzzle[tuple(clash[0])]
        raise UsageError(f"the givens contradict each other: see the {digit} at {cells}; correct one of them")
    found = count_solutions(puzzle)
    if not found:
        raise UsageError("this puzzle has no solution: no grid agrees with its givens; check them")
    return "" if found == 1 else "note: this puzzle has several solutions; any of them counts"


def solve_one(puzzle: np.ndarray, solver: Solver, options: argparse.Namespace) -> int:
    """Show how the network fills one puzzle; returns the exit code."""
    remark = check_puzzle(puzzle)
    if remark:
        print(remark)
    made = answer(solver[0], puzzle[None], options.steps, solver[1])
    solved_at = first_solved(made)[0]
    shown = ""
    for step in range(solved_at or options.steps):
        grid = draw(made.digits[step, 0], made.confidence[step, 0])
        if grid != shown:
            empty = made.confidence[step, 0][puzzle == 0]
            least = f", least confidence {empty.min():.2f}" if len(empty) else ""
            print(f"step {step + 1}: {(empty >= SURE).sum()} of {len(empty)} empty cells sure{least}\n{grid}\n")
            shown = grid
    if solved_at:
        print(f"solved in {solved_at} steps: every row, column and box holds the digits 1-9")
        return 0
    wrong = int(conflicts(made.digits[-1, 0]).sum())
    print(f"not solved: after {options.steps} steps {wrong} cells repeat a digit of their row, column or box")
    if not options.exact:
        return 1
    print("the exact solver's answer:")
    print(draw(solve(puzzle), np.ones((9, 9))))  # type: ignore[arg-type]  # check_puzzle found one
    return 0


def first_solved(made: Answers) -> list[int | None]:
    """For every puzzle the first step (from 1) whose answer follows the rules, or None."""
    good = follows_rules(made.digits)  # [S, B]
    return [int(column.argmax()) + 1 if column.any() else None for column in good.T]


def solve_file(puzzles: np.ndarray, solver: Solver, options: argparse.Namespace) -> int:
    """Solve many puzzles; returns the exit code."""
    for number, puzzle in enumerate(puzzles, start=1):
        try:
            check_puzzle(puzzle)
        except UsageError as error:
            raise UsageError(f"puzzle {number}: {error}") from None
    answers, by_network = [], 0
    began = time.perf_counter()
    with tqdm(total=len(puzzles), unit="puzzle", disable=not options.progress) as bar:
        for start in range(0, len(puzzles), options.batch):
            part = puzzles[start : start + options.batch]
            made = answer(solver[0], part, options.steps, solver[1])
            for i, step in enumerate(first_solved(made)):
                by_network += step is not None
                exact = solve(part[i]) if options.exact and step is None else None
                answers.append(made.digits[(step or 0) - 1, i] if exact is None else exact)
            bar.update(len(part))
            bar.set_postfix_str(f"{by_network} solved")
    seconds = time.perf_counter() - began
    share = f"{by_network} of {len(puzzles)} ({by_network / len(puzzles):.1%})"
    print(f"solved by the network: {share}; {by_network / seconds:.1f} solved per second")
    if options.exact and by_network < len(puzzles):
        print(f"solved by the exact solver: the other {len(puzzles) - by_network}")
    if options.out:
        lines = [",".join("".join(map(str, g.ravel())) for g in pair) for pair in zip(puzzles, answers, strict=True)]
        write_atomically(options.out, ("\n".join(lines) + "\n").encode())
    return 0 if options.exact or by_network == len(puzzles) else 1


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        if options.threads:
            torch.set_num_threads(options.threads)
        path = Path(options.puzzle)
        # 81 digits and dots are a puzzle; anything else is a file if there is one of that name, however long.
        is_file = not looks_like_a_grid(options.puzzle) and path.is_file()
        looks_named = "/" in options.puzzle or (len(options.puzzle) != CELLS and bool(path.suffix))
        named = looks_named and not ALLOWED.issuperset(options.puzzle)
        if named and not is_file:
            raise UsageError(f"there is no file {options.puzzle}")
        grids = read_puzzles(path)[0] if is_file else parse_grid(options.puzzle)
        solver = load_solver(options.model)
        return solve_file(grids, solver, options) if is_file else solve_one(grids, solver, options)
    except (UsageError, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    sys.exit(main())
