"""The whole network, 2D and 1D."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mse_ref import embed, flatten, init_matrix_se, init_shuffle_exchange, map_params, matrix_se, pad, shuffle_exchange

seeds = st.integers(0, 2**32 - 1)
norms = st.sampled_from(["feature", "position"])


def network(rng: np.random.Generator, m: int = 3, blocks: int = 2, alphabet: int = 7, classes: int = 5) -> dict:
    return init_matrix_se(rng, in_classes=alphabet, out_classes=classes, feature_maps=m, blocks=blocks)


def random_tokens(rng: np.random.Generator, k: int, batch: int = 2, alphabet: int = 7) -> np.ndarray:
    return rng.integers(0, alphabet, (batch, 2**k, 2**k))


@pytest.mark.parametrize("order", ["zorder", "raster"])
@given(seed=seeds, k=st.integers(1, 4), norm=norms)
def test_every_array_library_computes_the_same_logits(xp, order, seed, k, norm):
    rng = np.random.default_rng(seed)
    params, tokens = network(rng), random_tokens(rng, k)
    logits = matrix_se(params, tokens, norm=norm, flatten=order)
    assert logits.shape == (2, 2**k, 2**k, 5)
    assert_allclose(
        xp.fetch(matrix_se(xp.put(params), xp.put(tokens), norm=norm, flatten=order)), logits, rtol=1e-9, atol=1e-12
    )


@given(seed=seeds, k=st.integers(1, 6), norm=st.sampled_from(["feature", "position", "rse"]))
def test_every_array_library_computes_the_same_1d_features(xp, seed, k, norm):
    rng = np.random.default_rng(seed)
    params, x = init_shuffle_exchange(rng, feature_maps=3), rng.normal(size=(2, 2**k, 3))
    for block in params["blocks"]:
        for unit in block.values():
            unit["offset"] = rng.normal(size=12)
    y = shuffle_exchange(params, x, norm=norm)
    assert y.shape == x.shape
    assert_allclose(xp.fetch(shuffle_exchange(xp.put(params), xp.put(x), norm=norm)), y, rtol=1e-9, atol=1e-12)


@given(seed=seeds, dtype=st.sampled_from([np.float32, np.float64]))
def test_the_logits_have_the_parameters_precision(xp, seed, dtype):
    rng = np.random.default_rng(seed)
    params, tokens = map_params(dtype, network(rng)), random_tokens(rng, 2)
    assert xp.fetch(matrix_se(xp.put(params), xp.put(tokens))).dtype == dtype


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
def test_tokens_of_any_integer_type_mean_the_same(xp, dtype):
    rng = np.random.default_rng(0)
    params, tokens = network(rng), random_tokens(rng, 2)
    assert_allclose(xp.fetch(matrix_se(xp.put(params), xp.put(tokens.astype(dtype)))), matrix_se(params, tokens))


@given(seed=seeds, norm=norms)
def test_instances_of_a_batch_do_not_see_each_other(seed, norm):
    rng = np.random.default_rng(seed)
    params, tokens = network(rng), random_tokens(rng, 3, batch=3)
    together = matrix_se(params, tokens, norm=norm)
    alone = np.concatenate([matrix_se(params, one[None], norm=norm) for one in tokens])
    assert_allclose(together, alone, rtol=1e-10, atol=1e-12)


@given(seed=seeds, k=st.integers(1, 4))
def test_raster_flattening_is_the_same_network_on_rearranged_cells(seed, k):
    rng = np.random.default_rng(seed)
    params, tokens = network(rng), random_tokens(rng, k)
    rearranged = flatten(tokens[..., None]).reshape(tokens.shape)
    z_logits = matrix_se(params, tokens)
    assert_array_equal(matrix_se(params, rearranged, flatten="raster"), flatten(z_logits).reshape(z_logits.shape))


@given(seed=seeds)
def test_a_token_is_a_one_hot_feature_vector(xp, seed):
    rng = np.random.default_rng(seed)
    params, tokens = network(rng), random_tokens(rng, 2)
    features = np.eye(7)[tokens]
    assert_allclose(xp.fetch(matrix_se(xp.put(params), xp.put(features))), matrix_se(params, tokens), rtol=1e-9)


@given(seed=seeds, k=st.integers(1, 3))
def test_a_skip_adds_a_row_of_its_table_to_each_cells_logits(xp, seed, k):
    rng = np.random.default_rng(seed)
    params, tokens = network(rng), random_tokens(rng, k)
    skip = rng.normal(size=(7, params["readout"]["bias"].shape[0]))
    logits = xp.fetch(matrix_se(xp.put(params | {"skip": skip}), xp.put(tokens)))
    assert_allclose(logits, matrix_se(params, tokens) + skip[tokens], rtol=1e-9, atol=1e-12)


def test_two_blocks_are_two_networks_in_a_row():
    rng = np.random.default_rng(0)
    params, tokens = network(rng, m=3), random_tokens(rng, 3)
    bare = {"embedding": np.eye(3), "readout": {"kernel": np.eye(3), "bias": np.zeros(3)}}
    x = embed(params["embedding"], tokens)
    for block in params["blocks"]:
        x = matrix_se(bare | {"blocks": [block]}, x)
    logits = x @ params["readout"]["kernel"] + params["readout"]["bias"]
    assert_allclose(matrix_se(params, tokens), logits, rtol=1e-12)


@given(height=st.integers(1, 9), width=st.integers(1, 9), channels=st.sampled_from([(), (1,), (3,)]))
def test_pad_reaches_the_smallest_legal_square_with_zeros(xp, height, width, channels):
    x = np.random.default_rng(0).integers(1, 9, (2, height, width, *channels))
    padded = xp.fetch(pad(xp.put(x)))
    n = padded.shape[1]
    assert padded.shape == (2, n, n, *channels)
    assert n in (2, 4, 8, 16)
    assert max(height, width, 2) <= n < 2 * max(height, width, 2)
    assert padded.dtype == x.dtype
    assert_array_equal(padded[:, :height, :width], x)
    assert padded.sum() == x.sum()


def test_pad_leaves_a_legal_square_alone():
    x = np.arange(32).reshape(2, 4, 4)
    assert_array_equal(pad(x), x)


# Bad input


@pytest.fixture
def params() -> dict:
    return network(np.random.default_rng(0))


def test_a_side_that_is_no_power_of_two_is_refused(params):
    with pytest.raises(ValueError, match=r"matrix side n must be a power of 2, got 6; use mse_ref.pad"):
        matrix_se(params, np.zeros((1, 6, 6), int))


@pytest.mark.parametrize("shape", [(1, 4, 8), (4, 4), (1, 4, 4, 7), (4,)])
def test_tokens_that_are_no_batch_of_squares_are_refused(params, shape):
    with pytest.raises(ValueError, match=r"expected square matrices of tokens \[B, n, n\].*got shape \("):
        matrix_se(params, np.zeros(shape, int))


def test_a_matrix_of_a_single_cell_is_refused(params):
    with pytest.raises(ValueError, match="the smallest matrix is 2 x 2, got 1 x 1"):
        matrix_se(params, np.zeros((1, 1, 1), int))


@pytest.mark.parametrize(("token", "found"), [(7, "0..7"), (-1, "-1..0")])
def test_a_token_outside_the_alphabet_is_refused(params, token, found):
    tokens = np.zeros((1, 4, 4), int)
    tokens[0, 2, 1] = token
    with pytest.raises(ValueError, match=rf"tokens must lie in 0\.\.6, got {found}; enlarge the embedding"):
        matrix_se(params, tokens)


def test_tokens_that_are_no_numbers_are_refused(params):
    with pytest.raises(TypeError, match=r"tokens must be integers .*, got dtype bool"):
        matrix_se(params, np.zeros((1, 4, 4), bool))


def test_features_with_the_wrong_number_of_channels_are_refused(params):
    with pytest.raises(ValueError, match="features must have 7 channels like the embedding, got 3"):
        matrix_se(params, np.zeros((1, 4, 4, 3)))


def test_a_list_is_refused_as_tokens(params):
    with pytest.raises(TypeError, match=r"expected arrays, got int; wrap it, for example with numpy.asarray"):
        matrix_se(params, [[[0, 1], [1, 0]]])


def test_mixed_array_libraries_are_refused(params):
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="all arrays must come from one library, got numpy, torch; convert"):
        matrix_se(params, torch.zeros((1, 4, 4), dtype=torch.int64))


def test_mixed_devices_are_refused(params):
    strict = pytest.importorskip("array_api_strict")
    there = map_params(lambda x: strict.asarray(x, device=strict.Device("device1")), params)
    with pytest.raises(ValueError, match=r"all arrays must be on one device, got .*device1"):
        matrix_se(there, strict.zeros((1, 4, 4), dtype=strict.int64))


def test_unknown_options_are_refused(params):
    tokens = np.zeros((1, 4, 4), int)
    with pytest.raises(ValueError, match=r"norm must be one of .*got 'batch'"):
        matrix_se(params, tokens, norm="batch")
    with pytest.raises(ValueError, match="flatten must be 'zorder' or 'raster', got 'snake'"):
        matrix_se(params, tokens, flatten="snake")


def test_pad_refuses_what_is_no_batch_of_matrices():
    with pytest.raises(ValueError, match=r"expected tokens \[B, h, w\] or features \[B, h, w, C\], got shape \(3, 3\)"):
        pad(np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 6, 3), "sequence length must be a power of 2, got 6; pad the sequence"),
        ((1, 1, 3), "the shortest sequence has 2 positions, got 1"),
        ((8, 3), r"expected sequences of features \[B, L, M\], got shape \(8, 3\)"),
        ((1, 8, 2), "this switch unit takes 2 neighbours of 3 features, got 2 features"),
    ],
)
def test_bad_sequences_are_refused(shape, message):
    params = init_shuffle_exchange(np.random.default_rng(0), feature_maps=3)
    with pytest.raises(ValueError, match=message):
        shuffle_exchange(params, np.zeros(shape))


def test_an_unknown_direction_is_refused():
    params = init_shuffle_exchange(np.random.default_rng(0), feature_maps=3)
    with pytest.raises(ValueError, match="first must be 'right' or 'left', got 'up'"):
        shuffle_exchange(params, np.zeros((1, 8, 3)), first="up")
