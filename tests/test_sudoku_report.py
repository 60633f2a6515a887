"""The Sudoku report: counting on networks whose answers are known, and the page made from a record."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mse_fast.results.paper import NAME as PAPER
from mse_fast.sudoku.exact import solve_many
from mse_fast.sudoku.generator import generate
from mse_fast.sudoku.layout import cut_out, place
from mse_fast.sudoku.report import GENERATED, STEPS, by_givens, count_solved, generated, main, section
from mse_fast.train import main as train
from mse_ref.tasks.sudoku import EMPTY_TOKEN, is_solution

RESULTS = Path(__file__).parent.parent / "results"


class Oracle(nn.Module):
    """Answers rightly from step ``patience`` on, before that with one wrong cell in puzzles of few givens."""

    def __init__(self, patience, hard):
        super().__init__()
        self.patience, self.hard, self.unused = patience, hard, nn.Parameter(torch.zeros(1))

    def forward(self, tokens, steps):
        puzzles = (cut_out(tokens, "corner") - EMPTY_TOKEN).numpy()
        right = torch.from_numpy(solve_many(puzzles)[0]).long()
        wrong = right.clone()
        for i, puzzle in enumerate(puzzles):
            row, column = np.argwhere(puzzle == 0)[0]
            if (puzzle > 0).sum() < self.hard:
                wrong[i, row, column] = right[i, row, column] % 9 + 1
        said = [right if s >= self.patience else wrong for s in range(1, steps + 1)]
        return [F.one_hot(place(digits, 16, "corner"), 10).float() for digits in said]


@pytest.fixture(scope="module")
def puzzles():
    rng = np.random.default_rng(0)
    return tuple(np.stack(part) for part in zip(*[generate(g, rng) for g in (30, 30, 40, 50)], strict=True))


def test_only_puzzles_with_every_cell_right_count_as_solved_at_each_number_of_steps(puzzles):
    rows = count_solved(Oracle(patience=30, hard=40), *puzzles)
    assert [row["steps"] for row in rows] == list(STEPS) == [10, 30, 64]
    assert [row["solved"] for row in rows] == [0.5, 1.0, 1.0]
    assert all(row["solved_low"] <= row["solved"] <= row["solved_high"] for row in rows)
    empty = int((puzzles[0] == 0).sum())
    assert rows[0]["empty_cells_right"] == pytest.approx((empty - 2) / empty)
    assert rows[1]["empty_cells_right"] == 1.0


def test_a_file_is_split_by_givens_and_cut_to_the_number_asked_for(puzzles):
    parts = by_givens(*puzzles, most=1)
    assert {givens: len(asked) for givens, (asked, _) in parts.items()} == {30: 1, 40: 1, 50: 1}
    for asked, right in parts.values():
        assert is_solution(right[0], asked[0])


def test_generated_puzzles_depend_on_the_seed_alone():
    first, again, other = (generated(40, 2, seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any() and ((first > 0).sum((1, 2)) == 40).all()


def test_the_page_shows_the_numbers_of_the_record_beside_the_papers(tmp_path):
    shutil.copy(RESULTS / PAPER, tmp_path / PAPER)
    assert section(tmp_path, tmp_path / "figures") == []
    rows = [
        {"givens": givens, "source": source, "steps": steps, "solved": solved + steps / 1000, "puzzles": 200}
        | {"solved_low": 0.1, "solved_high": 0.2, "empty_cells_right": 0.77}
        for givens, source, solved in ((17, "file", 0.1), (34, "file", 0.3), (50, "generated", 0.9))
        for steps in STEPS
    ]
    run = {"parameters": 123456, "step": 789}
    (tmp_path / "sudoku.json").write_text(
        json.dumps({"name": "sudoku", "givens": rows, "record": run, "stages": [{"step": 211}]})
    )
    page = "\n".join(section(tmp_path, tmp_path / "figures"))
    assert "Givens to 34 are puzzles" in page
    assert "| 34 | 0.310 | 0.330 | 0.364 | 0.100-0.200 | 0.770 | 200 |" in page
    assert "123,456 parameters, 1,000 training steps) | 17-34 | 23.0% |" in page  # the file's puzzles alone
    assert "| Matrix-SE (paper) | 17-34 | 96.6% |" in page
    assert (tmp_path / "figures" / "results-sudoku.svg").stat().st_size > 1000


def test_a_trained_run_is_reported_end_to_end(tmp_path, monkeypatch, capsys, puzzles):
    monkeypatch.chdir(tmp_path)
    lines = [",".join("".join(map(str, g.ravel())) for g in pair) for pair in zip(*puzzles, strict=True)]
    Path("pool.csv").write_text("\n".join(lines))
    options = {"steps": 2, "feature-maps": 4, "batch": 2, "eval-every": 2, "eval-instances": 2, "test-steps": 2}
    chosen = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert train(["sudoku", *chosen, "--data", "pool.csv", "--no-progress", "--threads", "1"]) == 0
    assert main(["sudoku", "--data", "pool.csv", "--per-givens", "1", "--no-progress", "--json", "out.json"]) == 0
    made = json.loads(Path("out.json").read_text())
    assert [row["givens"] for row in made["givens"]] == [
        g for g in (30, 40, 50, *(g for g in GENERATED if g > 50)) for _ in STEPS
    ]
    assert made["record"]["config"]["data"] == "pool.csv" and made["stages"] == []
    again = ["--start", "sudoku", "--out", "second", "--data", "pool.csv", "--no-progress", "--threads", "1"]
    assert train(["sudoku", *chosen, *again]) == 0
    second = json.loads(Path("second/record.json").read_text())
    assert [run["config"]["out"] for run in second["stages"]] == [made["record"]["config"]["out"]]
    Path("bare.csv").write_text(lines[0].split(",")[0])
    for bad, reason in (("bare.csv", "no solutions"), ("none.csv", "No such file")):
        with pytest.raises(SystemExit) as stop:
            main(["sudoku", "--data", bad])
        assert stop.value.code == 2
        assert reason in capsys.readouterr().err
