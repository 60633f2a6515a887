"""Batch samplers of the graph tasks; ``mse_ref.tasks.graph`` says what an instance means.

A batch holds graphs of different sizes v in matrices of one side n: vertices v … n-1 do not exist.
"""

import math

import torch
from torch import Generator, Tensor

from mse_fast.tasks import Task
from mse_fast.tasks.matrix import corner, count_paths, integers_below
from mse_ref.tasks import SPECS
from mse_ref.tasks.graph import DENSITY, EDGE, HIGHEST, LOWEST, NO_LABEL, NON_EDGE


class Components(Task):
    """Random forests with a few extra edges, and the lowest edge label of each component.

    The components are known from the construction, so no graph search is needed: every vertex of a rooted
    forest finds its root by pointer doubling.
    """

    spec = SPECS["components"]

    def sample(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        v = random_vertices(batch, n, generator)
        exists = torch.arange(n, device=v.device) < v[:, None]  # [B, n]
        parent = cut_edges(random_trees(v, n, generator), v, exists, generator)
        parent, component = group_by_component(parent)
        size = torch.zeros_like(component).scatter_add_(1, component, exists.long())  # [B, n] by component
        edge = tree_edges(parent)
        edge |= extra_edges(edge, component, size, generator)
        weights = torch.randint(LOWEST, HIGHEST + 1, edge.shape, generator=generator, device=v.device)
        weights = mirror(weights).where(edge, HIGHEST + 1)
        lowest = torch.full_like(component, HIGHEST + 1)
        lowest.scatter_reduce_(1, component, weights.amin(2), "amin")  # [B, n] by component
        answer = lowest.gather(1, component)[:, :, None].expand_as(edge)
        inside = corner(v, v, n)
        return weights.where(edge, NO_LABEL) * inside, answer.where(edge, NO_LABEL) * inside


class Triangles(Task):
    """Random bipartite graphs plus a few edges, and the edges that lie in a triangle.

    ``complete`` makes the bipartite graph complete, as the paper's text says; its code keeps half the edges.
    """

    spec = SPECS["triangles"]

    def __init__(self, *, complete: bool = False) -> None:
        self.complete = complete

    def sample(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        device = generator.device
        v = random_vertices(batch, n, generator)
        inside = corner(v, v, n)
        key = torch.rand(batch, n, generator=generator, device=device)
        key = key.where(torch.arange(n, device=device) < v[:, None], 2.0)  # missing vertices come last
        split = 1 + integers_below(v - 1, generator)
        side = key.argsort(1).argsort(1) < split[:, None]  # [B, n]; a random half of the vertices
        edge = (side[:, :, None] ^ side[:, None, :]) & inside
        if not self.complete:
            edge &= mirror(torch.randint(0, 2, edge.shape, generator=generator, device=device)).bool()
        most = int(math.log(n)) + 1
        ends = integers_below(v[:, None].expand(-1, 2 * most), generator).view(batch, 2, most)
        wanted = torch.arange(most, device=device) < v.log().long()[:, None] + 1  # [B, most]
        a, b = torch.where(wanted[:, None, :], ends, 0).unbind(1)  # an unwanted edge becomes the loop 0-0
        edge.view(batch, n * n).scatter_(1, torch.cat([a * n + b, b * n + a], 1), True)
        edge.diagonal(dim1=1, dim2=2).fill_(False)
        return adjacency(edge, inside), adjacency(edge & (count_paths(edge) > 0), inside)


class Transitivity(Task):
    """Directed random graphs, and the same with an edge wherever a path of length 2 leads."""

    spec = SPECS["transitivity"]

    def sample(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        v = random_vertices(batch, n, generator)
        inside = corner(v, v, n)
        probability = DENSITY * v.log() / v
        chance = torch.rand(batch, n, n, generator=generator, device=v.device)
        edge = (chance < probability[:, None, None]) & inside
        edge.diagonal(dim1=1, dim2=2).fill_(False)
        reached = edge | (count_paths(edge) > 0)
        reached.diagonal(dim1=1, dim2=2).fill_(False)
        return adjacency(edge, inside), adjacency(reached, inside)


def random_vertices(batch: int, n: int, generator: Generator) -> Tensor:
    """How many vertices each graph has: uniform in n/2 … n, [B]."""
    return torch.randint(n // 2, n + 1, (batch,), generator=generator, device=generator.device)


def adjacency(edge: Tensor, inside: Tensor) -> Tensor:
    """Edges as tokens: edge 1, non-edge 2, padding 0."""
    return torch.where(edge, EDGE, NON_EDGE) * inside


def mirror(values: Tensor) -> Tensor:
    """The symmetric matrices with the upper triangles of ``values`` and an empty diagonal, [B, n, n]."""
    upper = values.triu(1)
    return upper + upper.mT


def random_trees(v: Tensor, n: int, generator: Generator) -> Tensor:
    """Parents of the vertices in uniform random labelled trees on v vertices, [B, n]; roots are their own.

    Joyal's bijection: a random map f of the vertices to themselves is a set of cycles with trees hanging on
    them. Written in a row, the images f(c) of the vertices c on cycles (in the order of c) become the path to
    the root; everything else keeps f as its parent. Every tree arises from equally many maps (one for each
    choice of two vertices as the ends of that path), so the tree is uniform, and no step waits for another as
    in the decoding of a Prüfer code.
    """
    batch = len(v)
    place = torch.arange(n, device=v.device).expand(batch, n)
    exists = place < v[:, None]
    image = torch.where(exists, integers_below(v[:, None].expand(batch, n), generator), place)
    late = image  # after n or more steps every walk is on its cycle, and reaches all of it
    for _ in range(n.bit_length()):
        late = late.gather(1, late)
    on_cycle = torch.zeros_like(exists).scatter_(1, late, True) & exists
    # spine[r] is the image of the r-th cyclic vertex; the surplus is written to a slot that is cut off.
    rank = torch.where(on_cycle, on_cycle.cumsum(1) - 1, n)
    spine = torch.zeros(batch, n + 1, dtype=torch.long, device=v.device).scatter_(1, rank, image)
    length = on_cycle.sum(1, keepdim=True)
    following = spine.gather(1, (torch.arange(n + 1, device=v.device) + 1).minimum(length - 1))
    # The last vertex of the spine follows itself: the root. Slots past the spine write to the cut-off slot n.
    target = torch.where(torch.arange(n + 1, device=v.device) < length, spine, n)
    parent = torch.cat([image, image[:, :1]], 1).scatter_(1, target, following)
    return parent[:, :n]


def cut_edges(parent: Tensor, v: Tensor, exists: Tensor, generator: Generator) -> Tensor:
    """Take 0 … ⌊√e⌋+1 random edges away from trees of e > 2 edges, [B, n]."""
    edges = v - 1
    lost = integers_below(edges.sqrt().long() + 2, generator) * (edges > 2)
    key = torch.rand(parent.shape, generator=generator, device=v.device)
    place = torch.arange(parent.shape[1], device=v.device)
    key = key.where(exists & (parent != place), 2.0)  # roots and missing vertices have no edge to lose
    cut = key.argsort(1).argsort(1) < lost[:, None]
    return torch.where(cut, place, parent)


def group_by_component(parent: Tensor) -> tuple[Tensor, Tensor]:
    """Number the vertices component by component; the new parents and the component of each vertex, [B, n].

    Components are ordered by their lowest vertex, and so are the vertices in each.
    """
    n = parent.shape[1]
    place = torch.arange(n, device=parent.device).expand_as(parent)
    root = parent
    for _ in range(n.bit_length()):
        root = root.gather(1, root)
    lowest = torch.full_like(parent, n).scatter_reduce_(1, root, place, "amin").gather(1, root)
    order = lowest.argsort(dim=1, stable=True)  # new number -> old
    number = torch.empty_like(order).scatter_(1, order, place)  # old number -> new
    return number.gather(1, parent).gather(1, order), number.gather(1, lowest).gather(1, order)


def tree_edges(parent: Tensor) -> Tensor:
    """The adjacency matrix of parent pointers, without loops, [B, n, n] bool."""
    n = parent.shape[1]
    edge = parent[:, :, None] == torch.arange(n, device=parent.device)
    edge = edge | edge.mT
    edge.diagonal(dim1=1, dim2=2).fill_(False)
    return edge


def extra_edges(edge: Tensor, component: Tensor, size: Tensor, generator: Generator) -> Tensor:
    """For every component of N > 1 missing edges, 0 … ⌊log2 N⌋ of them at random, [B, n, n] bool."""
    batch, n, _ = edge.shape
    missing = (size - 1) * (size - 2) // 2 * (size > 0)  # [B, n] by component: a tree has size - 1 edges
    _, bits = torch.frexp(missing.clamp(min=1).float())  # ⌊log2 N⌋ = bits - 1, without a rounded logarithm
    gained = integers_below(bits.long(), generator)
    # Sort all missing pairs by component, at random within each, and keep the first of every component.
    allowed = ((component[:, :, None] == component[:, None, :]) & ~edge).triu(1)
    key = torch.randint(0, 1 << 31, edge.shape, generator=generator, device=edge.device)
    key = (key + (component[:, :, None] << 31)).where(allowed, n << 31).view(batch, n * n)
    order = key.argsort(1)  # [B, n * n]
    first = missing.cumsum(1) - missing  # where the pairs of a component begin
    owner = component.gather(1, order // n)  # the component of each sorted pair
    rank = torch.arange(n * n, device=edge.device) - first.gather(1, owner)
    chosen = (rank < gained.gather(1, owner)) & allowed.view(batch, n * n).gather(1, order)
    added = torch.zeros_like(chosen).scatter_(1, order, chosen).view(batch, n, n)
    return added | added.mT
