"""The recurrent Matrix-SE: the same blocks applied again and again, an answer after every step (Sudoku)."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mse_fast.hub import Pretrained, own_arguments
from mse_fast.network import Readout, check_flatten, matrix_stack, to_sequence
from mse_fast.shuffle import unflatten
from mse_fast.switch import GELU_SLOPE


class RecurrentReadout(nn.Module):
    """``linear(m -> m) -> GELU -> linear(m -> classes)`` on each cell."""

    def __init__(self, feature_maps: int, out_classes: int):
        super().__init__()
        self.head = Readout(feature_maps, feature_maps)
        self.readout = Readout(feature_maps, out_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(F.silu(GELU_SLOPE * self.head(x)) / GELU_SLOPE)


class MatrixSERecurrent(Pretrained, nn.Module):
    """Matrix-SE whose output features are its next input: a list of logits, one for each step.

    >>> import torch
    >>> net = MatrixSERecurrent(in_classes=11, out_classes=10, feature_maps=8, blocks=1, steps=3)
    >>> [tuple(logits.shape) for logits in net(torch.randint(11, (2, 9, 9)))]
    [(2, 9, 9, 10), (2, 9, 9, 10), (2, 9, 9, 10)]

    Parameters are those of :class:`mse_fast.MatrixSE`, and:
    steps: how often the blocks run unless ``forward`` is told otherwise (the paper trains 10 and tests 30).
    reinject: add the embedded input to the state before every step but the first.
    """

    model_name: ClassVar[str] = "matrix-se-recurrent"

    def __init__(
        self,
        *,
        in_classes: int | None = None,
        in_features: int | None = None,
        out_classes: int = 10,
        feature_maps: int = 96,
        blocks: int = 2,
        norm: str = "feature",
        dropout: float = 0.0,
        block_dropout: float = 0.0,
        flatten: str = "zorder",
        checkpointing: bool = False,
        steps: int = 10,
        reinject: bool = False,
    ):
        super().__init__()
        self.arguments = own_arguments(locals())
        self.flatten, self.steps, self.reinject = check_flatten(flatten), check_steps(steps), reinject
        self.stack = matrix_stack(
            in_classes, in_features, feature_maps, blocks, norm, dropout, block_dropout, checkpointing
        )
        self.readout = RecurrentReadout(feature_maps, out_classes)

    def forward(
        self, x: Tensor, steps: int | None = None, backprop_steps: int | None = None, free_steps: int = 0
    ) -> list[Tensor]:
        """Logits ``[B, H, W, out_classes]`` after every step.

        ``backprop_steps`` truncates back-propagation: the state loses its history every so many steps.
        ``free_steps`` come before all others, without answers and without gradients: training then starts from a
        state deep in the recurrence at a third of the cost.
        """
        steps = self.steps if steps is None else check_steps(steps)
        x, n, (H, W) = to_sequence(x, self.stack.embed, self.flatten)  # [B, L] or [B, L, C]
        embedded = self.stack.embed(x)  # [B, L, M]
        state = embedded.clone()  # inference overwrites its state, and the embedded input is needed again
        if free_steps:
            state = state.detach()
        with torch.no_grad():
            for step in range(free_steps):
                state = self.advance(state, embedded, step)
        answers = []
        for step in range(free_steps, free_steps + steps):
            if step > free_steps and backprop_steps and (step - free_steps) % backprop_steps == 0:
                state = state.detach()
            state = self.advance(state, embedded, step)  # [B, L, M]
            answers.append(unflatten(self.readout(state), n, self.flatten)[:, :H, :W])  # [B, H, W, out_classes]
        return answers

    def advance(self, state: Tensor, embedded: Tensor, step: int) -> Tensor:
        """One application of the blocks to the state ``[B, L, M]``."""
        return self.stack(state + embedded if step and self.reinject else state)


def check_steps(steps: int) -> int:
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    return steps
