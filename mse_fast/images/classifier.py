"""Classification with Matrix-SE. The paper does not say how it reads out one class: this is our choice."""

from typing import ClassVar

from torch import Tensor, nn

from mse_fast.hub import Pretrained, own_arguments
from mse_fast.network import MatrixSE, Readout


class ImageClassifier(Pretrained, nn.Module):
    """Matrix-SE features of every cell, averaged over all cells, then one linear layer.

    >>> import torch
    >>> net = ImageClassifier(in_features=3, out_classes=10, feature_maps=8)
    >>> net(torch.randn(2, 32, 32, 3)).shape
    torch.Size([2, 10])

    ``patch`` joins patches of that many cells a side before the network, which then has fewer cells and more
    input features; 1 is the paper's network. The other parameters are those of :class:`mse_fast.MatrixSE`.
    """

    model_name: ClassVar[str] = "matrix-se-image"

    def __init__(
        self,
        *,
        in_features: int,
        out_classes: int,
        feature_maps: int = 92,
        blocks: int = 2,
        norm: str = "feature",
        dropout: float = 0.0,
        block_dropout: float = 0.5,
        patch: int = 1,
    ):
        super().__init__()
        self.arguments = own_arguments(locals())
        self.patch = patch
        self.body = MatrixSE(
            in_features=in_features * patch * patch,
            feature_maps=feature_maps,
            blocks=blocks,
            norm=norm,
            dropout=dropout,
            block_dropout=block_dropout,
        )
        self.readout = Readout(feature_maps, out_classes)

    def forward(self, pictures: Tensor) -> Tensor:
        """Logits [B, out_classes] of pictures [B, H, W, C]."""
        features = self.body(join_patches(pictures, self.patch))  # [B, H/p, W/p, M]
        return self.readout(features.mean((1, 2)))  # [B, M] -> [B, out_classes]


def join_patches(pictures: Tensor, side: int) -> Tensor:
    """Every patch of side×side cells becomes one cell: [B, H, W, C] -> [B, H/side, W/side, side·side·C]."""
    B, H, W, C = pictures.shape
    if H % side or W % side:
        raise ValueError(f"pictures of {H}×{W} cells cannot be cut into patches of {side}×{side}")
    split = pictures.view(B, H // side, side, W // side, side, C).transpose(2, 3)
    return split.reshape(B, H // side, W // side, side * side * C)
