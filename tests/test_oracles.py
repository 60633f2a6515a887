"""The oracles of the tasks, solved a second time by NetworkX or by brute force."""

import itertools

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mse_ref.tasks import label, sample


@pytest.mark.parametrize("n", [2, 4, 7, 16])
def test_transposing_swaps_the_coordinates_of_every_cell(n):
    tokens, labels = sample("transpose", n, np.random.default_rng(n))
    assert all(labels[c, r] == tokens[r, c] for r in range(n) for c in range(n))


@pytest.mark.parametrize("n", [2, 4, 7, 16])
def test_rotating_moves_the_last_column_into_the_first_row(n):
    for seed in range(10):
        tokens, labels = sample("rotate90", n, np.random.default_rng(seed))
        rows, columns = tokens.any(axis=1).sum(), tokens.any(axis=0).sum()
        expected = np.zeros((n, n))
        for r, c in itertools.product(range(rows), range(columns)):
            expected[columns - 1 - c, r] = tokens[r, c]
        assert_array_equal(labels, expected)


@pytest.mark.parametrize("n", [3, 4, 8, 17])
def test_xor_compares_the_two_sides_of_the_separator_cell_by_cell(n):
    for seed in range(10):
        tokens, labels = sample("xor", n, np.random.default_rng(seed))
        for row, answer in zip(tokens.tolist(), labels.tolist(), strict=True):
            written = "".join(map(str, row)).rstrip("0")
            left, _, right = written.partition("1")
            assert len(left) == len(right) and set(left + right) <= {"2", "3"}
            told = [1 if a == b else 2 for a, b in zip(left, right, strict=True)]
            assert answer == told + [0] * (n - len(told))


@pytest.mark.parametrize("n", [2, 4, 9])
def test_squaring_counts_the_pairs_of_ones_modulo_two(n):
    for seed in range(5):
        tokens, labels = sample("squaring", n, np.random.default_rng(seed))
        side = tokens.any(axis=0).sum()
        for r, c in itertools.product(range(side), repeat=2):
            ones = sum(tokens[r, x] == 2 and tokens[x, c] == 2 for x in range(side))
            assert labels[r, c] == 1 + ones % 2
        assert not labels[side:].any() and not labels[:, side:].any()


def random_graph(v, density, rng, *, directed):
    """A NetworkX graph that no sampler here would draw: any density, loose vertices, weights 2-99."""
    graph = nx.gnp_random_graph(v, density, seed=int(rng.integers(1 << 30)), directed=directed)
    for a, b in graph.edges:
        graph[a][b]["weight"] = int(rng.integers(2, 100))
    return graph


@pytest.mark.parametrize("density", [0.0, 0.1, 0.2, 0.5, 1.0])
def test_component_labels_are_the_lowest_weights_found_by_networkx(density):
    rng = np.random.default_rng(3)
    for v in (1, 2, 9, 14):
        graph = random_graph(v, density, rng, directed=False)
        answer = graph.copy()
        for members in nx.connected_components(graph):
            part = answer.subgraph(members)
            lowest = min(nx.get_edge_attributes(part, "weight").values(), default=None)
            nx.set_edge_attributes(part, lowest, "weight")
        tokens, expected = (np.pad(nx.to_numpy_array(g, nonedge=1), (0, 16 - v)) for g in (graph, answer))
        assert_array_equal(label("components", tokens.astype(np.int64)), expected)


@pytest.mark.parametrize("density", [0.0, 0.2, 0.5, 1.0])
def test_triangle_labels_are_the_edges_of_all_triples_that_close(density):
    rng = np.random.default_rng(4)
    for v in (1, 3, 9, 14):
        graph = random_graph(v, density, rng, directed=False)
        answer = nx.empty_graph(v)
        for triple in itertools.combinations(range(v), 3):
            sides = list(itertools.combinations(triple, 2))
            if all(graph.has_edge(a, b) for a, b in sides):
                answer.add_edges_from(sides)
        tokens, expected = (np.pad(nx.to_numpy_array(g, weight=None, nonedge=2), (0, 16 - v)) for g in (graph, answer))
        assert_array_equal(label("triangles", tokens.astype(np.int64)), expected)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.3, 1.0])
def test_transitivity_adds_an_edge_exactly_where_networkx_measures_distance_two(density):
    rng = np.random.default_rng(5)
    for v in (1, 2, 9, 14):
        graph = random_graph(v, density, rng, directed=True)
        answer = graph.copy()
        for start, reach in nx.all_pairs_shortest_path_length(graph, cutoff=2):
            answer.add_edges_from((start, end) for end, distance in reach.items() if distance == 2)
        tokens, expected = (np.pad(nx.to_numpy_array(g, weight=None, nonedge=2), (0, 16 - v)) for g in (graph, answer))
        assert_array_equal(label("transitivity", tokens.astype(np.int64)), expected)


@pytest.mark.parametrize(
    ("tokens", "error", "told"),
    [
        (np.ones((2, 3), int), ValueError, r"\[n, n\], not \[2, 3\]"),
        (np.ones((1, 2, 2), int), ValueError, "pass one instance"),
        (np.ones((2, 2)), TypeError, "integers, not float64"),
        (np.array([[1, 2], [-1, 0]]), ValueError, "0 to 11, not -1 to 2"),
        (np.array([[1, 2], [12, 0]]), ValueError, "0 to 11, not 0 to 12"),
    ],
)
def test_the_oracle_refuses_what_is_no_instance(tokens, error, told):
    with pytest.raises(error, match=told):
        label("transpose", tokens)
