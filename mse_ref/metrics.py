"""Accuracy as the released code counts it: cells that are 0 both in label and prediction do not count."""

from __future__ import annotations

import numpy as np


def accuracy(prediction: np.ndarray, labels: np.ndarray) -> float:
    """The share of right cells among those where label or prediction is not 0; 1.0 if there are none.

    >>> accuracy(np.array([[0, 1, 2]]), np.array([[0, 1, 1]]))
    0.5
    """
    counted = _counted(prediction, labels)
    return float((prediction == labels)[counted].mean()) if counted.any() else 1.0


def solved(prediction: np.ndarray, labels: np.ndarray) -> float:
    """The share of instances (first axis) without a single wrong cell.

    >>> solved(np.array([[0, 1], [2, 2]]), np.array([[0, 1], [2, 1]]))
    0.5
    """
    _counted(prediction, labels)
    right = (prediction == labels).reshape(len(labels), -1)  # [B, cells]
    return float(right.all(axis=1).mean())


def _counted(prediction: np.ndarray, labels: np.ndarray) -> np.ndarray:
    if prediction.shape != labels.shape:
        raise ValueError(f"prediction and labels must have one shape, got {prediction.shape} and {labels.shape}")
    return (prediction != 0) | (labels != 0)
