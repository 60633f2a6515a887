# %% [markdown]
# # 8 · Sudoku, step by step
#
# A Sudoku is a 9×9 matrix with holes. No fixed rule moves digits into place: one has to reason, and each insight makes
# the next one possible. So the network is applied **again and again** to its own output, and gives an answer after
# every step.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np
import torch

from mse_fast import MatrixSERecurrent
from mse_fast.hub import zoo_names
from mse_fast.sudoku.answer import answer, follows_rules, load_solver
from mse_fast.sudoku.exact import solve
from mse_ref.draw import draw_sudoku
from mse_ref.tasks.sudoku import conflicts, is_solution

torch.manual_seed(0)
EASY = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
HARD = "000000010400000000020000000000050407008000300001090000300400200050100000000806000"


def board(text):
    return np.array(list(text), dtype=int).reshape(9, 9)


# %% [markdown]
# ## The puzzle and its solution
#
# Seventeen givens are the fewest a puzzle with one solution can have. The exact solver tries digits and takes them
# back; the network never searches.

# %% alt="Two Sudoku boards: a puzzle of 17 givens, and its only solution with the givens marked."
puzzle = board(HARD)
solution = solve(puzzle)
assert is_solution(solution, puzzle)
draw_sudoku(puzzle, solution, titles=(f"{(puzzle > 0).sum()} givens", "the only solution"))

# %% [markdown]
# ## The equation
#
# With $f$ the Beneš blocks, $x_0$ the embedded puzzle and an optional re-injection of it:
#
# $$x_{t+1} = f(x_t \;[+\, x_0]), \qquad \text{answer}_t = W_2\,\mathrm{GELU}(W_1 x_t + b_1) + b_2 .$$
#
# The grid is padded to 16×16; an empty cell is token 1, digit $d$ is token $d+1$, padding 0.

# %%
TRAINED = "sudoku" in zoo_names()
if TRAINED:
    net, layout = load_solver("sudoku")  # layout: where the 81 cells stand in the 16×16 matrix
else:
    print("no trained Sudoku network is bundled: what follows shows an untrained one")
    net, layout = MatrixSERecurrent(in_classes=11, out_classes=10, feature_maps=24, blocks=1).eval(), "corner"
{key: net.config[key] for key in ("feature_maps", "blocks", "steps", "reinject")}

# %% alt="Four Sudoku boards: the puzzle, and the network's answers after steps 1, 4 and 30; givens are marked."
puzzle = board(EASY)
solution = solve(puzzle)
answers = answer(net, puzzle[None], steps=30, layout=layout)  # digits and confidence, [steps, 1, 9, 9]
shown = (1, 4, 30)
draw_sudoku(
    puzzle,
    *[answers.digits[step - 1, 0] for step in shown],
    titles=("puzzle", *[f"after step {step}" for step in shown]),
)

# %% [markdown]
# ## The check
#
# Right cells, contradictions and confidence after each step. Givens never change, by construction.

# %% alt="Three lines over 30 steps: share of empty cells filled rightly, mean confidence, cells in contradiction."
empty = puzzle == 0
right = [(digits[0] == solution)[empty].mean() for digits in answers.digits]
clashes = [conflicts(digits[0]).sum() for digits in answers.digits]
sure = [confidence[0][empty].mean() for confidence in answers.confidence]
assert all((digits[0] == puzzle)[~empty].all() for digits in answers.digits)

fig, ax = plt.subplots(figsize=(7, 3))
steps = np.arange(1, 31)
ax.plot(steps, right, color="#0072B2", marker="o", ms=3, label="empty cells filled rightly")
ax.plot(steps, sure, color="#E69F00", ls="--", marker="s", ms=3, label="mean confidence")
ax.plot(steps, np.array(clashes) / 81, color="#D55E00", ls=":", marker="^", ms=3, label="cells in contradiction")
ax.set(xlabel="step", ylim=(-0.02, 1.02))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
print("solved" if follows_rules(answers.digits[-1])[0] else "not solved", "after 30 steps")

# %% [markdown]
# ## Many puzzles
#
# Fresh puzzles with one solution each, step by step: remove cells from solved grids.

# %%
from mse_fast.tasks import get_task  # noqa: E402

task = get_task("sudoku-easy")
inputs, labels = task.sample(16, 16, torch.Generator().manual_seed(3))
puzzles = inputs[:, :9, :9].numpy() - 1
made = answer(net, puzzles, steps=30, layout=layout)
hit = made.digits == labels[:, :9, :9].numpy()  # [steps, B, 9, 9]
print("step   cells right   puzzles solved")
for step in (1, 5, 10, 20, 30):
    print(
        f"{step:4}      {hit[step - 1][puzzles == 0].mean():.3f}          {hit[step - 1].all(axis=(1, 2)).mean():.2f}"
    )

# %% [markdown]
# ## Summary
#
# * The same weights run for as many steps as one likes: trained with few, tested with 30.
# * Answers are read off after every step; one can stop when no contradiction is left.
# * `python -m mse_fast.solve PUZZLE` does this on the command line, with the exact solver as a safety net.
#
# ## Exercises
#
# 1. Does a solved grid stay solved? Feed the solution itself.
# 2. Relabel the digits of the puzzle (1↔2) and transpose it. Should the answers change accordingly? Do they?
# 3. Give the network a puzzle with two solutions. What would you like it to say?

# %% [markdown]
# <details><summary>Solutions</summary>
#
# 1. By construction givens are kept, so yes: see below.
# 2. They should; the network learns these symmetries from augmented examples and is not built to have them.
# 3. Half of the confidence on either digit where the two differ.
# </details>

# %%
assert (answer(net, solution[None], steps=1, layout=layout).digits[0, 0] == solution).all()
