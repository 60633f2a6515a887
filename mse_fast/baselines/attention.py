"""Dense attention over the cells of a matrix: what one would reach for today, at the price of n⁴.

A plain pre-norm transformer encoder. Positions enter by rotation (Su et al., *RoFormer*, 2021): half of a
head's features turn by the row and half by the column, so that the same weights run at any size.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mse_fast.hub import Pretrained, own_arguments
from mse_fast.network import Embed


def rotary_angles(height: int, width: int, head_features: int, device: torch.device) -> Tensor:
    """Angles [H·W, head_features / 2] by which pairs of features turn: rows first, then columns.

    >>> rotary_angles(2, 2, 4, torch.device("cpu"))  # cells (0,0) (0,1) (1,0) (1,1)
    tensor([[0., 0.],
            [0., 1.],
            [1., 0.],
            [1., 1.]])
    """
    quarter = head_features // 4
    # 100 rather than the usual 10,000: a side has at most about a thousand positions
    frequency = 100.0 ** (-torch.arange(quarter, device=device) / quarter)
    rows = torch.arange(height, device=device)[:, None, None] * frequency  # [H, 1, quarter]
    columns = torch.arange(width, device=device)[None, :, None] * frequency  # [1, W, quarter]
    shape = (height, width, quarter)
    return torch.cat([rows.expand(shape), columns.expand(shape)], dim=-1).flatten(0, 1)  # [L, 2·quarter]


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn the feature pairs (i, i + d/2) of ``x`` [B, heads, L, d] by ``angles`` [L, d/2]."""
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)


class AttentionLayer(nn.Module):
    """Pre-norm self-attention, then a pre-norm perceptron of four times the width."""

    def __init__(self, feature_maps: int, head_features: int, dropout: float) -> None:
        super().__init__()
        self.head_features = head_features
        self.norm1 = nn.RMSNorm(feature_maps)
        self.qkv = nn.Linear(feature_maps, 3 * feature_maps, bias=False)
        self.mix = nn.Linear(feature_maps, feature_maps, bias=False)
        self.norm2 = nn.RMSNorm(feature_maps)
        self.expand = nn.Linear(feature_maps, 4 * feature_maps, bias=False)
        self.contract = nn.Linear(4 * feature_maps, feature_maps, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, -1, self.head_features))  # [B, L, 3, heads, d]
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each [B, heads, L, d]
        y = F.scaled_dot_product_attention(rotate(q, angles), rotate(k, angles), v)
        y = y.transpose(1, 2).flatten(2)  # [B, L, C]
        x = x + self.dropout(self.mix(y))
        return x + self.dropout(self.contract(F.gelu(self.expand(self.norm2(x)))))


class Attention(Pretrained, nn.Module):
    """Transformer encoder over the H·W cells of a matrix of tokens.

    >>> model = Attention(in_classes=12, out_classes=12)
    >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)  # millions, as Matrix-SE has
    3.5
    >>> model(torch.zeros(2, 4, 7, dtype=torch.int64)).shape
    torch.Size([2, 4, 7, 12])

    Parameters
    ----------
    in_classes, out_classes: sizes of the input and output alphabets.
    feature_maps: width of the encoder.
    layers: attention layers.
    head_features: width of one attention head, a multiple of 4 that divides ``feature_maps``;
        0 chooses 32, or 16 where 32 does not divide.
    dropout: acts on what each layer adds.
    """

    model_name: ClassVar[str] = "attention"

    def __init__(
        self,
        *,
        in_classes: int,
        out_classes: int,
        feature_maps: int = 192,
        layers: int = 8,
        head_features: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.arguments = own_arguments(locals())
        head_features = head_features or (16 if feature_maps % 32 else 32)
        if head_features % 4 or feature_maps % head_features:
            raise ValueError(
                f"feature_maps must be a multiple of head_features={head_features}, and this of 4 (rows "
                f"and columns turn pairs), got {feature_maps}"
            )
        self.head_features = head_features
        self.embed = Embed(in_classes, None, feature_maps)
        self.layers = nn.ModuleList(AttentionLayer(feature_maps, head_features, dropout) for _ in range(layers))
        self.norm = nn.RMSNorm(feature_maps)
        self.readout = nn.Linear(feature_maps, out_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens [B, H, W] → logits [B, H, W, out_classes]."""
        self.embed.check(tokens, "B,H,W")
        height, width = tokens.shape[1:]
        angles = rotary_angles(height, width, self.head_features, tokens.device)  # [L, d/2]
        x = self.embed(tokens).flatten(1, 2)  # [B, L, C]
        for layer in self.layers:
            x = layer(x, angles)
        return self.readout(self.norm(x)).unflatten(1, (height, width))  # [B, H, W, classes]
