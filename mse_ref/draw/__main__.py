"""``python -m mse_ref.draw --out docs/figures``: every figure of the documentation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np

from mse_ref.draw import (
    draw_benes,
    draw_butterfly,
    draw_network,
    draw_receptive_field,
    draw_resnet,
    draw_route,
    draw_shuffle,
    draw_sudoku,
    draw_switch,
    draw_zorder,
    save,
)
from mse_ref.draw.canvas import Figure
from mse_ref.tasks.sudoku import solutions

SEVENTEEN = "000000010400000000020000000000050407008000300001090000300400200050100000000806000"


def _sudoku() -> Figure:
    puzzle = np.array(list(SEVENTEEN), dtype=int).reshape(9, 9)
    return draw_sudoku(puzzle, next(solutions(puzzle)), titles=("17 givens", "the only solution"))


FIGURES: dict[str, Callable[[], Figure]] = {
    "network": draw_network,
    "zorder": draw_zorder,
    "shuffle": draw_shuffle,
    "switch": draw_switch,
    "benes": draw_benes,
    "benes8": lambda: draw_benes(8, 21),
    "receptive_field": draw_receptive_field,
    "butterfly": draw_butterfly,
    "route": lambda: draw_route(np.random.default_rng(0).permutation(16)),
    "resnet": draw_resnet,
    "sudoku": _sudoku,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mse_ref.draw", description=__doc__)
    parser.add_argument("--out", default="docs/figures", help="the folder to write to (default: %(default)s)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these of: {', '.join(FIGURES)}")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in FIGURES]
    if unknown:
        print(f"no figure is named {unknown[0]!r}; there are {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    for name in given.names or FIGURES:
        for path in save(FIGURES[name](), given.out, name):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
