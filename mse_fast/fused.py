"""The switch layer of a training step on the CPU: forward and backward chunk by chunk, in the cache.

Autograd's own path writes every intermediate result of a layer to memory and reads it back, forwards and backwards.
This one makes, normalises, squashes and uses the hidden features of a chunk of groups before it goes on to the next,
and keeps only what the backward pass cannot remake cheaply: the input, ``a = Z d`` and its scale ``r``.

    d = dropped(i),  a = d Z,  r = (mean(a^2) + eps)^-1/2,  u = S r a,  o = residual * i + silu(u) W + b

It computes what :meth:`mse_fast.switch.Switch.plain` computes for ``norm="feature"``, which remains the definition.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class FusedSwitch(torch.autograd.Function):
    """``apply(i, kept, Z, W, b, residual, slope, eps, chunk, dtype)``: groups ``[G, width]`` to groups.

    Parameters
    ----------
    i: the groups of neighbours, one a row, contiguous.
    kept: None, or a mask of bytes ``[G, width]`` and the factor ``1 / (1 - rate)`` of the kept inputs of ``Z``.
    Z, W, b, residual: ``[width, 2*width]``, ``[2*width, width]``, ``[width]``, ``[width]``.
    slope, eps: of the norm, ``u = slope * a * rsqrt(mean(a**2) + eps)``.
    chunk: groups at a time.
    dtype: of the matrix products; the residual path keeps the type of ``i``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        i: Tensor,
        kept: tuple[Tensor, float] | None,
        Z: Tensor,
        W: Tensor,
        b: Tensor,
        residual: Tensor,
        slope: float,
        eps: float,
        chunk: int,
        dtype: torch.dtype,
    ) -> Tensor:
        groups, width = i.shape
        mask, factor = kept or (None, 1.0)
        ctx.factor, ctx.slope, ctx.chunk = factor, slope, chunk
        Z, W = Z.to(dtype), W.to(dtype)
        o, a, r = torch.empty_like(i), i.new_empty(groups, 2 * width, dtype=dtype), i.new_empty(groups, 1)
        hidden = a.new_empty(min(chunk, groups), 2 * width)
        with torch.autocast(i.device.type, enabled=False):
            for s in range(0, groups, chunk):
                part = slice(s, s + chunk)
                torch.mm(dropped(i, mask, factor, part, dtype), Z, out=a[part])
                length = torch.linalg.vector_norm(a[part], dim=-1, keepdim=True, dtype=r.dtype)
                scale = torch.rsqrt(length.square_().div_(2 * width).add_(eps), out=r[part])
                u = torch.mul(a[part], (scale * slope).to(dtype), out=hidden[: len(scale)])
                add_product(torch.addcmul(b, i[part], residual, out=o[part]), F.silu(u, inplace=True), W)
        ctx.save_for_backward(i, mask, a, r, Z, W, residual)
        return o

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        i, mask, a, r, Z, W, residual = ctx.saved_tensors
        do = gradients[0].contiguous()
        groups, width = i.shape
        dtype = a.dtype
        dZ, dW = torch.zeros_like(Z, dtype=i.dtype), torch.zeros_like(W, dtype=i.dtype)
        di = do * residual
        hidden = [a.new_empty(min(ctx.chunk, groups), 2 * width) for _ in range(3)]
        with torch.autocast(i.device.type, enabled=False):
            for s in range(0, groups, ctx.chunk):
                part = slice(s, s + ctx.chunk)
                ap, dop = a[part], do[part].to(dtype)
                u, g, dg = (buffer[: len(ap)] for buffer in hidden)
                scale = r[part] * ctx.slope
                torch.mul(ap, scale.to(dtype), out=u)
                torch.ops.aten.silu.out(u, out=g)
                add_product(dW, g.t(), dop)
                torch.mm(dop, W.t(), out=dg)
                du = torch.ops.aten.silu_backward.grad_input(dg, u, grad_input=dg)
                # u = S r a and r = (mean(a^2) + eps)^-1/2, hence da = S r du - a S r^3 <a, du> / (2 width)
                product = torch.mul(ap, du, out=g).sum(-1, keepdim=True, dtype=r.dtype)
                product.mul_(r[part].square()).mul_(scale).div_(-2 * width)
                da = du.mul_(scale.to(dtype)).addcmul_(ap, product.to(dtype))
                add_product(dZ, dropped(i, mask, ctx.factor, part, dtype).t(), da)
                if mask is None:
                    add_product(di[part], da, Z.t())
                else:
                    di[part].addcmul_((da @ Z.t()).to(di.dtype), mask[part], value=ctx.factor)
        return di, None, dZ, dW, do.sum(0), (do * i).sum(0), None, None, None, None


def dropped(i: Tensor, mask: Tensor | None, factor: float, part: slice, dtype: torch.dtype) -> Tensor:
    """A chunk of the inputs of Z: what dropout keeps of it, scaled, in the type of the products."""
    if mask is None:
        return i[part].to(dtype)
    return (i[part] * mask[part]).mul_(factor).to(dtype)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """``total += left @ right``, where the product may have fewer digits than the total."""
    return total.addmm_(left, right) if total.dtype == left.dtype else total.add_(left @ right)
