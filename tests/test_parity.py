"""The fast backend equals the reference, the reference's gradients, and the authors' own arrays."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import mse_ref
from mse_fast import MatrixSE, MatrixSERecurrent, ShuffleExchange
from mse_fast.benes import schedule
from mse_fast.convert import from_authors, from_reference, to_authors, to_reference
from mse_fast.export import load
from mse_fast.hub import zoo_names
from mse_fast.shuffle import flatten, shuffle, unflatten, unshuffle
from mse_ref.handmade import transpose

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
dtypes = st.sampled_from([torch.float64, torch.float32])
norms = st.sampled_from(["feature", "position"])
orders = st.sampled_from(["zorder", "raster"])
seeds = st.integers(0, 2**32 - 1)


def scramble(module, seed, dtype):
    """Random values for every parameter: initial biases are zero and would hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.data = (torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.4).to(dtype)
    return module.eval()


def assert_same(fast, reference, dtype, rounding=0.0):
    """Equal to the tolerance of the type, or to thirty times what rounding does to the reference itself.

    A norm over features can be ill-conditioned: where all features of a group nearly vanish it blows their rounding up.
    """
    scale = max(1.0, float(np.abs(reference).max()))
    assert fast.shape == reference.shape
    assert float(np.abs(fast.detach().numpy() - reference).max()) <= max(TOLERANCE[dtype] * scale, 30 * rounding)


def both_ways(module, *inputs):
    """The autograd path and the in-place path of the same module."""
    with torch.no_grad():
        inplace = module(*inputs)
    return module(*inputs), inplace


@given(digits=st.integers(1, 5), radix=st.sampled_from([2, 4]))
def test_shuffles_are_the_references_gathers(digits, radix):
    rotate = mse_ref.qrotate if radix == 4 else mse_ref.rotate
    x = torch.arange(radix**digits)
    assert torch.equal(shuffle(x[None, :, None], radix).flatten(), x[torch.from_numpy(rotate(digits))])
    assert torch.equal(unshuffle(x[None, :, None], radix).flatten(), x[torch.from_numpy(rotate(digits, -1))])


@given(k=st.integers(0, 6), rest=st.sampled_from([(), (3,)]))
def test_flatten_is_the_references_zorder_and_unflatten_undoes_it(k, rest):
    n = 2**k
    x = torch.arange(2 * n * n * int(np.prod(rest))).reshape(2, n, n, *rest)
    gathered = x.reshape(2, n * n, *rest)[:, torch.from_numpy(mse_ref.zorder(n))]
    assert torch.equal(flatten(x), gathered)
    assert torch.equal(unflatten(flatten(x), n), x)
    assert torch.equal(unflatten(flatten(x, "raster"), n, "raster"), x)


@given(digits=st.integers(1, 30))
def test_schedule_touches_the_digits_the_reference_says(digits):
    assert [digit for _, digit in schedule(digits)] == mse_ref.digits_touched(digits)


@given(
    H=st.integers(1, 19), W=st.integers(1, 19), m=st.integers(1, 6), b=st.integers(1, 3), batch=st.integers(1, 3),
    norm=norms, order=orders, skip=st.booleans(), dtype=dtypes, chunk=st.sampled_from([None, 1, 3, 16]), seed=seeds,
)  # fmt: skip
def test_matrix_se_equals_the_reference_on_the_padded_input(H, W, m, b, batch, norm, order, skip, dtype, chunk, seed):
    net = MatrixSE(in_classes=7, out_classes=5, feature_maps=m, blocks=b, norm=norm, flatten=order, skip=skip)
    scramble(net, seed, dtype)
    tokens = np.random.default_rng(seed).integers(7, size=(batch, H, W))
    expected, exact = (
        mse_ref.matrix_se(to_reference(each), mse_ref.pad(tokens), norm=norm, flatten=order)[:, :H, :W]
        for each in (net, copy.deepcopy(net).double())
    )
    for answer in both_ways(net, torch.from_numpy(tokens), chunk):
        assert_same(answer, expected, dtype, rounding=np.abs(expected - exact).max())


