"""Matrix <-> Z-order sequence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mse_ref import flatten, inverse, unflatten, zorder

exponents = st.integers(0, 6)


def cell_by_interleaved_bits(slot: int, k: int) -> int:
    """Spell the slot in binary: its bits are r c r c ... from the highest digit down."""
    spelled = np.binary_repr(slot, 2 * k) if k else ""
    row, column = int("0" + spelled[0::2], 2), int("0" + spelled[1::2], 2)
    return row * 2**k + column


def cells_by_quadtree(cells: np.ndarray) -> list[int]:
    """Depth-first traversal of a quadtree: top-left, top-right, bottom-left, bottom-right."""
    if cells.size == 1:
        return [int(cells[0, 0])]
    return [
        cell for half in np.split(cells, 2) for part in np.split(half, 2, axis=1) for cell in cells_by_quadtree(part)
    ]


@given(k=exponents)
def test_zorder_is_the_interleaving_of_row_and_column_bits(k):
    assert_array_equal(zorder(2**k), [cell_by_interleaved_bits(slot, k) for slot in range(4**k)])


@given(k=exponents)
def test_zorder_is_the_depth_first_order_of_a_quadtree(k):
    assert_array_equal(zorder(2**k), cells_by_quadtree(np.arange(4**k).reshape(2**k, 2**k)))


@given(k=exponents)
def test_zorder_visits_every_cell_once(k):
    assert_array_equal(np.sort(zorder(2**k)), np.arange(4**k))


@given(k=st.integers(0, 5))
def test_a_cell_keeps_its_slot_when_the_matrix_grows(k):
    n = 2**k
    small_rows, small_columns = np.divmod(zorder(n), n)
    large_rows, large_columns = np.divmod(zorder(2 * n)[: n * n], 2 * n)
    assert_array_equal(small_rows, large_rows)
    assert_array_equal(small_columns, large_columns)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 100))
def test_inverse_undoes_any_permutation_on_both_sides(seed, size):
    perm = np.random.default_rng(seed).permutation(size)
    assert_array_equal(perm[inverse(perm)], np.arange(size))
    assert_array_equal(inverse(perm)[perm], np.arange(size))


@pytest.mark.parametrize("order", ["zorder", "raster"])
@given(k=st.integers(0, 4), batch=st.integers(1, 3), features=st.integers(1, 3))
def test_unflatten_undoes_flatten(xp, order, k, batch, features):
    x = np.arange(batch * 4**k * features).reshape(batch, 2**k, 2**k, features)
    assert_array_equal(xp.fetch(unflatten(flatten(xp.put(x), order), order)), x)


@given(k=st.integers(0, 4))
def test_flatten_gathers_along_the_curve(xp, k):
    x = np.random.default_rng(k).normal(size=(2, 2**k, 2**k, 3))
    expected = x.reshape(2, -1, 3)[:, zorder(2**k)]
    assert_array_equal(xp.fetch(flatten(xp.put(x))), expected)
    assert_array_equal(xp.fetch(flatten(xp.put(x), "raster")), x.reshape(2, -1, 3))


@pytest.mark.parametrize("n", [0, -4, 3, 6, 100])
def test_a_side_that_is_no_power_of_two_is_refused(n):
    with pytest.raises(ValueError, match=rf"matrix side n must be a power of 2, got {n}; use mse_ref.pad"):
        zorder(n)


def test_a_side_that_is_no_integer_is_refused():
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        zorder(4.0)


def test_unflatten_refuses_a_sequence_that_was_no_square():
    with pytest.raises(ValueError, match="sequence length must be a power of 4, got 8"):
        unflatten(np.zeros((1, 8, 1)))


def test_flatten_refuses_a_matrix_that_is_not_square():
    with pytest.raises(ValueError, match=r"expected square matrices \[B, n, n, M\], got shape \(1, 4, 2, 3\)"):
        flatten(np.zeros((1, 4, 2, 3)))


def test_an_unknown_order_is_refused():
    with pytest.raises(ValueError, match="flatten must be 'zorder' or 'raster', got 'hilbert'"):
        flatten(np.zeros((1, 4, 4, 1)), "hilbert")
