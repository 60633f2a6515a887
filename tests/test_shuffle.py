"""Digit rotations, base 4 and base 2."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mse_ref import inverse, qrotate, rotate, zorder
from mse_ref.shuffle import shuffle


def rotate_right_by_spelling(p: int, base: int, digits: int) -> int:
    spelled = np.base_repr(p, base).zfill(digits)
    return int(spelled[-1] + spelled[:-1], base)


@given(digits=st.integers(1, 5))
def test_qrotate_matches_digits_written_out(digits):
    assert_array_equal(qrotate(digits), [rotate_right_by_spelling(p, 4, digits) for p in range(4**digits)])


@given(bits=st.integers(1, 10))
def test_rotate_matches_bits_written_out(bits):
    assert_array_equal(rotate(bits), [rotate_right_by_spelling(p, 2, bits) for p in range(2**bits)])


@pytest.mark.parametrize("turn", [qrotate, rotate])
@given(digits=st.integers(0, 5), steps=st.integers(-7, 7))
def test_a_rotation_is_undone_by_the_opposite_steps(turn, digits, steps):
    forth, back = turn(digits, steps), turn(digits, -steps)
    assert_array_equal(forth[back], np.arange(len(forth)))
    assert_array_equal(back, inverse(forth))


@pytest.mark.parametrize("turn", [qrotate, rotate])
@given(digits=st.integers(1, 5), first=st.integers(-7, 7), second=st.integers(-7, 7))
def test_rotations_add_up_and_a_full_turn_is_nothing(turn, digits, first, second):
    x = np.arange(len(turn(digits)))
    assert_array_equal(x[turn(digits, first)][turn(digits, second)], x[turn(digits, first + second)])
    assert_array_equal(turn(digits, digits), x)


@given(digits=st.integers(0, 5), steps=st.integers(-6, 6))
def test_a_base_4_digit_is_two_bits(digits, steps):
    assert_array_equal(qrotate(digits, steps), rotate(2 * digits, 2 * steps))


@given(digits=st.integers(1, 5))
def test_a_shuffle_transposes_4_rows_into_4_columns(digits):
    x = np.arange(4**digits)
    assert_array_equal(x[qrotate(digits)], x.reshape(4, -1).T.ravel())
    assert_array_equal(x[qrotate(digits, -1)], x.reshape(-1, 4).T.ravel())


@given(k=st.integers(1, 5))
def test_a_shuffle_interleaves_the_row_halves_and_then_the_column_halves(k):
    """The picture of the paper: "splitting matrix rows into two halves and interleaving the halves"."""
    n = 2**k
    matrix = np.arange(n * n).reshape(n, n)
    rows = np.empty_like(matrix)
    rows[0::2], rows[1::2] = matrix[: n // 2], matrix[n // 2 :]
    both = np.empty_like(matrix)
    both[:, 0::2], both[:, 1::2] = rows[:, : n // 2], rows[:, n // 2 :]

    shuffled = matrix.ravel()[zorder(n)][qrotate(k)][inverse(zorder(n))].reshape(n, n)
    assert_array_equal(shuffled, both)


@pytest.mark.parametrize(("radix", "turn"), [(4, qrotate), (2, rotate)])
@given(digits=st.integers(0, 4), steps=st.integers(-2, 2))
def test_a_shuffle_layer_gathers_along_the_sequence(xp, radix, turn, digits, steps):
    x = np.random.default_rng(digits).normal(size=(2, radix**digits, 3))
    y = xp.fetch(shuffle(xp.put(x), steps, radix=radix))
    assert_array_equal(y, x[:, turn(digits, steps)])


def test_a_negative_number_of_digits_is_refused():
    with pytest.raises(ValueError, match="number of digits must be 0 or more, got -1"):
        qrotate(-1)


def test_a_fractional_number_of_digits_is_refused():
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        rotate(2.5)


def test_a_sequence_that_is_no_power_of_the_radix_is_refused():
    with pytest.raises(ValueError, match="sequence length must be a power of 4, got 8"):
        shuffle(np.zeros((1, 8, 1)))
