"""The recurrent Matrix-SE network: the same blocks applied again and again (paper: Sudoku).

::

    embed -> [ blocks -> readout ] -> [ blocks -> readout ] -> ...     one answer per step
"""

from __future__ import annotations

from mse_ref.arrays import Array, namespace
from mse_ref.network import benes_blocks, check_square, embed, readout
from mse_ref.params import Params, check_params
from mse_ref.switch import gelu
from mse_ref.zorder import flatten as to_sequence
from mse_ref.zorder import unflatten as to_matrix


def matrix_se_recurrent(
    params: Params,
    tokens: Array,
    steps: int,
    *,
    norm: str = "feature",
    flatten: str = "zorder",
    reinject: bool = False,
) -> Array:
    """Logits after each of ``steps`` rounds: tokens ``[B, n, n]`` -> ``[steps, B, n, n, classes]``.

    Paper: Sudoku, "At each step, hidden representation is mapped to output by one GELU layer and one linear
    layer". The Benes output of one step is the input of the next.

    >>> import numpy as np
    >>> from mse_ref import init_matrix_se
    >>> params = init_matrix_se(
    ...     np.random.default_rng(0), in_classes=11, out_classes=10, feature_maps=4, recurrent=True
    ... )
    >>> matrix_se_recurrent(params, np.zeros((1, 16, 16), dtype=int), steps=3).shape
    (3, 1, 16, 16, 10)

    :param reinject: add the embedded input to the state before every step but the first (not in the paper),
        so that a long run cannot forget the puzzle.
    """
    check_params(params)
    if "head" not in params:
        raise ValueError("recurrent parameters need a 'head'; create them with init_matrix_se(..., recurrent=True)")
    if steps < 1:
        raise ValueError(f"the number of steps must be 1 or more, got {steps}")
    given = to_sequence(embed(params["embedding"], check_square(params, tokens)), flatten)  # [B, L, M]
    x = given
    answers = []
    for step in range(steps):
        x = benes_blocks(params, x + given if reinject and step else x, norm=norm)
        hidden = gelu(readout(params["head"], to_matrix(x, flatten)))  # [B, n, n, M]
        answers.append(readout(params["readout"], hidden))  # [B, n, n, classes]
    return namespace(tokens).stack(answers)  # [steps, B, n, n, classes]
