"""The authors' loss: golden values, and the formula written out a second time."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose

from mse_fast.losses import cross_entropy

GOLDEN = np.load(Path(__file__).parent / "golden" / "authors.npz")
WEIGHTINGS = ("pad", "balanced", "none")


def random_batch(classes=5, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    logits = 3.0 * torch.randn(2, 4, 4, classes, generator=generator, dtype=dtype)
    return logits, torch.randint(0, classes, (2, 4, 4), generator=generator)


@pytest.mark.parametrize(("weighting", "key"), [("pad", "loss/pad_weighted"), ("balanced", "loss/class_balanced")])
def test_the_loss_is_the_one_of_the_authors_code(weighting, key):
    logits, labels = torch.tensor(GOLDEN["loss/logits"]), torch.tensor(GOLDEN["loss/label"]).long()
    assert_allclose(cross_entropy(logits, labels, weighting=weighting), GOLDEN[key], rtol=2e-6)


def written_out(logits, labels, smoothing, weighting, pad_weight):
    """One cell after another, in plain Python."""
    classes = logits.shape[-1]
    cells = list(zip(logits.reshape(-1, classes).tolist(), labels.flatten().tolist(), strict=True))
    off = smoothing / (classes - 1)
    losses, counts = [], [0.0] * classes
    for scores, right in cells:
        total = math.log(sum(math.exp(score) for score in scores))
        asked = [1 - smoothing if c == right else off for c in range(classes)]
        floor = -sum(p * math.log(p) for p in asked if p)
        losses.append(-sum(p * (score - total) for p, score in zip(asked, scores, strict=True)) - floor)
        counts = [count + p for count, p in zip(counts, asked, strict=True)]
    if weighting == "balanced":
        inverse = [1 / max(count, 1) for count in counts]
        weights = [classes * inverse[right] / (sum(inverse) / classes) for _, right in cells]
    else:
        weights = [pad_weight if right == 0 and weighting == "pad" else 1.0 for _, right in cells]
        weights = [weight / (sum(weights) / len(weights)) for weight in weights]
    return sum(loss * weight for loss, weight in zip(losses, weights, strict=True)) / len(cells)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("pad_weight", [0.1, 0.7])
def test_the_loss_is_the_formula_applied_cell_by_cell(weighting, smoothing, pad_weight):
    logits, labels = random_batch()
    made = cross_entropy(logits, labels, smoothing=smoothing, weighting=weighting, pad_weight=pad_weight)
    assert_allclose(made, written_out(logits, labels, smoothing, weighting, pad_weight), rtol=1e-12)


def test_without_smoothing_and_weights_it_is_the_usual_cross_entropy():
    logits, labels = random_batch()
    usual = F.cross_entropy(logits.flatten(0, 2), labels.flatten())
    assert_allclose(cross_entropy(logits, labels, smoothing=0.0, weighting="none"), usual, rtol=1e-12)


def test_a_class_that_never_occurs_does_not_break_the_balance():
    logits, labels = random_batch(classes=7)
    made = cross_entropy(logits, labels % 3, smoothing=0.0, weighting="balanced")
    assert_allclose(made, written_out(logits, labels % 3, 0.0, "balanced", 0.1), rtol=1e-12)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_no_logits_have_a_lower_loss_than_the_smoothed_labels(weighting):
    _, labels = random_batch()
    met = (0.1 / 4 + (0.9 - 0.1 / 4) * F.one_hot(labels, 5).double()).log().requires_grad_()
    loss = cross_entropy(met, labels, weighting=weighting)
    assert_allclose(loss.item(), 0.0, atol=1e-12)
    (gradient,) = torch.autograd.grad(loss, met)
    assert_allclose(gradient, 0.0, atol=1e-12)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_gradient_is_the_slope(weighting):
    logits, labels = random_batch()
    assert torch.autograd.gradcheck(lambda x: cross_entropy(x, labels, weighting=weighting), logits.requires_grad_())


def test_half_precision_logits_are_summed_in_single_precision():
    logits, labels = random_batch(dtype=torch.float32)
    half = logits.bfloat16()
    made = cross_entropy(half, labels)
    assert made.dtype == torch.float32 and torch.equal(made, cross_entropy(half.float(), labels))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"weighting": "pads"}, "unknown weighting 'pads': choose 'pad', 'balanced' or 'none'"),
        ({"smoothing": 1.0}, r"smoothing must be in \[0, 1\), not 1.0"),
        ({"smoothing": -0.1}, "not -0.1"),
        ({"labels": torch.zeros(2, 4, 5, dtype=torch.long)}, r"logits \[2, 4, 4, 5\] do not fit labels \[2, 4, 5\]"),
        ({"logits": torch.zeros(2, 4, 4, 1)}, "at least 2 classes, not 1"),
    ],
)
def test_bad_input_is_named(change, told):
    logits, labels = random_batch()
    arguments = {"logits": logits, "labels": labels} | change
    with pytest.raises(ValueError, match=told):
        cross_entropy(**arguments)
