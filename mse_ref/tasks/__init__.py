"""The paper's algorithmic tasks as oracles: what an instance looks like, and what its right answer is.

An instance is an ``[n, n]`` matrix of tokens with its answer of the same shape. Token 0 is padding: the
matrix proper sits in the top-left corner. ``sample`` draws an instance, ``label`` solves any instance::

    matrix.py   transpose, rotate90, xor, squaring          (paper: Inferring matrix algorithms)
    graph.py    components, triangles, transitivity         (paper: Inferring graph algorithms)

Everything else (samplers, networks, trainer) reads the alphabet and the sizes of a task from ``SPECS``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mse_ref.tasks import graph, matrix

__all__ = ["SPECS", "TaskSpec", "check_size", "label", "sample"]


@dataclass(frozen=True)
class TaskSpec:
    """What a network and a trainer must know about a task.

    >>> SPECS["xor"].in_classes, SPECS["xor"].out_classes, SPECS["xor"].sizes
    (4, 3, (8, 16, 32))

    ``in_classes`` and ``out_classes`` count the tokens, padding 0 included; ``sizes`` are the sides the
    paper trains on; ``min_size`` is the smallest side that holds an instance; ``loss`` is the authors'
    choice of weights.
    """

    name: str
    in_classes: int
    out_classes: int
    sizes: tuple[int, ...]
    min_size: int
    loss: Literal["pad-weighted", "class-balanced"]
    description: str


SPECS: dict[str, TaskSpec] = {
    spec.name: spec
    for spec in (
        TaskSpec("transpose", 12, 12, (4, 8, 16, 32), 2, "pad-weighted", "swap rows and columns of a rectangle"),
        TaskSpec("rotate90", 12, 12, (4, 8, 16, 32), 2, "pad-weighted", "turn a rectangle counter-clockwise by 90°"),
        TaskSpec(
            "xor",
            4,
            3,
            (8, 16, 32),
            3,
            "pad-weighted",
            "element-wise XOR of two binary matrices side by side",
        ),
        TaskSpec("squaring", 3, 3, (4, 8, 16, 32), 2, "pad-weighted", "square of a binary matrix, modulo 2"),
        TaskSpec(
            "components",
            100,
            100,
            (8, 16, 32),
            2,
            "pad-weighted",
            "label every edge with the lowest edge label of its connected component",
        ),
        TaskSpec("triangles", 3, 3, (8, 16, 32), 4, "class-balanced", "keep the edges that belong to a triangle"),
        TaskSpec(
            "transitivity",
            3,
            3,
            (8, 16, 32),
            2,
            "class-balanced",
            "add an edge wherever a directed path of length 2 leads",
        ),
    )
}

Sampler = Callable[[int, np.random.Generator], np.ndarray]
Solver = Callable[[np.ndarray], np.ndarray]
_ORACLES: dict[str, tuple[Sampler, Solver]] = {
    "transpose": (matrix.sample_rectangle, matrix.label_transpose),
    "rotate90": (matrix.sample_rectangle, matrix.label_rotate90),
    "xor": (matrix.sample_xor, matrix.label_xor),
    "squaring": (matrix.sample_squaring, matrix.label_squaring),
    "components": (graph.sample_components, graph.label_components),
    "triangles": (graph.sample_triangles, graph.label_triangles),
    "transitivity": (graph.sample_transitivity, graph.label_transitivity),
}


def sample(name: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw one instance of side ``n`` and solve it: (tokens, labels), both [n, n] int64.

    >>> tokens, labels = sample("squaring", 4, np.random.default_rng(0))
    >>> bool((labels == label("squaring", tokens)).all())
    True
    """
    draw, solve = _oracle(name)
    check_size(SPECS[name], n)
    tokens = draw(n, rng)
    return tokens, solve(tokens)


def label(name: str, tokens: np.ndarray) -> np.ndarray:
    """Solve an instance: the right answer [n, n] for the tokens [n, n].

    >>> label("transpose", np.array([[1, 2], [0, 0]]))
    array([[1, 0],
           [2, 0]])
    """
    _, solve = _oracle(name)
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or tokens.shape[0] != tokens.shape[1]:
        raise ValueError(f"tokens must be one square matrix [n, n], not {list(tokens.shape)}: pass one instance")
    if tokens.dtype.kind not in "iu":
        raise TypeError(f"tokens must be integers, not {tokens.dtype}: convert them with .astype(np.int64)")
    highest = SPECS[name].in_classes - 1
    if tokens.size and (tokens.min() < 0 or tokens.max() > highest):
        raise ValueError(
            f"{name} knows the tokens 0 to {highest}, not {tokens.min()} to {tokens.max()}: 0 is the padding"
        )
    return solve(tokens.astype(np.int64))


def check_size(spec: TaskSpec, n: int) -> None:
    """Refuse a side that cannot hold an instance.

    >>> check_size(SPECS["xor"], 2)
    Traceback (most recent call last):
    ...
    ValueError: xor needs a side of at least 3, not 2: its matrices do not fit
    """
    if n < spec.min_size:
        raise ValueError(f"{spec.name} needs a side of at least {spec.min_size}, not {n}: its matrices do not fit")


def _oracle(name: str) -> tuple[Sampler, Solver]:
    if name not in _ORACLES:
        raise ValueError(f"unknown task {name!r}: choose one of {', '.join(_ORACLES)}")
    return _ORACLES[name]
