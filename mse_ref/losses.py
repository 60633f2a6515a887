"""The training loss: softmax cross-entropy (paper) with the smoothing and weights of the released code."""

from __future__ import annotations

import math

from array_api_compat import device

from mse_ref.arrays import Array, namespace

WEIGHTINGS = ("pad", "balanced", "none")


def cross_entropy(
    logits: Array,
    labels: Array,
    *,
    smoothing: float = 0.1,
    weighting: str = "pad",
    pad_weight: float = 0.1,
) -> float:
    """Mean cross-entropy of logits ``[..., C]`` against labels ``[...]``, minus its smallest possible value.

    Paper: "softmax cross-entropy loss"; the smoothing and the weights are the released code's.

    >>> import numpy as np
    >>> sure = np.array([[-50.0, 50.0], [50.0, -50.0]])
    >>> cross_entropy(sure, np.array([1, 0]), smoothing=0.0, weighting="none")
    0.0

    :param smoothing: the probability taken from the right class and shared among the others.
    :param weighting: ``"pad"``: cells labelled 0 weigh ``pad_weight``, weights scaled to mean 1.
        ``"balanced"``: cells weigh the inverse of their class' frequency. ``"none"``: all alike.
    """
    xp, classes = namespace(logits, labels), logits.shape[-1]
    if labels.shape != logits.shape[:-1]:
        raise ValueError(f"labels must have shape {logits.shape[:-1]} like the logits, got {labels.shape}")
    if classes < 2:
        raise ValueError(f"the loss needs at least 2 classes, got {classes}")
    low, high = int(xp.min(labels)), int(xp.max(labels))
    if low < 0 or high >= classes:
        raise ValueError(f"labels must lie in 0..{classes - 1}, got {low}..{high}")
    off = smoothing / (classes - 1)
    right = labels[..., None] == xp.arange(classes, dtype=labels.dtype, device=device(labels))
    target = off + (1 - smoothing - off) * xp.astype(right, logits.dtype)  # [..., C]
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)  # exp cannot overflow
    log_p = shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))  # [..., C]
    floor = -sum(p * math.log(p) for p in [1 - smoothing, *[off] * (classes - 1)] if p > 0)
    cell_loss = -xp.sum(target * log_p, axis=-1) - floor  # [...]

    if weighting == "none":
        weight = xp.ones_like(cell_loss)
    elif weighting == "pad":
        weight = 1 - (1 - pad_weight) * xp.astype(labels == 0, logits.dtype)
        weight = weight / xp.mean(weight)
    elif weighting == "balanced":
        counts = xp.sum(xp.reshape(target, (-1, classes)), axis=0)  # [C], of the smoothed labels
        rarity = 1 / xp.where(counts < 1, xp.ones_like(counts), counts)
        class_weight = classes * rarity / xp.mean(rarity)
        weight = xp.reshape(xp.take(class_weight, xp.reshape(labels, (-1,)), axis=0), labels.shape)  # [...]
    else:
        raise ValueError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {weighting!r}")
    return float(xp.mean(cell_loss * weight))