@given(H=st.integers(1, 9), W=st.integers(1, 9), norm=norms, skip=st.booleans(), dtype=dtypes, seed=seeds)
def test_features_equal_the_reference_on_the_padded_input(H, W, norm, skip, dtype, seed):
    net = scramble(MatrixSE(in_features=3, out_classes=2, feature_maps=4, norm=norm, skip=skip), seed, dtype)
    features = torch.randn(2, H, W, 3, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    expected = mse_ref.matrix_se(to_reference(net), mse_ref.pad(features.numpy()), norm=norm)[:, :H, :W]
    for answer in both_ways(net, features):
        assert_same(answer, expected, dtype)


@given(
    n=st.integers(1, 9), m=st.integers(1, 5), b=st.integers(1, 2), steps=st.integers(1, 4), norm=norms,
    order=orders, reinject=st.booleans(), dtype=dtypes, seed=seeds,
)  # fmt: skip
def test_recurrent_network_equals_the_reference_at_every_step(n, m, b, steps, norm, order, reinject, dtype, seed):
    net = scramble(
        MatrixSERecurrent(
            in_classes=6, out_classes=4, feature_maps=m, blocks=b, norm=norm, flatten=order, reinject=reinject
        ),
        seed, dtype,
    )  # fmt: skip
    tokens = np.random.default_rng(seed).integers(6, size=(2, n, n))
    expected = mse_ref.matrix_se_recurrent(
        to_reference(net), mse_ref.pad(tokens), steps, norm=norm, flatten=order, reinject=reinject
    )[:, :, :n, :n]
    for answer in both_ways(net, torch.from_numpy(tokens), steps):
        assert_same(torch.stack(answer), expected, dtype)


@given(
    k=st.integers(1, 7), m=st.integers(1, 5), b=st.integers(1, 3), batch=st.integers(1, 3),
    layout=st.sampled_from(["paper", "rse"]), norm=norms, dtype=dtypes, seed=seeds,
)  # fmt: skip
def test_sequence_network_equals_the_reference(k, m, b, batch, layout, norm, dtype, seed):
    net = scramble(
        ShuffleExchange(in_classes=6, out_classes=3, feature_maps=m, blocks=b, layout=layout, norm=norm), seed, dtype
    )
    params = to_reference(net)
    tokens = np.random.default_rng(seed).integers(6, size=(batch, 2**k))
    first, used_norm = ("left", "rse") if layout == "rse" else ("right", norm)
    features = mse_ref.shuffle_exchange(params, mse_ref.embed(params["embedding"], tokens), norm=used_norm, first=first)
    expected = mse_ref.readout(params["readout"], features)
    for answer in both_ways(net, torch.from_numpy(tokens)):
        assert_same(answer, expected, dtype)


@pytest.mark.parametrize("prefix", ["matrixse_n4_m3_b1", "matrixse_n8_m4_b2", "matrixse_n16_m5_b2"])
def test_matrix_se_reproduces_the_authors_logits(authors, prefix):
    net = from_authors(authors, prefix)
    for answer in both_ways(net, torch.from_numpy(authors[f"{prefix}/input"])):
        np.testing.assert_allclose(answer.detach().numpy(), authors[f"{prefix}/logits"], rtol=2e-5, atol=2e-6)


def test_recurrent_network_reproduces_the_authors_logits(authors):
    net, tokens = from_authors(authors, "multistep_n16_m4_b2"), authors["multistep_n16_m4_b2/input"]
    expected = authors["multistep_n16_m4_b2/logits"]
    for answer in both_ways(net, torch.from_numpy(tokens), len(expected)):
        np.testing.assert_allclose(torch.stack(answer).detach().numpy(), expected, rtol=2e-5, atol=2e-6)


def test_sequence_network_reproduces_the_authors_rse(authors):
    net, features = from_authors(authors, "rse_n8_m4_b2"), authors["rse_n8_m4_b2/input"]
    expected = authors["rse_n8_m4_b2/output"].reshape(2, 64, 4)
    for answer in both_ways(net, torch.from_numpy(features.reshape(2, 64, 4))):
        np.testing.assert_allclose(answer.detach().numpy(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("prefix", ["matrixse_n8_m4_b2", "multistep_n16_m4_b2", "rse_n8_m4_b2"])
def test_the_authors_arrays_survive_the_round_trip_bit_for_bit(authors, prefix):
    back = to_authors(from_authors(authors, prefix), prefix)
    wanted = {
        key for key in authors if key.startswith(prefix) and key.split("/")[-1] not in ("input", "logits", "output")
    }
    assert set(back) == wanted
    for key in wanted:
        assert back[key].dtype == authors[key].dtype
        np.testing.assert_array_equal(back[key], authors[key])


def test_a_network_the_authors_code_cannot_have_is_not_written_in_its_names():
    with pytest.raises(ValueError, match="norm='position', this one 'feature'"):
        to_authors(MatrixSE(in_classes=3, out_classes=3, feature_maps=4), "p")
    with pytest.raises(ValueError, match="layout='rse', this one 'paper'"):
        to_authors(ShuffleExchange(in_classes=3, out_classes=3, feature_maps=4), "p")
    with pytest.raises(ValueError, match="no skip"):
        to_authors(MatrixSE(in_classes=3, out_classes=3, feature_maps=4, norm="position", skip=True), "p")


@pytest.mark.parametrize("recurrent", [False, True])
def test_reference_parameters_survive_the_round_trip_bit_for_bit(recurrent):
    params = mse_ref.init_matrix_se(
        np.random.default_rng(0), in_classes=5, out_classes=4, feature_maps=3, recurrent=recurrent
    )
    back = to_reference(from_reference(params))
    assert mse_ref.count(back) == mse_ref.count(params)
    for path in ("embedding", "blocks", "readout", "head")[: 4 if recurrent else 3]:
        np.testing.assert_equal(back[path], params[path])


@pytest.mark.parametrize("name", zoo_names())
def test_trained_networks_give_the_references_logits(name):
    net = load(name).double()
    rng = np.random.default_rng(0)
    tokens = rng.integers(net.config["in_classes"], size=(1, 16, 16))
    options = {"norm": net.config["norm"], "flatten": net.config["flatten"]}
    if isinstance(net, MatrixSERecurrent):
        options["reinject"] = net.config["reinject"]
        expected = mse_ref.matrix_se_recurrent(to_reference(net), tokens, 3, **options)[-1]
        answers = [answer[-1] for answer in both_ways(net, torch.from_numpy(tokens), 3)]
    else:
        expected = mse_ref.matrix_se(to_reference(net), tokens, **options)
        answers = both_ways(net, torch.from_numpy(tokens))
    for answer in answers:
        assert_same(answer, expected, torch.float64)


def reference_loss(params, tokens, weights, run):
    return float((run(params, tokens) * weights).sum())


CASES = {
    "feature": (MatrixSE, {"norm": "feature"}, lambda p, t: mse_ref.matrix_se(p, t)),
    "position": (MatrixSE, {"norm": "position"}, lambda p, t: mse_ref.matrix_se(p, t, norm="position")),
    "skip": (MatrixSE, {"skip": True}, lambda p, t: mse_ref.matrix_se(p, t)),
    "recurrent": (MatrixSERecurrent, {"steps": 2}, lambda p, t: mse_ref.matrix_se_recurrent(p, t, 2)[-1]),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_equal_central_differences_of_the_reference(case):
    """For every kind of parameter: a few entries of each, moved by ±1e-5 in the reference."""
    kind, options, run = CASES[case]
    net = scramble(kind(in_classes=5, out_classes=3, feature_maps=2, blocks=2, **options), 1, torch.float64)
    rng = np.random.default_rng(0)
    tokens = rng.integers(5, size=(2, 4, 4))
    weights = rng.normal(size=(2, 4, 4, 3))
    answer = net(torch.from_numpy(tokens))
    answer = answer[-1] if isinstance(answer, list) else answer
    (answer * torch.from_numpy(weights)).sum().backward()
    gradients = copy.deepcopy(net)
    for parameter, original in zip(gradients.parameters(), net.parameters(), strict=True):
        parameter.data = original.grad
    params, slopes = to_reference(net), to_reference(gradients)

    def compare(value, slope):
        if isinstance(value, dict):
            for key in value:
                compare(value[key], slope[key])
        elif isinstance(value, list):
            for part, its_slope in zip(value, slope, strict=True):
                compare(part, its_slope)
        else:
            for flat in rng.choice(value.size, size=min(3, value.size), replace=False):
                at = np.unravel_index(flat, value.shape)
                before, step = value[at], 1e-5
                value[at] = before + step
                above = reference_loss(params, tokens, weights, run)
                value[at] = before - step
                below = reference_loss(params, tokens, weights, run)
                value[at] = before
                assert slope[at] == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-7)

    compare(params, slopes)


def test_the_handmade_transpose_moves_every_cell_of_a_1024_matrix():
    params = mse_ref.map_params(np.float32, transpose(12))
    net = from_reference(params)
    tokens = torch.randint(params["embedding"].shape[0], (1, 1024, 1024), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(net(tokens).argmax(-1), tokens.mT)
