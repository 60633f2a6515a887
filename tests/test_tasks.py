"""The fast samplers against the oracles, and both against the laws of their distributions."""

from collections import Counter, defaultdict

import networkx as nx
import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy import stats

from mse_fast.tasks import TASKS, get_task
from mse_fast.tasks.graph import Triangles, extra_edges, random_trees, tree_edges
from mse_fast.tasks.matrix import count_paths
from mse_ref.tasks import SPECS, label, sample
from mse_ref.tasks.graph import sample_triangles

NAMES = tuple(SPECS)
RECTANGLES = ("transpose", "rotate90")
GRAPHS = ("components", "triangles", "transitivity")
SOURCES = ("oracle", "fast")
SURPRISE = 1e-4  # how rarely chance alone fails a right sampler; the seeds are fixed, so a pass stays a pass


def draw(source, name, n, count, seed=0):
    """``count`` instances from either sampler: tokens and labels [count, n, n]."""
    if source == "fast":
        tokens, labels = get_task(name).sample(count, n, torch.Generator().manual_seed(seed))
        return tokens.numpy(), labels.numpy()
    rng = np.random.default_rng(seed)
    pairs = [sample(name, n, rng) for _ in range(count)]
    return tuple(np.stack(side) for side in zip(*pairs, strict=True))


def extent(tokens):
    """Rows and columns that hold anything but padding, [count] each."""
    return (tokens != 0).any(2).sum(1), (tokens != 0).any(1).sum(1)


def assert_drawn_from(values, probability, first):
    """A chi-square test of ``values`` against the probabilities of first, first + 1, …; rare ones are pooled."""
    expected = np.asarray(probability) * len(values)
    observed = np.bincount(np.asarray(values) - first, minlength=len(expected))
    assert len(observed) == len(expected), f"values go up to {max(values)}"
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert len(expected) == 1 or stats.chisquare(observed, expected).pvalue > SURPRISE


# --- The fast samplers against the oracles ---


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", ["smallest", 5, 8, 16, 32])
def test_the_fast_labels_are_those_of_the_oracle(name, n):
    n = SPECS[name].min_size if n == "smallest" else n
    tokens, labels = draw("fast", name, n, 48, seed=n)
    assert tokens.shape == labels.shape == (48, n, n) and tokens.dtype == labels.dtype == np.int64
    for instance, answer in zip(tokens, labels, strict=True):
        assert_array_equal(answer, label(name, instance))


@pytest.mark.parametrize("name", NAMES)
def test_the_fast_labels_are_right_far_above_the_training_sizes(name):
    tokens, labels = draw("fast", name, 256, 1)
    assert_array_equal(labels[0], label(name, tokens[0]))


def test_complete_bipartite_graphs_are_labelled_right_too():
    tokens, labels = Triangles(complete=True).sample(48, 16, torch.Generator().manual_seed(1))
    for instance, answer in zip(tokens.numpy(), labels.numpy(), strict=True):
        assert_array_equal(answer, label("triangles", instance))


def statistics(tokens, labels):
    """Figures whose distribution tells samplers apart."""
    cells = tokens != 0
    yield "rows", cells.any(2).sum(1)
    yield "columns", cells.any(1).sum(1)
    yield "ones in tokens", (tokens == 1).sum((1, 2))
    yield "ones in labels", (labels == 1).sum((1, 2))
    yield "twos in labels", (labels == 2).sum((1, 2))
    yield "busiest row", (tokens == 1).sum(2).max(1)
    yield "sum of tokens", tokens.sum((1, 2))
    yield "sum of labels", labels.sum((1, 2))
    yield "changed cells", (tokens != labels).sum((1, 2))
    place = np.arange(tokens.shape[1])
    far = np.abs(place[:, None] - place)
    yield "distance of ones from the diagonal", ((tokens == 1) * far).sum((1, 2))


@pytest.mark.parametrize("name", NAMES)
def test_the_fast_sampler_draws_from_the_distribution_of_the_oracle(name):
    pairs = zip(*(statistics(*draw(source, name, 16, 800, seed=2)) for source in SOURCES), strict=True)
    for (what, oracle), (_, fast) in pairs:
        assert stats.ks_2samp(oracle, fast).pvalue > SURPRISE, what


# --- Laws of the distributions ---


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", NAMES)
def test_tokens_and_labels_use_exactly_the_declared_alphabet(name, source):
    tokens, labels = draw(source, name, 16, 400)
    assert_array_equal(np.unique(tokens), np.arange(SPECS[name].in_classes))
    assert labels.min() == 0 and labels.max() < SPECS[name].out_classes
    if name != "components":  # where the highest labels rarely win
        assert_array_equal(np.unique(labels), np.arange(SPECS[name].out_classes))


