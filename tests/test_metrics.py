"""The authors' accuracies: golden values, and what counts as a cell."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mse_fast.metrics import accuracy, count_right, solved

GOLDEN = np.load(Path(__file__).parent / "golden" / "authors.npz")


def random_pair(seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (6, 4, 4), generator=generator)
    wrong = torch.rand(6, 4, 4, generator=generator) < 0.1
    wrong[:2] = False
    return torch.where(wrong, (labels + 1) % 3, labels), labels


@pytest.mark.parametrize(("measure", "key"), [(accuracy, "metric/accuracy"), (solved, "metric/all_correct")])
def test_the_accuracies_are_those_of_the_authors_code(measure, key):
    prediction, labels = torch.tensor(GOLDEN["metric/prediction"]), torch.tensor(GOLDEN["metric/label"])
    assert_allclose(measure(prediction, labels), GOLDEN[key], rtol=1e-6)


def test_a_cell_counts_unless_label_and_prediction_are_both_padding():
    prediction, labels = random_pair()
    cells = zip(prediction.flatten().tolist(), labels.flatten().tolist(), strict=True)
    counted = [p == y for p, y in cells if (p, y) != (0, 0)]
    assert_allclose(accuracy(prediction, labels), sum(counted) / len(counted), rtol=1e-6)


def test_an_instance_is_solved_when_it_equals_its_label():
    prediction, labels = random_pair()
    exact = [torch.equal(p, y) for p, y in zip(prediction, labels, strict=True)]
    assert 0 < sum(exact) < 6
    assert_allclose(solved(prediction, labels), sum(exact) / 6, rtol=1e-6)


def test_padding_around_an_instance_changes_nothing():
    prediction, labels = random_pair()
    wide = [torch.nn.functional.pad(x, (0, 12, 0, 12)) for x in (prediction, labels)]
    assert accuracy(*wide) == accuracy(prediction, labels) and solved(*wide) == solved(prediction, labels)


def test_counts_of_parts_add_up_to_the_whole():
    prediction, labels = random_pair()
    parts = [count_right(prediction[i : i + 2], labels[i : i + 2]) for i in (0, 2, 4)]
    right, counted = (torch.cat(part) for part in zip(*parts, strict=True))
    assert_allclose(right.sum() / counted.sum(), accuracy(prediction, labels), rtol=1e-6)
    assert_allclose((right == counted).float().mean(), solved(prediction, labels), rtol=1e-6)


def test_nothing_but_padding_is_right():
    empty = torch.zeros(2, 4, 4, dtype=torch.long)
    assert accuracy(empty, empty) == 1.0 and solved(empty, empty) == 1.0


@pytest.mark.parametrize("measure", [accuracy, solved, count_right])
def test_logits_are_not_taken_for_predictions(measure):
    with pytest.raises(ValueError, match=r"prediction \[2, 4, 4, 3\] and labels \[2, 4, 4\].*argmax"):
        measure(torch.zeros(2, 4, 4, 3), torch.zeros(2, 4, 4))
