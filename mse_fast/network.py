"""Matrix-SE: tokens or features in, logits or features out.  Read this file first.

    tokens -> embed -> zorder -> benes: ([switch -> shuffle]* -> switch) -> zorder^-1 -> readout

The embedding and the readout act on each cell alone, so the Z-order permutation is applied to the small tensors
(tokens before the embedding, logits after the readout) instead of the features: the result is the same.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mse_fast.benes import BenesBlock
from mse_fast.hub import Pretrained, own_arguments
from mse_fast.shuffle import flatten, unflatten

FLATTENINGS = ("zorder", "raster")
EMBEDDING_STD = 0.25


class Embed(nn.Module):
    """Each cell on its own: a token to its learned vector, or input features to feature maps (linear, no bias)."""

    def __init__(self, in_classes: int | None, in_features: int | None, feature_maps: int):
        super().__init__()
        if (in_classes is None) == (in_features is None):
            raise ValueError(
                "give either in_classes (integer tokens) or in_features (float features), "
                f"got in_classes={in_classes} and in_features={in_features}"
            )
        self.tokens = in_classes is not None
        self.rows = in_classes or in_features or 0
        if self.rows < 1 or feature_maps < 1:
            raise ValueError(f"classes, features and feature maps must be positive, got {self.rows}, {feature_maps}")
        self.weight = nn.Parameter(torch.empty(self.rows, feature_maps))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.tokens:
            nn.init.trunc_normal_(self.weight, std=EMBEDDING_STD, a=-2 * EMBEDDING_STD, b=2 * EMBEDDING_STD)
        else:
            nn.init.xavier_uniform_(self.weight)

    def check(self, x: Tensor, axes: str) -> None:
        """Refuse input of the wrong rank, type, size or alphabet with a sentence that says how to mend it."""
        kind = f"integer tokens [{axes}]" if self.tokens else f"float features [{axes},{self.rows}]"
        rank = axes.count(",") + (1 if self.tokens else 2)
        if x.ndim != rank:
            raise ValueError(f"expected {kind}, got a tensor of shape {list(x.shape)}")
        if x.is_complex() or self.tokens == (x.is_floating_point() or x.dtype == torch.bool):
            raise TypeError(f"expected {kind}, got dtype {x.dtype}; convert it first")
        if 0 in x.shape:
            raise ValueError(f"every axis must have at least one element, got shape {list(x.shape)}")
        if not self.tokens and x.shape[-1] != self.rows:
            raise ValueError(f"expected {kind}, got {x.shape[-1]} features in shape {list(x.shape)}")
        # reading values back from an accelerator would stall it, and a compiled graph cannot branch on them
        if self.tokens and x.device.type == "cpu" and not torch.compiler.is_compiling():
            low, high = (int(v) for v in x.aminmax())
            if low < 0 or high >= self.rows:
                raise ValueError(f"tokens must be 0..{self.rows - 1} (in_classes={self.rows}), got {low}..{high}")

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x.long(), self.weight) if self.tokens else x @ self.weight  # [..., M]


class Readout(nn.Linear):
    """Logits of each cell on its own; Glorot-uniform weights and zero biases at the start."""

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)


class BlockStack(nn.Module):
    """Embedding and Beneš blocks on sequences: what Matrix-SE, its recurrent form and the 1D network share."""

    def __init__(
        self,
        embed: Embed,
        blocks: list[BenesBlock],
        last: nn.Module | None = None,
        block_dropout: float = 0.0,
    ):
        super().__init__()
        if not blocks:
            raise ValueError("a network needs at least one Beneš block, got blocks=0")
        if not 0 <= block_dropout < 1:
            raise ValueError(f"block_dropout must be in [0, 1), got {block_dropout}")
        self.embed = embed
        self.blocks = nn.ModuleList(blocks)
        self.last = last
        self.block_dropout = block_dropout

    def forward(self, x: Tensor, chunk: int | None = None) -> Tensor:
        """Beneš blocks on features ``[B, L, M]``; without gradients the input is overwritten."""
        if self.may_overwrite(x):
            for block in self.blocks:
                block.inplace(x, chunk)  # type: ignore[operator]
            if self.last is not None:
                self.last.inplace(x, 0, chunk)  # type: ignore[operator]
            return x
        for number, block in enumerate(self.blocks):
            if number:
                x = F.dropout(x, self.block_dropout, self.training)
            x = block(x)
        return x if self.last is None else self.last(x)

    def may_overwrite(self, x: Tensor) -> bool:
        """In-place chunks need eager inference: no gradients, dropout, tracing or automatic casting."""
        return not (
            torch.is_grad_enabled()
            or self.training
            or torch.compiler.is_compiling()
            or (torch.amp.is_autocast_available(x.device.type) and torch.is_autocast_enabled(x.device.type))
        )


class MatrixSE(Pretrained, nn.Module):
    """Matrix Shuffle-Exchange network: a drop-in layer that sees a whole matrix in O(n² log n).

    >>> import torch
    >>> net = MatrixSE(in_classes=12, out_classes=12, feature_maps=8, blocks=1)
    >>> net(torch.randint(12, (2, 5, 7))).shape
    torch.Size([2, 5, 7, 12])
    >>> layer = MatrixSE(in_features=3, feature_maps=8)  # headless: features in, features out
    >>> layer(torch.randn(2, 16, 16, 3)).shape
    torch.Size([2, 16, 16, 8])

    Parameters
    ----------
    in_classes: alphabet of integer tokens ``[B, H, W]``; or
    in_features: channels of float features ``[B, H, W, C]``.
    out_classes: logits per cell; ``None`` returns the ``feature_maps`` features themselves.
    feature_maps: M, the width (the paper uses 96 and 192).
    blocks: number of Beneš blocks (the paper uses 2).
    norm: ``"feature"`` (the paper) or ``"position"`` (the authors' code).
    dropout: rate on the input of each switch unit's first matrix.
    block_dropout: rate between Beneš blocks (the paper's image model uses 0.5).
    drift: how unsure training is about the weight of what earlier layers wrote, see :class:`mse_fast.benes.BenesBlock`.
    flatten: ``"zorder"``, or ``"raster"`` for the paper's ablation.
    checkpointing: recompute the switch layers in the backward pass to save memory.
    skip: add what a cell's own input says about its output to the logits, by a linear map of its own; for outputs
        that lie where their inputs do. Without it a cell has to be carried through all layers to be seen at the end.

    Any H×W is accepted: the matrix is padded at the bottom and right to a square of side 2^k with token 0 (zero
    features), and the result is cropped.
    """

    model_name: ClassVar[str] = "matrix-se"

    def __init__(
        self,
        *,
        in_classes: int | None = None,
        in_features: int | None = None,
        out_classes: int | None = None,
        feature_maps: int = 96,
        blocks: int = 2,
        norm: str = "feature",
        dropout: float = 0.0,
        block_dropout: float = 0.0,
        flatten: str = "zorder",
        checkpointing: bool = False,
        drift: float = 0.0,
        skip: bool = False,
    ):
        super().__init__()
        self.arguments = own_arguments(locals())
        self.flatten = check_flatten(flatten)
        self.stack = matrix_stack(
            in_classes, in_features, feature_maps, blocks, norm, dropout, block_dropout, checkpointing, drift
        )
        self.readout = None if out_classes is None else Readout(feature_maps, out_classes)
        if skip and out_classes is None:
            raise ValueError("skip adds to the logits, so it needs out_classes, got None")
        self.skip = Embed(in_classes, in_features, out_classes) if skip and out_classes else None
        if self.skip is not None:
            nn.init.zeros_(self.skip.weight)

    def forward(self, x: Tensor, chunk: int | None = None) -> Tensor:
        """Logits ``[B, H, W, out_classes]`` of tokens ``[B, H, W]`` or features ``[B, H, W, C]``.

        ``chunk`` sets how many groups inference works on at a time; the default fits the cache.
        """
        cells, n, (H, W) = to_sequence(x, self.stack.embed, self.flatten)  # [B, L] or [B, L, C]
        x = self.stack(self.stack.embed(cells), chunk)  # [B, L, M]
        if self.readout is not None:
            x = self.readout(x)  # [B, L, out_classes]
        if self.skip is not None:
            x = x + self.skip(cells)
        return unflatten(x, n, self.flatten)[:, :H, :W]  # [B, H, W, out_classes]


def check_flatten(order: str) -> str:
    if order not in FLATTENINGS:
        raise ValueError(f"flatten must be one of {', '.join(map(repr, FLATTENINGS))}, got {order!r}")
    return order


def matrix_stack(
    in_classes: int | None,
    in_features: int | None,
    feature_maps: int,
    blocks: int,
    norm: str,
    dropout: float,
    block_dropout: float,
    checkpointing: bool,
    drift: float = 0.0,
) -> BlockStack:
    """The radix-4 blocks of Matrix-SE with their embedding."""
    if norm == "rse":
        raise ValueError("norm must be 'feature' or 'position' for Matrix-SE, got 'rse' (the 1D network's)")
    embed = Embed(in_classes, in_features, feature_maps)
    benes = [
        BenesBlock(feature_maps, 4, norm, dropout, checkpointing=checkpointing, drift=drift)
        for _ in range(max(0, blocks))
    ]
    return BlockStack(embed, benes, block_dropout=block_dropout)


def to_sequence(x: Tensor, embed: Embed, order: str) -> tuple[Tensor, int, tuple[int, int]]:
    """Check, pad to a square of side 2^k and flatten; also the side and the original height and width."""
    embed.check(x, "B,H,W")
    H, W = x.shape[1:3]
    n = max(2, 1 << (max(H, W) - 1).bit_length())
    features = (0, 0) * (x.ndim - 3)
    x = F.pad(x, (*features, 0, n - W, 0, n - H)) if (n, n) != (H, W) else x  # [B, n, n, ...]
    return flatten(x, order), n, (H, W)
