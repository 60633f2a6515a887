"""RSE: the one-dimensional Residual Shuffle-Exchange network on a flattened matrix.

Paper: section "Speed", after Draguns et al., *Residual Shuffle-Exchange Networks for Fast Processing of Long
Sequences* (2020). The network itself is :class:`mse_fast.ShuffleExchange`; only the flattening is added here.
"""

from typing import ClassVar

from torch import Tensor, nn

from mse_fast.hub import Pretrained, own_arguments
from mse_fast.network import check_flatten, to_sequence
from mse_fast.sequence import ShuffleExchange
from mse_fast.shuffle import unflatten


class RSE(Pretrained, nn.Module):
    """Pairs instead of fours: twice as many layers as Matrix-SE, none of which knows rows from columns.

    >>> import torch
    >>> model = RSE(in_classes=12, out_classes=12)
    >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)  # millions, as in the paper
    3.5
    >>> RSE(in_classes=3, out_classes=5, feature_maps=8)(torch.zeros(2, 4, 7, dtype=torch.int64)).shape
    torch.Size([2, 4, 7, 5])

    Parameters
    ----------
    in_classes, out_classes: sizes of the input and output alphabets.
    feature_maps: features of one position.
    blocks: number of Beneš blocks.
    flatten: ``"raster"`` reads the matrix row by row, ``"zorder"`` as Matrix-SE does.
    layout: ``"rse"`` is the authors' network, ``"paper"`` the one of the text (RMSNorm over features).
    dropout: rate on the input of each switch unit's first matrix.
    checkpointing: recompute the switch layers in the backward pass to save memory.
    """

    model_name: ClassVar[str] = "rse"

    def __init__(
        self,
        *,
        in_classes: int,
        out_classes: int,
        feature_maps: int = 208,
        blocks: int = 2,
        flatten: str = "raster",
        layout: str = "rse",
        dropout: float = 0.0,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.arguments = own_arguments(locals())
        self.flatten = check_flatten(flatten)
        self.sequence = ShuffleExchange(
            in_classes=in_classes,
            out_classes=out_classes,
            feature_maps=feature_maps,
            blocks=blocks,
            layout=layout,
            dropout=dropout,
            checkpointing=checkpointing,
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens [B, H, W] → logits [B, H, W, out_classes]."""
        x, n, (height, width) = to_sequence(tokens, self.sequence.stack.embed, self.flatten)  # [B, L]
        return unflatten(self.sequence(x), n, self.flatten)[:, :height, :width]  # [B, H, W, classes]
