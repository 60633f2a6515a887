"""The reference reproduces what the authors' released code computed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mse_ref import count, from_authors, map_params, matrix_se, matrix_se_recurrent, qrotate, shuffle_exchange, zorder
from mse_ref.losses import cross_entropy
from mse_ref.metrics import accuracy, solved

NETWORKS = ["matrixse_n4_m3_b1", "matrixse_n8_m4_b2", "matrixse_n16_m5_b2"]
FLOAT32 = {"rtol": 1e-5, "atol": 2e-6}  # the golden arrays were computed in float32


def test_no_golden_array_is_left_out(authors):
    known = {*NETWORKS, "multistep_n16_m4_b2", "rse_n8_m4_b2", "perm", "loss", "metric", "radam"}
    assert {key.split("/")[0] for key in authors} == known


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NETWORKS)
def test_matrix_se_computes_the_authors_logits(xp, authors, name, dtype):
    params = map_params(dtype, from_authors(authors, name))
    logits = matrix_se(xp.put(params), xp.put(authors[f"{name}/input"]), norm="position")
    assert_allclose(xp.fetch(logits), authors[f"{name}/logits"], **FLOAT32)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_papers_norm_gives_other_logits(authors, name):
    logits = matrix_se(from_authors(authors, name), authors[f"{name}/input"], norm="feature")
    assert np.abs(logits - authors[f"{name}/logits"]).max() > 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_recurrent_network_computes_the_authors_logits_of_every_step(xp, authors, dtype):
    name = "multistep_n16_m4_b2"
    params = map_params(dtype, from_authors(authors, name))
    logits = matrix_se_recurrent(xp.put(params), xp.put(authors[f"{name}/input"]), 5, norm="position")
    assert_allclose(xp.fetch(logits), authors[f"{name}/logits"], **FLOAT32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_1d_network_computes_the_authors_features(xp, authors, dtype):
    name = "rse_n8_m4_b2"
    x = authors[f"{name}/input"].astype(dtype)
    params = map_params(dtype, from_authors(authors, name))
    y = shuffle_exchange(xp.put(params), xp.put(x.reshape(2, 64, 4)), norm="rse", first="left")
    assert_allclose(xp.fetch(y).reshape(x.shape), authors[f"{name}/output"], **FLOAT32)


@pytest.mark.parametrize("name", [*NETWORKS, "multistep_n16_m4_b2", "rse_n8_m4_b2"])
def test_from_authors_uses_every_array_of_a_network(authors, name):
    data = ("input", "logits", "output")
    stored = sum(a.size for key, a in authors.items() if key.startswith(f"{name}/") and not key.endswith(data))
    assert count(from_authors(authors, name)) == stored


@pytest.mark.parametrize("k", range(1, 6))
def test_permutations_are_the_authors(authors, k):
    assert_array_equal(qrotate(k), authors[f"perm/qror_k{k}"])
    assert_array_equal(qrotate(k, -1), authors[f"perm/qrol_k{k}"])
    assert_array_equal(zorder(2**k), authors[f"perm/zorder_n{2**k}"])


@pytest.mark.parametrize(("weighting", "key"), [("pad", "pad_weighted"), ("balanced", "class_balanced")])
def test_losses_are_the_authors(xp, authors, weighting, key):
    logits, labels = (xp.put(authors[f"loss/{name}"]) for name in ("logits", "label"))
    loss = cross_entropy(logits, labels, weighting=weighting)
    assert_allclose(loss, authors[f"loss/{key}"], rtol=2e-6)


def test_metrics_are_the_authors(xp, authors):
    prediction, label = (xp.put(authors[f"metric/{name}"]) for name in ("prediction", "label"))
    assert_allclose(accuracy(prediction, label), authors["metric/accuracy"], rtol=1e-6)
    assert_allclose(solved(prediction, label), authors["metric/all_correct"], rtol=1e-6)


# Laws of the loss and the metrics that the golden arrays alone would not show


def test_a_loss_over_one_class_is_refused():
    with pytest.raises(ValueError, match="at least 2 classes, got 1"):
        cross_entropy(np.zeros((2, 1)), np.zeros(2, dtype=int))


def test_the_loss_of_the_best_possible_logits_is_zero():
    labels = np.array([[0, 1], [2, 2]])
    smoothed = np.where(labels[..., None] == np.arange(3), 0.9, 0.05)
    for weighting in ("pad", "balanced", "none"):
        assert_allclose(cross_entropy(np.log(smoothed), labels, weighting=weighting), 0, atol=1e-12)


def test_without_smoothing_and_weights_the_loss_is_the_mean_negative_log_probability():
    logits, labels = (
        np.random.default_rng(0).normal(size=(2, 4, 4, 5)),
        np.random.default_rng(1).integers(0, 5, (2, 4, 4)),
    )
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = -np.log(np.take_along_axis(p, labels[..., None], -1)).mean()
    assert_allclose(cross_entropy(logits, labels, smoothing=0.0, weighting="none"), expected)


def test_classes_too_rare_to_count_weigh_as_if_seen_once():
    """One cell, three classes: smoothed counts 0.9, 0.05 and 0.05 all rise to 1, so every weight is C = 3."""
    logits, labels = np.array([[0.3, -0.2, 0.5]]), np.array([0])
    plain = cross_entropy(logits, labels, weighting="none")
    assert_allclose(cross_entropy(logits, labels, weighting="balanced"), 3 * plain)


def test_padding_alone_counts_as_solved():
    empty = np.zeros((2, 4, 4), int)
    assert accuracy(empty, empty) == 1.0
    assert solved(empty, empty) == 1.0


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (np.zeros((2, 3), int), {}, r"labels must have shape \(2, 2\) like the logits, got \(2, 3\)"),
        (np.full((2, 2), 3), {}, r"labels must lie in 0\.\.2, got 3\.\.3"),
        (np.zeros((2, 2), int), {"weighting": "focal"}, "weighting must be one of pad, balanced, none; got 'focal'"),
    ],
)
def test_a_loss_that_makes_no_sense_is_refused(labels, options, message):
    with pytest.raises(ValueError, match=message):
        cross_entropy(np.zeros((2, 2, 3)), labels, **options)


def test_metrics_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match=r"prediction and labels must have one shape, got \(2, 2\) and \(2, 3\)"):
        accuracy(np.zeros((2, 2), int), np.zeros((2, 3), int))
