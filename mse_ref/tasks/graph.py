"""Graph tasks on adjacency matrices: components, triangles, transitivity (paper: Inferring graph algorithms).

A graph of v vertices fills the top-left [v, v] corner, v uniform in n/2 … n. Cells of triangles and
transitivity are 1 for an edge and 2 for a non-edge; components has edge labels 2-99 and non-edge 1.
The diagonal is a non-edge, in tokens and labels alike. Distributions as in the authors' released code.
"""

import numpy as np

EDGE, NON_EDGE = 1, 2  # triangles and transitivity
NO_LABEL, LOWEST, HIGHEST = 1, 2, 99  # components: the non-edge, and the range of edge labels
DENSITY = 1.02  # transitivity: times the threshold ln v / v at which a random graph becomes connected


def sample_components(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random forest with a few extra edges inside each tree, and random edge labels 2-99.

    A uniform random tree loses 0 … ⌊√e⌋+1 of its e edges (if e > 2); each component of N > 1 missing edges
    gains 0 … ⌊log2 N⌋ of them. Vertices are numbered component by component, as the authors' generator does.
    """
    v = _vertices(n, rng)
    edges = _random_tree(v, rng)
    if len(edges) > 2:
        lost = rng.integers(int(np.sqrt(len(edges))) + 2)
        edges = [edges[i] for i in rng.permutation(len(edges))[lost:]]
    component = _component_of_each_vertex(v, edges)
    for root in np.unique(component):
        members = np.flatnonzero(component == root)
        missing = [(a, b) for a in members for b in members if a < b and (a, b) not in edges]
        if len(missing) > 1:
            gained = rng.integers(int(np.log2(len(missing))) + 1)
            edges += [missing[i] for i in rng.permutation(len(missing))[:gained]]
    number = np.argsort(np.argsort(component, kind="stable"))  # the new number of each vertex
    tokens = np.full((v, v), NO_LABEL)
    for a, b in edges:
        weight = rng.integers(LOWEST, HIGHEST + 1)
        tokens[number[a], number[b]] = tokens[number[b], number[a]] = weight
    return _pad(tokens, n)


def label_components(tokens: np.ndarray) -> np.ndarray:
    """Every edge gets the lowest label among the edges of its component.

    Each vertex repeatedly takes the lowest label it can see over its edges until nothing changes.

    >>> label_components(np.array([[1, 7, 1], [7, 1, 4], [1, 4, 1]]))
    array([[1, 4, 1],
           [4, 1, 4],
           [1, 4, 1]])
    """
    edge = tokens >= LOWEST
    lowest = np.where(edge, tokens, HIGHEST + 1).min(axis=1)  # over the edges of a vertex
    while True:
        seen = np.where(edge, lowest[None, :], HIGHEST + 1).min(axis=1)  # over its neighbours
        if (seen >= lowest).all():
            return np.where(edge, lowest[:, None], tokens)
        lowest = np.minimum(lowest, seen)


def sample_triangles(n: int, rng: np.random.Generator, *, complete: bool = False) -> np.ndarray:
    """A random bipartite graph, which has no triangle, plus ⌊ln v⌋ + 1 random edges.

    The two sides share the shuffled vertices at a random split, and an edge between them is there with
    probability .5, or always with ``complete`` (the paper's text). A random edge may hit an old one, or a
    loop, which is dropped.
    """
    v = _vertices(n, rng)
    side = rng.permutation(v) < rng.integers(1, v)  # which half of the bipartite graph
    crossing = side[:, None] != side[None, :]
    coin = np.triu(rng.random((v, v)) < (1.0 if complete else 0.5))
    edge = crossing & (coin | coin.T)
    for a, b in rng.integers(0, v, (int(np.log(v)) + 1, 2)):
        edge[a, b] = edge[b, a] = a != b
    return _pad(np.where(edge, EDGE, NON_EDGE), n)


def label_triangles(tokens: np.ndarray) -> np.ndarray:
    """Only the edges whose two ends have a common neighbour remain.

    >>> label_triangles(np.array([[2, 1, 1, 1], [1, 2, 1, 2], [1, 1, 2, 2], [1, 2, 2, 2]]))[0]
    array([2, 1, 1, 2])
    """
    edge = tokens == EDGE
    common = edge.astype(np.int64) @ edge.astype(np.int64)  # common neighbours of every pair
    return np.where(tokens == 0, 0, np.where(edge & (common > 0), EDGE, NON_EDGE))


def sample_transitivity(n: int, rng: np.random.Generator) -> np.ndarray:
    """A directed random graph without loops: every edge is there with probability 1.02·ln v / v."""
    v = _vertices(n, rng)
    edge = rng.random((v, v)) < DENSITY * np.log(v) / v
    np.fill_diagonal(edge, False)
    return _pad(np.where(edge, EDGE, NON_EDGE), n)


def label_transitivity(tokens: np.ndarray) -> np.ndarray:
    """The graph plus an edge a → b wherever a → x → b; there and back again adds no loop.

    >>> label_transitivity(np.array([[2, 1, 2], [1, 2, 1], [2, 2, 2]]))
    array([[2, 1, 1],
           [1, 2, 1],
           [2, 2, 2]])
    """
    edge = tokens == EDGE
    paths = edge.astype(np.int64) @ edge.astype(np.int64)  # paths of length 2 between every pair
    reached = (edge | (paths > 0)) & ~np.eye(len(tokens), dtype=bool)
    return np.where(tokens == 0, 0, np.where(reached, EDGE, NON_EDGE))


def _vertices(n: int, rng: np.random.Generator) -> int:
    return int(rng.integers(n // 2, n + 1))


def _random_tree(v: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A uniform random labelled tree, decoded from a random Prüfer sequence; edges (a, b) with a < b."""
    if v < 2:
        return []
    sequence = rng.integers(0, v, v - 2).tolist()
    degree = 1 + np.bincount(sequence, minlength=v)
    edges = []
    for hub in sequence:
        leaf = int(np.flatnonzero(degree == 1)[0])
        edges.append((min(leaf, hub), max(leaf, hub)))
        degree[[leaf, hub]] -= 1
    a, b = np.flatnonzero(degree == 1)
    return [*edges, (int(a), int(b))]


def _component_of_each_vertex(v: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """The lowest vertex number in the component of each vertex [v]."""
    component = np.arange(v)
    for a, b in edges:
        low, high = sorted((component[a], component[b]))
        component[component == high] = low
    return component


def _pad(graph: np.ndarray, n: int) -> np.ndarray:
    return np.pad(graph, (0, n - len(graph)))  # [v, v] -> [n, n]
