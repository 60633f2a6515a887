"""Accuracy as the released code counts it: cells that are 0 both in label and prediction do not count."""

from __future__ import annotations

from mse_ref.arrays import Array, namespace


def accuracy(prediction: Array, labels: Array) -> float:
    """The share of right cells among those where label or prediction is not 0; 1.0 if there are none.

    >>> import numpy as np
    >>> accuracy(np.array([[0, 1, 2]]), np.array([[0, 1, 1]]))
    0.5
    """
    xp = namespace(prediction, labels)
    _check(prediction, labels)
    counted = (prediction != 0) | (labels != 0)
    cells, right = (int(xp.sum(xp.astype(each, xp.int64))) for each in (counted, counted & (prediction == labels)))
    return right / cells if cells else 1.0


def solved(prediction: Array, labels: Array) -> float:
    """The share of instances (first axis) without a single wrong cell.

    >>> import numpy as np
    >>> solved(np.array([[0, 1], [2, 2]]), np.array([[0, 1], [2, 1]]))
    0.5
    """
    xp = namespace(prediction, labels)
    _check(prediction, labels)
    right = xp.all(xp.reshape(prediction == labels, (labels.shape[0], -1)), axis=1)  # [B]
    return float(xp.mean(xp.astype(right, xp.float64)))


def _check(prediction: Array, labels: Array) -> None:
    if prediction.shape != labels.shape:
        raise ValueError(f"prediction and labels must have one shape, got {prediction.shape} and {labels.shape}")
