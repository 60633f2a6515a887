"""The Matrix Shuffle-Exchange network, end to end. Read this file first.

::

    tokens [B,n,n] -> embed [B,n,n,m] -> Z-order [B,L,m] -> Benes blocks -> Z-order^-1 [B,n,n,m] -> readout

With ``params["skip"]``, which the paper does not have, each cell's own token adds logits of its own at the end.
"""

from __future__ import annotations

from array_api_compat import device

from mse_ref.arrays import Array, exponent, namespace
from mse_ref.benes import benes_block
from mse_ref.params import Params, check_params
from mse_ref.zorder import flatten as to_sequence
from mse_ref.zorder import unflatten as to_matrix


def matrix_se(params: Params, tokens: Array, *, norm: str = "feature", flatten: str = "zorder") -> Array:
    """Logits of the Matrix-SE network: tokens ``[B, n, n]`` -> ``[B, n, n, classes]``, n = 2, 4, 8, ...

    Paper: "The Matrix Shuffle-Exchange Network", Fig. 1. The same weights serve every n.

    >>> import numpy as np
    >>> from mse_ref import init_matrix_se
    >>> params = init_matrix_se(np.random.default_rng(0), in_classes=12, out_classes=5, feature_maps=6)
    >>> matrix_se(params, np.zeros((2, 8, 8), dtype=int)).shape
    (2, 8, 8, 5)

    :param params: nested dict of arrays, from :func:`mse_ref.init_matrix_se` or :func:`mse_ref.from_authors`.
    :param tokens: integers below the alphabet's size, or real features ``[B, n, n, V]``: see :func:`embed`.
    :param norm: ``"feature"`` (paper) or ``"position"`` (released code), see :mod:`mse_ref.switch`.
    :param flatten: ``"zorder"``, or ``"raster"`` for the paper's ablation study.
    """
    check_params(params)
    x = embed(params["embedding"], check_square(params, tokens))  # [B, n, n, M]
    x = to_sequence(x, flatten)  # [B, L, M]
    x = benes_blocks(params, x, norm=norm)
    x = to_matrix(x, flatten)  # [B, n, n, M]
    logits = readout(params["readout"], x)  # [B, n, n, classes]
    return logits + embed(params["skip"], tokens) if "skip" in params else logits


def embed(embedding: Array, tokens: Array) -> Array:
    """Each token's vector: ``[B, ...]`` integers -> ``[B, ..., M]``.

    Real features ``[B, ..., V]`` are multiplied with the same table: a token is a one-hot feature vector.

    >>> import numpy as np
    >>> table = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
    >>> embed(table, np.array([[1, 2]]))
    array([[[ 1., 10.],
            [ 2., 20.]]])
    >>> embed(table, np.array([[0.0, 0.5, 0.5]]))
    array([[ 1.5, 15. ]])
    """
    xp = namespace(embedding, tokens)
    size, m = embedding.shape
    if xp.isdtype(tokens.dtype, "real floating"):
        if tokens.shape[-1] != size:
            raise ValueError(f"features must have {size} channels like the embedding, got {tokens.shape[-1]}")
        return tokens @ embedding  # [B, ..., M]
    if not xp.isdtype(tokens.dtype, "integral"):
        raise TypeError(f"tokens must be integers (or real features), got dtype {tokens.dtype}")
    if 0 not in tokens.shape and (int(xp.min(tokens)) < 0 or int(xp.max(tokens)) >= size):
        raise ValueError(
            f"tokens must lie in 0..{size - 1}, got {int(xp.min(tokens))}..{int(xp.max(tokens))}; "
            "enlarge the embedding or recode the tokens"
        )
    rows = xp.take(embedding, xp.reshape(xp.astype(tokens, xp.int64), (-1,)), axis=0)  # [B * ..., M]
    return xp.reshape(rows, (*tokens.shape, m))  # [B, ..., M]


def benes_blocks(params: Params, x: Array, *, norm: str = "feature") -> Array:
    """All Benes blocks in turn, each with its own weights, ``[B, L, M] -> [B, L, M]``.

    Paper: "If the network has more than one Benes block, each block receives a distinct set of weights".
    """
    for block in params["blocks"]:
        x = benes_block(block, x, norm=norm)
    return x


def readout(linear: dict[str, Array], x: Array) -> Array:
    """A linear map on the features, ``[..., M] -> [..., classes]``.

    >>> import numpy as np
    >>> readout({"kernel": np.eye(2), "bias": np.array([0.0, 1.0])}, np.array([3.0, 4.0]))
    array([3., 5.])
    """
    return x @ linear["kernel"] + linear["bias"]  # [..., classes]


def pad(tokens: Array) -> Array:
    """Pad matrices ``[B, h, w]`` at the bottom and right with token 0, to the smallest legal square.

    Features ``[B, h, w, C]`` get zero vectors. Paper: "Inputs that don't fulfil this requirement has to be
    padded to the closest 2^k x 2^k array". Crop the result with ``logits[:, :h, :w]``.

    >>> import numpy as np
    >>> pad(np.array([[[1, 2, 3]]]))
    array([[[1, 2, 3, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0]]])
    """
    xp = namespace(tokens)
    if tokens.ndim not in (3, 4):
        raise ValueError(f"expected tokens [B, h, w] or features [B, h, w, C], got shape {tuple(tokens.shape)}")
    b, h, w, *channels = tokens.shape
    n = 2
    while n < max(h, w):
        n *= 2
    like = {"dtype": tokens.dtype, "device": device(tokens)}
    wide = xp.concat([tokens, xp.zeros((b, h, n - w, *channels), **like)], axis=2)  # [B, h, n, ...]
    return xp.concat([wide, xp.zeros((b, n - h, n, *channels), **like)], axis=1)  # [B, n, n, ...]


def check_square(params: Params, tokens: Array) -> Array:
    """``tokens`` unchanged, if they are a batch of ``2^k x 2^k`` matrices of the parameters' library."""
    xp = namespace(params, tokens)
    axes = 4 if xp.isdtype(tokens.dtype, "real floating") else 3
    if tokens.ndim != axes or tokens.shape[1] != tokens.shape[2]:
        raise ValueError(
            "expected square matrices of tokens [B, n, n] (or features [B, n, n, V]), "
            f"got shape {tuple(tokens.shape)}; mse_ref.pad makes rectangles square"
        )
    if exponent(tokens.shape[1], 2, "matrix side n", "use mse_ref.pad to reach the next power") == 0:
        raise ValueError("the smallest matrix is 2 x 2, got 1 x 1; use mse_ref.pad")
    return tokens
