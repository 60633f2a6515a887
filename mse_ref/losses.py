"""The training loss: softmax cross-entropy (paper) with the smoothing and weights of the released code."""

from __future__ import annotations

import math

import numpy as np

WEIGHTINGS = ("pad", "balanced", "none")


def cross_entropy(
    logits: np.ndarray,
    labels: np.ndarray,
    *,
    smoothing: float = 0.1,
    weighting: str = "pad",
    pad_weight: float = 0.1,
) -> float:
    """Mean cross-entropy of logits ``[..., C]`` against labels ``[...]``, minus its smallest possible value.

    Paper: "softmax cross-entropy loss"; the smoothing and the weights are the released code's.

    >>> sure = np.array([[-50.0, 50.0], [50.0, -50.0]])
    >>> cross_entropy(sure, np.array([1, 0]), smoothing=0.0, weighting="none")
    0.0

    :param smoothing: the probability taken from the right class and shared among the others.
    :param weighting: ``"pad"``: cells labelled 0 weigh ``pad_weight``, weights scaled to mean 1.
        ``"balanced"``: cells weigh the inverse of their class' frequency. ``"none"``: all alike.
    """
    classes = logits.shape[-1]
    if labels.shape != logits.shape[:-1]:
        raise ValueError(f"labels must have shape {logits.shape[:-1]} like the logits, got {labels.shape}")
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(f"labels must lie in 0..{classes - 1}, got {labels.min()}..{labels.max()}")
    off = smoothing / (classes - 1)
    target = np.where(labels[..., None] == np.arange(classes), 1 - smoothing, off)  # [..., C]
    shifted = logits - logits.max(axis=-1, keepdims=True)  # exp cannot overflow
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # [..., C]
    floor = -sum(p * math.log(p) for p in [1 - smoothing, *[off] * (classes - 1)] if p > 0)
    cell_loss = -(target * log_p).sum(axis=-1) - floor  # [...]

    if weighting == "none":
        weight = np.ones(labels.shape)
    elif weighting == "pad":
        weight = np.where(labels == 0, pad_weight, 1.0)
        weight = weight / weight.mean()
    elif weighting == "balanced":
        counts = np.maximum(target.reshape(-1, classes).sum(axis=0), 1)  # [C], of the smoothed labels
        class_weight = classes * (1 / counts) / (1 / counts).mean()
        weight = class_weight[labels]  # [...]
    else:
        raise ValueError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {weighting!r}")
    return float((cell_loss * weight).mean())
