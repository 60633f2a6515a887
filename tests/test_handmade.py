"""Weights written down, not trained."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mse_ref import handmade, map_params, matrix_se, switch_unit
from mse_ref.params import check_params
from mse_ref.switch import switch

MOVES = {
    "identity": (handmade.identity, lambda x: x),
    "transpose": (handmade.transpose, lambda x: x.transpose(0, 2, 1)),
    "rotate90": (handmade.rotate90, lambda x: np.rot90(x, axes=(1, 2))),
}
MOVE = pytest.mark.parametrize("move", MOVES)
seeds = st.integers(0, 2**32 - 1)


def random_tokens(seed: int, n: int, alphabet: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, alphabet, (1, n, n))


@MOVE
@given(seed=seeds, k=st.integers(1, 5), alphabet=st.integers(1, 16))
def test_the_move_is_exact_for_every_alphabet(move, seed, k, alphabet):
    make, expected = MOVES[move]
    tokens = random_tokens(seed, 2**k, alphabet)
    logits = matrix_se(make(alphabet), tokens)
    assert_allclose(logits, np.eye(alphabet)[expected(tokens)], atol=1e-12)


@MOVE
@pytest.mark.parametrize("n", [2**k for k in range(1, 9)])
def test_one_set_of_weights_is_right_at_every_size_in_single_precision(move, n):
    make, expected = MOVES[move]
    tokens = random_tokens(n, n, 12)
    logits = matrix_se(map_params(np.float32, make(12)), tokens)
    assert logits.dtype == np.float32
    assert_allclose(logits, np.eye(12)[expected(tokens)], atol=1e-5)


@MOVE
def test_the_move_is_exact_in_every_array_library(xp, move):
    make, expected = MOVES[move]
    tokens = random_tokens(0, 16, 5)
    logits = xp.fetch(matrix_se(xp.put(make(5)), xp.put(tokens)))
    assert_array_equal(logits.argmax(-1), expected(tokens))


def test_four_rotations_are_none():
    tokens = random_tokens(0, 32, 12)
    x = tokens
    for turn in range(1, 5):
        x = matrix_se(handmade.rotate90(12), x).argmax(-1)
        assert_array_equal(x, np.rot90(tokens, turn, axes=(1, 2)))


@pytest.mark.parametrize("perm", itertools.permutations(range(4)))
def test_a_unit_can_be_any_permutation_of_its_four_cells(perm):
    x = np.random.default_rng(0).normal(size=(3, 8, 5))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)  # any vectors of length 1, not only one-hot ones
    y = switch(handmade.permutation_unit(perm, 5), x)
    assert_allclose(y.reshape(3, 2, 4, 5), x.reshape(3, 2, 4, 5)[:, :, list(perm)], atol=1e-12)


@pytest.mark.parametrize("perm", itertools.permutations(range(4)))
def test_a_rule_for_one_digit_becomes_a_rule_for_all(perm):
    """Read bit by bit: the cell (r, c) shows the cell whose bit pairs are perm of its own bit pairs."""
    k, n = 3, 8
    tokens = random_tokens(1, n, 6)
    expected = np.empty_like(tokens)
    for r, c in itertools.product(range(n), repeat=2):
        source = [perm[2 * (r >> j & 1) + (c >> j & 1)] for j in range(k)]
        row, column = (sum((digit >> bit & 1) << j for j, digit in enumerate(source)) for bit in (1, 0))
        expected[0, r, c] = tokens[0, row, column]
    assert_array_equal(matrix_se(handmade.digitwise(perm, 6), tokens).argmax(-1), expected)


@given(seed=seeds, width=st.integers(1, 12), length=st.floats(1e-3, 1e3))
def test_a_unit_can_be_any_linear_map(seed, width, length):
    rng = np.random.default_rng(seed)
    matrix, i = rng.normal(size=(width, width)), rng.normal(size=(6, width))
    i *= length / np.linalg.norm(i, axis=-1, keepdims=True)
    o = switch_unit(handmade.linear_unit(matrix, length), i)
    assert_allclose(o, i @ matrix.T, rtol=1e-9, atol=1e-9 * length)


@MOVE
def test_handmade_parameters_have_the_ordinary_shapes(move):
    params = MOVES[move][0](7)
    check_params(params)
    assert params["blocks"][0]["forward"]["Z"].shape == (28, 56)


@pytest.mark.parametrize("perm", [[0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4]])
def test_what_is_no_permutation_of_four_is_refused(perm):
    with pytest.raises(ValueError, match=r"a 4-permutation holds 0, 1, 2 and 3 once each, got \["):
        handmade.permutation_unit(perm, 3)


def test_a_map_that_is_not_square_is_refused():
    with pytest.raises(ValueError, match=r"square matrix expected, got \(4, 3\)"):
        handmade.linear_unit(np.zeros((4, 3)), 1.0)


@pytest.mark.parametrize("length", [0.0, -1.0, float("nan")])
def test_a_length_that_is_not_positive_is_refused(length):
    with pytest.raises(ValueError, match=f"length of the input vectors must be positive, got {length}"):
        handmade.linear_unit(np.eye(4), length)
