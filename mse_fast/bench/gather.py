"""A straightforward port of the definition: every permutation is an index and every formula is written out.

It exists to be beaten. The weights are those of a fast network, so that both can be shown to compute the same.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from mse_fast.baselines.rse import RSE
from mse_fast.network import MatrixSE
from mse_fast.switch import CANDIDATE, EPS, GELU_SLOPE
from mse_ref import qrotate, rotate, zorder


@cache
def index(kind: str, size: int) -> Tensor:
    """The gather index of a permutation of the positions, made once per size.

    >>> index("zorder", 2), index("right4", 1)
    (tensor([0, 1, 2, 3]), tensor([0, 1, 2, 3]))
    """
    if kind == "zorder":
        return torch.from_numpy(zorder(size))
    way, radix = kind[:-1], kind[-1]
    turn = qrotate if radix == "4" else rotate
    return torch.from_numpy(turn(size, 1 if way == "right" else -1))


def switch_layer(unit: Any, x: Tensor) -> Tensor:
    """One switch layer on [B, L, M], formula by formula; a network without this unit passes None."""
    if unit is None:
        return x
    batch, length, _ = x.shape
    i = x.reshape(batch, length // unit.radix, -1)  # [B, L/r, r·M]
    a = i @ unit.Z  # [B, L/r, 2r·M]
    if unit.offset is not None:
        a = 2 * (a - a.mean(1, keepdim=True)) + unit.offset
    axis = -1 if unit.norm == "feature" else 1
    a = a * torch.rsqrt((a * a).mean(axis, keepdim=True) + EPS[unit.norm])
    g = a * torch.sigmoid(GELU_SLOPE * a)
    c = g @ unit.W + unit.b  # [B, L/r, r·M]
    return (torch.sigmoid(unit.s) * i + CANDIDATE * c).reshape(batch, length, -1)


class GatherPort(nn.Module):
    """The network of a :class:`MatrixSE` or :class:`RSE` with gathers for every permutation."""

    def __init__(self, network: MatrixSE | RSE) -> None:
        super().__init__()
        self.flatten = network.flatten
        fast: Any = network.sequence if isinstance(network, RSE) else network
        self.stack, self.readout = fast.stack, fast.readout
        self.radix = 2 if isinstance(network, RSE) else 4

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens [B, n, n] → logits [B, n, n, classes], for n a power of two."""
        batch, n, _ = tokens.shape
        digits = (n.bit_length() - 1) * (2 if self.radix == 2 else 1)
        # the authors' 1D network rotates the other way round
        first, second = ("left", "right") if self.radix == 2 else ("right", "left")
        x = self.stack.embed(tokens).reshape(batch, n * n, -1)  # [B, L, M]
        if self.flatten == "zorder":
            x = x[:, index("zorder", n)]
        for block in self.stack.blocks:
            for unit, way in ((block.switch_forward, first), (block.switch_reverse, second)):
                for _ in range(digits - 1):
                    x = switch_layer(unit, x)[:, index(f"{way}{self.radix}", digits)]
            x = switch_layer(block.switch_last, x)
        x = switch_layer(self.stack.last, x)
        if self.flatten == "zorder":
            x = x[:, index("zorder", n).argsort()]
        return self.readout(x).reshape(batch, n, n, -1)
