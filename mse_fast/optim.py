"""The authors' RAdam and its schedule, and the rule for what weight decay touches."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from mse_fast.network import Embed


def warmup_linear(step: int, total: int, warmup: float = 0.1) -> float:
    """Factor of the learning rate at steps 1 … ``total``: linear up over a share ``warmup``, then down to 0.

    >>> [warmup_linear(step, 40) for step in (1, 4, 22, 40)]
    [0.25, 1.0, 0.5, 0.0]
    """
    rising = warmup * total
    if step <= rising:
        return step / rising
    falling = max(total - rising, 1.0)
    return 1.0 - min(step - rising, falling) / falling


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two parameter groups: matrices decay; vectors (biases, scales) and embeddings of tokens do not.

    >>> model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3))
    >>> for group in decay_groups(model, 0.1):
    ...     print(group["weight_decay"], [list(parameter.shape) for parameter in group["params"]])
    0.1 [[3, 4]]
    0.0 [[5, 4], [3]]
    """
    embeddings = {id(module.weight) for module in model.modules() if _embeds_tokens(module)}
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            matrix = parameter.ndim > 1 and id(parameter) not in embeddings
            (decayed if matrix else spared).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": spared, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _embeds_tokens(module: nn.Module) -> bool:
    return isinstance(module, nn.Embedding) or (isinstance(module, Embed) and module.tokens)


class RAdamAuthors(torch.optim.Optimizer):
    """The RAdam of the authors' released code, which differs from the published one in three ways.

    The momentum is one of *normalised* gradients; each tensor's gradient is clipped at ``clip`` times the
    norm that its own history suggests, plus ``clip_floor``; and in the first steps, where the variance is
    unknown, the update is this momentum as it is. Decay is decoupled, times the learning rate. The schedule is
    separate: ``warmup_linear``.

    >>> weight = nn.Parameter(torch.ones(2, 2))
    >>> optimizer = RAdamAuthors([weight], lr=0.1)
    >>> weight.grad = torch.full((2, 2), 0.001)
    >>> optimizer.step()
    >>> [round(w, 3) for w in weight[0].tolist()]  # a normalised gradient has length 1 whatever its scale
    [0.9, 0.9]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-7,
        weight_decay: float = 0.0,
        clip: float = 3.0,
        clip_floor: float = 0.01,
    ) -> None:
        if lr < 0.0:
            raise ValueError(f"lr must not be negative, but is {lr}")
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise ValueError(f"betas must be in [0, 1), not {betas}")
        if eps <= 0.0 or weight_decay < 0.0 or clip < 0.0 or clip_floor < 0.0:
            raise ValueError(
                f"eps must be positive, and weight_decay, clip and clip_floor not negative: got eps={eps}, "
                f"weight_decay={weight_decay}, clip={clip}, clip_floor={clip_floor}"
            )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "clip": clip,
            "clip_floor": clip_floor,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["momentum"] = torch.zeros_like(parameter)
            state["variance"] = torch.zeros_like(parameter)
        state["step"] += 1
        momentum, variance = state["momentum"], state["variance"]
        beta1, beta2 = group["betas"]
        unbias1 = 1.0 - beta1 ** state["step"]
        unbias2 = 1.0 - beta2 ** state["step"]

        limit = group["clip"] * (variance.sum() / unbias2).sqrt() + group["clip_floor"]
        gradient = gradient * (limit / gradient.norm().maximum(limit))
        variance.mul_(beta2).addcmul_(gradient, gradient, value=1.0 - beta2)
        normalised = gradient / ((variance / unbias2).sqrt() + group["eps"])
        momentum.mul_(beta1).add_(normalised, alpha=1.0 - beta1)

        rate = rectifier(state["step"], beta2) / unbias1 * group["lr"]
        parameter.mul_(1.0 - group["lr"] * group["weight_decay"]).sub_(rate * momentum)


def rectifier(step: int, beta2: float) -> float:
    """RAdam's factor for the unknown variance of early steps; 1 where the approximation has no value (ρ < 5).

    >>> rectifier(5, 0.999), round(rectifier(6, 0.999), 4), round(rectifier(10_000, 0.999), 4)
    (1.0, 0.0258, 0.9998)
    """
    longest = 2.0 / (1.0 - beta2) - 1.0
    length = longest - 2.0 * step * beta2**step / (1.0 - beta2**step)
    if length < 5.0:
        return 1.0
    return math.sqrt((length - 4.0) / (longest - 4.0) * (length - 2.0) / (longest - 2.0) * longest / length)
