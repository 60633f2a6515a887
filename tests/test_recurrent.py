"""The recurrent network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mse_ref import benes_block, embed, flatten, init_matrix_se, matrix_se_recurrent, unflatten
from mse_ref.switch import gelu

seeds = st.integers(0, 2**32 - 1)


def network(seed: int) -> tuple[dict, np.ndarray]:
    rng = np.random.default_rng(seed)
    params = init_matrix_se(rng, in_classes=6, out_classes=4, feature_maps=3, blocks=2, recurrent=True)
    return params, rng.integers(0, 6, (2, 8, 8))


@pytest.mark.parametrize("reinject", [False, True])
@given(seed=seeds, norm=st.sampled_from(["feature", "position"]), order=st.sampled_from(["zorder", "raster"]))
def test_every_array_library_computes_the_same_steps(xp, reinject, seed, norm, order):
    params, tokens = network(seed)
    options = {"norm": norm, "flatten": order, "reinject": reinject}
    logits = matrix_se_recurrent(params, tokens, 3, **options)
    assert logits.shape == (3, 2, 8, 8, 4)
    result = matrix_se_recurrent(xp.put(params), xp.put(tokens), 3, **options)
    assert_allclose(xp.fetch(result), logits, rtol=1e-9, atol=1e-12)


@given(seed=seeds, steps=st.integers(1, 5))
def test_more_steps_do_not_change_the_first_ones(seed, steps):
    params, tokens = network(seed)
    assert_array_equal(matrix_se_recurrent(params, tokens, 5)[:steps], matrix_se_recurrent(params, tokens, steps))


@given(seed=seeds)
def test_two_steps_are_one_step_of_a_network_with_its_blocks_repeated(seed):
    params, tokens = network(seed)
    doubled = params | {"blocks": params["blocks"] * 2}
    assert_array_equal(matrix_se_recurrent(params, tokens, 2)[1], matrix_se_recurrent(doubled, tokens, 1)[0])


@given(seed=seeds)
def test_reinjection_adds_the_embedded_input_before_every_step_but_the_first(seed):
    params, tokens = network(seed)
    given_input = flatten(embed(params["embedding"], tokens))
    state, answers = given_input, []
    for step in range(3):
        if step > 0:
            state = state + given_input
        for block in params["blocks"]:
            state = benes_block(block, state)
        hidden = gelu(unflatten(state) @ params["head"]["kernel"] + params["head"]["bias"])
        answers.append(hidden @ params["readout"]["kernel"] + params["readout"]["bias"])
    assert_allclose(matrix_se_recurrent(params, tokens, 3, reinject=True), np.stack(answers), rtol=1e-12)
    assert np.abs(matrix_se_recurrent(params, tokens, 3)[1:] - answers[1:]).max() > 1e-3


def test_parameters_without_a_head_are_refused():
    params, tokens = network(0)
    del params["head"]
    with pytest.raises(ValueError, match="recurrent parameters need a 'head'; create them with init_matrix_se"):
        matrix_se_recurrent(params, tokens, 1)


@pytest.mark.parametrize("steps", [0, -3])
def test_no_steps_at_all_are_refused(steps):
    params, tokens = network(0)
    with pytest.raises(ValueError, match=f"the number of steps must be 1 or more, got {steps}"):
        matrix_se_recurrent(params, tokens, steps)


def test_bad_tokens_are_refused():
    params, _ = network(0)
    with pytest.raises(ValueError, match=r"matrix side n must be a power of 2, got 9; use mse_ref.pad"):
        matrix_se_recurrent(params, np.zeros((1, 9, 9), int), 2)
