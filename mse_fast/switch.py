"""The switch unit: QSU on four neighbours (radix 4), RSU on two (radix 2).  The only learned part of a layer.

    i = neighbours concatenated          [..., r*M]
    g = GELU(Norm(Z i))                  [..., 2*r*M]
    o = sigmoid(s) * i + h * (W g + b)   [..., r*M]

Two ways to compute the same thing live here.  :meth:`Switch.plain` is autograd code, formula by formula.
:meth:`Switch.inplace` overwrites its input chunk by chunk: a chunk is copied once, and its hidden features are
made, normalised and used while they are still in the cache, so inference needs one copy of the activations.
A third, ``mse_fast.fused``, does the same for a training step on the CPU.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mse_fast.fused import FusedSwitch

RESIDUAL = 0.9  # sigmoid(s) at the start
CANDIDATE = 0.25 * math.sqrt(1 - RESIDUAL**2)  # h, a constant
GELU_SLOPE = 1.702  # the authors' GELU is x * sigmoid(1.702 x) = silu(1.702 x) / 1.702
NORMS = ("feature", "position", "rse")
EPS = {"feature": 1e-6, "position": 1e-6, "rse": 1e-10}
CHUNK = {"cpu": 2048}  # groups whose hidden features fit the cache
CHUNK_ELSEWHERE = 1 << 18  # a GPU wants long kernels
KEPT_BYTES = 1 << 30  # at most, of products that a norm over positions keeps from its first pass for its second


class Switch(nn.Module):
    """A switch layer with its own weights: ``[B, L, M] -> [B, L, M]``, each ``radix`` neighbours as one group.

    Parameters
    ----------
    feature_maps: M, the features of one position.
    radix: 4 for Matrix-SE, 2 for the one-dimensional network.
    norm: ``"feature"`` (RMSNorm, the paper), ``"position"`` (mean square over positions, the authors' code) or
        ``"rse"`` (the authors' norm of the 1D network: centred over positions, with a learned offset).
    dropout: rate on the input of ``Z``; the residual path is never dropped.
    """

    def __init__(self, feature_maps: int, radix: int = 4, norm: str = "feature", dropout: float = 0.0):
        super().__init__()
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(map(repr, NORMS))}, got {norm!r}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}")
        width = radix * feature_maps
        self.radix, self.norm, self.dropout = radix, norm, dropout
        self.Z = nn.Parameter(torch.empty(width, 2 * width))
        self.W = nn.Parameter(torch.empty(2 * width, width))
        self.b = nn.Parameter(torch.empty(width))
        self.s = nn.Parameter(torch.empty(width))
        self.offset = nn.Parameter(torch.empty(2 * width)) if norm == "rse" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot-uniform matrices, zero biases, a residual weight of 0.9."""
        nn.init.xavier_uniform_(self.Z)
        nn.init.xavier_uniform_(self.W)
        nn.init.zeros_(self.b)
        nn.init.constant_(self.s, math.log(RESIDUAL / (1 - RESIDUAL)))
        if self.offset is not None:
            nn.init.zeros_(self.offset)

    def forward(self, x: Tensor) -> Tensor:
        return self.fused(x) if self.can_fuse(x) else self.plain(x)

    def can_fuse(self, x: Tensor) -> bool:
        """Whether a gradient will be wanted on the CPU; a compiler does its own fusing."""
        wanted = torch.is_grad_enabled() and (x.requires_grad or self.Z.requires_grad)
        return wanted and self.norm == "feature" and x.device.type == "cpu" and not torch.compiler.is_compiling()

    def fused(self, x: Tensor, chunk: int | None = None) -> Tensor:
        """The layer with its own backward pass: see ``mse_fast.fused``."""
        B, L, M = x.shape
        i = x.reshape(B * L // self.radix, self.radix * M)  # [B*L/r, r*M]
        kept = keep_mask(i, self.dropout) if self.training and self.dropout else None
        W, b, residual = self.W * (CANDIDATE / GELU_SLOPE), CANDIDATE * self.b, torch.sigmoid(self.s)
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        chunk = chunk or CHUNK["cpu"]
        o = FusedSwitch.apply(i, kept, self.Z, W, b, residual, GELU_SLOPE, EPS["feature"], chunk, dtype)
        return o.view(B, L, M)

    def plain(self, x: Tensor) -> Tensor:
        """The layer as a chain of PyTorch operations, for autograd, compilers and every device."""
        B, L, M = x.shape
        i = x.reshape(B, L // self.radix, self.radix * M)  # [B, L/r, r*M]
        a = (dropout(i, self.dropout) if self.training and self.dropout else i) @ self.Z  # [B, L/r, 2*r*M]
        if self.norm == "feature":
            u = F.rms_norm(a, a.shape[-1:], eps=EPS["feature"]) * GELU_SLOPE
        else:
            count = a.shape[1]
            scale, shift = self.position_scale(a.sum(1), a.square().sum(1), count)
            u = torch.addcmul(shift[:, None], a, scale[:, None])
        # GELU's final 1/1.702 and the constant h are folded into the small matrix W
        c = F.silu(u) @ (self.W * (CANDIDATE / GELU_SLOPE))  # [B, L/r, r*M]
        o = torch.addcmul(c + CANDIDATE * self.b, torch.sigmoid(self.s), i)
        return o.reshape(B, L, M)

    def position_scale(self, total: Tensor, squares: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Scale and shift ``[B, 2*r*M]`` that normalise over positions, from sums over positions.

        ``rse`` is ``v = 2(a - mean) + offset``, then ``v * rsqrt(mean(v**2))``; as ``a - mean`` averages to
        zero, the mean of ``v**2`` is four variances plus ``offset**2``.
        """
        mean, square = total / count, squares / count
        if self.offset is None:
            scale = GELU_SLOPE * torch.rsqrt(square + EPS[self.norm])
            return scale, torch.zeros_like(scale)
        variance = (square - mean.square()).clamp_min(0)
        r = GELU_SLOPE * torch.rsqrt(4 * variance + self.offset.square() + EPS[self.norm])
        return 2 * r, (self.offset - 2 * mean) * r

    @torch.no_grad()
    def inplace(self, x: Tensor, digit: int, chunk: int | None = None, products: Tensor | None = None) -> None:
        """Apply the layer to digit ``digit`` of every position, overwriting ``x`` ``[B, L, M]`` (contiguous).

        Mixing digit ``j`` where it stands is the same as shuffling it to the end, mixing neighbours there and
        shuffling back: this is what makes the network gather-free. ``products`` is scratch memory from
        :meth:`room_for_products`; without it a norm over positions multiplies by Z twice.
        """
        B, L, M = x.shape
        low = self.radix**digit
        chunk = chunk or CHUNK.get(x.device.type, CHUNK_ELSEWHERE)
        groups = min(chunk, B * L // self.radix)
        width = self.radix * M
        buffers = x.new_empty(groups, width), x.new_empty(groups, 2 * width)
        residual, b = torch.sigmoid(self.s), CANDIDATE * self.b
        floor = x.new_tensor(EPS["feature"] / GELU_SLOPE**2)
        if self.norm == "feature":
            parts = [x.view(-1, self.radix, low, M)]  # instances do not matter: one long run of groups
        else:
            parts = list(x.view(B, -1, self.radix, low, M))
        for part in parts:
            scale = shift = None
            if self.norm != "feature":
                scale, shift = self.whole_instance_scale(part, chunk, buffers, products)
            done = 0
            for piece in pieces(part, chunk):
                i = gather_free_copy(piece, buffers[0])  # [g, r*M]
                if scale is None or products is None:
                    a = torch.mm(i, self.Z, out=buffers[1][: len(i)])  # [g, 2*r*M]
                else:
                    a = products[done : done + len(i)]
                    done += len(i)
                if scale is None or shift is None:
                    length = torch.linalg.vector_norm(a, dim=-1, keepdim=True)
                    # slope / sqrt(mean(a^2) + eps), the slope inside the root: fewer operations on a small tensor
                    a.mul_(torch.addcmul(floor, length, length, value=1 / (2 * width * GELU_SLOPE**2)).rsqrt_())
                else:
                    torch.addcmul(shift, a, scale, out=a)
                g = F.silu(a, inplace=True)
                torch.addcmul(b, i, residual, out=i).addmm_(g, self.W, alpha=CANDIDATE / GELU_SLOPE)
                if not lies_as_groups(piece):
                    piece.copy_(i.view(piece.shape[0], piece.shape[2], self.radix, M).transpose(1, 2))

    def room_for_products(self, x: Tensor) -> Tensor | None:
        """Scratch memory for all products ``Z i`` of one instance, for as many layers as want it; None if not needed
        or too large."""
        groups, hidden = x.shape[1] // self.radix, self.Z.shape[1]
        if self.norm == "feature" or groups * hidden * x.element_size() > KEPT_BYTES:
            return None
        return x.new_empty(groups, hidden)

    def whole_instance_scale(
        self, part: Tensor, chunk: int, buffers: tuple[Tensor, Tensor], products: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The first pass of a norm over positions: the sums of one instance, made chunk by chunk."""
        total = part.new_zeros(2, self.Z.shape[1], dtype=torch.float64 if part.device.type == "cpu" else None)
        done = 0
        for piece in pieces(part, chunk):
            i = gather_free_copy(piece, buffers[0])
            square = buffers[1][: len(i)]
            a = torch.mm(i, self.Z, out=square if products is None else products[done : done + len(i)])
            done += len(i)
            total[0] += a.sum(0)
            total[1] += torch.mul(a, a, out=square).sum(0)
        groups = part.shape[0] * part.shape[2]
        scale, shift = self.position_scale(total[:1], total[1:], groups)
        return scale.to(part.dtype), shift.to(part.dtype)

    def extra_repr(self) -> str:
        width, hidden = self.Z.shape
        return f"radix={self.radix}, {width} -> {hidden} -> {width}, norm={self.norm!r}, dropout={self.dropout}"


def dropout(x: Tensor, rate: float) -> Tensor:
    """Dropout that is cheap on a CPU, see :func:`keep_mask`."""
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, rate)
    kept, factor = keep_mask(x, rate)
    return x * kept.to(x.dtype).mul_(factor)


def keep_mask(x: Tensor, rate: float) -> tuple[Tensor, float]:
    """What dropout keeps of a CPU tensor, and the factor that makes up for the rest.

    One random byte per element decides, so the rate is rounded to 1/256: PyTorch's own dropout draws a full random
    number per element, which on a CPU costs as much as the whole GELU.
    """
    dropped = min(255, round(256 * rate))
    words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
    kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= dropped
    return kept, 256 / (256 - dropped)


def pieces(part: Tensor, chunk: int) -> Iterator[Tensor]:
    """Cut ``[high, r, low, M]`` into views of at most ``chunk`` groups."""
    high, _, low, _ = part.shape
    rows = max(1, chunk // low)
    for top in range(0, high, rows):
        for left in range(0, low, chunk):
            yield part[top : top + rows, :, left : left + chunk]  # [h, r, l, M]


def lies_as_groups(piece: Tensor) -> bool:
    """Whether the members of a group are neighbours in memory already (digit 0)."""
    return piece.shape[2] == 1 and piece.stride(1) == piece.shape[3]


def gather_free_copy(piece: Tensor, buffer: Tensor) -> Tensor:
    """The groups of ``[h, r, l, M]`` as rows ``[h*l, r*M]``: a view where they already lie so, else a copy."""
    h, radix, low, M = piece.shape
    if lies_as_groups(piece):
        return piece.view(h, radix * M)
    i = buffer[: h * low]
    i.view(h, low, radix, M).copy_(piece.transpose(1, 2))
    return i
