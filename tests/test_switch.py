"""Switch units and switch layers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from mse_ref import init_unit, switch_unit
from mse_ref.switch import H, R, gelu, normalise, sigmoid, switch

seeds = st.integers(0, 2**32 - 1)
reals = st.floats(-1e6, 1e6)


def random_unit(rng: np.random.Generator, width: int) -> dict[str, np.ndarray]:
    """A unit without zeros and symmetries, unlike a freshly initialised one."""
    unit = init_unit(rng, width)
    return unit | {"b": rng.normal(size=width), "s": rng.normal(size=width), "offset": rng.normal(size=2 * width)}


def unit_written_out(unit: dict[str, np.ndarray], i: np.ndarray, norm: str) -> np.ndarray:
    """The paper's four equations on ``i [groups, width]``, one number at a time."""
    groups, width = i.shape
    hidden = [[sum(i[g, a] * unit["Z"][a, c] for a in range(width)) for c in range(2 * width)] for g in range(groups)]
    if norm == "rse":
        for c in range(2 * width):
            mean = sum(hidden[g][c] for g in range(groups)) / groups
            for g in range(groups):
                hidden[g][c] = 2 * (hidden[g][c] - mean) + unit["offset"][c]
    out = np.empty_like(i)
    for g in range(groups):
        normed = []
        for c in range(2 * width):
            squares = (
                [h**2 for h in hidden[g]] if norm == "feature" else [hidden[other][c] ** 2 for other in range(groups)]
            )
            eps = 1e-10 if norm == "rse" else 1e-6
            normed.append(hidden[g][c] / math.sqrt(sum(squares) / len(squares) + eps))
        activated = [x / (1 + math.exp(-1.702 * x)) for x in normed]
        for a in range(width):
            candidate = sum(activated[c] * unit["W"][c, a] for c in range(2 * width)) + unit["b"][a]
            out[g, a] = i[g, a] / (1 + math.exp(-unit["s"][a])) + 0.25 * math.sqrt(1 - 0.9**2) * candidate
    return out


@pytest.mark.parametrize("norm", ["feature", "position", "rse"])
@given(seed=seeds, groups=st.integers(1, 5), width=st.integers(1, 8))
def test_a_switch_unit_is_the_papers_four_equations(xp, norm, seed, groups, width):
    rng = np.random.default_rng(seed)
    unit, i = random_unit(rng, width), rng.normal(size=(groups, width))
    assert_allclose(
        xp.fetch(switch_unit(xp.put(unit), xp.put(i), norm=norm)), unit_written_out(unit, i, norm), rtol=1e-9
    )


@pytest.mark.parametrize("radix", [2, 4])
@pytest.mark.parametrize("norm", ["feature", "position", "rse"])
@given(seed=seeds, groups=st.integers(1, 5), m=st.integers(1, 3))
def test_a_switch_layer_concatenates_neighbours_and_splits_them_again(xp, radix, norm, seed, groups, m):
    rng = np.random.default_rng(seed)
    unit, x = random_unit(rng, radix * m), rng.normal(size=(2, radix * groups, m))
    y = xp.fetch(switch(xp.put(unit), xp.put(x), radix=radix, norm=norm))
    for b in range(2):
        neighbours = np.stack([np.concatenate(x[b, radix * g : radix * (g + 1)]) for g in range(groups)])
        assert_allclose(y[b].reshape(groups, radix * m), unit_written_out(unit, neighbours, norm), rtol=1e-9)


@given(seed=seeds)
def test_with_the_feature_norm_groups_do_not_see_each_other(seed):
    rng = np.random.default_rng(seed)
    unit, i = random_unit(rng, 8), rng.normal(size=(5, 8))
    alone = np.concatenate([switch_unit(unit, group[None]) for group in i])
    assert_allclose(switch_unit(unit, i), alone, rtol=1e-12)


@given(seed=seeds)
def test_with_the_position_norm_a_change_in_one_group_moves_the_others(seed):
    rng = np.random.default_rng(seed)
    unit, i = random_unit(rng, 8), rng.normal(size=(5, 8))
    other = i.copy()
    other[0] *= 3
    assert (
        (switch_unit(unit, i, norm="position")[1:] != switch_unit(unit, other, norm="position")[1:]).any(axis=1).all()
    )


@given(seed=seeds, scale=st.floats(0.5, 1e3))
def test_the_norm_forgets_the_scale_of_its_input(seed, scale):
    a = np.random.default_rng(seed).normal(size=(4, 16)) + 0.1
    assert_allclose(normalise(a * scale), normalise(a), rtol=1e-3)


def test_the_norm_of_zero_is_zero(xp):
    assert_array_equal(xp.fetch(normalise(xp.put(np.zeros((3, 8))))), np.zeros((3, 8)))


@given(x=arrays(np.float64, 20, elements=reals))
def test_gelu_of_x_minus_gelu_of_minus_x_is_x(x):
    assert_allclose(gelu(x) - gelu(-x), x, rtol=1e-15, atol=1e-300)


@given(x=arrays(np.float64, 20, elements=st.floats(-30, 30)))
def test_sigmoid_is_one_over_one_plus_exp(x):
    assert_allclose(sigmoid(x), 1 / (1 + np.exp(-x)), atol=1e-15)


@given(x=arrays(np.float64, 20, elements=st.floats(-1e300, 1e300)))
def test_sigmoid_and_gelu_never_overflow(x):
    assert np.isfinite(sigmoid(x)).all()
    assert np.isfinite(gelu(x / 1.702)).all()


def test_the_constants_are_the_papers():
    assert R == 0.9
    assert_allclose(H, math.sqrt(0.19) / 4)
    unit = init_unit(np.random.default_rng(0), 8)
    assert_allclose(1 / (1 + np.exp(-unit["s"])), 0.9)


def test_an_unknown_norm_is_refused():
    with pytest.raises(ValueError, match="norm must be one of feature, position, rse; got 'layer'"):
        normalise(np.zeros((2, 4)), "layer")


def test_the_1d_norm_without_an_offset_is_refused():
    with pytest.raises(ValueError, match="norm='rse' needs a unit with an 'offset'"):
        switch_unit(init_unit(np.random.default_rng(0), 4), np.ones((2, 4)), norm="rse")


def test_a_sequence_that_does_not_split_into_groups_is_refused():
    unit = init_unit(np.random.default_rng(0), 4)
    with pytest.raises(ValueError, match="a switch layer needs a multiple of 4 positions, got 6; pad the input"):
        switch(unit, np.ones((1, 6, 1)))
