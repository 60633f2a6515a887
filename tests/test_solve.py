"""The solve command: answers, remarks and exit codes, with an untrained and with the trained network."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from mse_fast import MatrixSERecurrent
from mse_fast.solve import draw, first_solved, main
from mse_fast.sudoku.answer import Answers, answer, follows_rules, load_solver
from mse_fast.sudoku.generator import generate
from mse_fast.sudoku.layout import cut_out, place
from mse_fast.sudoku.reader import parse_grid, read_puzzles
from mse_ref.tasks.sudoku import is_solution

PUZZLE = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    torch.manual_seed(0)
    MatrixSERecurrent(in_classes=11, out_classes=10, feature_maps=8, blocks=1).save_pretrained(folder)
    return str(folder)


def run(*arguments):
    """Exit code of the command, also when it fails with one line."""
    try:
        return main([*arguments, "--no-progress"])
    except SystemExit as stop:
        return stop.code


# --- answers ---------------------------------------------------------------------------------------------


def test_givens_are_never_overwritten_and_no_cell_is_answered_with_padding(untrained):
    model = MatrixSERecurrent.from_pretrained(untrained)
    with torch.no_grad():
        model.readout.readout.bias[0] = 100.0  # a network that wants to say "padding" everywhere
    puzzles = np.stack([generate(40, np.random.default_rng(seed))[0] for seed in range(3)])
    made = answer(model, puzzles, steps=4)
    assert made.digits.shape == made.confidence.shape == (4, 3, 9, 9)
    given = np.broadcast_to(puzzles > 0, made.digits.shape)
    assert (made.digits == puzzles)[given].all()
    assert (made.confidence[given] == 1).all()
    assert made.digits.min() >= 1 and made.digits.max() <= 9
    assert (made.confidence[~given] >= 1 / 9 - 1e-6).all() and (made.confidence[~given] < 1).any()


def test_the_layout_of_the_task_a_network_was_trained_on_is_the_one_it_is_asked_in(untrained, tmp_path):
    model, layout = load_solver(untrained)
    assert layout == "corner"
    for task, expected in (("sudoku-boxes", "boxes"), ("sudoku-easy", "corner")):
        model.save_pretrained(tmp_path)
        (tmp_path / "record.json").write_text(json.dumps({"config": {"task": task}}))
        assert load_solver(str(tmp_path))[1] == expected
    (tmp_path / "record.json").write_text(json.dumps({"config": {"task": "xor"}}))
    with pytest.raises(ValueError, match="trained on xor, not on Sudoku"):
        load_solver(str(tmp_path))


def test_answers_in_a_layout_are_those_of_the_network_on_the_placed_tokens(untrained):
    model = MatrixSERecurrent.from_pretrained(untrained)
    puzzle = parse_grid(PUZZLE).astype(np.int64)
    tokens = place(torch.from_numpy(puzzle)[None] + 1, 16, "boxes")
    with torch.no_grad():
        logits = cut_out(model(tokens, steps=2)[-1], "boxes")[0, ..., 1:]  # [9, 9, 9]
    found = answer(model, puzzle[None], 2, "boxes").digits[-1, 0]
    np.testing.assert_array_equal(found[puzzle == 0], (logits.argmax(-1) + 1).numpy()[puzzle == 0])


def test_answers_do_not_depend_on_the_batch_they_are_in(untrained):
    model = MatrixSERecurrent.from_pretrained(untrained)
    puzzles = np.stack([generate(40, np.random.default_rng(seed))[0] for seed in range(3)])
    together = answer(model, puzzles, steps=3)
    alone = answer(model, puzzles[1:2], steps=3)
    np.testing.assert_allclose(together.confidence[:, 1], alone.confidence[:, 0], atol=1e-5)


def test_the_vectorised_rule_check_agrees_with_the_reference():
    rng = np.random.default_rng(0)
    grids = np.stack([parse_grid(SOLUTION)] * 60)
    for grid in grids[1:]:
        for _ in range(rng.integers(3)):
            grid[tuple(rng.integers(9, size=2))] = rng.integers(1, 10)
    expected = [is_solution(grid) for grid in grids]
    assert 0 < sum(expected) < 60
    assert follows_rules(grids).tolist() == expected


def test_a_latin_square_that_breaks_only_the_boxes_breaks_the_rules():
    square = np.arange(81).reshape(9, 9) // 9 + np.arange(9)
    assert not follows_rules(square % 9 + 1)


def test_the_first_step_that_follows_the_rules_is_reported():
    good = parse_grid(SOLUTION)
    bad = np.ones_like(good)
    digits = np.stack([[bad, bad, good], [good, bad, good], [bad, bad, good]])  # [3 steps, 3 puzzles]
    assert first_solved(Answers(digits, np.ones(digits.shape))) == [2, None, 1]


def test_the_drawing_shows_sure_likely_and_unknown_cells_differently():
    grid, confidence = parse_grid(SOLUTION), np.ones((9, 9))
    confidence[0, 1], confidence[0, 2] = 0.6, 0.2
    first = draw(grid, confidence).split("\n")[0]
    assert first == "5  3? .  | 6  7  8  | 9  1  2"


# --- one puzzle ------------------------------------------------------------------------------------------


def test_a_full_correct_grid_is_solved(untrained, capsys):
    assert run(SOLUTION, "--model", untrained) == 0
    assert "solved in 1 steps" in capsys.readouterr().out


def test_an_unsolved_puzzle_is_said_to_be_unsolved_and_exits_with_1(untrained, capsys):
    assert run(PUZZLE, "--model", untrained, "--steps", "3") == 1
    out = capsys.readouterr().out
    assert "step 1: " in out and "not solved: after 3 steps" in out


def test_exact_falls_back_to_the_right_answer(untrained, capsys):
    assert run(PUZZLE.replace("0", "."), "--model", untrained, "--steps", "2", "--exact") == 0
    shown = capsys.readouterr().out.split("the exact solver's answer:")[1]
    assert "".join(c for c in shown if c.isdigit()) == SOLUTION


@pytest.mark.parametrize(
    ("puzzle", "reason"),
    [
        (PUZZLE[:-1], "81 characters, this one has 80"),
        (PUZZLE[:-1].replace("0", "."), "81 characters, this one has 80"),
        ("x" + PUZZLE[1:], "character 'x' at place 1"),
        ("x" + PUZZLE[1:].replace("0", "."), "character 'x' at place 1"),
        ("55" + PUZZLE[2:], "contradict each other: see the 5 at row 1 column 1 and row 1 column 2"),
        ("123456780000000009" + "0" * 63, "no solution"),
        ("missing/file.txt", "there is no file missing/file.txt"),
        ("", "81 characters, this one has 0"),
    ],
)
def test_input_that_is_no_puzzle_is_one_line_and_exit_code_2(untrained, capsys, puzzle, reason):
    assert run(puzzle, "--model", untrained) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1
    assert reason in shown.err


def test_a_puzzle_with_several_solutions_is_remarked_on(untrained, capsys):
    run("0" * 81, "--model", untrained, "--steps", "1")
    assert "several solutions" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--steps", "--batch"])
def test_options_below_one_are_refused(untrained, capsys, option):
    assert run(PUZZLE, "--model", untrained, option, "0") == 2
    assert "must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["no-such-net", "runs/no-such-net"])
def test_an_unknown_model_is_refused_with_the_names_that_exist(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert run(PUZZLE, "--model", name) == 2
    error = capsys.readouterr().err
    assert f"no model.safetensors for '{name}'" in error and "transpose" in error


def test_fewer_than_no_threads_are_refused(untrained, capsys):
    assert run(PUZZLE, "--model", untrained, "--threads", "-1") == 2
    assert "threads is -1, but must be at least 0" in capsys.readouterr().err


# --- files -----------------------------------------------------------------------------------------------


@pytest.fixture
def puzzle_file(tmp_path):
    path = tmp_path / "puzzles.csv"
    path.write_text(f"puzzle,solution\n{SOLUTION},{SOLUTION}\n{PUZZLE},{SOLUTION}\n")
    return path


def test_a_file_is_solved_in_batches_and_its_score_printed(untrained, puzzle_file, capsys):
    assert run(str(puzzle_file), "--model", untrained, "--steps", "2", "--batch", "1") == 1
    out = capsys.readouterr().out
    assert "solved by the network: 1 of 2 (50.0%)" in out and "solved per second" in out


def test_answers_of_a_file_are_written_and_exact_makes_them_right(untrained, puzzle_file, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    assert run(str(puzzle_file), "--model", untrained, "--steps", "2", "--exact", "--out", str(out)) == 0
    puzzles, answers = read_puzzles(out)
    assert all(is_solution(a, p) for a, p in zip(answers, puzzles, strict=True))
    assert "exact solver: the other 1" in capsys.readouterr().out


def test_a_damaged_archive_is_one_line_and_exit_code_2(untrained, tmp_path, capsys):
    content = bytearray(gzip.compress((PUZZLE + "\n").encode() * 50))
    content[12:20] = bytes(255 - b for b in content[12:20])
    (tmp_path / "bad.gz").write_bytes(content)
    assert run(str(tmp_path / "bad.gz"), "--model", untrained) == 2
    error = capsys.readouterr().err
    assert "damaged archive" in error and error.count("\n") == 1


def test_a_path_of_81_characters_is_a_file_and_not_a_puzzle(untrained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # so that the length of the path is ours to choose
    path = "folder/" + "p" * 70 + ".txt"
    assert len(path) == 81
    assert run(path, "--model", untrained) == 2
    assert f"there is no file {path}" in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    (tmp_path / path).write_text(SOLUTION)
    assert run(path, "--model", untrained) == 0
    assert "solved by the network: 1 of 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "reason"),
    [("", "no puzzles"), (PUZZLE + "\n12\n", "line 2"), ("55" + PUZZLE[2:], "puzzle 1: the givens")],
)
def test_a_bad_file_is_one_line_and_exit_code_2(untrained, tmp_path, capsys, content, reason):
    (tmp_path / "bad.txt").write_text(content)
    assert run(str(tmp_path / "bad.txt"), "--model", untrained) == 2
    error = capsys.readouterr().err
    assert reason in error and error.count("\n") == 1


def test_the_module_runs_as_a_command():
    made = subprocess.run([sys.executable, "-m", "mse_fast.solve", "12"], capture_output=True, text=True, check=False)
    assert made.returncode == 2
    assert made.stderr.startswith("error: a grid has 81 characters")


# --- the network of the zoo ------------------------------------------------------------------------------


def test_the_trained_network_solves_nearly_all_fresh_puzzles_of_sixty_givens(tmp_path):
    rng = np.random.default_rng(2024)
    puzzles = [generate(60, rng)[0] for _ in range(20)]
    path, out = tmp_path / "fresh.txt", tmp_path / "answers.csv"
    path.write_text("\n".join("".join(map(str, puzzle.ravel())) for puzzle in puzzles))
    command = [sys.executable, "-m", "mse_fast.solve", str(path), "--steps", "12", "--out", str(out), "--no-progress"]
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert made.returncode in (0, 1), made.stderr  # 1: a puzzle was left unsolved
    solved = int(made.stdout.split(": ")[1].split()[0])
    assert solved >= 18
    asked, answers = read_puzzles(out)
    assert sum(is_solution(a, p) for a, p in zip(answers, asked, strict=True)) == solved
