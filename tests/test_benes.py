"""The schedule of a Benes block, and the same block without any shuffle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from mse_ref import (
    benes_block,
    digits_touched,
    flatten,
    init_matrix_se,
    init_shuffle_exchange,
    schedule,
    switch_unit,
    unflatten,
)

seeds = st.integers(0, 2**32 - 1)
norms = st.sampled_from(["feature", "position"])


def random_block(rng: np.random.Generator, m: int) -> dict:
    block = init_matrix_se(rng, in_classes=1, out_classes=1, feature_maps=m, blocks=1)["blocks"][0]
    return {name: unit | {"b": rng.normal(size=4 * m)} for name, unit in block.items()}


def dilated_patches(unit: dict, x: np.ndarray, j: int, norm: str) -> np.ndarray:
    """A switch unit on the patches {r, r + 2^j} x {c, c + 2^j} of matrices ``[B, n, n, M]``, in place of a shuffle."""
    b, n, _, m = x.shape
    step = 2**j
    split = x.reshape(b, n // (2 * step), 2, step, n // (2 * step), 2, step, m)  # bit j of row and column get an axis
    patches = split.transpose(0, 1, 3, 4, 6, 2, 5, 7)  # [B, patches (4 axes), row bit, column bit, M]
    mixed = switch_unit(unit, patches.reshape(b, n * n // 4, 4 * m), norm=norm)
    return mixed.reshape(patches.shape).transpose(0, 1, 5, 2, 3, 6, 4, 7).reshape(x.shape)


@given(seed=seeds, k=st.integers(1, 4), m=st.integers(1, 3), norm=norms)
def test_a_block_is_a_radix_4_butterfly_of_dilated_2x2_patches(xp, seed, k, m, norm):
    rng = np.random.default_rng(seed)
    block, x = random_block(rng, m), rng.normal(size=(2, 2**k, 2**k, m))
    digits = [0, *range(k - 1, 0, -1), *range(2, k), 0] if k > 1 else [0]
    units = ["forward"] * (k - 1) + ["reverse"] * (k - 1) + ["last"]
    butterfly = x
    for digit, unit in zip(digits, units, strict=True):
        butterfly = dilated_patches(block[unit], butterfly, digit, norm)

    gathered = unflatten(benes_block(xp.put(block), flatten(xp.put(x)), norm=norm))
    assert_allclose(xp.fetch(gathered), butterfly, rtol=1e-9, atol=1e-12)


@given(seed=seeds, k=st.integers(2, 6), m=st.integers(1, 3))
def test_a_1d_block_is_a_butterfly_of_dilated_pairs(xp, seed, k, m):
    rng = np.random.default_rng(seed)
    block = init_shuffle_exchange(rng, feature_maps=m, blocks=1)["blocks"][0]
    x = rng.normal(size=(2, 2**k, m))
    butterfly = x
    for bit, unit in zip(
        [0, *range(k - 1, 0, -1), *range(2, k)], ["forward"] * (k - 1) + ["reverse"] * (k - 1), strict=True
    ):
        pairs = butterfly.reshape(2, -1, 2, 2**bit, m).transpose(0, 1, 3, 2, 4)  # [B, high, low, bit, M]
        mixed = switch_unit(block[unit], pairs.reshape(2, -1, 2 * m)).reshape(pairs.shape)
        butterfly = mixed.transpose(0, 1, 3, 2, 4).reshape(x.shape)

    assert_allclose(xp.fetch(benes_block(xp.put(block), xp.put(x), radix=2)), butterfly, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", range(1, 31))
def test_the_digits_touched_form_a_palindrome(k):
    expected = [0, *range(k - 1, 0, -1), *range(2, k), 0] if k > 1 else [0]
    assert digits_touched(k) == expected == expected[::-1]


@pytest.mark.parametrize("k", range(1, 31))
def test_rotating_left_first_touches_the_digits_from_the_other_end(k):
    assert digits_touched(k, first_step=-1) == ([*range(k), *range(k - 2, -1, -1)] if k > 1 else [0])


@pytest.mark.parametrize("k", range(1, 31))
def test_a_block_has_2k_minus_1_switches_and_2k_minus_2_shuffles_that_cancel(k):
    layers = schedule(k)
    steps = [layer.steps for layer in layers if layer.steps]
    assert len(layers) == 2 * k - 1
    assert steps == [1] * (k - 1) + [-1] * (k - 1)
    assert [layer.unit for layer in layers] == ["forward"] * (k - 1) + ["reverse"] * (k - 1) + ["last"]


@pytest.mark.parametrize("k", range(1, 31))
def test_the_1d_network_of_the_paper_has_no_last_switch(k):
    assert schedule(k, last=False) == schedule(k)[:-1]


def test_addresses_without_digits_are_refused():
    with pytest.raises(ValueError, match="a Benes block needs addresses of at least 1 digit, got 0"):
        schedule(0)


def test_a_sequence_that_is_no_power_of_4_is_refused():
    with pytest.raises(ValueError, match="sequence length must be a power of 4, got 32"):
        benes_block(random_block(np.random.default_rng(0), 1), np.zeros((1, 32, 1)))
