"""Shuffle layers: rotate the digits of every position (no learned parameters).

All permutations are gather indices, ``y = x[perm]``; "right" and "left" are meant in that sentence only.

::

    base 4, two digits, one step right      slot 1 = (0 1)  reads  (1 0) = slot 4
    y = x[qrotate(2)]                       slot 6 = (1 2)  reads  (2 1) = slot 9

On the Z-order matrix this interleaves the two row halves and then the two column halves (paper, Fig. 2).
"""

from __future__ import annotations

import operator

import numpy as np

from mse_ref.arrays import Array, exponent, gather


def qrotate(digits: int, steps: int = 1) -> np.ndarray:
    """Gather indices that rotate the base-4 digits of every position.

    ``y = x[qrotate(digits, steps)]`` fills slot ``p`` from slot ``perm[p]``.
    ``steps > 0`` rotates right: the lowest digit of ``p`` becomes its highest.

    Paper: Quaternary Shuffle layer, ``S[x] = S[qrotate(x, k)]``. Returns (4**digits,) int64.

    >>> qrotate(2)[:6]  # slot 1 = (0 1) in base 4 reads slot (1 0) = 4
    array([ 0,  4,  8, 12,  1,  5])
    """
    return rotate_digits(4, digits, steps)


def rotate(bits: int, steps: int = 1) -> np.ndarray:
    """Gather indices that rotate the bits of every position: the perfect shuffle of the 1D network.

    Paper: "1D Shuffle-Exchange Networks", Shuffle layer. Returns (2**bits,) int64.

    >>> rotate(3)  # slot 1 = 001 reads slot 100 = 4
    array([0, 4, 1, 5, 2, 6, 3, 7])
    """
    return rotate_digits(2, bits, steps)


def rotate_digits(base: int, digits: int, steps: int) -> np.ndarray:
    """Both rotations at once: an array with one axis per digit, its axes rolled.

    >>> rotate_digits(10, 2, 1)[[12, 7]]  # decimal 12 reads 21, 07 reads 70
    array([21, 70])
    """
    digits, steps = operator.index(digits), operator.index(steps)
    if digits < 0:
        raise ValueError(f"the number of digits must be 0 or more, got {digits}")
    cube = np.arange(base**digits, dtype=np.int64).reshape((base,) * digits)  # one axis per digit
    axes = np.roll(np.arange(digits), -steps)  # rotating digits = rotating axes
    return cube.transpose(axes).reshape(-1)  # [base**digits]


def shuffle(x: Array, steps: int = 1, *, radix: int = 4, axis: int = 1) -> Array:
    """A Shuffle layer on ``[B, L, M]``: ``steps=1`` is the shuffle, ``steps=-1`` its inverse.

    Paper: Quaternary Shuffle layer (radix 4) and Shuffle layer (radix 2).

    >>> shuffle(np.arange(8).reshape(1, 8, 1), radix=2)[0, :, 0]
    array([0, 4, 1, 5, 2, 6, 3, 7])
    """
    digits = exponent(x.shape[axis], radix, "sequence length", "pad the sequence")
    return gather(x, rotate_digits(radix, digits, steps), axis=axis)
