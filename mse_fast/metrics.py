"""The authors' accuracies: cells where label and prediction are both padding do not count."""

import torch


def accuracy(prediction: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The share of right cells among those where the label or the prediction is not 0; 1 if there are none.

    >>> accuracy(torch.tensor([[[1, 2], [0, 0]]]), torch.tensor([[[1, 1], [0, 0]]])).item()
    0.5

    prediction, labels: [B, H, W] classes.
    """
    right, counted = count_right(prediction, labels)
    return right.sum() / counted.sum() if counted.any() else torch.ones((), device=labels.device)


def solved(prediction: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The share of instances with every cell right.

    >>> solved(torch.tensor([[[1, 2]], [[1, 0]]]), torch.tensor([[[1, 1]], [[1, 0]]])).item()
    0.5

    prediction, labels: [B, H, W] classes.
    """
    right, counted = count_right(prediction, labels)
    return (right == counted).float().mean()


def count_right(prediction: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Right cells and counted cells of every instance, [B] each: to be added up over batches.

    >>> count_right(torch.tensor([[[1, 2], [0, 0]]]), torch.tensor([[[1, 1], [0, 0]]]))
    (tensor([1]), tensor([2]))
    """
    if prediction.shape != labels.shape:
        raise ValueError(
            f"prediction {list(prediction.shape)} and labels {list(labels.shape)} must have the same shape: "
            "take the argmax of logits over their last axis"
        )
    counts = ((prediction != 0) | (labels != 0)).flatten(1)  # [B, H * W]
    right = (prediction == labels).flatten(1) & counts
    return right.sum(1), counts.sum(1)
