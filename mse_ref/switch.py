"""Switch layers: the learned part of a block. Groups of neighbours pass through one small residual network.

::

    i = [i1, i2, i3, i4]  --Z-->  RMSNorm  -->  GELU  --W-->  + b  -->  * h --(+)--> [o1, o2, o3, o4]
              |                                                                |
              +------------------------ * sigmoid(s) --------------------------+

The Quaternary Switch Unit (QSU) takes 4 neighbours, the Residual Switch Unit (RSU) of the 1D network 2;
"the rest of the Unit structure is left unchanged" (paper), so one function serves both.
"""

from __future__ import annotations

import math

from mse_ref.arrays import Array, namespace

R = 0.9  # paper: initial strength of the residual connection
H = 0.25 * math.sqrt(1 - R**2)  # paper: h, kept constant
EPS = 1e-6  # released code: keeps RMSNorm finite at zero
EPS_RSE = 1e-10  # released code of the 1D network
NORMS = ("feature", "position", "rse")


def sigmoid(x: Array) -> Array:
    """The logistic function, written with tanh because exp overflows for large ``-x``.

    >>> import numpy as np
    >>> sigmoid(np.array([-1e4, 0.0, 1e4]))
    array([0. , 0.5, 1. ])
    """
    return 0.5 * (1 + namespace(x).tanh(0.5 * x))


def gelu(x: Array) -> Array:
    """GELU in its sigmoid form ``x * sigmoid(1.702 x)``, as the released code has it.

    It keeps ``gelu(x) - gelu(-x) == x``, which :mod:`mse_ref.handmade` builds upon.

    >>> import numpy as np
    >>> float(gelu(np.array(3.0)) - gelu(np.array(-3.0)))
    3.0
    """
    return x * sigmoid(1.702 * x)


def normalise(a: Array, norm: str = "feature", offset: Array | None = None) -> Array:
    """RMSNorm without a gain, on hidden values ``[..., groups, hidden]``.

    Paper: RMSNorm in the definitions of RSU and QSU.

    >>> import numpy as np
    >>> normalise(np.array([[3.0, 4.0]])).round(3)  # divided by sqrt((9 + 16) / 2)
    array([[0.849, 1.131]])

    :param norm: ``"feature"``: each group by the mean square of its own features (the paper).
        ``"position"``: each feature by its mean square over all groups of the sequence (released 2D code).
        ``"rse"``: the same after ``a <- 2 (a - mean) + offset`` (released 1D code).
    """
    xp = namespace(a)
    if norm == "feature":
        return a / xp.sqrt(xp.mean(a * a, axis=-1, keepdims=True) + EPS)
    if norm == "position":
        return a / xp.sqrt(xp.mean(a * a, axis=-2, keepdims=True) + EPS)
    if norm == "rse":
        if offset is None:
            raise ValueError("norm='rse' needs a unit with an 'offset'; use 'feature' or 'position' without")
        a = 2 * (a - xp.mean(a, axis=-2, keepdims=True)) + offset
        return a / xp.sqrt(xp.mean(a * a, axis=-2, keepdims=True) + EPS_RSE)
    raise ValueError(f"norm must be one of {', '.join(NORMS)}; got {norm!r}")


def switch_unit(unit: dict[str, Array], i: Array, *, norm: str = "feature") -> Array:
    """A Switch Unit on concatenated neighbours: ``[..., groups, width] -> [..., groups, width]``.

    Paper: the definitions of RSU (width 2m) and QSU (width 4m); the lines below are its four equations.
    Kernels are stored ``[in, out]``, so the paper's ``Z i`` is ``i @ Z``.

    >>> import numpy as np
    >>> zero = {"Z": np.zeros((4, 8)), "W": np.zeros((8, 4)), "b": np.zeros(4), "s": np.full(4, 9.0)}
    >>> switch_unit(zero, np.array([[1.0, 2.0, 3.0, 4.0]])).round(2)  # no candidate: only the residual
    array([[1., 2., 3., 4.]])
    """
    hidden = i @ unit["Z"]  # [..., groups, 2 * width]
    g = gelu(normalise(hidden, norm, unit.get("offset")))
    c = g @ unit["W"] + unit["b"]  # [..., groups, width]
    return sigmoid(unit["s"]) * i + H * c


def switch(unit: dict[str, Array], x: Array, *, radix: int = 4, norm: str = "feature") -> Array:
    """A Switch layer: one unit applied to each group of ``radix`` neighbours, ``[B, L, M] -> [B, L, M]``.

    Paper: QSwitch layer (radix 4), Switch layer (radix 2).

    >>> import numpy as np
    >>> from mse_ref import init_unit
    >>> unit = init_unit(np.random.default_rng(0), 4 * 3)
    >>> switch(unit, np.ones((2, 16, 3))).shape
    (2, 16, 3)
    """
    xp = namespace(x)
    b, length, m = x.shape
    if length % radix:
        raise ValueError(f"a switch layer needs a multiple of {radix} positions, got {length}; pad the input")
    if unit["Z"].shape[0] != radix * m:
        wanted = unit["Z"].shape[0] / radix
        raise ValueError(f"this switch unit takes {radix} neighbours of {wanted:g} features, got {m} features")
    i = xp.reshape(x, (b, length // radix, radix * m))  # [B, L / radix, radix * M]
    return xp.reshape(switch_unit(unit, i, norm=norm), (b, length, m))  # [B, L, M]
