"""The authors' cross-entropy: smoothed labels, their floor taken off, and weights against padding."""

import math

import torch
import torch.nn.functional as F


def cross_entropy(
    logits: torch.Tensor,
    labels: torch.Tensor,
    *,
    smoothing: float = 0.1,
    weighting: str = "pad",
    pad_weight: float = 0.1,
) -> torch.Tensor:
    """Mean loss over all cells; 0 when every smoothed label is met exactly.

    >>> labels = torch.tensor([[[1, 0], [2, 1]]])
    >>> sure = 50.0 * F.one_hot(labels, 3)
    >>> round(cross_entropy(sure, labels, smoothing=0.0).item(), 6)
    0.0
    >>> met = torch.where(F.one_hot(labels, 3) == 1, 0.9, 0.05).log()  # what smoothing 0.1 asks for
    >>> abs(round(cross_entropy(met, labels).item(), 6))
    0.0

    logits: [..., C], labels: [...] with classes 0 … C-1.
    smoothing: the right class is asked to have probability 1 - smoothing, the others share the rest.
    weighting: ``"pad"`` weighs cells of label 0 with ``pad_weight`` and all others with 1, divided by the
        mean weight; ``"balanced"`` weighs every class with the inverse of its (smoothed) count; ``"none"``.
    """
    classes = logits.shape[-1]
    _check(logits, labels, classes, smoothing)
    right, wrong = 1.0 - smoothing, smoothing / (classes - 1)
    floor = -(_xlogx(right) + (classes - 1) * _xlogx(wrong))  # the entropy of a smoothed label
    log_p = F.log_softmax(logits.float() if logits.dtype != torch.float64 else logits, dim=-1)
    hit = log_p.gather(-1, labels[..., None]).squeeze(-1)  # [..., C] -> [...]
    loss = -(right - wrong) * hit - wrong * log_p.sum(-1) - floor  # [...]
    if weighting == "none":
        return loss.mean()
    if weighting == "pad":
        weight = 1.0 - (1.0 - pad_weight) * (labels == 0).to(loss.dtype)
        return (loss * weight).mean() / weight.mean()
    if weighting == "balanced":
        count = torch.bincount(labels.flatten(), minlength=classes).to(loss.dtype)  # [C]
        count = (count * (right - wrong) + labels.numel() * wrong).clamp(min=1.0)
        weight = 1.0 / count
        weight = weight * (classes / weight.mean())
        return (loss * weight[labels]).mean()
    raise ValueError(f"unknown weighting {weighting!r}: choose 'pad', 'balanced' or 'none'")


def _xlogx(p: float) -> float:
    return p * math.log(p) if p > 0.0 else 0.0


def _check(logits: torch.Tensor, labels: torch.Tensor, classes: int, smoothing: float) -> None:
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"logits {list(logits.shape)} do not fit labels {list(labels.shape)}: expected [..., C] and [...]"
        )
    if classes < 2:
        raise ValueError(f"a choice needs at least 2 classes, not {classes}: logits are [..., C]")
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing must be in [0, 1), not {smoothing}")
