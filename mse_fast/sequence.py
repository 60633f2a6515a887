"""The one-dimensional network: Neural/Residual Shuffle-Exchange on sequences of length 2^k, pairs instead of fours."""

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from mse_fast.benes import BenesBlock
from mse_fast.hub import Pretrained, own_arguments
from mse_fast.network import BlockStack, Embed, Readout
from mse_fast.switch import Switch

LAYOUTS = ("paper", "rse")


class ShuffleExchange(Pretrained, nn.Module):
    """Shuffle-Exchange network on sequences, O(n log n).

    >>> import torch
    >>> net = ShuffleExchange(in_classes=5, out_classes=5, feature_maps=8)
    >>> net(torch.randint(5, (2, 30))).shape
    torch.Size([2, 30, 5])

    Parameters
    ----------
    in_classes, in_features, out_classes, feature_maps, blocks, dropout: as in :class:`mse_fast.MatrixSE`.
    layout: ``"paper"`` is the text's network (RMSNorm, no last switch in a block); ``"rse"`` is the authors' code:
        rotations to the left first, the centred norm over positions, and one last switch after all blocks.
    norm: ``"feature"`` or ``"position"``; the ``"rse"`` layout has its own.
    """

    model_name: ClassVar[str] = "shuffle-exchange"

    def __init__(
        self,
        *,
        in_classes: int | None = None,
        in_features: int | None = None,
        out_classes: int | None = None,
        feature_maps: int = 96,
        blocks: int = 2,
        layout: str = "paper",
        norm: str = "feature",
        dropout: float = 0.0,
        checkpointing: bool = False,
    ):
        super().__init__()
        self.arguments = own_arguments(locals())
        if layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, got {layout!r}")
        rse = layout == "rse"
        norm, first = ("rse", "left") if rse else (norm, "right")
        benes = [
            BenesBlock(feature_maps, 2, norm, dropout, last=False, first=first, checkpointing=checkpointing)
            for _ in range(max(0, blocks))
        ]
        last = Switch(feature_maps, 2, norm, dropout) if rse else None
        self.stack = BlockStack(Embed(in_classes, in_features, feature_maps), benes, last)
        self.readout = None if out_classes is None else Readout(feature_maps, out_classes)

    def forward(self, x: Tensor, chunk: int | None = None) -> Tensor:
        """Logits ``[B, T, out_classes]`` of tokens ``[B, T]`` or features ``[B, T, C]``, padded to 2^k inside."""
        self.stack.embed.check(x, "B,T")
        T = x.shape[1]
        length = max(2, 1 << (T - 1).bit_length())
        x = F.pad(x, (*(0, 0) * (x.ndim - 2), 0, length - T)) if length != T else x  # [B, 2^k, ...]
        x = self.stack(self.stack.embed(x), chunk)  # [B, 2^k, M]
        return (x if self.readout is None else self.readout(x))[:, :T]
