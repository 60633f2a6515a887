"""The Benes block: which unit and which shuffle come when.

::

    k = 3 (8 x 8):    forward S  forward S  |  reverse S^-1  reverse S^-1  |  last
    digit touched:       0          2             1             2             0

After every shuffle the switches find another digit of the original address in the lowest place. The digits
touched form a palindrome ``0, k-1, ..., 2, 1, 2, ..., k-1, 0``: a textbook Benes network of radix 4.
Digit j is (row bit j, column bit j), so a layer on digit j mixes the cells {r, r + 2^j} x {c, c + 2^j}.
"""

from __future__ import annotations

from typing import NamedTuple

from mse_ref.arrays import Array, exponent
from mse_ref.shuffle import shuffle
from mse_ref.switch import switch


class Layer(NamedTuple):
    """One switch layer: the unit it uses, and the digit rotation that follows it (0: none)."""

    unit: str
    steps: int


def schedule(k: int, *, last: bool = True, first_step: int = 1) -> list[Layer]:
    """The switch layers of one Benes block for addresses of ``k`` digits, in order.

    Paper: "Each Benes block consists of interleaved k-1 QSwitch and QShuffle layers [...], followed by k-1
    QSwitch and Inverse QShuffle layers [...]; we finalize Benes block with one more QSwitch layer".

    >>> schedule(2)
    [Layer(unit='forward', steps=1), Layer(unit='reverse', steps=-1), Layer(unit='last', steps=0)]

    :param last: False for the 1D network of the paper, which has no final switch layer.
    :param first_step: 1 rotates right first (paper), -1 left first (released 1D code).
    """
    if k < 1:
        raise ValueError(f"a Benes block needs addresses of at least 1 digit, got {k}; the smallest matrix is 2 x 2")
    forward = [Layer("forward", first_step)] * (k - 1)
    reverse = [Layer("reverse", -first_step)] * (k - 1)
    return forward + reverse + [Layer("last", 0)] * last


def digits_touched(k: int, *, last: bool = True, first_step: int = 1) -> list[int]:
    """The digit of the original address that each switch layer mixes, found by following the rotations.

    >>> digits_touched(4)
    [0, 3, 2, 1, 2, 3, 0]
    """
    place = list(range(k))  # place[i]: which original digit now sits in place i, lowest first
    touched = []
    for layer in schedule(k, last=last, first_step=first_step):
        touched.append(place[0])
        # y[p] = x[rotated right p] moves the element at address q to q rotated left: the top digit comes down
        place = place[-layer.steps :] + place[: -layer.steps]
    return touched


def benes_block(block: dict, x: Array, *, norm: str = "feature", radix: int = 4, first_step: int = 1) -> Array:
    """One Benes block on sequences, ``[B, L, M] -> [B, L, M]`` with ``L = radix**k``.

    Paper: Fig. 1, the part between Z-Order flatten and Z-Order unflatten.
    A block without a ``"last"`` unit ends with its last shuffle, as the paper's 1D network does.

    >>> import numpy as np
    >>> from mse_ref import init_matrix_se
    >>> params = init_matrix_se(np.random.default_rng(0), in_classes=3, out_classes=3, feature_maps=2)
    >>> benes_block(params["blocks"][0], np.ones((1, 64, 2))).shape
    (1, 64, 2)
    """
    k = exponent(x.shape[1], radix, "sequence length", "pad the input")
    for layer in schedule(k, last="last" in block, first_step=first_step):
        x = switch(block[layer.unit], x, radix=radix, norm=norm)
        if layer.steps:
            x = shuffle(x, layer.steps, radix=radix)
    return x
