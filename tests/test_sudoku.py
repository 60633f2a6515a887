"""Puzzles: the reader, the exact solver, the generator and the symmetries, against the reference rules."""

import gzip
import lzma

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mse_fast.sudoku.exact import count_solutions, solve, solve_many
from mse_fast.sudoku.generator import FEWEST_GIVENS, generate, random_solution
from mse_fast.sudoku.reader import PuzzleError, parse_grid, read_puzzles
from mse_fast.sudoku.symmetry import augment, draw_line_orders
from mse_ref.tasks import sudoku as reference

# The classic example of the Wikipedia article on Sudoku, with its published solution.
PUZZLE = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"

seeds = st.integers(0, 2**32 - 1)


def text(grid):
    return "".join(str(d) for d in np.asarray(grid).ravel())


def brute_force_count(puzzle):
    """All solutions by plain recursion over cells in reading order: no masks, no cleverness."""
    grid = [int(d) for d in np.asarray(puzzle).ravel()]

    def allowed(cell, digit):
        row, column = divmod(cell, 9)
        for other in range(81):
            r, c = divmod(other, 9)
            related = r == row or c == column or (r // 3, c // 3) == (row // 3, column // 3)
            if related and other != cell and grid[other] == digit:
                return False
        return True

    def count(cell):
        while cell < 81 and grid[cell]:
            cell += 1
        if cell == 81:
            return 1
        total = 0
        for digit in range(1, 10):
            if allowed(cell, digit):
                grid[cell] = digit
                total += count(cell + 1)
                grid[cell] = 0
        return total

    return count(0) if all(allowed(i, d) for i, d in enumerate(grid) if d) else 0


def grid_with_holes(rng, holes):
    """A random solution with so many random cells emptied: it may well have several solutions."""
    grid = random_solution(rng)
    grid.reshape(81)[rng.permutation(81)[:holes]] = 0
    return grid


# --- the rules -------------------------------------------------------------------------------------------


def test_every_cell_has_twenty_peers_and_being_peers_is_mutual():
    related = np.array([[reference.peers(r, c).ravel() for c in range(9)] for r in range(9)]).reshape(81, 81)
    assert (related.sum(1) == 20).all()
    assert_array_equal(related, related.T)


def test_a_solution_with_two_cells_swapped_is_no_solution():
    grid = parse_grid(SOLUTION)
    assert reference.is_solution(grid, parse_grid(PUZZLE))
    grid[0, 2], grid[0, 3] = grid[0, 3], grid[0, 2]
    assert not reference.is_solution(grid)
    assert reference.conflicts(grid).any()


def test_a_valid_grid_that_ignores_a_given_does_not_solve_the_puzzle():
    renamed = parse_grid(SOLUTION) % 9 + 1
    assert reference.is_solution(renamed)
    assert not reference.is_solution(renamed, parse_grid(PUZZLE))


def test_the_reference_task_labels_its_own_instances_with_their_solution():
    tokens = reference.encode(parse_grid(PUZZLE), 16)
    labels = reference.label_sudoku(tokens)
    assert_array_equal(labels[:9, :9], parse_grid(SOLUTION))
    assert labels[9:].sum() == labels[:, 9:].sum() == 0
    sampled = reference.decode(reference.sample_sudoku(9, np.random.default_rng(0)))
    assert reference.count_solutions(sampled) == 1
    assert 30 <= (sampled > 0).sum() <= 60


def test_the_reference_task_refuses_what_is_not_one_puzzle():
    with pytest.raises(ValueError, match="several solutions"):
        reference.label_sudoku(reference.encode(np.zeros((9, 9), dtype=int), 9))
    clash = np.zeros((9, 9), dtype=int)
    clash[0, :2] = 1
    with pytest.raises(ValueError, match="no solution"):
        reference.label_sudoku(reference.encode(clash, 9))
    with pytest.raises(ValueError, match="top-left 9×9"):
        reference.decode(np.ones((16, 16), dtype=int))


# --- the exact solver ------------------------------------------------------------------------------------


def test_the_solver_finds_the_published_solution():
    assert text(solve(parse_grid(PUZZLE))) == SOLUTION
    assert count_solutions(parse_grid(PUZZLE), limit=100) == 1


@settings(max_examples=15, deadline=None)
@given(seed=seeds, holes=st.integers(0, 38))
def test_the_solver_counts_as_many_solutions_as_brute_force(seed, holes):
    puzzle = grid_with_holes(np.random.default_rng(seed), holes)
    assert count_solutions(puzzle, limit=10**6) == brute_force_count(puzzle)


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_the_solver_and_the_reference_search_agree(seed):
    puzzle = grid_with_holes(np.random.default_rng(seed), 40)
    found = {text(s) for s in reference.solutions(puzzle)}
    assert count_solutions(puzzle, limit=10**6) == len(found)
    assert text(solve(puzzle)) in found


def test_counting_stops_at_the_limit():
    assert [count_solutions(np.zeros((9, 9), dtype=int), limit) for limit in (1, 2, 50)] == [1, 2, 50]


def test_two_swappable_cells_give_exactly_two_solutions():
    grid = parse_grid(SOLUTION)
    # rows 4 and 8 (in different bands) hold 8/3 and 3/8 in columns of the same stack: an unavoidable rectangle
    rows, columns = None, None
    for r1 in range(9):
        for r2 in range(r1 + 1, 9):
            for c1 in range(9):
                for c2 in range(c1 + 1, 9):
                    swapped = grid[r1, c1] == grid[r2, c2] and grid[r1, c2] == grid[r2, c1]
                    if swapped and (r1 // 3 == r2 // 3) != (c1 // 3 == c2 // 3):
                        rows, columns = [r1, r2], [c1, c2]
    assert rows is not None
    grid[np.ix_(rows, columns)] = 0
    assert count_solutions(grid, limit=10) == 2


@pytest.mark.parametrize("cells", [[(0, 0), (0, 8)], [(0, 4), (7, 4)], [(3, 3), (5, 5)]])
def test_a_digit_given_twice_in_a_row_column_or_box_has_no_solution(cells):
    puzzle = np.zeros((9, 9), dtype=int)
    for cell in cells:
        puzzle[cell] = 7
    assert count_solutions(puzzle) == 0
    assert solve(puzzle) is None


def test_a_puzzle_whose_contradiction_shows_only_later_has_no_solution():
    puzzle = parse_grid("123456780000000009" + "0" * 63)  # the 9 of row 1 is blocked in its only cell
    assert count_solutions(puzzle) == 0


def test_solving_many_equals_solving_each_and_leaves_the_input_alone():
    rng = np.random.default_rng(3)
    puzzles = np.stack([generate(30, rng)[0] for _ in range(4)] + [np.zeros((9, 9), dtype=np.int8)])
    puzzles[3, 0, :2] = 5  # contradiction
    before = puzzles.copy()
    solutions, counts = solve_many(puzzles)
    assert_array_equal(puzzles, before)
    assert counts.tolist() == [1, 1, 1, 0, 2]
    assert_array_equal(solutions[0], solve(puzzles[0]))
    assert_array_equal(solutions[3], puzzles[3])


@pytest.mark.parametrize(
    ("puzzle", "message"), [(np.zeros((8, 9)), r"\[8, 9\]"), (np.full((9, 9), 10), "10"), (np.full((9, 9), -1), "-1")]
)
def test_the_solver_refuses_what_is_not_a_grid(puzzle, message):
    with pytest.raises(ValueError, match=message):
        solve(puzzle)


# --- the generator ---------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(seed=seeds, givens=st.integers(24, 81))
def test_a_generated_puzzle_has_its_givens_and_exactly_one_solution(seed, givens):
    puzzle, solution = generate(givens, np.random.default_rng(seed))
    assert (puzzle > 0).sum() == givens
    assert count_solutions(puzzle) == 1
    assert reference.is_solution(solution, puzzle)


def test_the_same_generator_state_gives_the_same_puzzle_and_another_one_another():
    first, again, other = (generate(40, np.random.default_rng(seed))[0] for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("givens", [FEWEST_GIVENS - 1, 82])
def test_the_generator_names_the_range_it_can_serve(givens):
    with pytest.raises(ValueError, match=f"{givens}.*22 and 81"):
        generate(givens, np.random.default_rng(0))


# --- symmetries ------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_symmetries_keep_a_puzzle_uniquely_solvable_by_its_moved_solution(seed):
    pair = torch.from_numpy(np.stack([parse_grid(PUZZLE), parse_grid(SOLUTION)]).astype(np.int64))
    puzzle, solution = augment(pair[None], torch.Generator().manual_seed(seed))[0].numpy()
    assert (puzzle > 0).sum() == 30
    assert count_solutions(puzzle) == 1
    assert_array_equal(solve(puzzle), solution)


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_the_reference_symmetries_keep_solutions_valid(seed):
    rng = np.random.default_rng(seed)
    orders = reference.random_line_order(rng), reference.random_line_order(rng)
    moved = reference.symmetric(parse_grid(SOLUTION), *orders, reference.random_digits(rng), bool(rng.integers(2)))
    assert reference.is_solution(moved)


def test_augmentation_is_a_reference_symmetry_for_every_instance():
    grid = parse_grid(SOLUTION).astype(np.int64)
    generator = torch.Generator().manual_seed(4)
    moved = augment(torch.from_numpy(grid).expand(6, 1, 9, 9), generator).numpy()[:, 0]
    generator.manual_seed(4)  # draw the same numbers again, in the same order
    rows, columns = draw_line_orders(6, generator), draw_line_orders(6, generator)
    turned = torch.rand(6, 1, 1, generator=generator) < 0.5
    names = 1 + torch.rand(6, 9, generator=generator).argsort(1)
    assert 0 < turned.sum() < 6
    for i in range(6):
        digits = np.concatenate([[0], names[i].numpy()])
        expected = reference.symmetric(grid, rows[i].numpy(), columns[i].numpy(), digits, bool(turned[i]))
        assert_array_equal(moved[i], expected)


def test_line_orders_reach_all_1296_possibilities():
    orders = draw_line_orders(20_000, torch.Generator().manual_seed(0))
    assert len({tuple(order) for order in orders.tolist()}) == 1296


def test_augmentation_treats_each_instance_differently():
    grids = torch.from_numpy(parse_grid(SOLUTION).astype(np.int64)).expand(32, 1, 9, 9)
    moved = augment(grids, torch.Generator().manual_seed(0))
    assert len({text(grid) for grid in moved[:, 0].numpy()}) == 32


# --- files -----------------------------------------------------------------------------------------------

LINES = f"{PUZZLE},{SOLUTION}\n{SOLUTION},{SOLUTION}\n"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.xz"])
@pytest.mark.parametrize("header", ["", "quizzes,solutions\n"])
def test_puzzles_with_solutions_are_read_from_plain_and_packed_files(tmp_path, name, header):
    pack = {"gz": gzip.compress, "xz": lzma.compress}.get(name.split(".")[-1], lambda content: content)
    (tmp_path / name).write_bytes(pack((header + LINES).encode()))
    puzzles, solutions = read_puzzles(tmp_path / name)
    assert [text(p) for p in puzzles] == [PUZZLE, SOLUTION]
    assert [text(s) for s in solutions] == [SOLUTION, SOLUTION]


def test_a_list_of_puzzles_may_use_dots_comments_and_empty_lines(tmp_path):
    (tmp_path / "list.txt").write_text(f"# top\n\n{PUZZLE.replace('0', '.')}\r\n{PUZZLE}\n")
    puzzles, solutions = read_puzzles(tmp_path / "list.txt")
    assert [text(p) for p in puzzles] == [PUZZLE, PUZZLE]
    assert solutions is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (PUZZLE[:-1], "this one has 80"),
        (PUZZLE + "0", "this one has 82"),
        ("x" + PUZZLE[1:], "character 'x' at place 1"),
        (PUZZLE[:40] + " " + PUZZLE[41:], "character ' ' at place 41"),
        (f"{PUZZLE},{SOLUTION},1", "3 comma-separated fields"),
        (f"{PUZZLE},{PUZZLE}", "51 empty cells"),
        (f"6{PUZZLE[1:]},{SOLUTION}", "row 1, column 1 is 6 in the puzzle but 5"),
        (PUZZLE, "some lines have a solution"),
    ],
)
def test_a_malformed_line_is_named_by_its_number_and_reason(tmp_path, line, reason):
    (tmp_path / "bad.csv").write_text(f"{PUZZLE},{SOLUTION}\n{line}\n")
    with pytest.raises(PuzzleError, match=f"bad.csv, line 2: .*{reason}"):
        read_puzzles(tmp_path / "bad.csv")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"puzzle,solution\n"])
def test_a_file_without_puzzles_is_an_error(tmp_path, content):
    (tmp_path / "empty.csv").write_bytes(content)
    with pytest.raises(PuzzleError, match="no puzzles"):
        read_puzzles(tmp_path / "empty.csv")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv.gz", b"no gzip", "damaged"),
        ("a.csv.xz", b"no xz", "damaged"),
        ("a.csv.gz", gzip.compress(LINES.encode(), mtime=0)[:-20], "damaged"),
        ("a.csv", b"\x89PNG\xff", "not a text file"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PuzzleError, match=reason):
        read_puzzles(tmp_path / name)
