"""The 1D original: Neural Shuffle-Exchange with Residual Switch Units (paper, section 3)."""

from __future__ import annotations

from mse_ref.arrays import Array, exponent, namespace
from mse_ref.benes import benes_block
from mse_ref.params import Params, check_params
from mse_ref.switch import switch

FIRST_STEP = {"right": 1, "left": -1}


def shuffle_exchange(params: Params, x: Array, *, norm: str = "feature", first: str = "right") -> Array:
    """The 1D Shuffle-Exchange network on sequences of features, ``[B, L, M] -> [B, L, M]``, L = 2, 4, 8, ...

    Paper: k-1 switch and shuffle layers, then k-1 switch and inverse shuffle layers, no final switch; for
    tokens put :func:`mse_ref.embed` in front and :func:`mse_ref.readout` behind.
    The released baseline ends with one switch layer for the whole network (``params["last"]``), rotates to
    the left first and centres its norm: ``shuffle_exchange(params, x, norm="rse", first="left")``.

    >>> import numpy as np
    >>> from mse_ref import init_shuffle_exchange
    >>> params = init_shuffle_exchange(np.random.default_rng(0), feature_maps=3, blocks=2)
    >>> shuffle_exchange(params, np.ones((1, 16, 3))).shape
    (1, 16, 3)
    """
    check_params(params, radix=2)
    namespace(params, x)
    if first not in FIRST_STEP:
        raise ValueError(f"first must be 'right' or 'left', got {first!r}")
    if x.ndim != 3:
        raise ValueError(f"expected sequences of features [B, L, M], got shape {tuple(x.shape)}")
    if exponent(x.shape[1], 2, "sequence length", "pad the sequence with zero vectors") == 0:
        raise ValueError("the shortest sequence has 2 positions, got 1; pad it with zero vectors")
    for block in params["blocks"]:
        x = benes_block(block, x, norm=norm, radix=2, first_step=FIRST_STEP[first])
    return switch(params["last"], x, radix=2, norm=norm) if "last" in params else x
