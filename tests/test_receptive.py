"""Which inputs reach which features: by walking, by the digit argument, and on the running network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mse_ref import digits_touched, field_size, init_matrix_se, init_unit, matrix_se, receptive_field, schedule
from mse_ref.shuffle import rotate_digits, shuffle
from mse_ref.switch import switch

seeds = st.integers(0, 2**32 - 1)
RADIX = pytest.mark.parametrize("radix", [4, 2])


def switch_layers(k: int, radix: int) -> int:
    return 2 * k - 1 if radix == 4 else 2 * k - 2


def field_by_digits(k: int, layer: int, radix: int) -> np.ndarray:
    """An input reaches a position if their addresses agree in every digit that no layer has touched yet."""
    size = radix**k
    digits = np.arange(size)[:, None] // radix ** np.arange(k) % radix  # [address, digit], lowest first
    turns = sum(entry.steps for entry in schedule(k, last=radix == 4)[: max(layer - 1, 0)])
    origin = np.arange(size)[rotate_digits(radix, k, turns)]  # the original address of what is now at a position
    untouched = sorted(set(range(k)) - set(digits_touched(k)[:layer]))
    return (digits[origin][:, None, untouched] == digits[None][:, :, untouched]).all(axis=-1)


@RADIX
@pytest.mark.parametrize("k", range(1, 6))
def test_walking_the_schedule_agrees_with_the_digit_argument_on_every_pair(k, radix):
    for layer in range(switch_layers(k, radix) + 1):
        reach = receptive_field(k, layer, radix=radix)
        assert_array_equal(reach, field_by_digits(k, layer, radix))
        assert_array_equal(reach.sum(axis=1), field_size(k, layer, radix=radix))


@RADIX
@pytest.mark.parametrize("k", range(2, 6))
def test_the_field_becomes_full_at_switch_layer_k_and_not_before(k, radix):
    for layer in range(switch_layers(k, radix) + 1):
        assert receptive_field(k, layer, radix=radix).all() == (layer >= k)


@RADIX
@pytest.mark.parametrize("k", range(2, 31))
def test_the_field_becomes_full_at_switch_layer_k_for_every_k_to_30(k, radix):
    sizes = [field_size(k, layer, radix=radix) for layer in range(switch_layers(k, radix) + 1)]
    assert sizes == [radix ** min(layer, k) for layer in range(switch_layers(k, radix) + 1)]


@RADIX
@pytest.mark.parametrize("k", range(2, 31))
def test_after_the_first_shuffle_exchange_block_one_digit_is_still_missing(k, radix):
    """The paper: "Even after the first Shuffle-Exchange block, each input element participates". It takes one more."""
    first_block = [entry for entry in schedule(k, last=radix == 4) if entry.unit == "forward"]
    assert len(first_block) == k - 1
    assert field_size(k, k - 1, radix=radix) == radix**k // radix
    assert set(range(k)) - set(digits_touched(k)[: k - 1]) == {1}


def test_a_2x2_matrix_is_full_after_its_only_layer_and_a_1d_pair_is_never_mixed():
    assert receptive_field(1, 1).all()
    assert schedule(1, last=False) == []  # the paper's 1D network on two positions has no layer at all


def changed_positions(k: int, layer: int, radix: int, norm: str, seed: int) -> np.ndarray:
    """Run the first switch layers with random weights; which positions move when one input is disturbed?"""
    rng, m, size = np.random.default_rng(seed), 2, radix**k
    units = {name: init_unit(rng, radix * m) for name in ("forward", "reverse", "last")}
    x = np.repeat(rng.normal(size=(1, size, m)), size + 1, axis=0)  # [disturbed input or none, L, M]
    x[np.arange(size), np.arange(size)] += rng.normal(size=m)
    for number, (name, steps) in enumerate(schedule(k, last=radix == 4)[:layer], 1):
        x = switch(units[name], x, radix=radix, norm=norm)
        if number < layer:
            x = shuffle(x, steps, radix=radix)
    return (x[:-1] != x[-1]).any(axis=-1).T  # [position, disturbed input]


@pytest.mark.parametrize(("k", "radix"), [(1, 4), (2, 4), (3, 4), (4, 4), (2, 2), (3, 2), (5, 2), (7, 2)])
def test_a_disturbed_input_moves_a_feature_if_and_only_if_it_is_in_its_field(k, radix):
    for layer in range(switch_layers(k, radix) + 1):
        moved = changed_positions(k, layer, radix, "feature", seed=layer)
        assert_array_equal(moved, receptive_field(k, layer, radix=radix))


@pytest.mark.parametrize(("k", "radix"), [(2, 4), (3, 4), (5, 2)])
def test_the_position_norm_couples_everything_in_the_first_layer(k, radix):
    """The released code's norm averages over positions, so its first layer already sees every input."""
    assert changed_positions(k, 1, radix, "position", seed=0).all()


@given(seed=seeds, k=st.integers(1, 3))
def test_every_logit_depends_on_every_token(seed, k):
    rng = np.random.default_rng(seed)
    params = init_matrix_se(rng, in_classes=4, out_classes=3, feature_maps=2, blocks=1)
    tokens = np.repeat(rng.integers(0, 4, (1, 2**k, 2**k)), 4**k + 1, axis=0)
    for cell in range(4**k):
        tokens.reshape(-1, 4**k)[cell, cell] = (tokens[-1].flat[cell] + 1) % 4
    logits = matrix_se(params, tokens)
    assert (logits[:-1] != logits[-1]).any(axis=-1).all()


@RADIX
@pytest.mark.parametrize("layer", [-1, 6])
def test_a_layer_that_does_not_exist_is_refused(layer, radix):
    for function in (receptive_field, field_size):
        with pytest.raises(
            ValueError, match=rf"layer must lie in 0\.\.{switch_layers(3, radix)} for k = 3, got {layer}"
        ):
            function(3, layer, radix=radix)


def test_a_matrix_of_a_single_cell_is_refused():
    with pytest.raises(ValueError, match="at least 1 digit, got 0"):
        receptive_field(0, 0)
