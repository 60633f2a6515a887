"""Matrix <-> Z-order sequence (paper: "The Matrix Shuffle-Exchange Network", Z-Order flatten).

::

    raster            Z-order slot of each cell     slot = (r1 c1)(r0 c0) in base 4
     0  1  2  3         0  1 |  4  5
     4  5  6  7         2  3 |  6  7                digit j of a slot is the pair
     8  9 10 11         ------------                (row bit j, column bit j)
    12 13 14 15         8  9 | 12 13
                       10 11 | 14 15
"""

from __future__ import annotations

import numpy as np

from mse_ref.arrays import Array, exponent, gather, namespace


def zorder(n: int) -> np.ndarray:
    """Gather indices that read an ``n x n`` matrix along the Z-order curve.

    ``seq = x.reshape(n * n)[zorder(n)]``: slot ``p`` of the sequence reads raster cell ``zorder(n)[p]``.
    Quadrants come in the order top-left, top-right, bottom-left, bottom-right, at every scale.

    Paper: Z-Order flatten. Returns (n * n,) int64.

    >>> zorder(4)  # the top-left quadrant holds raster cells 0 1 / 4 5
    array([ 0,  1,  4,  5,  2,  3,  6,  7,  8,  9, 12, 13, 10, 11, 14, 15])
    """
    k = exponent(n, 2, "matrix side n", "use mse_ref.pad to reach the next power")
    bits = np.arange(n * n, dtype=np.int64).reshape((2,) * (2 * k))  # axes: k row bits, then k column bits
    pairs = [axis for j in range(k) for axis in (j, k + j)]  # row bit and column bit of one digit together
    return bits.transpose(pairs).reshape(n * n)


def inverse(perm: np.ndarray) -> np.ndarray:
    """The gather indices that undo ``perm``: ``x[perm][inverse(perm)] == x``.

    >>> inverse(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    undo = np.empty_like(perm)
    undo[perm] = np.arange(len(perm))
    return undo


def flatten(x: Array, order: str = "zorder") -> Array:
    """A batch of matrices as a batch of sequences, ``[B, n, n, M] -> [B, L, M]``.

    ``order="raster"`` is the row-by-row flattening of the paper's ablation study.

    >>> flatten(np.arange(16).reshape(1, 4, 4, 1))[0, :, 0]
    array([ 0,  1,  4,  5,  2,  3,  6,  7,  8,  9, 12, 13, 10, 11, 14, 15])
    """
    xp = namespace(x)
    if x.ndim != 4 or x.shape[1] != x.shape[2]:
        raise ValueError(
            f"expected square matrices [B, n, n, M], got shape {tuple(x.shape)}; mse_ref.pad makes squares"
        )
    b, n, _, m = x.shape
    seq = xp.reshape(x, (b, n * n, m))  # [B, L, M] in raster order
    return gather(seq, zorder(n), axis=1) if check_order(order) == "zorder" else seq


def unflatten(seq: Array, order: str = "zorder") -> Array:
    """Undo :func:`flatten`, ``[B, L, M] -> [B, n, n, M]``. Paper: Z-Order unflatten.

    >>> x = np.arange(16).reshape(1, 4, 4, 1)
    >>> bool((unflatten(flatten(x)) == x).all())
    True
    """
    xp = namespace(seq)
    b, length, m = seq.shape
    n = 2 ** exponent(length, 4, "sequence length", "a flattened n x n matrix has n * n = 4**k positions")
    if check_order(order) == "zorder":
        seq = gather(seq, inverse(zorder(n)), axis=1)
    return xp.reshape(seq, (b, n, n, m))  # [B, n, n, M]


def check_order(order: str) -> str:
    if order not in ("zorder", "raster"):
        raise ValueError(f"flatten must be 'zorder' or 'raster', got {order!r}")
    return order
