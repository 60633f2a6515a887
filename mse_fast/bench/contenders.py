"""Who takes part, and which bare matrix products bound each of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from mse_fast.baselines import baseline
from mse_fast.baselines.rse import RSE
from mse_fast.bench.gather import GatherPort
from mse_fast.network import MatrixSE
from mse_fast.switch import Switch

CLASSES = 12  # alphabet of the matrix tasks: padding and 11 symbols
MATRIX_SE = "matrix-se"


@dataclass(frozen=True)
class Case:
    """One line-up: all contenders of a case see matrices of the same size in the same mode."""

    mode: str  # "inference" or "training"
    n: int
    feature_maps: int = 96  # of Matrix-SE; a baseline keeps the width of its published size
    blocks: int = 2
    batch: int = 1


@dataclass(frozen=True)
class Gemm:
    """``count`` products [rows, inner] × [inner, columns]."""

    count: int
    rows: int
    inner: int
    columns: int

    @property
    def flops(self) -> float:
        return 2.0 * self.count * self.rows * self.inner * self.columns


@dataclass(frozen=True)
class Contender:
    """A network, how it is called, and its matrix products."""

    name: str
    make: Callable[[Case], nn.Module]
    gemms: Callable[[Case], tuple[Gemm, ...]]
    width: Callable[[Case], tuple[int, int]]  # feature maps and blocks, for the record
    limit: str = "gemm"  # the name of its limit in the record
    call: Callable[[Any, Tensor], Tensor] = field(default=lambda network, tokens: network(tokens))
    inputs: str = "tokens"  # or "graph"
    compiled: bool = False

    def flops(self, case: Case) -> float:
        """Floating-point operations of one pass; a training step makes three."""
        return sum(gemm.flops for gemm in self.gemms(case)) * passes(case.mode)


def passes(mode: str) -> int:
    """Matrix products per product of the forward pass: the backward pass makes two more."""
    return 3 if mode == "training" else 1


def matrix_se_gemms(case: Case) -> tuple[Gemm, ...]:
    """Two products per switch layer on groups of four, and the readout.

    >>> matrix_se_gemms(Case("inference", 16))
    (Gemm(count=14, rows=64, inner=384, columns=768), Gemm(count=14, rows=64, inner=768, columns=384),
     Gemm(count=1, rows=256, inner=96, columns=12))
    """
    digits, cells = case.n.bit_length() - 1, case.batch * case.n**2
    layers, width = case.blocks * (2 * digits - 1), 4 * case.feature_maps
    readout = Gemm(1, cells, case.feature_maps, CLASSES)
    return Gemm(layers, cells // 4, width, 2 * width), Gemm(layers, cells // 4, 2 * width, width), readout


def rse_gemms(case: Case) -> tuple[Gemm, ...]:
    """Two products per switch layer on pairs: twice as many digits, and one last layer for the whole network."""
    digits, cells = 2 * (case.n.bit_length() - 1), case.batch * case.n**2
    maps, blocks = RSE_WIDTH
    layers = blocks * 2 * (digits - 1) + 1
    readout = Gemm(1, cells, maps, CLASSES)
    return Gemm(layers, cells // 2, 2 * maps, 4 * maps), Gemm(layers, cells // 2, 4 * maps, 2 * maps), readout


def resnet_gemms(case: Case) -> tuple[Gemm, ...]:
    """A 3×3 convolution is a product with the nine shifted inputs side by side."""
    cells = case.batch * case.n**2
    maps, blocks = RESNET_WIDTH
    return Gemm(2 * blocks + 1, cells, 9 * maps, maps), Gemm(1, cells, maps, CLASSES)


def attention_gemms(case: Case) -> tuple[Gemm, ...]:
    """Four projections per layer, and the scores of all pairs of cells, twice, in each head."""
    cells = case.n**2
    maps, layers = ATTENTION_WIDTH
    heads = layers * case.batch * maps // HEAD
    tokens = case.batch * cells
    return (
        Gemm(layers, tokens, maps, 3 * maps),
        Gemm(heads, cells, HEAD, cells),
        Gemm(heads, cells, cells, HEAD),
        Gemm(layers, tokens, maps, maps),
        Gemm(layers, tokens, maps, 4 * maps),
        Gemm(layers, tokens, 4 * maps, maps),
        Gemm(1, tokens, maps, CLASSES),
    )


def gin_gemms(case: Case) -> tuple[Gemm, ...]:
    """Perceptrons on the vertices, then one on all pairs of vertices, which costs nearly everything."""
    vertices, pairs = case.batch * case.n, case.batch * case.n**2
    maps, layers = GIN_WIDTH
    return (
        Gemm(layers, vertices, 2 * maps, maps),
        Gemm(2 * layers, vertices, maps, maps),
        Gemm(1, pairs, 3 * maps, maps),
        Gemm(1, pairs, maps, maps),
        Gemm(1, pairs, maps, GRAPH_CLASSES),
    )


RSE_WIDTH, RESNET_WIDTH, ATTENTION_WIDTH, GIN_WIDTH = (208, 2), (128, 14), (192, 8), (442, 5)
HEAD, GRAPH_CLASSES = 32, 3


def matrix_se(case: Case, norm: str = "feature") -> MatrixSE:
    return MatrixSE(
        in_classes=CLASSES,
        out_classes=CLASSES,
        feature_maps=case.feature_maps,
        blocks=case.blocks,
        norm=norm,
    )


def published(name: str) -> Callable[[Case], nn.Module]:
    """A baseline at its default, the published, size."""
    return lambda case: baseline(name)(in_classes=CLASSES, out_classes=CLASSES)


def one_pass_rse(case: Case) -> RSE:
    """RSE with RMSNorm over features, as Matrix-SE has it.

    The authors' norm needs the sums over all positions first: a second pass over the products, or a second tensor.
    The comparison with Matrix-SE is about pairs and fours, so both get the norm that is faster.
    """
    network = RSE(in_classes=CLASSES, out_classes=CLASSES)
    for unit in network.modules():
        if isinstance(unit, Switch):
            unit.norm, unit.offset = "feature", None
    return network


def own_width(case: Case) -> tuple[int, int]:
    return case.feature_maps, case.blocks


def one_chunk(model: Any, tokens: Tensor) -> Tensor:
    return model(tokens, chunk=1 << 40)


def out_of_place(model: Any, tokens: Tensor) -> Tensor:
    """The path that autograd takes: shuffles as transpositions, a new tensor for every result."""
    return model.train()(tokens)  # without dropout, training mode changes nothing but the path


def plain_layers(case: Case) -> MatrixSE:
    """Matrix-SE whose switch layers leave the backward pass to autograd."""
    network = matrix_se(case)
    for unit in network.modules():
        if isinstance(unit, Switch):
            unit.forward = unit.plain  # type: ignore[method-assign]
    return network


def _ours(name: str, **options) -> Contender:
    make = options.pop("make", matrix_se)
    return Contender(name, make, matrix_se_gemms, own_width, **options)


CONTENDERS = {
    contender.name: contender
    for contender in (
        _ours(MATRIX_SE),
        _ours("gather port", make=lambda case: GatherPort(matrix_se(case))),
        _ours("matrix-se, out of place", call=out_of_place),
        _ours("matrix-se, plain layers", make=plain_layers),
        _ours("matrix-se, one chunk", call=one_chunk),
        _ours("matrix-se, norm=position", make=lambda case: matrix_se(case, "position")),
        Contender("resnet29", published("resnet29"), resnet_gemms, lambda case: RESNET_WIDTH, "gemm of resnet29"),
        Contender(
            "gin",
            lambda case: baseline("gin")(in_classes=GRAPH_CLASSES, out_classes=GRAPH_CLASSES, non_edge=2),
            gin_gemms,
            lambda case: GIN_WIDTH,
            "gemm of gin",
            inputs="graph",
        ),
        Contender(
            "attention", published("attention"), attention_gemms, lambda case: ATTENTION_WIDTH, "gemm of attention"
        ),
        Contender("rse", one_pass_rse, rse_gemms, lambda case: RSE_WIDTH, "gemm of rse"),
        Contender(
            "rse, gather port",
            lambda case: GatherPort(RSE(in_classes=CLASSES, out_classes=CLASSES)),
            rse_gemms,
            lambda case: RSE_WIDTH,
            "gemm of rse",
        ),
        _ours("matrix-se, compiled", compiled=True),
    )
}


def inputs_of(contender: Contender, case: Case, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens and labels [B, n, n]; a graph network gets graphs, because its work depends on their edges."""
    if contender.inputs == "graph":
        from mse_fast.tasks import get_task

        return get_task("transitivity").sample(case.batch, case.n, generator)
    shape = (case.batch, case.n, case.n)
    tokens = torch.randint(0, CLASSES, shape, generator=generator)
    return tokens, torch.randint(0, CLASSES, shape, generator=generator)
