"""The Sudoku panel of the explorer: its rules are the oracle's, its answers PyTorch's, and it works in a browser."""

import json
import shutil

import numpy as np
import pytest
import torch
from webpage import PAGE, javascript, needs_browser, needs_node

from mse_fast import MatrixSERecurrent
from mse_fast.export_web import export, find, puzzle_summary
from mse_fast.sudoku.answer import answer, load_solver
from mse_fast.sudoku.exact import count_solutions
from mse_fast.sudoku.generator import generate
from mse_fast.sudoku.layout import LINES, cut_out, place
from mse_fast.sudoku.reader import parse_grid
from mse_ref.tasks.sudoku import conflicts, is_solution

PUZZLE = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
HARD = "000000010400000000020000000000050407008000300001090000300400200050100000000806000"
UNSOLVABLE = "123456780000000009" + "0" * 63
MANY = "0" * 81


def tokens(text: str, layout: str) -> torch.Tensor:
    return place(torch.from_numpy(parse_grid(text).astype(np.int64))[None] + 1, 16, layout)  # [1, 16, 16]


def text_of(grid: np.ndarray) -> str:
    return "".join(map(str, grid.ravel()))


# --- its rules, in Node.js -------------------------------------------------------------------------------


@needs_node
@pytest.mark.parametrize("layout", LINES)
def test_a_puzzle_is_laid_out_as_the_network_was_trained(layout):
    got = javascript("S.tokensOf(S.parse(given.text), given.lines)", {"text": PUZZLE, "lines": LINES[layout]})
    assert got == tokens(PUZZLE, layout).flatten().tolist()


@needs_node
def test_clashes_rules_and_numbers_of_solutions_are_the_oracles():
    rng = np.random.default_rng(0)
    grids = [parse_grid(text).astype(int) for text in (PUZZLE, SOLUTION, HARD, UNSOLVABLE, MANY)]
    for _ in range(40):
        grid = parse_grid(SOLUTION if rng.random() < 0.5 else PUZZLE).astype(int)
        for _ in range(rng.integers(1, 4)):
            grid[tuple(rng.integers(9, size=2))] = rng.integers(10)
        grids.append(grid)
    got = javascript(
        "given.map(p => ({clashes: S.clashes(p), obeys: S.obeys(p),"
        " count: S.clashes(p).length ? 0 : S.countSolutions(p)}))",
        [grid.ravel().tolist() for grid in grids],
    )
    for grid, page in zip(grids, got, strict=True):
        assert page["clashes"] == np.flatnonzero(conflicts(grid)).tolist()
        assert page["obeys"] == is_solution(grid)
        assert page["count"] == count_solutions(grid)
    assert {page["count"] for page in got} == {0, 1, 2} and {page["obeys"] for page in got} == {False, True}


@needs_node
@pytest.mark.parametrize("layout", LINES)
def test_digits_and_confidence_are_read_from_logits_as_in_python(layout):
    logits = 3 * torch.randn(1, 16, 16, 10, generator=torch.Generator().manual_seed(0))
    logits[..., 0] += 5  # a network that would like to say "padding" everywhere
    puzzle = parse_grid(PUZZLE).astype(int)
    wanted = answer(Parrot(logits), puzzle[None], 1, layout)
    got = javascript(
        "S.read(given.logits, 10, S.parse(given.text), given.lines)",
        {"logits": logits.flatten().tolist(), "text": PUZZLE, "lines": LINES[layout]},
    )
    np.testing.assert_array_equal(got["digits"], wanted.digits[0, 0].ravel())
    np.testing.assert_allclose(got["confidence"], wanted.confidence[0, 0].ravel(), atol=1e-6)
    assert (np.array(got["digits"]).reshape(9, 9) == puzzle)[puzzle > 0].all()


class Parrot(torch.nn.Linear):
    """Says the same whatever it is asked."""

    def __init__(self, logits: torch.Tensor):
        super().__init__(1, 1)
        self.logits = logits

    def forward(self, x: torch.Tensor, steps: int) -> list[torch.Tensor]:
        return [self.logits] * steps


BAD = [
    (PUZZLE[:-1], "a puzzle has 81 characters, this one has 80"),
    ("x" + PUZZLE[1:], 'character "x" at place 1: use the digits 1-9, and 0 or . for an empty cell'),
    ("", "this one has 0"),
    ("55" + PUZZLE[2:], "contradict each other: see the 5 at row 1 column 1 and row 1 column 2; correct one of them"),
    (UNSOLVABLE, "this puzzle has no solution"),
]


@needs_node
@pytest.mark.parametrize("text,message", BAD)
def test_what_is_no_puzzle_is_refused_with_the_reason(text, message):
    code = "(() => { try { S.check(S.parse(given)); return ''; } catch (e) { return e.message; } })()"
    assert message in javascript(code, text)


