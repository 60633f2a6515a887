"""From puzzles to answers: what the network says after every step, with the givens kept."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mse_fast.hub import ZOO
from mse_fast.recurrent import MatrixSERecurrent
from mse_fast.sudoku.layout import Layout, cut_out, place
from mse_fast.tasks import get_task
from mse_fast.tasks.sudoku import Sudoku
from mse_ref.tasks.sudoku import EMPTY_TOKEN, SIDE

__all__ = ["Answers", "answer", "follows_rules", "load_solver"]

UNITS = np.arange(81).reshape(9, 9)  # cell numbers, to be regrouped into rows, columns and boxes
GROUPS = np.concatenate([UNITS, UNITS.T, UNITS.reshape(3, 3, 3, 3).transpose(0, 2, 1, 3).reshape(9, 9)])  # [27, 9]


@dataclass(frozen=True)
class Answers:
    """``digits`` [S, B, 9, 9] after every step, and the ``confidence`` [S, B, 9, 9] in each (1 for givens)."""

    digits: np.ndarray
    confidence: np.ndarray


def load_solver(name: str) -> tuple[MatrixSERecurrent, Layout]:
    """A trained network by folder or name in the zoo, and the layout its task puts grids in."""
    model = MatrixSERecurrent.from_pretrained(name)
    record = next((f / "record.json" for f in (Path(name), ZOO / name) if (f / "record.json").exists()), None)
    if record is None:
        return model, "corner"  # saved by hand: no word about its training
    trained_on = get_task(json.loads(record.read_text())["config"]["task"])
    if not isinstance(trained_on, Sudoku):
        raise ValueError(f"{name} was trained on {trained_on.spec.name}, not on Sudoku")
    return model, trained_on.layout


@torch.no_grad()
def answer(model: nn.Module, puzzles: np.ndarray, steps: int, layout: Layout = "corner") -> Answers:
    """Let a recurrent network fill puzzles [B, 9, 9]; cells that are given are never overwritten.

    ``layout`` is the one the network was trained on; `load_solver` knows it.

    >>> from mse_fast import MatrixSERecurrent
    >>> net = MatrixSERecurrent(in_classes=11, out_classes=10, feature_maps=4, blocks=1)
    >>> answer(net, np.full((1, 9, 9), 7), steps=2).digits.shape
    (2, 1, 9, 9)
    """
    given = torch.as_tensor(np.asarray(puzzles), dtype=torch.int64, device=next(model.parameters()).device)
    if given.shape[1:] != (SIDE, SIDE):
        raise ValueError(f"puzzles have shape [B, 9, 9], not {list(given.shape)}")
    model.eval()
    made: list[Tensor] = model(place(given + EMPTY_TOKEN, 16, layout), steps=steps)  # S × [B, 16, 16, 10]
    logits = torch.stack([cut_out(after, layout) for after in made])  # [S, B, 9, 9, 10]
    # Class 0 is the padding around the grid: no cell of the grid can be that.
    chance = logits[..., 1:].float().softmax(-1)  # [S, B, 9, 9, 9]
    confidence, digits = chance.max(-1)  # [S, B, 9, 9]
    digits = torch.where(given > 0, given, digits + 1)
    confidence = confidence.masked_fill(given > 0, 1.0)
    return Answers(digits.cpu().numpy(), confidence.cpu().numpy())


def follows_rules(grids: np.ndarray) -> np.ndarray:
    """Which full grids [..., 9, 9] have all nine digits in every row, column and box: [...] of bool.

    >>> from mse_ref.tasks.sudoku import pattern
    >>> follows_rules(np.stack([pattern(), np.ones((9, 9), dtype=int)]))
    array([ True, False])
    """
    units = grids.reshape(*grids.shape[:-2], 81)[..., GROUPS]  # [..., 27, 9]
    return (np.sort(units, axis=-1) == np.arange(1, 10)).all(axis=(-2, -1))
