"""Sudoku as the trainer sees it: batches from a pool, the curriculum, and the data option."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mse_fast import MatrixSERecurrent
from mse_fast.sudoku.exact import solve_many
from mse_fast.sudoku.generator import generate
from mse_fast.sudoku.layout import cut_out, place
from mse_fast.tasks import get_task
from mse_fast.tasks.sudoku import EasySudoku, Sudoku, reveal
from mse_fast.train import main as train
from mse_ref.tasks import sudoku as reference


@pytest.fixture(scope="module")
def pool_file(tmp_path_factory):
    """Twenty puzzles of 26 givens with their solutions."""
    rng = np.random.default_rng(7)
    pairs = [generate(26, rng) for _ in range(20)]
    lines = [",".join("".join(map(str, grid.ravel())) for grid in pair) for pair in pairs]
    path = tmp_path_factory.mktemp("pool") / "pool.csv"
    path.write_text("puzzle,solution\n" + "\n".join(lines))
    return path


@pytest.fixture
def task(pool_file):
    made = get_task("sudoku")
    made.read(str(pool_file))
    return made


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def count_givens(inputs):
    return (inputs > reference.EMPTY_TOKEN).sum((1, 2))


def test_labels_are_the_only_solutions_of_the_inputs(task):
    task.stage(None)
    inputs, labels = task.sample(16, 9, generator())
    solutions, counts = solve_many((inputs - reference.EMPTY_TOKEN).numpy())
    assert (counts == 1).all()
    np.testing.assert_array_equal(solutions, labels.numpy())


def test_tokens_follow_the_reference_encoding_and_padding(task):
    inputs, labels = task.sample(4, 16, generator())
    for tokens, answer in zip(inputs.numpy(), labels.numpy(), strict=True):
        puzzle = reference.decode(tokens)
        np.testing.assert_array_equal(reference.encode(puzzle, 16), tokens)
        np.testing.assert_array_equal(reference.label_sudoku(tokens), answer)
    assert inputs.dtype == labels.dtype == torch.int64


def test_a_batch_depends_on_the_generator_alone(task):
    first, again, other = (task.sample(4, 9, generator(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(("made", "range_"), [(Sudoku, (17, 34)), (EasySudoku, (24, 36))])
def test_evaluations_draw_the_numbers_of_givens_of_the_task(made, range_, pool_file):
    task = made()
    task.read(str(pool_file))
    task.stage(None)
    givens = count_givens(task.sample(400, 9, generator())[0])
    assert givens.min() == 26  # the pool has 26, and no given is ever removed
    assert givens.max() == range_[1]


def test_the_curriculum_starts_easy_reaches_the_hardest_half_way_and_keeps_easy_cases(task):
    lowest = []
    for progress in (0.0, 0.25, 0.5, 0.9):
        task.stage(progress)
        givens = count_givens(task.sample(1000, 9, generator())[0])
        lowest.append(int(givens.min()))
        assert givens.max() == 70
    assert lowest[0] == 40
    assert lowest[0] > lowest[1] > lowest[2] == lowest[3] == 26


def test_revealing_keeps_the_givens_adds_solution_cells_and_is_uniform():
    puzzles = torch.zeros(3000, 9, 9, dtype=torch.int64)
    puzzles[:, 0, 0] = 5
    solutions = torch.full_like(puzzles, 3)
    solutions[:, 0, 0] = 5
    shown = reveal(puzzles, solutions, torch.full((3000,), 41), generator())
    assert (count_givens(shown + 1) == 41).all()
    assert (shown[:, 0, 0] == 5).all()
    assert (shown[shown > 0] == solutions[shown > 0]).all()
    share = (shown > 0).float().mean(0).flatten()[1:]  # 40 of the other 80 cells
    assert share.min() > 0.45 and share.max() < 0.55


def test_a_pool_is_generated_when_no_file_is_given():
    task = get_task("sudoku")
    task.stage(None)
    inputs, labels = task.sample(3, 9, generator())
    assert all(reference.is_solution(answer) for answer in labels.numpy())
    assert count_givens(inputs).min() >= 24


def test_a_pool_without_solutions_is_refused(tmp_path):
    (tmp_path / "list.txt").write_text("." * 81)
    with pytest.raises(ValueError, match="no solutions"):
        get_task("sudoku").read(str(tmp_path / "list.txt"))


def test_a_side_below_nine_is_refused(task):
    with pytest.raises(ValueError, match="at least 9, not 8"):
        task.sample(1, 8, generator())


def test_tasks_that_make_their_instances_refuse_data():
    with pytest.raises(ValueError, match=r"transpose .* leave out --data"):
        get_task("transpose").read("some.csv")


# --- layouts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["corner", "boxes"])
def test_what_is_placed_can_be_cut_out_and_all_else_is_padding(layout):
    grids = torch.randint(1, 10, (3, 9, 9), generator=generator())
    placed = place(grids, 16, layout)
    assert torch.equal(cut_out(placed, layout), grids)
    assert (placed > 0).sum() == 3 * 81
    with pytest.raises(ValueError, match="needs a side of at least"):
        place(grids, 8, layout)


def test_with_boxes_apart_every_box_is_one_square_of_the_z_order():
    grids = torch.arange(81).view(1, 9, 9) // 27 * 3 + torch.arange(9) // 3 + 1  # the number of each cell's box
    placed = place(grids, 16, "boxes")[0]
    for row in range(0, 16, 4):
        for column in range(0, 16, 4):
            assert len(set(placed[row : row + 4, column : column + 4].flatten().tolist()) - {0}) <= 1


def test_both_layouts_hold_the_same_puzzles(pool_file):
    batches = []
    for name, n in (("sudoku", 9), ("sudoku-boxes", 16)):
        task = get_task(name)
        task.read(str(pool_file))
        batches.append([cut_out(part, task.layout) for part in task.sample(4, n, generator())])
    assert all(torch.equal(a, b) for a, b in zip(*batches, strict=True))


# --- training deep in the recurrence ---------------------------------------------------------------------


def small_network():
    torch.manual_seed(0)
    return MatrixSERecurrent(in_classes=11, out_classes=10, feature_maps=4, blocks=1, steps=2, reinject=True).double()


def test_free_steps_give_the_answers_of_the_steps_that_follow_them(task):
    net, inputs = small_network(), task.sample(2, 9, generator())[0]
    late = net(inputs, steps=5)[3:]
    for expected, found in zip(late, net(inputs, steps=2, free_steps=3), strict=True):
        torch.testing.assert_close(found, expected)


def test_no_gradient_flows_through_free_steps(task):
    inputs, labels = task.sample(2, 9, generator())

    def gradient(**options):
        net = small_network()
        made = net(inputs, **options)[-1]
        torch.nn.functional.cross_entropy(made.reshape(-1, 10), labels.reshape(-1)).backward()
        return net.stack.blocks[0].switch_forward.Z.grad

    cut = gradient(steps=2, free_steps=2)
    torch.testing.assert_close(cut, gradient(steps=4, backprop_steps=2))
    assert not torch.allclose(cut, gradient(steps=4))


def test_a_run_can_start_from_the_weights_of_another(tmp_path, monkeypatch, capsys, pool_file):
    monkeypatch.chdir(tmp_path)
    small = ["--feature-maps", "4", "--batch", "2", "--eval-instances", "2", "--test-steps", "2", "--no-progress"]
    same = ["sudoku", *small, "--data", str(pool_file), "--threads", "1", "--free-steps", "2"]
    assert train([*same, "--steps", "3", "--out", "first"]) == 0
    still = ["--steps", "1", "--lr", "1e-30", "--weight-decay", "0"]
    assert train([*same, *still, "--start", "first", "--out", "second"]) == 0
    first, second = (load_file(f"{name}/model.safetensors") for name in ("first", "second"))
    for name, value in first.items():
        torch.testing.assert_close(second[name], value)
    with pytest.raises(SystemExit):
        train([*same, "--start", "first", "--out", "third", "--blocks", "2"])
    assert "cannot start from first" in capsys.readouterr().err
