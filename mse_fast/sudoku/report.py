"""Solved puzzles per number of givens: ``python -m mse_fast.sudoku.report RUN --data FILE --json results/sudoku.json``.

`section` turns such a record, and the paper's table of neural solvers, into a part of ``docs/results.md``.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from mse_fast.checkpoint import write_json
from mse_fast.config import OneLineParser, UsageError, check_numbers, fail
from mse_fast.evaluate import read_run, wilson
from mse_fast.models import find_folder
from mse_fast.plots import COLOURS, MARKERS, new_figure, save_figure, tidy
from mse_fast.record import command, commit, hardware, now, versions
from mse_fast.results.paper import read_paper
from mse_fast.sudoku.answer import answer, load_solver
from mse_fast.sudoku.generator import generate
from mse_fast.sudoku.layout import Layout
from mse_fast.sudoku.reader import PuzzleError, read_puzzles

__all__ = ["count_solved", "main", "section"]

STEPS = (10, 30, 64)  # applications of the network: as trained in the paper, as tested there, and as RRN's
GENERATED = (35, 40, 45, 50, 55, 60, 65, 70)
BATCH = 50
RECORD = "sudoku.json"


def count_solved(
    model: nn.Module, puzzles: np.ndarray, solutions: np.ndarray, layout: Layout = "corner"
) -> list[dict[str, Any]]:
    """For each number of steps: how many puzzles are right in every cell, and the share of right empty cells."""
    whole, cells, empty = np.zeros(len(STEPS), int), np.zeros(len(STEPS), int), 0
    for start in range(0, len(puzzles), BATCH):
        part, right = puzzles[start : start + BATCH], solutions[start : start + BATCH]
        made = answer(model, part, max(STEPS), layout).digits[np.array(STEPS) - 1] == right  # [3, B, 9, 9]
        whole += made.all(axis=(2, 3)).sum(1)
        cells += (made & (part == 0)).sum(axis=(1, 2, 3))
        empty += int((part == 0).sum())
    rows = []
    for i, steps in enumerate(STEPS):
        low, high = wilson(int(whole[i]), len(puzzles))
        row = {"steps": steps, "solved": int(whole[i]) / len(puzzles), "solved_low": low, "solved_high": high}
        rows.append(row | {"empty_cells_right": float(cells[i] / max(1, empty)), "puzzles": len(puzzles)})
    return rows


def by_givens(puzzles: np.ndarray, solutions: np.ndarray, most: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """The first ``most`` puzzles of every number of givens in a file."""
    givens = (puzzles > 0).sum(axis=(1, 2))
    chosen = {int(g): np.flatnonzero(givens == g)[:most] for g in np.unique(givens)}
    return {g: (puzzles[i], solutions[i]) for g, i in chosen.items()}


def generated(givens: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """So many fresh puzzles of one number of givens, [N, 9, 9] each, with solutions."""
    rng = np.random.default_rng((seed, givens))
    puzzles, solutions = zip(*(generate(givens, rng) for _ in range(count)), strict=True)
    return np.stack(puzzles), np.stack(solutions)


def report(options: argparse.Namespace) -> dict[str, Any]:
    """The record of an evaluation."""
    folder = find_folder(options.name)
    record, _ = read_run(folder)
    model, layout = load_solver(str(folder))
    puzzles, solutions = read_puzzles(options.data)
    if solutions is None:
        raise PuzzleError(f"{options.data}: an evaluation needs `puzzle,solution` lines, these have no solutions")
    sets = [(g, "file", *pair) for g, pair in by_givens(puzzles, solutions, options.per_givens).items()]
    most = int((puzzles > 0).sum(axis=(1, 2)).max())  # beyond those of the file
    sets += [(g, "generated", *generated(g, options.per_givens, options.seed)) for g in GENERATED if g > most]
    rows = []
    for givens, source, asked, right in tqdm(sets, disable=not options.progress):
        rows += [{"givens": givens, "source": source} | row for row in count_solved(model, asked, right, layout)]
    about: dict[str, Any] = {"command": command("sudoku.report", options.arguments), "commit": commit(), "date": now()}
    about |= {"hardware": hardware(torch.device("cpu")), "versions": versions(), "seed": options.seed}
    return {
        "name": record["name"],
        "task": "sudoku",
        "givens": rows,
        "evaluation": about,
        "record": record,
        "stages": record.get("stages", []),
    }


def section(records: Path, figures: Path) -> list[str]:
    """Markdown lines on Sudoku for ``docs/results.md``; none when there is no record. Also draws the figure."""
    path = records / RECORD
    if not path.exists():
        return []
    made = json.loads(path.read_text())
    rows, paper = made["givens"], read_paper(records)
    _draw(rows, figures / "results-sudoku.svg")
    run, read = made["record"], [row for row in rows if row["source"] == "file"]
    lines = ["## sudoku", ""]
    lines += [
        "![Share of puzzles solved by number of givens; the numbers are in the table.](figures/results-sudoku.svg)"
    ]
    lines += ["", "Share of puzzles with every cell right, by number of givens and applications of the network, and"]
    most = max(row["givens"] for row in read)
    lines += [f"the share of right empty cells after 30 applications. Givens to {most} are puzzles of the validation"]
    lines += ["file of [Recurrent Relational Networks](https://arxiv.org/abs/1711.08028), above that fresh generated"]
    lines += ["ones. The network was trained on others: the puzzles of 17 givens of Gordon Royle's collection, with"]
    lines += ["cells of their solutions revealed. `--data FILE` of the trainer and of"]
    lines += ["`python -m mse_fast.sudoku.report` reads such files: lines of puzzle and solution, 81 digits each,"]
    lines += ["0 for an empty cell.", ""]
    lines += [
        "| givens | " + " | ".join(f"{s} steps" for s in STEPS) + " | 95 % interval at 30 | empty cells | puzzles |"
    ]
    lines += ["|---|" + "---|" * (len(STEPS) + 3)]
    for givens in sorted({row["givens"] for row in rows}):
        same = {row["steps"]: row for row in rows if row["givens"] == givens}
        at = same[30]
        cells = " | ".join(f"{same[s]['solved']:.3f}" for s in STEPS)
        span = f"{at['solved_low']:.3f}-{at['solved_high']:.3f}"
        lines += [f"| {givens} | {cells} | {span} | {at['empty_cells_right']:.3f} | {at['puzzles']} |"]
    lines += [
        "",
        "Neural solvers, share of test puzzles solved completely. Ours is measured on the validation file.",
        "",
    ]
    lines += ["| model | givens | solved |", "|---|---|---|"]
    at_thirty = [row["solved"] for row in read if row["steps"] == 30]
    low, high = (pick(row["givens"] for row in read) for pick in (min, max))
    steps = sum(each["step"] for each in [*made["stages"], run])
    ours = f"`{made['name']}`, {run['parameters']:,} parameters, {steps:,} training steps"
    lines += [f"| Matrix-SE, here ({ours}) | {low}-{high} | {np.mean(at_thirty):.1%} |"]
    lines += [f"| {s['model']} | {s['givens'][0]}-{s['givens'][1]} | {s['solved']:.1%} |" for s in paper.solvers]
    return [*lines, "", f"Source of the other numbers: {paper.source}, Table 3.", ""]


def _draw(rows: list[dict[str, Any]], path: Path) -> None:
    figure = new_figure()
    axes = figure.subplots()
    for place, steps in enumerate(STEPS):
        same = sorted((row for row in rows if row["steps"] == steps), key=lambda row: row["givens"])
        givens = [row["givens"] for row in same]
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ms": 4, "lw": 1.2}
        axes.plot(givens, [row["solved"] for row in same], label=f"{steps} steps", **style)
    axes.set_xlabel("givens")
    axes.set_ylabel("puzzles solved completely")
    axes.set_ylim(-0.02, 1.02)
    axes.legend(title="applications")
    tidy(axes)
    save_figure(figure, path)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = OneLineParser(prog="python -m mse_fast.sudoku.report", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", help="a run folder, the name of a run in runs/, or a trained network of the zoo")
    parser.add_argument("--data", required=True, metavar="FILE", help="puzzles with solutions, never trained on")
    parser.add_argument("--per-givens", type=int, default=200, help="puzzles of each number of givens (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="which generated puzzles (default 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record of the evaluation")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: PyTorch's choice")
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, default=True, help="progress bar")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    options.arguments = arguments
    try:
        check_numbers(options, per_givens=1, seed=0, threads=0)
        if options.threads:
            torch.set_num_threads(options.threads)
        made = report(options)
        if options.json:
            write_json(options.json, made)
    except (UsageError, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    print("givens  steps  solved  empty cells right")
    for row in made["givens"]:
        print(f"{row['givens']:>6}  {row['steps']:>5}  {row['solved']:.4f}  {row['empty_cells_right']:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
