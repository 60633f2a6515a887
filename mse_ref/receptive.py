"""Which inputs reach which features: the proof of the full receptive field (paper, appendix "Receptive field").

A switch layer mixes positions that differ in one digit of their address; shuffles only rename positions.
So after some layers a feature depends exactly on the inputs that agree with it in every digit *not yet
touched*. The digits touched are ``0, k-1, k-2, ..., 2 | 1, 2, ..., k-1 | 0`` (:func:`mse_ref.digits_touched`):

    switch layer             1     2   ...   k-1       k      k+1 ...  2k-1
    digit touched            0    k-1  ...    2        1       2  ...    0
    inputs per feature       4     16  ...  4^(k-1)   4^k     4^k ...   4^k  = n^2

Hence the field becomes full at switch layer **k, and not before**. The paper's appendix says "even after the
first Shuffle-Exchange block, each input element participates"; that block has k-1 switch layers, digit 1 is
still untouched, and each feature sees exactly n^2 / 4 inputs. The first layer of the mirrored half completes it.
The 1D network obeys the same law with bits: full at layer k, half of the inputs after its first k-1 layers.
"""

from __future__ import annotations

import numpy as np

from mse_ref.benes import digits_touched, schedule
from mse_ref.shuffle import rotate_digits


def receptive_field(k: int, layer: int, *, radix: int = 4) -> np.ndarray:
    """Which inputs reach which positions after ``layer`` switch layers, found by walking the schedule.

    ``receptive_field(k, layer)[p, q]`` is True if the feature at position ``p`` of the sequence, as that switch
    layer leaves it, depends on input ``q`` of the sequence. Returns (4**k, 4**k) bool. Paper: appendix B.

    >>> receptive_field(2, 1).sum(axis=1)[:3]  # one switch layer: 4 inputs each
    array([4, 4, 4])
    >>> bool(receptive_field(2, 2).all())  # k layers: all inputs
    True

    :param layer: 0 is the input itself; the last is 2k-1, in the 1D network (``radix=2``) 2k-2.
    """
    layers = _schedule(k, layer, radix)
    size = radix**k
    reach = np.eye(size, dtype=bool)  # [position, input]: at first each position sees itself
    for number, (_, steps) in enumerate(layers, 1):
        groups = reach.reshape(size // radix, radix, size).any(axis=1)  # [group, input]
        reach = np.repeat(groups, radix, axis=0)  # [position, input]: a switch shows its inputs to all outputs
        if number < layer:
            reach = reach[rotate_digits(radix, k, steps)]  # the shuffle between two switch layers
    return reach


def field_size(k: int, layer: int, *, radix: int = 4) -> int:
    """How many inputs each feature depends on after ``layer`` switch layers: ``radix`` per digit touched.

    >>> [field_size(3, layer) for layer in range(6)]
    [1, 4, 16, 64, 64, 64]
    """
    _schedule(k, layer, radix)
    return radix ** len(set(digits_touched(k, last=radix == 4)[:layer]))


def _schedule(k: int, layer: int, radix: int) -> list:
    layers = schedule(k, last=radix == 4)  # the paper's 1D network has no last switch layer
    if not 0 <= layer <= len(layers):
        raise ValueError(f"layer must lie in 0..{len(layers)} for k = {k}, got {layer}")
    return layers[:layer]
