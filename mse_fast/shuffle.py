"""Permutations without an index: Z-order and the shuffles are transpositions of a reshaped tensor.

A position of a sequence of length ``radix**digits`` is a string of digits, so a tensor ``[B, L, M]`` can be
seen with one axis per digit, and rotating digits is rotating axes.  ``mse_ref.shuffle`` and ``mse_ref.zorder``
build the same permutations as gather indices; ``tests/test_parity.py`` proves them equal.
"""

from torch import Tensor


def shuffle(x: Tensor, radix: int = 4) -> Tensor:
    """Rotate digits right: ``y[p] = x[ror(p)]``, the QShuffle (radix 4) or Shuffle (radix 2) layer.

    The lowest digit of ``p`` becomes the highest digit of the slot it reads, hence the highest axis of ``x``
    moves to the end.

    >>> import torch
    >>> shuffle(torch.arange(16).reshape(1, 16, 1)).flatten()[:6]
    tensor([ 0,  4,  8, 12,  1,  5])
    """
    B, L, M = x.shape
    return x.reshape(B, radix, L // radix, M).transpose(1, 2).reshape(B, L, M)  # [B, 4, L/4, M] -> [B, L/4, 4, M]


def unshuffle(x: Tensor, radix: int = 4) -> Tensor:
    """Rotate digits left: the inverse of :func:`shuffle`.

    >>> import torch
    >>> x = torch.arange(64).reshape(1, 64, 1)
    >>> bool((unshuffle(shuffle(x)) == x).all())
    True
    """
    B, L, M = x.shape
    return x.reshape(B, L // radix, radix, M).transpose(1, 2).reshape(B, L, M)  # [B, L/4, 4, M] -> [B, 4, L/4, M]


def flatten(x: Tensor, order: str = "zorder") -> Tensor:
    """Matrices ``[B, n, n, *rest]`` to sequences ``[B, n*n, *rest]``, in Z-order or raster order.

    Digit ``j`` of a Z-order address is (row bit ``j``, column bit ``j``), so the row axes and the column axes
    of the binary view interleave.

    >>> import torch
    >>> flatten(torch.arange(16).reshape(1, 4, 4))
    tensor([[ 0,  1,  4,  5,  2,  3,  6,  7,  8,  9, 12, 13, 10, 11, 14, 15]])
    """
    B, n, _, *rest = x.shape
    if order == "zorder":
        k = n.bit_length() - 1
        bits = x.reshape(B, *[2] * (2 * k), *rest)  # row bits, then column bits, highest first
        woven = [1 + axis for j in range(k) for axis in (j, k + j)]  # row bit, column bit, row bit, ...
        x = bits.permute(0, *woven, *range(2 * k + 1, bits.ndim))
    return x.reshape(B, n * n, *rest)


def unflatten(x: Tensor, n: int, order: str = "zorder") -> Tensor:
    """Sequences ``[B, n*n, *rest]`` back to matrices ``[B, n, n, *rest]``: the inverse of :func:`flatten`.

    >>> import torch
    >>> x = torch.arange(64).reshape(1, 8, 8)
    >>> bool((unflatten(flatten(x), 8) == x).all())
    True
    """
    B, _, *rest = x.shape
    if order == "zorder":
        k = n.bit_length() - 1
        bits = x.reshape(B, *[2] * (2 * k), *rest)  # row bit, column bit, row bit, ...
        rows, columns = range(1, 2 * k, 2), range(2, 2 * k + 1, 2)
        x = bits.permute(0, *rows, *columns, *range(2 * k + 1, bits.ndim))
    return x.reshape(B, n, n, *rest)
