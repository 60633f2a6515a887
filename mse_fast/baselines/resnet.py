"""ResNet-29: the paper's convolutional baseline.

Paper: appendix "ResNet-29 model", after He et al., *Identity Mappings in Deep Residual Networks* (2016), with
layer normalisation over the channels in place of batch normalisation.
"""

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, channels_last, nn

from mse_fast.hub import Pretrained, own_arguments
from mse_fast.network import Embed


class Convolution(nn.Conv2d):
    """A 3×3 convolution on [B, H, W, C] that keeps the size.

    The channels stay innermost: layer normalisation reads them contiguously and no layer copies a layout.
    """

    def __init__(self, feature_maps: int) -> None:
        super().__init__(feature_maps, feature_maps, 3, padding=1)
        self.to(memory_format=channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)  # [B, H, W, C] both ways


class ResidualBlock(nn.Module):
    """``x + conv(relu(norm(conv(relu(norm(x))))))``: nothing but the sum acts on the identity path."""

    def __init__(self, feature_maps: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(feature_maps)
        self.conv1 = Convolution(feature_maps)
        self.norm2 = nn.LayerNorm(feature_maps)
        self.conv2 = Convolution(feature_maps)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(F.relu(self.norm1(x)))
        return x + self.conv2(F.relu(self.norm2(y)))


class ResNet(Pretrained, nn.Module):
    """Pre-activation residual network on matrices of tokens, without pooling or bottlenecks.

    >>> import torch
    >>> model = ResNet(in_classes=12, out_classes=12)
    >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)  # millions, as in the paper
    4.3
    >>> ResNet(in_classes=3, out_classes=5, feature_maps=8)(torch.zeros(2, 4, 7, dtype=torch.int64)).shape
    torch.Size([2, 4, 7, 5])

    Parameters
    ----------
    in_classes, out_classes: sizes of the input and output alphabets.
    feature_maps: channels of every layer.
    residual_blocks: pairs of convolutions; 14 make, with the one in front, ResNet-29.
        An output sees ``4·residual_blocks + 3`` cells of a row and of a column: 59 with 14 of them.
    dropout: acts before the readout.
    """

    model_name: ClassVar[str] = "resnet29"

    def __init__(
        self,
        *,
        in_classes: int,
        out_classes: int,
        feature_maps: int = 128,
        residual_blocks: int = 14,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.arguments = own_arguments(locals())
        self.embed = Embed(in_classes, None, feature_maps)
        self.stem = Convolution(feature_maps)
        self.blocks = nn.Sequential(*(ResidualBlock(feature_maps) for _ in range(residual_blocks)))
        self.norm = nn.LayerNorm(feature_maps)
        self.dropout = nn.Dropout(dropout)
        self.readout = nn.Linear(feature_maps, out_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens [B, H, W] → logits [B, H, W, out_classes]."""
        self.embed.check(tokens, "B,H,W")
        x = self.blocks(self.stem(self.embed(tokens)))  # [B, H, W, C]
        return self.readout(self.dropout(F.relu(self.norm(x))))
