"""Parameters: their shapes, their initial values, and the authors' arrays renamed.

Parameters are a plain nested dict of arrays; kernels are stored ``[in, out]`` and used as ``x @ K``::

    {"embedding": [V, m],
     "blocks": [{"forward": U, "reverse": U, "last": U}, ...],
     "readout": {"kernel": [m, C], "bias": [C]}}
    U = {"Z": [4m, 8m], "W": [8m, 4m], "b": [4m], "s": [4m]}

    skip: also "skip": [V, C], what a cell's own token adds to its logits
    recurrent: also "head": {"kernel": [m, m], "bias": [m]}
    1D: units of 2m/4m, no "last" in the blocks; the released code adds "offset" [4m] and one "last" for all
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from mse_ref.arrays import Array, leaves
from mse_ref.switch import R

Params = dict[str, Any]


def glorot_uniform(rng: np.random.Generator, fan_in: int, fan_out: int) -> np.ndarray:
    """A kernel ``[in, out]`` drawn from U(-a, a), ``a = sqrt(6 / (in + out))`` (Glorot & Bengio 2010).

    >>> kernel = glorot_uniform(np.random.default_rng(0), 2, 4)
    >>> kernel.shape, bool(abs(kernel).max() <= 1)
    ((2, 4), True)
    """
    bound = math.sqrt(6 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, size=(fan_in, fan_out))


def truncated_normal(rng: np.random.Generator, std: float, shape: tuple[int, ...]) -> np.ndarray:
    """Normal values, those beyond two standard deviations excluded, by inverting the distribution function.

    >>> bool(abs(truncated_normal(np.random.default_rng(0), 0.25, (100,))).max() <= 0.5)
    True
    """
    return std * ndtri(rng.uniform(ndtr(-2), ndtr(2), size=shape))


def init_linear(rng: np.random.Generator, fan_in: int, fan_out: int) -> dict[str, np.ndarray]:
    """A linear map: Glorot-uniform kernel, zero bias."""
    return {"kernel": glorot_uniform(rng, fan_in, fan_out), "bias": np.zeros(fan_out)}


def init_unit(rng: np.random.Generator, width: int) -> dict[str, np.ndarray]:
    """A fresh Switch Unit for inputs of ``width`` numbers (4m for a QSU, 2m for an RSU).

    Paper: "s is initialized as the inverse sigmoid of r", r = 0.9; the hidden layer is twice as wide.

    >>> {name: value.shape for name, value in init_unit(np.random.default_rng(0), 12).items()}
    {'Z': (12, 24), 'W': (24, 12), 'b': (12,), 's': (12,)}
    """
    return {
        "Z": glorot_uniform(rng, width, 2 * width),
        "W": glorot_uniform(rng, 2 * width, width),
        "b": np.zeros(width),
        "s": np.full(width, math.log(R / (1 - R))),
    }


def init_matrix_se(
    rng: np.random.Generator,
    *,
    in_classes: int,
    out_classes: int,
    feature_maps: int = 96,
    blocks: int = 2,
    recurrent: bool = False,
    skip: bool = False,
) -> Params:
    """Initial parameters of a Matrix-SE network, float64.

    >>> params = init_matrix_se(np.random.default_rng(0), in_classes=12, out_classes=12)
    >>> count(params)  # the paper's 3.5 million
    3545868

    :param recurrent: add the ``"head"`` of :func:`mse_ref.matrix_se_recurrent`.
    :param skip: add a table of logits for each cell's own token, zero at the start.
    """
    m = feature_maps
    sizes = {"in_classes": in_classes, "out_classes": out_classes, "feature_maps": m, "blocks": blocks}
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be 1 or more, got {size}")
    params: Params = {
        "embedding": truncated_normal(rng, 0.25, (in_classes, m)),
        "blocks": [{name: init_unit(rng, 4 * m) for name in ("forward", "reverse", "last")} for _ in range(blocks)],
    }
    if recurrent:
        params["head"] = init_linear(rng, m, m)
    params["readout"] = init_linear(rng, m, out_classes)
    if skip:
        params["skip"] = np.zeros((in_classes, out_classes))
    return params


def init_shuffle_exchange(rng: np.random.Generator, *, feature_maps: int = 96, blocks: int = 2) -> Params:
    """Initial parameters of the paper's 1D network, float64.

    >>> params = init_shuffle_exchange(np.random.default_rng(0), feature_maps=3, blocks=1)
    >>> params["blocks"][0]["forward"]["Z"].shape
    (6, 12)
    """
    return {
        "blocks": [{name: init_unit(rng, 2 * feature_maps) for name in ("forward", "reverse")} for _ in range(blocks)]
    }


def map_params(function: Callable[[Array], Array], params: Any) -> Any:
    """The same nested dict with ``function`` applied to every array: change dtype, library or device.

    >>> params = init_shuffle_exchange(np.random.default_rng(0), feature_maps=1, blocks=1)
    >>> map_params(np.float32, params)["blocks"][0]["forward"]["b"]
    array([0., 0.], dtype=float32)
    """
    if isinstance(params, Mapping):
        return {name: map_params(function, value) for name, value in params.items()}
    if isinstance(params, list | tuple):
        return [map_params(function, value) for value in params]
    return function(params)


def count(params: Params) -> int:
    """The number of learned values.

    >>> count({"a": np.zeros((2, 3)), "b": [np.zeros(4)]})
    10
    """
    return sum(math.prod(leaf.shape) for leaf in leaves(params))


def check_params(params: Params, *, radix: int = 4) -> None:
    """Raise an error naming the first parameter that is missing or has the wrong shape.

    >>> check_params({"embedding": np.zeros((5, 3)), "blocks": []})
    Traceback (most recent call last):
    ValueError: params['blocks'] must hold at least one Benes block; ...
    """
    two_d = radix == 4
    if not _find(params, "blocks"):
        raise ValueError(f"params['blocks'] must hold at least one Benes block; {_FIX}")
    if two_d:
        alphabet, m = _check_shape(params, ("embedding",), (None, None))
    else:
        m = _check_shape(params, ("blocks", 0, "forward", "s"), (None,))[0] // 2
    units: list[tuple] = [("blocks", i, name) for i in range(len(params["blocks"])) for name in ("forward", "reverse")]
    units += [("blocks", i, "last") for i, block in enumerate(params["blocks"]) if two_d or "last" in block]
    units += [("last",)] if "last" in params else []
    for unit in units:
        width = radix * m
        _check_shape(params, (*unit, "Z"), (width, 2 * width))
        _check_shape(params, (*unit, "W"), (2 * width, width))
        _check_shape(params, (*unit, "b"), (width,))
        _check_shape(params, (*unit, "s"), (width,))
        if "offset" in _find(params, *unit):
            _check_shape(params, (*unit, "offset"), (2 * width,))
    if two_d:
        classes = _check_shape(params, ("readout", "kernel"), (m, None))[1]
        _check_shape(params, ("readout", "bias"), (classes,))
        if "skip" in params:
            _check_shape(params, ("skip",), (alphabet, classes))
    if "head" in params:
        _check_shape(params, ("head", "kernel"), (m, m))
        _check_shape(params, ("head", "bias"), (m,))


_FIX = "mse_ref.init_matrix_se makes valid parameters"


def _spell(path: tuple) -> str:
    return "params" + "".join(f"[{part!r}]" for part in path)


def _find(params: Any, *path: Any) -> Any:
    for depth, part in enumerate(path, 1):
        if isinstance(params, Mapping) and part not in params:
            raise ValueError(f"{_spell(path[:depth])} is missing; {_FIX}")
        params = params[part]
    return params


def _check_shape(params: Params, path: tuple, shape: tuple) -> tuple:
    """The shape found at ``path``, which must match ``shape`` (``None`` matches anything)."""
    found = tuple(getattr(_find(params, *path), "shape", ()))
    if len(found) != len(shape) or any(want not in (None, got) for want, got in zip(shape, found, strict=True)):
        wanted = "[" + ", ".join("any" if size is None else str(size) for size in shape) + "]"
        raise ValueError(f"{_spell(path)} must have shape {wanted}, got {list(found)}; {_FIX}")
    return found


def from_authors(arrays: Mapping[str, np.ndarray], prefix: str) -> Params:
    """Parameters from arrays named as in the authors' released code.

    Their "middle" unit is our ``last``; their 1D code applies ``sigmoid(2 r)`` to its residual ``r``.

    :param arrays: for example ``numpy.load("tests/golden/authors.npz")``.
    :param prefix: ``"matrixse_n8_m4_b2"``, ``"multistep_n16_m4_b2"``, ``"rse_n8_m4_b2"``, ...
    """
    own = {key.removeprefix(f"{prefix}/"): arrays[key] for key in arrays if key.startswith(f"{prefix}/")}
    if not own:
        known = sorted({key.split("/")[0] for key in arrays})
        raise ValueError(f"no arrays under the prefix {prefix!r}; there are {', '.join(known)}")
    if any(key.startswith("benes_recursive/") for key in own):
        return _from_authors_1d(own)
    if "embedding" not in own:
        raise ValueError(
            f"the prefix {prefix!r} holds no network but {', '.join(own)}; take one like 'matrixse_n8_m4_b2'"
        )

    def unit(block: str, name: str) -> dict[str, np.ndarray]:
        at = f"{block}/{name}"
        return {"Z": own[f"{at}/Z"], "W": own[f"{at}/W"], "b": own[f"{at}/b"], "s": own[f"{at}/residual"]}

    blocks = sorted({key.split("/")[0] for key in own if key.startswith("block")}, key=lambda b: int(b[5:]))
    names = {"forward": "forward", "reverse": "reverse", "last": "middle"}
    params: Params = {
        "embedding": own["embedding"],
        "blocks": [{ours: unit(block, theirs) for ours, theirs in names.items()} for block in blocks],
    }
    if "head/kernel" in own:
        params["head"] = {"kernel": own["head/kernel"], "bias": own["head/bias"]}
    params["readout"] = {"kernel": own["out/kernel"], "bias": own["out/bias"]}
    return params


def _from_authors_1d(own: Mapping[str, np.ndarray]) -> Params:
    def unit(name: str) -> dict[str, np.ndarray]:
        at = f"benes_recursive/{name}"
        return {
            "Z": own[f"{at}/cand1/c/CvK"],
            "W": own[f"{at}/cand2/c/CvK"],
            "b": own[f"{at}/cand2/c/CvB"],
            "s": 2 * own[f"{at}/residual"],
            "offset": own[f"{at}/norm/c/norm_bias/offset"].reshape(-1),  # [1, 1, 4M] -> [4M]
        }

    blocks = range(sum(key.endswith("_forward/residual") for key in own))
    return {
        "blocks": [{name: unit(f"{block}_{name}") for name in ("forward", "reverse")} for block in blocks],
        "last": unit("last"),
    }
