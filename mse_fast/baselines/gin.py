"""GIN: the paper's graph baseline, working from the same adjacency matrix as Matrix-SE.

Paper: section "Graph algorithmic tasks", after Xu et al., *How Powerful are Graph Neural Networks?* (2018).
A cell [u, v] of the input is the arc u → v; 0 is padding and ``non_edge`` says that there is none.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mse_fast.hub import Pretrained, own_arguments
from mse_fast.network import Embed

try:
    from torch_geometric.nn import MessagePassing
except ImportError as error:
    raise ImportError("the GIN baseline needs PyTorch Geometric: pip install 'matrix-se[graph]'") from error

PAIRS_AT_ONCE = 1 << 16  # vertex pairs read out together: bounds the memory of large graphs


def edge_cells(tokens: Tensor, non_edge: int) -> Tensor:
    """True where a cell of the adjacency matrix holds an edge: the cells the paper scores GIN on.

    >>> edge_cells(torch.tensor([[2, 1, 0], [1, 2, 0], [0, 0, 0]]), non_edge=2).int()
    tensor([[0, 1, 0],
            [1, 0, 0],
            [0, 0, 0]], dtype=torch.int32)
    """
    return (tokens != 0) & (tokens != non_edge)


def perceptron(width_in: int, width: int, width_out: int) -> nn.Sequential:
    """Three linear layers, normalised in between: sums over neighbours grow with the graph."""
    return nn.Sequential(
        nn.Linear(width_in, width),
        nn.LayerNorm(width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.LayerNorm(width),
        nn.ReLU(),
        nn.Linear(width, width_out),
    )


class LabelledGINConv(MessagePassing):
    """One isomorphism layer; a message is the sender's features and their product with the edge's label."""

    def __init__(self, feature_maps: int) -> None:
        super().__init__(aggr="add")
        self.eps = nn.Parameter(torch.zeros(()))
        self.perceptron = perceptron(2 * feature_maps, feature_maps, feature_maps)
        self.norm = nn.LayerNorm(feature_maps)

    def forward(self, x: Tensor, edge_index: Tensor, edge: Tensor) -> Tensor:
        summed = self.propagate(edge_index, x=x, edge=edge)  # [vertices, 2C]
        plain, labelled = summed.chunk(2, dim=-1)
        return self.norm(self.perceptron(torch.cat([(1 + self.eps) * x + plain, labelled], dim=-1))).relu()

    def message(self, x_j: Tensor, edge: Tensor) -> Tensor:
        return torch.cat([x_j, edge * x_j], dim=-1)  # [edges, 2C]


class GIN(Pretrained, nn.Module):
    """Graph isomorphism network that labels every ordered pair of vertices.

    Relabelling the vertices relabels the output alike: a vertex starts from its diagonal cell alone.

    >>> model = GIN(in_classes=3, out_classes=3, non_edge=2)
    >>> round(sum(p.numel() for p in model.parameters()) / 1e6, 1)  # millions, as in the paper
    4.7
    >>> model(torch.ones(2, 6, 6, dtype=torch.int64)).shape
    torch.Size([2, 6, 6, 3])

    Parameters
    ----------
    in_classes, out_classes: sizes of the input and output alphabets.
    non_edge: the token of a pair without an edge.
    feature_maps: width of every perceptron.
    layers: isomorphism layers.
    dropout: acts on the vertex features before the readout.
    """

    model_name: ClassVar[str] = "gin"

    def __init__(
        self,
        *,
        in_classes: int,
        out_classes: int,
        non_edge: int,
        feature_maps: int = 442,
        layers: int = 5,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 < non_edge < in_classes:
            raise ValueError(f"non_edge must be a token of 1 … {in_classes - 1}, got {non_edge}")
        self.arguments = own_arguments(locals())
        self.non_edge = non_edge
        self.embed_vertex = Embed(in_classes, None, feature_maps)
        self.embed_edge = nn.Embedding(in_classes, feature_maps)
        self.convs = nn.ModuleList(LabelledGINConv(feature_maps) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.readout = perceptron(3 * feature_maps, feature_maps, out_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Adjacency tokens [B, n, n] → logits [B, n, n, out_classes]."""
        self.embed_vertex.check(tokens, "B,H,W")
        batch, n, width = tokens.shape
        if n != width:
            raise ValueError(f"an adjacency matrix is square, got {n}×{width}")
        graph, source, target = edge_cells(tokens, self.non_edge).nonzero(as_tuple=True)  # [edges] each
        edge_index = torch.stack([graph * n + source, graph * n + target])  # [2, edges]
        edge = self.embed_edge(tokens[graph, source, target])  # [edges, C]
        x = self.embed_vertex(tokens.diagonal(dim1=1, dim2=2)).flatten(0, 1)  # [B·n, C]
        for conv in self.convs:
            x = conv(x, edge_index, edge)
        x = self.dropout(x).unflatten(0, (batch, n))  # [B, n, C]
        rows = max(1, PAIRS_AT_ONCE // (batch * n))
        parts = [self._read_pairs(u, x, t) for u, t in zip(x.split(rows, 1), tokens.split(rows, 1), strict=True)]
        return torch.cat(parts, dim=1)  # [B, n, n, classes]

    def _read_pairs(self, senders: Tensor, receivers: Tensor, tokens: Tensor) -> Tensor:
        """Logits [B, rows, n, classes] of pairs of ``senders`` [B, rows, C] and ``receivers`` [B, n, C]."""
        u, v = senders[:, :, None], receivers[:, None]  # [B, rows, 1, C], [B, 1, n, C]
        labelled = self.embed_edge(tokens) * u  # [B, rows, n, C]
        return self.readout(torch.cat([u.expand_as(labelled), v.expand_as(labelled), labelled], dim=-1))