@needs_node
def test_dots_blanks_and_line_breaks_are_understood_and_several_solutions_remarked_on():
    rows = "\n".join(PUZZLE[9 * r : 9 * r + 9].replace("0", ".") + " " for r in range(9))
    assert javascript("S.parse(given).join('')", rows) == PUZZLE
    assert javascript("[given[0], given[1]].map(text => S.check(S.parse(text)))", [PUZZLE, MANY]) == [
        "",
        "This puzzle has several solutions; any of them counts. ",
    ]


def test_the_menu_speaks_of_the_measured_puzzles_or_else_of_the_last_evaluation():
    rows = [{"givens": 33, "steps": 30, "solved": 0.29}]
    assert puzzle_summary({"solved": rows}).endswith("of fresh puzzles it solved 29 % with 33 givens.")
    scores = {"accuracy": {"16": 0.5}, "solved": {"16": 0.0}}
    assert "it had 50.0 % of the cells right" in puzzle_summary({"evaluation": scores})


# --- in the browser --------------------------------------------------------------------------------------


@pytest.fixture
def panel(page):
    """The panel with the network of the zoo, reached by keyboard and menu."""
    page.focus("summary")
    page.keyboard.press("Enter")
    page.wait_for_function("document.body.dataset.network")
    assert page.evaluate("window.MSESudoku === undefined")  # nothing of it is loaded before it is wanted
    page.select_option("#network", "sudoku")
    page.wait_for_function("document.body.dataset.network === 'sudoku'")
    return page


def use(tab, text: str) -> None:
    tab.fill("#sudoku-text", text)
    tab.click("text=Use it")


def board(tab) -> str:
    """The digits on the network's board, 0 for an empty cell."""
    cells = tab.locator("#sudoku-answer [role=cell]").evaluate_all(
        "cells => cells.map(cell => cell.firstChild ? cell.firstChild.textContent : '0')"
    )
    return "".join(cells)


def typed(tab) -> str:
    return "".join(tab.locator("#sudoku-puzzle input").evaluate_all("cells => cells.map(cell => cell.value || '0')"))


@needs_browser
def test_logits_of_puzzles_equal_pytorchs_after_many_applications(panel):
    net, entry = find("sudoku")
    net.double()  # the page adds up in double precision; thirty applications of single precision may drift
    fresh = text_of(generate(45, np.random.default_rng(5))[0])
    for text in (PUZZLE, HARD, fresh):
        got = panel.evaluate(
            "([text, lines, steps]) => { const tokens = MSESudoku.tokensOf(MSESudoku.parse(text), lines);"
            " return [...MSENetwork.run(MSEDemo.nets.sudoku, tokens, 16, steps)].map(logits => Array.from(logits)); }",
            [text, entry["lines"], entry["steps"]],
        )
        with torch.no_grad():
            want = net(tokens(text, load_solver("sudoku")[1]), steps=entry["steps"])
        for step, logits in zip(got, want, strict=True):
            np.testing.assert_allclose(np.reshape(step, (16, 16, -1)), logits[0].numpy(), atol=1e-4)


@needs_browser
def test_a_typed_puzzle_is_answered_step_by_step_as_by_pytorch(panel):
    panel.click("#sudoku-clear")
    for row in range(9):  # by keyboard alone: digits and arrows
        panel.get_by_label(f"row {row + 1} column 1", exact=True).focus()
        for digit in PUZZLE[9 * row : 9 * row + 9]:
            panel.keyboard.press(digit)
            panel.keyboard.press("ArrowRight")
    assert typed(panel) == PUZZLE == board(panel)
    assert panel.inner_text("#sudoku-status") == "30 givens, 51 cells to fill"
    model, layout = load_solver("sudoku")
    puzzle = parse_grid(PUZZLE).astype(int)
    made = answer(model, puzzle[None], 3, layout)
    for step in range(3):
        if step:
            panel.click("#sudoku-next")
        else:
            panel.keyboard.press("Enter")
        assert panel.inner_text("#sudoku-status").startswith(f"application {step + 1} of ")
        shown, confidence = made.digits[step, 0], made.confidence[step, 0]
        assert board(panel) == text_of(shown)
        # confidence is there to read: a word for screen readers, a mark, and the length of a bar
        cell = panel.locator("#sudoku-answer [role=cell]").nth(2)
        share = round(100 * confidence[0, 2])
        assert f"row 1 column 3: {shown[0, 2]}, {share} % sure" in cell.get_attribute("aria-label")
        assert cell.locator("i").get_attribute("style") == f"width: {share}%;"
        marks = panel.locator("#sudoku-answer small").all_inner_texts()
        levels = np.where(confidence >= 0.9, "", np.where(confidence >= 0.5, "?", "??")).ravel()
        assert marks == levels.tolist()
    panel.click("#sudoku-back")
    assert board(panel) == text_of(made.digits[1, 0])
    panel.click("#sudoku-first")
    assert board(panel) == typed(panel) == PUZZLE


