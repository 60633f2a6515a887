"""One code base for NumPy, CuPy and every other array-API library.

The reference never says ``np.`` where data flows: it asks the data for its own library,
``xp = namespace(x)``, and computes with that. NumPy is used for index arithmetic only.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj

Array = Any  # an array of any library that follows the array API standard


def leaves(tree: Any) -> Iterator[Array]:
    """The arrays of a nested dict/list, in order.

    >>> [x.shape for x in leaves({"a": np.zeros(2), "b": [np.zeros(3)]})]
    [(2,), (3,)]
    """
    if isinstance(tree, Mapping):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for value in tree:
            yield from leaves(value)
    else:
        yield tree


def namespace(*trees: Any) -> Any:
    """The one array library all these arrays (or nested dicts of arrays) belong to.

    >>> namespace(np.zeros(2), {"b": np.zeros(3)}).__name__
    'array_api_compat.numpy'
    """
    arrays = [leaf for tree in trees for leaf in leaves(tree)]
    strangers = [type(a).__name__ for a in arrays if not is_array_api_obj(a)]
    if strangers:
        raise TypeError(f"expected arrays, got {strangers[0]}; wrap it, for example with numpy.asarray")
    kinds = {type(a).__module__.split(".")[0] for a in arrays}
    if len(kinds) > 1:
        raise TypeError(
            f"all arrays must come from one library, got {', '.join(sorted(kinds))}; "
            "convert parameters and inputs to the same one (mse_ref.map_params does it for parameters)"
        )
    places = {str(device(a)) for a in arrays}
    if len(places) > 1:
        raise ValueError(f"all arrays must be on one device, got {', '.join(sorted(places))}; move them first")
    return array_namespace(*arrays)


def gather(x: Array, perm: np.ndarray, axis: int) -> Array:
    """``y = x[perm]`` along one axis: slot ``p`` of ``y`` reads slot ``perm[p]`` of ``x``.

    >>> gather(np.array([[10, 20, 30]]), np.array([2, 0, 1]), axis=1)
    array([[30, 10, 20]])
    """
    xp = namespace(x)
    return xp.take(x, xp.asarray(perm, device=device(x)), axis=axis)


def exponent(value: int, base: int, what: str, fix: str) -> int:
    """The ``k >= 0`` with ``base**k == value``; an error that names the rule if there is none.

    >>> exponent(64, 4, "length", "pad it")
    3
    >>> exponent(6, 2, "side", "pad it")
    Traceback (most recent call last):
    ValueError: side must be a power of 2, got 6; pad it
    """
    value, k, power = operator.index(value), 0, 1
    while power < value:
        k, power = k + 1, power * base
    if power != value:
        raise ValueError(f"{what} must be a power of {base}, got {value}; {fix}")
    return k
