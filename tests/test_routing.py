"""Any permutation through the switches."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mse_ref import apply_route, digits_touched, inverse, route, zorder
from mse_ref.routing import _four_colours, _halve, _mates


def check_route(p: np.ndarray) -> np.ndarray:
    """Route ``p``, verify every promise about the result, and return the settings."""
    settings, k = route(p), round(np.log(len(p)) / np.log(4))
    assert settings.shape == (2 * k - 1, len(p) // 4, 4)
    assert_array_equal(np.sort(settings, axis=-1), np.broadcast_to(np.arange(4), settings.shape))
    assert_array_equal(apply_route(settings, np.arange(len(p))), p)
    return settings


def apply_by_dilated_patches(settings: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The same switches without shuffles: the layer on digit j permutes addresses that differ in digit j only."""
    k = (len(settings) + 1) // 2
    for digit, layer in zip(digits_touched(k), settings, strict=True):
        # the physical position of an address is the address rotated until `digit` is lowest
        axes = [*range(k)]
        lowest = k - 1 - digit  # axis of that digit, highest first
        order = axes[lowest + 1 :] + axes[: lowest + 1]
        cube = x.reshape((4,) * k).transpose(order).reshape(-1, 4)  # [switch, 4]
        cube = np.take_along_axis(cube, layer, axis=1)
        x = cube.reshape((4,) * k).transpose(np.argsort(order)).ravel()
    return x


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 5))
def test_any_permutation_can_be_routed(seed, k):
    check_route(np.random.default_rng(seed).permutation(4**k))


@given(p=st.permutations(range(16)))
def test_any_permutation_of_a_4x4_matrix_can_be_routed(p):
    check_route(np.array(p))


@pytest.mark.parametrize("p", itertools.permutations(range(4)))
def test_a_single_switch_is_set_to_the_permutation_itself(p):
    assert_array_equal(check_route(np.array(p)), [[p]])


@pytest.mark.parametrize("k", range(1, 6))
def test_identity_reversal_bit_reversal_and_transpose_can_be_routed(k):
    size, n = 4**k, 2**k
    identity = np.arange(size)
    bits = identity.reshape((2,) * (2 * k))
    rows, columns = np.divmod(zorder(n), n)
    transpose = inverse(zorder(n))[columns * n + rows]
    for p in (identity, identity[::-1], bits.transpose().ravel(), transpose, zorder(n), inverse(zorder(n))):
        check_route(p.copy())


@pytest.mark.parametrize("k", [1, 2, 3])
def test_cycles_of_every_length_can_be_routed(k):
    for length in range(1, 4**k + 1):
        p = np.arange(4**k)
        p[:length] = np.roll(p[:length], 1)
        check_route(p)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_cyclic_shifts_by_every_distance_can_be_routed(k):
    for distance in range(4**k):
        check_route(np.roll(np.arange(4**k), distance))


def test_a_million_elements_can_be_routed():
    check_route(np.random.default_rng(0).permutation(1024 * 1024))


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 5))
def test_the_settings_work_without_shuffles_too(seed, k):
    p = np.random.default_rng(seed).permutation(4**k)
    assert_array_equal(apply_by_dilated_patches(route(p), np.arange(4**k)), p)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 3))
def test_a_route_moves_whole_feature_vectors_of_any_library(xp, seed, k):
    rng = np.random.default_rng(seed)
    p, x = rng.permutation(4**k), rng.normal(size=(4**k, 3))
    assert_array_equal(xp.fetch(apply_route(route(p), xp.put(x))), x[p])


@given(seed=st.integers(0, 2**32 - 1), switches=st.integers(1, 30))
def test_four_colours_differ_at_every_switch(seed, switches):
    rng = np.random.default_rng(seed)
    head, tail = rng.permutation(4 * switches), rng.permutation(4 * switches)
    colour = _four_colours(head, tail)
    for end in (head, tail):
        by_switch = np.sort(colour[inverse(end)].reshape(switches, 4), axis=1)
        assert_array_equal(by_switch, np.broadcast_to(np.arange(4), (switches, 4)))


@given(seed=st.integers(0, 2**32 - 1), pairs=st.integers(1, 60))
def test_an_euler_split_tells_mates_apart(seed, pairs):
    rng = np.random.default_rng(seed)
    head, tail = rng.permutation(2 * pairs), rng.permutation(2 * pairs)
    half = _halve(head, tail)
    for end in (head, tail):
        assert_array_equal(half + half[_mates(end)], np.ones(2 * pairs))


# Bad input


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0, 1, 2, 2], "a permutation holds each of 0..3 once, 3 is missing"),
        ([0, 1, 2, -1], "a permutation holds each of 0..3 once, 3 is missing"),
        ([0, 1, 2, 10**12], "a permutation holds each of 0..3 once, 3 is missing"),
        ([*range(8)], "the permutation's length must be a power of 4, got 8; append fixed points"),
        ([0], "a Benes block has at least 4 inputs, got 1; append fixed points"),
        ([], "a Benes block has at least 4 inputs, got 0; append fixed points"),
    ],
)
def test_what_is_no_permutation_of_4_to_the_k_is_refused(p, message):
    with pytest.raises(ValueError, match=message):
        route(np.array(p, dtype=np.int64))


@pytest.mark.parametrize("p", [np.zeros((4, 4), int), np.arange(4.0)])
def test_what_is_no_list_of_integers_is_refused(p):
    with pytest.raises(TypeError, match="a permutation is a 1D array of integers, got shape"):
        route(p)


def test_settings_for_another_length_are_refused():
    with pytest.raises(ValueError, match=r"settings for 16 elements have shape \(3, 4, 4\), got \(1, 1, 4\)"):
        apply_route(route(np.arange(4)), np.arange(16))


def test_a_switch_that_copies_is_refused():
    with pytest.raises(ValueError, match="every switch must be a permutation of 0, 1, 2, 3"):
        apply_route(np.array([[[0, 0, 2, 3]]]), np.arange(4))


def test_elements_that_are_no_power_of_4_are_refused():
    with pytest.raises(ValueError, match="the length of x must be a power of 4, got 6"):
        apply_route(route(np.arange(4)), np.arange(6))