@needs_browser
@pytest.mark.parametrize("text,message", BAD)
def test_bad_input_shows_what_is_wrong_and_runs_nothing(panel, text, message):
    use(panel, text)
    panel.click("#sudoku-next")
    if "characters" in message or "character " in message or not text:  # the board keeps the puzzle it had
        use(panel, text)
        assert typed(panel) != text
    else:
        assert typed(panel) == text == board(panel)
    assert message in panel.inner_text("#sudoku-problem")


@needs_browser
def test_contradicting_givens_are_marked_while_typing_and_a_letter_is_refused(panel):
    use(panel, PUZZLE)
    cell = panel.get_by_label("row 1 column 3", exact=True)
    cell.fill("5")
    assert "see the 5 at row 1 column 1 and row 1 column 3" in panel.inner_text("#sudoku-problem")
    assert panel.locator("#sudoku-puzzle [aria-invalid=true]").count() == 2
    cell.press("Backspace")
    assert panel.inner_text("#sudoku-problem") == ""
    cell.press("3")
    cell.evaluate("input => input.setSelectionRange(0, 0)")  # before the digit that is there
    cell.press("4")
    assert typed(panel)[2] == "4"
    cell.press("Backspace")
    cell.press("q")
    assert panel.inner_text("#sudoku-problem") == 'a cell holds a digit from 1 to 9; got "q"'
    assert typed(panel) == PUZZLE


@needs_browser
def test_a_full_grid_gets_a_verdict_by_the_rules(panel):
    use(panel, SOLUTION)
    panel.click("#sudoku-last")
    panel.wait_for_function("document.getElementById('sudoku-verdict').textContent.includes('Solved after 1')")
    assert board(panel) == SOLUTION


@needs_browser
def test_the_example_button_brings_puzzles_with_one_solution(panel):
    seen = set()
    for _ in range(4):
        panel.click("#sudoku-example")
        seen.add(typed(panel))
    assert len(seen) == 4 and all(count_solutions(parse_grid(text)) == 1 for text in seen)


@pytest.fixture
def untrained(browser, tmp_path):
    """A phone, light or dark, on a page with a network that has learned nothing, in the corner layout."""
    torch.manual_seed(0)
    net = MatrixSERecurrent(in_classes=11, out_classes=10, feature_maps=4, blocks=1)
    net.save_pretrained(tmp_path / "sudoku")
    scores = {"accuracy": {"9": 0.1}, "solved": {"9": 0.0}}
    record = {"config": {"task": "sudoku", "test_steps": 6}, "evaluation": scores}
    (tmp_path / "sudoku" / "record.json").write_text(json.dumps(record))
    shutil.copytree(PAGE, tmp_path / "page", ignore=shutil.ignore_patterns("networks"))
    export([str(tmp_path / "sudoku")], tmp_path / "page" / "networks")
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, color_scheme="dark")
    tab = context.new_page()
    tab.goto((tmp_path / "page" / "index.html").as_uri() + "#demo=sudoku")
    tab.wait_for_function("document.body.dataset.network === 'sudoku'")
    yield tab, net
    context.close()


@needs_browser
def test_a_finger_plays_to_the_end_and_givens_are_never_overwritten(untrained):
    phone, net = untrained
    use(phone, PUZZLE)
    phone.evaluate(  # however fast or slow the machine: note all that is said on the way
        "() => { window.told = []; const status = document.getElementById('sudoku-status');"
        " new MutationObserver(() => told.push(status.textContent.split(':')[0]"
        "  + document.getElementById('sudoku-play').getAttribute('aria-label')))"
        " .observe(status, {childList: true}); }"
    )
    phone.tap("#sudoku-play")
    phone.wait_for_function("document.getElementById('sudoku-verdict').textContent.includes('Not solved after 6')")
    told = [f"application {step} of 6{'Pause' if step < 6 else 'Play'}" for step in range(1, 7)]
    assert phone.evaluate("told.filter(text => text.startsWith('application'))") == told
    puzzle, shown = parse_grid(PUZZLE), parse_grid(board(phone))
    assert (shown == puzzle)[puzzle > 0].all() and (shown > 0).all()
    with torch.no_grad():
        logits = cut_out(net(tokens(PUZZLE, "corner"), steps=6)[-1], "corner")[0, ..., 1:]  # [9, 9, 9]
    np.testing.assert_array_equal(shown[puzzle == 0], (logits.argmax(-1) + 1).numpy()[puzzle == 0])
    clashes = int(conflicts(shown).sum())
    assert f"{clashes} cells repeat a digit" in phone.inner_text("#sudoku-verdict")
    assert phone.locator("#sudoku-answer .clash").count() == clashes
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert phone.evaluate("document.documentElement.dataset.theme") == "dark"
