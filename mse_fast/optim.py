"""The authors' RAdam and its schedule, Muon, and the rules for what decays and what is made orthogonal."""

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
    decayed, spared = matrices_and_rest(model)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": spared, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def matrices_and_rest(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The weights a network trains: matrices, and vectors with the embeddings of tokens."""
    embeddings = {id(module.weight) for module in model.modules() if _embeds_tokens(module)}
    matrices: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            matrix = parameter.ndim > 1 and id(parameter) not in embeddings
            (matrices if matrix else rest).append(parameter)
    return matrices, rest


def _embeds_tokens(module: nn.Module) -> bool:
    return isinstance(module, nn.Embedding) or (isinstance(module, Embed) and module.tokens)


def muon_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The groups of `decay_groups`, with the matrices between embedding and readout in one of their own, for `Muon`.

    >>> model = nn.ModuleDict({"hidden": nn.Linear(4, 3), "readout": nn.Linear(3, 2)})
    >>> for group in muon_groups(model, 0.1):
    ...     print(group["orthogonal"], group["weight_decay"], [list(parameter.shape) for parameter in group["params"]])
    True 0.1 [[3, 4]]
    False 0.1 [[2, 3]]
    False 0.0 [[3], [2]]
    """
    matrices, rest = matrices_and_rest(model)
    ends = {
        id(value) for name, value in model.named_parameters() if {"embed", "readout", "skip"} & set(name.split("."))
    }
    inside, outside = ([p for p in matrices if (id(p) in ends) == end] for end in (False, True))
    groups = [
        {"params": inside, "weight_decay": weight_decay, "orthogonal": True},
        {"params": outside, "weight_decay": weight_decay, "orthogonal": False},
        {"params": rest, "weight_decay": 0.0, "orthogonal": False},
    ]
    return [group for group in groups if group["params"]]


class OneByOne(torch.optim.Optimizer):
    """An optimiser that looks at one parameter at a time: a subclass says how by ``_update``."""

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
        raise TypeError(f"{type(self).__name__} does not say how to update a parameter")


class Muon(OneByOne):
    """Muon for the matrices inside a network, AdamW for everything else.

    The step of a matrix is its momentum made orthogonal: all directions of it are as long, the rare ones too (Jordan
    et al., 2024, https://kellerjordan.github.io/posts/muon). Its length is that of AdamW's steps, so the same learning
    rate serves both (Liu et al., 2025, https://arxiv.org/abs/2502.16982). ``products`` is the type in which matrices
    are made orthogonal; bfloat16 is as good, and faster where the processor multiplies it. ``torch.optim.Muon`` always
    takes bfloat16, which few CPUs do well, and leaves the vectors to a second optimiser.

    >>> weight = nn.Parameter(torch.zeros(2, 2))
    >>> optimizer = Muon([{"params": [weight], "orthogonal": True}], lr=1.0)
    >>> weight.grad = torch.tensor([[3.0, 0.0], [0.0, 0.1]])
    >>> optimizer.step()
    >>> bool((weight.diagonal() < -0.15).all())  # both directions move alike
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 3e-3,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        products: torch.dtype = torch.float32,
    ) -> None:
        if not (lr >= 0 and weight_decay >= 0):
            raise ValueError(f"lr and weight_decay must not be negative: got lr={lr}, weight_decay={weight_decay}")
        if not all(0 <= share < 1 for share in (*betas, momentum)):
            raise ValueError(f"betas and momentum must be in [0, 1): got betas={betas}, momentum={momentum}")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, defaults | {"orthogonal": False})
        self.products = products

    def _update(self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        way = self._orthogonal if group["orthogonal"] else self._adam
        parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
        parameter.sub_(group["lr"] * way(parameter, gradient, group))

    def _orthogonal(self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> torch.Tensor:
        momentum = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
        momentum.lerp_(gradient, 1.0 - group["momentum"])
        matrix = gradient.lerp(momentum, group["momentum"]).flatten(1)  # Nesterov's; a convolution as [out, in * h * w]
        step = orthogonalise(matrix, dtype=self.products)
        return 0.2 * math.sqrt(max(matrix.shape)) * step.reshape(parameter.shape)

    def _adam(self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> torch.Tensor:
        state = self.state[parameter]
        if not state:
            state["step"], state["mean"], state["square"] = 0, torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        for name, value, beta in zip(("mean", "square"), (gradient, gradient * gradient), group["betas"], strict=True):
            state[name].lerp_(value, 1.0 - beta)
        unbias1, unbias2 = (1.0 - beta ** state["step"] for beta in group["betas"])
        return state["mean"] / unbias1 / ((state["square"] / unbias2).sqrt() + group["eps"])


def orthogonalise(matrix: torch.Tensor, rounds: int = 5, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The matrix with all its singular values near 1, between .7 and 1.2, unless they were tiny beside its norm.

    A Newton-Schulz iteration whose polynomial raises small values fast (Jordan et al., 2024), in ``dtype`` if given.

    >>> values = torch.linalg.svdvals(orthogonalise(torch.diag(torch.tensor([5.0, 1.0, 0.1]))))
    >>> bool((values > 0.65).all() and (values < 1.25).all())
    True
    """
    wide = matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix
    wide = (wide / (wide.norm() + 1e-7)).to(dtype or matrix.dtype)
    for _ in range(rounds):
        square = wide @ wide.mT
        cubic = torch.addmm(square, square, square, beta=-4.7750, alpha=2.0315)
        wide = torch.addmm(wide, cubic, wide, beta=3.4445)
    made = wide.to(matrix.dtype)
    return made.mT if matrix.shape[0] > matrix.shape[1] else made


class RAdamAuthors(OneByOne):
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
