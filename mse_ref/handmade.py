"""Weights written down, not trained: a Matrix-SE network that transposes matrices of every size exactly.

A Switch Unit can be *any* linear map P, although it has a norm and a GELU inside. The trick is the identity
``GELU(x) - GELU(-x) = x``. Give the unit inputs ``i`` of constant length |i| and let (as matrices acting on i)

    Z = [I; -I]         then  RMSNorm(Z i) = [i; -i] / rms,   rms^2 = |i|^2 / 4m + eps
    W = [P', -P']       then  W GELU(...)  = P' i / rms
    P' = (P - sigmoid(s) I) rms / h     so that  o = sigmoid(s) i + h c = P i

One-hot embeddings have constant length, and permutations keep it. A layer on digit j sees the four cells
(row bit j, column bit j) = 00, 01, 10, 11, and every digit is seen once by the "reverse" and "last" layers.
So a rule for one digit becomes a rule for all: swapping 01 and 10 in each digit swaps row and column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mse_ref.params import Params
from mse_ref.switch import EPS, H, R


def linear_unit(matrix: np.ndarray, length: float) -> dict[str, np.ndarray]:
    """A Switch Unit that is exactly ``o = matrix @ i`` for inputs of Euclidean length ``length`` (norm "feature").

    Paper: the definition of QSU, solved for Z and W.

    >>> from mse_ref import switch_unit
    >>> double = linear_unit(2 * np.eye(4), length=5.0)
    >>> switch_unit(double, np.array([[3.0, 0.0, 0.0, 4.0]])).round(12)
    array([[6., 0., 0., 8.]])
    """
    width = len(matrix)
    if matrix.shape != (width, width):
        raise ValueError(
            f"a switch unit maps its inputs to as many outputs: square matrix expected, got {matrix.shape}"
        )
    if not length > 0:
        raise ValueError(f"the length of the input vectors must be positive, got {length}")
    rms = math.sqrt(length**2 / width + EPS)  # root mean square of [i; -i], as the unit will compute it
    candidate = (matrix - R * np.eye(width)).T * rms / H  # transposed: kernels are [in, out]
    return {
        "Z": np.hstack([np.eye(width), -np.eye(width)]),  # [width, 2 * width]
        "W": np.vstack([candidate, -candidate]),  # [2 * width, width]
        "b": np.zeros(width),
        "s": np.full(width, math.log(R / (1 - R))),
    }


def permutation_unit(perm: Sequence[int], feature_maps: int) -> dict[str, np.ndarray]:
    """A QSU whose output ``j`` is its input ``perm[j]``, for cells of length 1 (one-hot vectors).

    >>> from mse_ref.switch import switch
    >>> x = np.eye(4)[None]  # [1, 4 cells, 4 features]: cell c is the one-hot vector of c
    >>> switch(permutation_unit([3, 0, 2, 1], 4), x).argmax(-1)
    array([[3, 0, 2, 1]])
    """
    if sorted(perm) != [0, 1, 2, 3]:
        raise ValueError(f"a 4-permutation holds 0, 1, 2 and 3 once each, got {list(perm)}")
    cells = np.eye(4)[list(perm)]  # [4, 4]: row j picks input perm[j]
    return linear_unit(np.kron(cells, np.eye(feature_maps)), length=2.0)  # four vectors of length 1 together


def digitwise(perm: Sequence[int], classes: int) -> Params:
    """A Matrix-SE network that applies one rule to every digit of the address, at every matrix size.

    ``perm[2 * r + c] = 2 * r' + c'``: the cell with bits (r, c) is read from the cell with bits (r', c').
    Use it with ``norm="feature"``; its logits are 1 for the right class and 0 for the others.

    :param classes: the size of the alphabet, which is also the number of feature maps.
    """
    keep, move = permutation_unit([0, 1, 2, 3], classes), permutation_unit(perm, classes)
    return {
        "embedding": np.eye(classes),
        "blocks": [{"forward": keep, "reverse": move, "last": move}],
        "readout": {"kernel": np.eye(classes), "bias": np.zeros(classes)},
    }


def identity(classes: int) -> Params:
    """A network that copies its input.

    >>> from mse_ref import matrix_se
    >>> matrix_se(identity(3), np.array([[[0, 1], [2, 0]]])).argmax(-1)
    array([[[0, 1],
            [2, 0]]])
    """
    return digitwise([0, 1, 2, 3], classes)


def transpose(classes: int) -> Params:
    """A network that transposes matrices of every size: in each digit, swap row bit and column bit.

    >>> from mse_ref import matrix_se
    >>> tokens = np.random.default_rng(0).integers(0, 12, (1, 64, 64))
    >>> bool((matrix_se(transpose(12), tokens).argmax(-1) == tokens.transpose(0, 2, 1)).all())
    True
    """
    return digitwise([0, 2, 1, 3], classes)


def rotate90(classes: int) -> Params:
    """A network that turns a full square counter-clockwise, like ``numpy.rot90``.

    Cell (r, c) reads cell (c, n-1-r), and subtracting from n-1 flips every bit: (r, c) reads (c, not r).

    >>> from mse_ref import matrix_se
    >>> matrix_se(rotate90(5), np.array([[[1, 2], [3, 4]]])).argmax(-1)
    array([[[2, 4],
            [1, 3]]])
    """
    return digitwise([1, 3, 0, 2], classes)