@pytest.mark.parametrize("name", NAMES)
def test_an_instance_fills_a_rectangle_in_the_top_left_corner(name):
    tokens, _ = draw("fast", name, 16, 200)
    place = np.arange(16)
    for instance, rows, columns in zip(tokens, *extent(tokens), strict=True):
        assert_array_equal(instance != 0, (place[:, None] < rows) & (place < columns))
        assert rows == columns or name not in (*GRAPHS, "squaring")


def side_law(n):
    """Half of the sides are uniform in 1 … n, half in n/2 … n."""
    side = np.arange(1, n + 1)
    return 0.5 / n + 0.5 * (side >= n // 2) / (n + 1 - n // 2)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", [*RECTANGLES, "squaring"])
def test_sides_are_uniform_from_one_or_from_half_by_a_coin_up_to_n_itself(name, source):
    rows, columns = extent(draw(source, name, 8, 2000)[0])
    assert_drawn_from(rows, side_law(8), first=1)
    assert_drawn_from(columns, side_law(8), first=1)
    independent = stats.pearsonr(rows, columns).pvalue > SURPRISE
    assert independent == (name != "squaring")


def test_wide_xor_trains_on_all_distances_alike_and_is_evaluated_on_the_papers():
    n, task = 16, get_task("xor-wide")
    task.stage(0.5)
    inputs, labels = task.sample(6000, n, torch.Generator().manual_seed(3))
    rows = (inputs[:, :, 0] != 0).sum(1)
    widths = (inputs[:, 0] == 1).long().argmax(1)
    for drawn, most in ((rows, n), (widths, n - 2)):
        counts = torch.bincount(drawn, minlength=most + 1)
        assert counts[0] == 0 and len(counts) == most + 1
        assert (counts[1:] - 6000 / most).abs().max() < 6 * (6000 / most) ** 0.5
    for inp, lab, width in zip(inputs[:200].numpy(), labels[:200].numpy(), widths, strict=False):
        reach = min(int(width), n - 1 - int(width))  # what of B fits, meets the first columns of A
        first, second = inp[:, :reach], inp[:, width + 1 : width + 1 + reach]
        assert_array_equal(lab[:, :reach], np.where(first > 0, 1 + (first ^ second), 0))
        assert not lab[:, reach:].any()
    task.stage(None)
    same = [t.sample(5, n, torch.Generator().manual_seed(4)) for t in (task, get_task("xor"))]
    assert torch.equal(same[0][0], same[1][0]) and torch.equal(same[0][1], same[1][1])


def trained_and_evaluated(name, usual, n, count):
    """Instances as training draws them; checks their labels, and that an evaluation draws those of the usual task."""
    task = get_task(name)
    task.stage(None)
    for own, other in zip(
        *(t.sample(5, n, torch.Generator().manual_seed(4)) for t in (task, get_task(usual))), strict=True
    ):
        assert torch.equal(own, other)
    task.stage(0.5)
    tokens, labels = (part.numpy() for part in task.sample(count, n, torch.Generator().manual_seed(3)))
    for instance, answer in zip(tokens[:100], labels[:100], strict=True):
        assert_array_equal(answer, label(usual, instance))
    return tokens, labels


def test_sparse_squaring_trains_on_every_share_of_ones_up_to_one_half_and_is_evaluated_on_fair_coins():
    tokens, _ = trained_and_evaluated("squaring-sparse", "squaring", 32, 2000)
    large = tokens[(tokens != 0).sum((1, 2)) > 400]
    share = (large == 2).sum((1, 2)) / (large != 0).sum((1, 2))
    assert stats.kstest(2 * share, "uniform").statistic < 0.06  # the shares are drawn evenly; the ones add noise


@pytest.mark.parametrize("source", SOURCES)
def test_xor_keeps_seventy_percent_of_rows_and_columns_and_at_least_one(source):
    rows, columns = extent(draw(source, "xor", 8, 2000)[0])
    for values, most in ((rows, 8), ((columns - 1) // 2, 3)):
        law = stats.binom.pmf(np.arange(most + 1), most, 0.7)
        assert_drawn_from(values, [law[0] + law[1], *law[2:]], first=1)
    assert (columns % 2 == 1).all()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_have_half_of_n_to_n_vertices_and_no_loops(name, source):
    tokens, labels = draw(source, name, 8, 1000)
    vertices, _ = extent(tokens)
    assert_drawn_from(vertices, [1 / 5] * 5, first=4)
    loose = 1 if name == "components" else 2
    exists = np.arange(8) < vertices[:, None]
    for cells in (tokens, labels):
        assert_array_equal(np.diagonal(cells, axis1=1, axis2=2), loose * exists)
        assert (cells == cells.swapaxes(1, 2)).all() == (name != "transitivity")


@pytest.mark.parametrize("source", SOURCES)
def test_transitivity_has_slightly_more_edges_than_connect_a_random_graph(source):
    tokens, _ = draw(source, "transitivity", 16, 1500)
    vertices, _ = extent(tokens)
    for v in range(8, 17):
        drawn = tokens[vertices == v]
        pairs = len(drawn) * v * (v - 1)
        law = stats.binomtest(int((drawn == 1).sum()), pairs, 1.02 * np.log(v) / v)
        assert law.pvalue > SURPRISE


def graphs_of(source, name, n, count):
    tokens, _ = draw(source, name, n, count)
    vertices, _ = extent(tokens)
    joined = (tokens >= 2) if name == "components" else (tokens == 1)
    return [nx.from_numpy_array(a[:v, :v].astype(int)) for a, v in zip(joined, vertices, strict=True)]


@pytest.mark.parametrize("source", SOURCES)
def test_components_are_trees_with_a_few_cuts_and_a_few_extra_edges(source):
    cuts, extras = defaultdict(Counter), defaultdict(Counter)  # how often, by number of vertices
    for graph in graphs_of(source, "components", 12, 600):
        parts = list(nx.connected_components(graph))
        cuts[len(graph)][len(parts) - 1] += 1
        for part in parts:
            v = len(part)
            assert sorted(part) == list(range(min(part), min(part) + v)), "a component is numbered in one piece"
            extras[v][graph.subgraph(part).number_of_edges() - (v - 1)] += 1
    for v, most in {6: 3, 9: 3, 10: 4}.items():  # ⌊√e⌋ + 1 for 5, 8, 9 edges
        assert_drawn_from(list(cuts[v].elements()), [1 / (most + 1)] * (most + 1), first=0)
    for v, most in {2: 0, 3: 0, 4: 1, 5: 2, 6: 3}.items():  # ⌊log2 N⌋ for 0, 1, 3, 6, 10 missing edges
        assert_drawn_from(list(extras[v].elements()), [1 / (most + 1)] * (most + 1), first=0)


def test_every_missing_edge_of_a_component_is_equally_likely_to_be_added():
    paths = (1, 2, 3, 4, 5, 6)  # vertices of the components of one graph: a path each
    start = np.repeat(np.cumsum([0, *paths[:-1]]), paths)  # the first vertex of everyone's component
    parent = np.maximum(np.arange(len(start)) - 1, start)
    component, parent = torch.tensor(start).expand(3000, -1), torch.tensor(parent).expand(3000, -1)
    size = torch.zeros(3000, len(start), dtype=torch.long).scatter_add_(1, component, torch.ones_like(component))
    path = tree_edges(parent)
    added = extra_edges(path, component, size, torch.Generator().manual_seed(0))
    assert not (added & path).any() and torch.equal(added, added.mT)
    total = 0
    for v, first, most in zip(paths, np.unique(start), (0, 0, 0, 1, 2, 3), strict=True):
        block = added[:, first : first + v, first : first + v].triu(1).numpy()
        total += block.sum()
        assert_drawn_from(block.sum((1, 2)), [1 / (most + 1)] * (most + 1), first=0)
        if most:
            often = block.sum(0)[np.triu(np.ones((v, v), bool), 2)]  # all pairs but the neighbours on the path
            assert stats.chisquare(often).pvalue > SURPRISE
    assert total == added.triu(1).sum(), "no edge joins two components"


@pytest.mark.parametrize("v", [1, 2, 3, 4, 5])
def test_every_labelled_tree_is_equally_likely(v):
    count = 100 * max(1, v ** (v - 2))  # Cayley: v**(v-2) trees
    parents = random_trees(torch.full((count,), v), v + 2, torch.Generator().manual_seed(v)).numpy()
    assert_array_equal(parents[:, v:], np.tile([v, v + 1], (count, 1)))  # missing vertices stay alone
    trees = Counter(tuple(sorted((min(e), max(e)) for e in enumerate(row[:v]) if e[0] != e[1])) for row in parents)
    assert all(nx.is_tree(nx.Graph(tree)) for tree in trees if tree)
    assert len(trees) == max(1, v ** (v - 2))
    if len(trees) > 1:
        assert stats.chisquare(list(trees.values())).pvalue > SURPRISE


def complements(tokens):
    """The graphs of all missing edges, loops left out."""
    vertices, _ = extent(tokens)
    graphs = [nx.from_numpy_array((t[:v, :v] == 2).astype(int)) for t, v in zip(tokens, vertices, strict=True)]
    for graph in graphs:
        graph.remove_edges_from([*nx.selfloop_edges(graph)])
    return graphs


@pytest.mark.parametrize("source", SOURCES)
def test_a_complete_bipartite_graph_gains_at_most_a_logarithm_of_edges(source):
    if source == "fast":
        tokens = Triangles(complete=True).sample(400, 24, torch.Generator().manual_seed(0))[0].numpy()
    else:
        rng = np.random.default_rng(0)
        tokens = np.stack([sample_triangles(24, rng, complete=True) for _ in range(400)])
    gains = Counter()
    for missing in complements(tokens):  # two cliques, one for each side, without the gained edges
        v, sides = len(missing), [len(part) for part in nx.connected_components(missing)]
        assert len(sides) > 1
        if len(sides) == 2:
            gains[v, sum(s * (s - 1) // 2 for s in sides) - missing.number_of_edges()] += 1
    assert all(0 <= gain <= int(np.log(v)) + 1 for v, gain in gains)
    assert max(gain for v, gain in gains if v <= 20) == 3  # ln 20 = 2.996
    assert max(gain for v, gain in gains if v >= 21) == 4


@pytest.mark.parametrize("source", SOURCES)
def test_by_default_half_of_the_bipartite_edges_are_missing(source):
    missing = complements(draw(source, "triangles", 32, 100)[0])
    assert np.mean([nx.is_connected(graph) for graph in missing]) > 0.9  # never so if the graph is complete


# --- Randomness ---


@pytest.mark.parametrize("name", NAMES)
def test_the_generator_alone_decides_the_batch(name):
    torch.manual_seed(1)
    first = draw("fast", name, 8, 16, seed=5)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert_array_equal(first, draw("fast", name, 8, 16, seed=5))
    assert torch.equal(before, torch.get_rng_state()), "the global generator must not be touched"
    assert not np.array_equal(first, draw("fast", name, 8, 16, seed=6))
    assert_array_equal(draw("oracle", name, 8, 4, seed=5), draw("oracle", name, 8, 4, seed=5))


@pytest.mark.parametrize("name", NAMES)
def test_one_generator_gives_fresh_batches_and_continues_from_its_saved_state(name):
    task, generator = get_task(name), torch.Generator().manual_seed(0)
    first, _ = task.sample(16, 8, generator)
    state = generator.get_state()
    second, _ = task.sample(16, 8, generator)
    assert not torch.equal(first, second)
    again, _ = task.sample(16, 8, torch.Generator().set_state(state))
    assert torch.equal(second, again)


def test_paths_are_counted_exactly_under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        counted = count_paths(torch.ones(1, 301, 301, dtype=torch.bool))
    assert (counted == 301).all()  # bfloat16 knows 300 and 302


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", NAMES)
def test_batches_are_made_on_the_device_of_the_generator(name):
    tokens, labels = get_task(name).sample(8, 16, torch.Generator("cuda").manual_seed(0))
    assert tokens.is_cuda and labels.is_cuda
    for instance, answer in zip(tokens.cpu().numpy(), labels.cpu().numpy(), strict=True):
        assert_array_equal(answer, label(name, instance))


# --- Bad input, and tasks of one's own ---


@pytest.mark.parametrize("name", NAMES)
def test_a_side_that_holds_no_instance_is_refused(name):
    small = SPECS[name].min_size - 1
    with pytest.raises(ValueError, match=f"{name} needs a side of at least {small + 1}, not {small}"):
        sample(name, small, np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"{name} needs a side of at least {small + 1}, not {small}"):
        get_task(name).sample(2, small, torch.Generator())
    with pytest.raises(ValueError, match="at least 1 instance, not 0"):
        get_task(name).sample(0, 8, torch.Generator())


def test_specs_name_their_tasks_and_train_only_on_legal_sizes():
    for name, spec in SPECS.items():
        assert spec.name == name and min(spec.sizes) >= spec.min_size
        assert get_task(name).spec is spec


@pytest.mark.parametrize("ask", [lambda name: label(name, np.ones((2, 2), int)), get_task])
def test_an_unknown_name_is_answered_with_the_known_ones(ask):
    with pytest.raises(ValueError, match=r"unknown task 'transpos': choose one of transpose, rotate90, xor"):
        ask("transpos")


def test_every_specified_task_has_a_sampler():
    assert set(SPECS) <= set(TASKS)
