# %% [markdown]
# # 9 · A task of your own
#
# A task is one class: what its alphabet is, and how to draw solved instances. The trainer, the evaluation, the plots
# and the checkpoints then work with it. We teach a network to mirror a matrix.

# %%
import json
import os
import sys
import tempfile
from pathlib import Path

import torch

from mse_fast import MatrixSE
from mse_fast.evaluate import HEADER, evaluate_size, table_line
from mse_fast.tasks import get_task
from mse_fast.train import main as train

folder = Path(tempfile.mkdtemp())  # in real life: the folder of your project
os.chdir(folder)
sys.path.insert(0, str(folder))

# %% [markdown]
# ## 1 · Write the task
#
# One file. All randomness comes from the generator that is passed in: the same seed gives the same instances, a run
# resumes where it stopped, and the same code samples on a GPU.

# %%
code = '''
import torch

from mse_fast.tasks import Task, TaskSpec


class Mirror(Task):
    """Flip a square of letters from left to right."""

    spec = TaskSpec(
        name="mirror",
        in_classes=5,  # 0 is padding, 1 to 4 are letters
        out_classes=5,
        sizes=(4, 8),  # sides to train on
        min_size=2,  # the smallest side that makes sense
        loss="pad-weighted",
        description="flip a square of letters from left to right",
    )

    def sample(self, batch, n, generator):
        self.check_request(batch, n)
        inputs = torch.randint(1, 5, (batch, n, n), generator=generator, device=generator.device)
        return inputs, inputs.flip(2)  # [B, n, n] each
'''
Path("mirror.py").write_text(code)

# %% [markdown]
# ## 2 · Check the labels
#
# Solve a few instances in the plainest way and compare. A network learns a wrong oracle just as happily.

# %%
task = get_task("mirror:Mirror")
inputs, labels = task.sample(3, 8, torch.Generator().manual_seed(0))
for question, answer in zip(inputs.tolist(), labels.tolist(), strict=True):
    assert answer == [list(reversed(row)) for row in question]
print(inputs[0, :2], labels[0, :2], sep="\n\n")

# %% [markdown]
# ## 3 · Train
#
# On a command line: `python -m mse_fast.train --task mirror:Mirror --blocks 1 --steps 250 --out runs/mirror`. Run it
# again, and it resumes. Without a progress bar it prints one JSON line per evaluation.

# %%
options = "--task mirror:Mirror --blocks 1 --feature-maps 24 --steps 250 --warmup 40 --eval-every 125 --out run"
exit_code = train([*options.split(), "--no-progress"])
assert exit_code == 0

# %% [markdown]
# ## 4 · See how far it reaches
#
# The run folder holds the weights, the configuration and a record of how they came about.

# %%
print(sorted(path.name for path in Path("run").iterdir()))
net = MatrixSE.from_pretrained("run")
rows = [evaluate_size(net, task, n, instances=20, seed=0) for n in (4, 8, 16, 32)]
print(HEADER)
for row in rows:
    print(table_line(row, trained_to=8))
assert rows[0]["accuracy"] > 0.9 and rows[1]["accuracy"] > 0.9

# %% [markdown]
# The record answers "how was this made?" a year later:

# %%
record = json.loads(Path("run/record.json").read_text())
print({key: record[key] for key in ("seed", "steps", "command") if key in record})

# %% [markdown]
# ## Summary
#
# * One class with a `spec` and a `sample` method; `--task module:Class` finds it.
# * Check the labels against something you trust before training.
# * `docs/adding_a_task.md` goes on: presets, losses and scores of your own, and data from files.
#
# ## Exercises
#
# 1. Mirroring is a digit-wise rule. Which permutation of the four cells does each digit need? Write the network by
#    hand.
# 2. Change the task to "every row sorted". Is it a permutation of the cells?
# 3. Train on rectangles that do not fill the square. Why is that harder?

# %% [markdown]
# <details><summary>Solutions</summary>
#
# 1. Flip the column bit of every digit: 0↔1 and 2↔3 (below).
# 2. Which one depends on the contents, so the switches must look before they move.
# 3. The network must find the width before it can mirror within it.
# </details>

# %%
from mse_fast.convert import from_reference  # noqa: E402
from mse_ref.handmade import digitwise  # noqa: E402

by_hand = from_reference(digitwise([1, 0, 3, 2], classes=5)).float()
print(table_line(evaluate_size(by_hand, task, 64, instances=5, seed=0), trained_to=0))
