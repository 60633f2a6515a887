"""Shapes and initial values of parameters, and what happens to broken ones."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mse_ref import count, from_authors, init_matrix_se, init_shuffle_exchange, map_params, matrix_se, shuffle_exchange
from mse_ref.arrays import leaves
from mse_ref.params import check_params, glorot_uniform, truncated_normal

seeds = st.integers(0, 2**32 - 1)


def small_network(seed: int = 0, recurrent: bool = True) -> dict:
    rng = np.random.default_rng(seed)
    return init_matrix_se(rng, in_classes=5, out_classes=4, feature_maps=3, blocks=2, recurrent=recurrent)


def paths(tree, path=()):
    """Every path to an array of a nested dict/list."""
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from paths(value, (*path, key))
    else:
        yield path


def parent(tree, path):
    for key in path[:-1]:
        tree = tree[key]
    return tree


def spelled(path) -> str:
    return "params" + "".join(f"[{key!r}]" for key in path)


ALL_PATHS = list(paths(small_network()))


@pytest.mark.parametrize(("feature_maps", "millions"), [(96, 3.5), (192, 14.2)])
def test_the_number_of_parameters_is_the_papers(feature_maps, millions):
    params = init_matrix_se(np.random.default_rng(0), in_classes=12, out_classes=12, feature_maps=feature_maps)
    assert round(count(params) / 1e6, 1) == millions


@given(seed=seeds)
def test_one_seed_gives_the_same_parameters_and_another_seed_others(seed):
    first, again, other = (list(leaves(small_network(s))) for s in (seed, seed, seed + 1))
    for a, b in zip(first, again, strict=True):
        assert_array_equal(a, b)
    assert (first[0] != other[0]).all()


def test_no_two_units_start_alike():
    kernels = [unit["Z"] for block in small_network()["blocks"] for unit in block.values()]
    assert len({kernel.tobytes() for kernel in kernels}) == 6


def test_glorot_kernels_fill_their_interval_evenly():
    kernel = glorot_uniform(np.random.default_rng(0), 200, 400)
    bound = math.sqrt(6 / 600)
    assert np.abs(kernel).max() <= bound
    assert_allclose(np.quantile(kernel, [0.01, 0.25, 0.5, 0.75, 0.99]) / bound, [-0.98, -0.5, 0, 0.5, 0.98], atol=0.02)


def test_embeddings_are_normal_and_cut_at_two_standard_deviations():
    x = truncated_normal(np.random.default_rng(0), 0.25, (100_000,))
    assert np.abs(x).max() <= 0.5
    assert_allclose(x.mean(), 0, atol=0.003)
    assert_allclose(x.std(), 0.25 * 0.8796, rtol=0.01)  # a normal cut at +-2 keeps 0.8796 of its deviation


def test_biases_start_at_zero_and_residuals_at_nine_tenths():
    params = small_network()
    for unit in (unit for block in params["blocks"] for unit in block.values()):
        assert_array_equal(unit["b"], 0)
        assert_allclose(1 / (1 + np.exp(-unit["s"])), 0.9)
    assert_array_equal(params["readout"]["bias"], 0)
    assert_array_equal(params["head"]["bias"], 0)


def test_map_params_changes_every_array_and_keeps_the_original():
    params = small_network()
    halves = map_params(lambda x: x.astype(np.float16), params)
    assert {leaf.dtype for leaf in leaves(halves)} == {np.dtype(np.float16)}
    assert {leaf.dtype for leaf in leaves(params)} == {np.dtype(np.float64)}
    assert list(paths(halves)) == list(paths(params))


# Bad input


@pytest.mark.parametrize("path", ALL_PATHS, ids=spelled)
def test_a_parameter_of_the_wrong_shape_is_named(path):
    params = copy.deepcopy(small_network())
    wrong = parent(params, path)[path[-1]]
    parent(params, path)[path[-1]] = np.zeros((*wrong.shape, 1))
    with pytest.raises(ValueError) as error:
        check_params(params)
    assert str(error.value).startswith(f"{spelled(path)} must have shape [")
    assert f"got {[*wrong.shape, 1]}" in str(error.value)


@pytest.mark.parametrize("path", ALL_PATHS, ids=spelled)
def test_a_missing_parameter_is_named(path):
    params = copy.deepcopy(small_network())
    del parent(params, path)[path[-1]]
    with pytest.raises(ValueError) as error:
        check_params(params)
    assert str(error.value).startswith(f"{spelled(path)} is missing")


@pytest.mark.parametrize("path", [path for path in ALL_PATHS if path != ("embedding",)], ids=spelled)
@given(axis=st.integers(0, 1), change=st.sampled_from([-1, 1]))
def test_a_parameter_of_the_wrong_width_is_refused(path, axis, change):
    params = copy.deepcopy(small_network())
    shape = list(parent(params, path)[path[-1]].shape)
    axis = min(axis, len(shape) - 1)
    if path == ("readout", "kernel"):
        axis = 0  # the number of classes is free; the bias must follow it
    shape[axis] += change
    parent(params, path)[path[-1]] = np.zeros(shape)
    with pytest.raises(ValueError, match="must have shape"):
        check_params(params)


@pytest.mark.parametrize("shape", [(4, 5), (6, 5), (5, 4), (5,)])
def test_a_skip_must_have_a_row_for_every_token_and_a_column_for_every_class(shape):
    params = init_matrix_se(np.random.default_rng(0), in_classes=5, out_classes=5, feature_maps=2, skip=True)
    check_params(params)
    assert_array_equal(params["skip"], np.zeros((5, 5)))
    params["skip"] = np.zeros(shape)
    with pytest.raises(ValueError, match=r"params\['skip'\] must have shape \[5, 5\]"):
        check_params(params)


def test_the_network_checks_its_parameters():
    params = small_network(recurrent=False)
    params["blocks"][1]["last"]["W"] = np.zeros((24, 11))
    with pytest.raises(ValueError, match=r"params\['blocks'\]\[1\]\['last'\]\['W'\] must have shape \[24, 12\], got"):
        matrix_se(params, np.zeros((1, 4, 4), int))


def test_the_1d_network_checks_its_parameters():
    params = init_shuffle_exchange(np.random.default_rng(0), feature_maps=3)
    params["blocks"][1]["reverse"]["offset"] = np.zeros(6)
    with pytest.raises(ValueError, match=r"params\['blocks'\]\[1\]\['reverse'\]\['offset'\] must have shape \[12\]"):
        shuffle_exchange(params, np.zeros((1, 4, 3)))


def test_a_network_without_blocks_is_refused():
    with pytest.raises(ValueError, match=r"params\['blocks'\] must hold at least one Benes block"):
        check_params(small_network() | {"blocks": []})


@pytest.mark.parametrize("name", ["in_classes", "out_classes", "feature_maps", "blocks"])
def test_sizes_below_one_are_refused(name):
    sizes = {"in_classes": 2, "out_classes": 2, "feature_maps": 2, "blocks": 2, name: 0}
    with pytest.raises(ValueError, match=f"{name} must be 1 or more, got 0"):
        init_matrix_se(np.random.default_rng(0), **sizes)


def test_an_unknown_prefix_is_refused_with_the_known_ones(authors):
    with pytest.raises(ValueError, match=r"no arrays under the prefix 'matrixse_n3'; there are .*matrixse_n4_m3_b1"):
        from_authors(authors, "matrixse_n3")


def test_a_prefix_that_holds_no_network_is_refused(authors):
    with pytest.raises(ValueError, match="'loss' holds no network"):
        from_authors(authors, "loss")
