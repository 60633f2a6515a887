"""A Beneš block: the schedule that carries every position to every other one.

In the order of the definition a block is ``(switch_forward, shuffle)`` k-1 times, ``(switch_reverse, unshuffle)``
k-1 times, ``switch_last``.  Seen from a layout that never moves, its switch layers mix the digits

    0, k-1, k-2, ..., 2, 1, 2, ..., k-1, 0

which is how :meth:`BenesBlock.inplace` runs it.
"""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mse_fast.shuffle import shuffle, unshuffle
from mse_fast.switch import Switch


def schedule(digits: int, first: str = "right") -> list[tuple[str, int]]:
    """Which unit mixes which digit, layer by layer.

    ``first`` is the direction of the first rotations: ``"right"`` as in the paper, ``"left"`` as in the
    authors' 1D network.

    >>> schedule(4)
    [('forward', 0), ('forward', 3), ('forward', 2), ('reverse', 1), ('reverse', 2), ('reverse', 3), ('last', 0)]
    >>> schedule(3, "left")
    [('forward', 0), ('forward', 1), ('reverse', 2), ('reverse', 1), ('last', 0)]
    """
    sign = -1 if first == "right" else 1  # a slot shuffled j times to the right ends in digit -j
    layers = [("forward", sign * j % digits) for j in range(digits - 1)]
    layers += [("reverse", sign * j % digits) for j in range(digits - 1, 0, -1)]
    return [*layers, ("last", 0)]


class BenesBlock(nn.Module):
    """One Beneš block with three switch units: ``[B, L, M] -> [B, L, M]`` for ``L = radix**k``, any k >= 1.

    ``drift`` is a noise of training, the spread of the logarithm of :meth:`draw_drift`.
    """

    def __init__(
        self,
        feature_maps: int,
        radix: int = 4,
        norm: str = "feature",
        dropout: float = 0.0,
        last: bool = True,
        first: str = "right",
        checkpointing: bool = False,
        drift: float = 0.0,
    ):
        super().__init__()
        if not drift >= 0:
            raise ValueError(f"drift must be at least 0, got {drift}")
        self.radix, self.first, self.checkpointing, self.drift = radix, first, checkpointing, drift
        self.switch_forward = Switch(feature_maps, radix, norm, dropout)
        self.switch_reverse = Switch(feature_maps, radix, norm, dropout)
        self.switch_last = Switch(feature_maps, radix, norm, dropout) if last else None

    def forward(self, x: Tensor) -> Tensor:
        digits = digits_of(x.shape[1], self.radix)
        there, back = (shuffle, unshuffle) if self.first == "right" else (unshuffle, shuffle)
        factors = self.draw_drift(x), self.draw_drift(x)
        for _ in range(digits - 1):
            x = there(self.layer(self.switch_forward, x, factors[0]), self.radix)
        for _ in range(digits - 1):
            x = back(self.layer(self.switch_reverse, x, factors[1]), self.radix)
        return x if self.switch_last is None else self.layer(self.switch_last, x)

    def draw_drift(self, x: Tensor) -> Tensor | None:
        """A factor near 1 for each instance and feature, in training: by it the feature fades or grows at every layer.

        It changes how much what earlier layers wrote weighs beside what is written now, and that is what a larger
        matrix changes too, having more layers.
        """
        if not (self.training and self.drift):
            return None
        return torch.exp(self.drift * torch.randn_like(x[:, :1]))  # [B, 1, M]

    def layer(self, switch: Switch, x: Tensor, factor: Tensor | None = None) -> Tensor:
        x = x if factor is None else x * factor
        if self.checkpointing and self.training:
            return checkpoint(switch, x, use_reentrant=False)  # keep only the layer's input for the backward pass
        return switch(x)

    def inplace(self, x: Tensor, chunk: int | None = None) -> None:
        """The same block, overwriting ``x``: no shuffle at all, each layer works on its own digit."""
        products = self.switch_forward.room_for_products(x)
        units = {"forward": self.switch_forward, "reverse": self.switch_reverse, "last": self.switch_last}
        for name, digit in schedule(digits_of(x.shape[1], self.radix), self.first):
            unit = units[name]
            if unit is not None:
                unit.inplace(x, digit, chunk, products)


def digits_of(length: int, radix: int) -> int:
    """How many base-``radix`` digits address ``length`` positions; ``length`` must be a power of ``radix``."""
    digits = 0
    while radix**digits < length:
        digits += 1
    if radix**digits != length or digits == 0:
        raise ValueError(f"the sequence length must be a power of {radix} and at least {radix}, got {length}")
    return digits
