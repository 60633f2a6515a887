"""Any permutation through the switches: the proof that one Benes block is rearrangeable.

Let every 4 x 4 switch of a block merely permute its four values. Then *every* permutation of the ``4^k`` inputs
can be set up in the ``2k-1`` switch layers (paper, appendix "Receptive field", citing Dally & Towles 2004).

The proof peels off the outermost pair of layers. Both mix the same digit of the address, and between them four
smaller networks work side by side, one for each value of that digit. So each element must be given a digit
value ("colour") such that the four elements of any switch of the first layer, and of any switch of the last
layer, all have different colours: an edge colouring, in 4 colours, of the 4-regular bipartite graph

    nodes: switches of the first layer + switches of the last layer;   edges: elements, from switch to switch

Euler split: pair up the edges at each node; every edge then has one mate at either end, so the edges form
cycles of even length. Alternating along each cycle halves the degree of every node: 4 -> 2 -> 1 in two splits.
Each split costs O(L), there are 2(k-1) of them: O(L log L).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mse_ref.arrays import Array, exponent, gather, namespace
from mse_ref.benes import schedule
from mse_ref.shuffle import qrotate, shuffle
from mse_ref.zorder import inverse


def route(permutation: np.ndarray) -> np.ndarray:
    """The setting of every switch such that ``apply_route(route(p), x) == x[p]``.

    Paper: appendix "Receptive field" (rearrangeability). Returns (2k-1, L/4, 4) int64: in layer ``t`` output
    ``j`` of switch ``g`` reads its input ``settings[t, g, j]``.

    >>> p = np.random.default_rng(0).permutation(64)
    >>> bool((apply_route(route(p), np.arange(64)) == p).all())
    True

    :param permutation: gather indices, (4**k,) integers with k >= 1.
    """
    start = _check_permutation(permutation)
    size = len(start)
    k = exponent(size, 4, "the permutation's length", "append fixed points")
    settings = np.empty((2 * k - 1, size), dtype=np.int64)  # one row per switch layer, one entry per output
    shuffled = qrotate(k, -1)  # where a shuffle takes the element at position q
    # Element e leaves the block at e and enters at start[e]. Both ends move inwards, one layer per round.
    head, tail = start, np.arange(size)
    for t in range(k - 1):
        colour = _four_colours(head, tail)
        settings[t, head // 4 * 4 + colour] = head % 4  # outer layer: output `colour` reads where e comes in
        settings[-1 - t, tail] = colour  # its mirror: where e goes out reads input `colour`
        head, tail = (shuffled[end // 4 * 4 + colour] for end in (head, tail))
    settings[k - 1, tail] = head % 4  # centre: by now both ends of every element are at one switch
    return settings.reshape(2 * k - 1, size // 4, 4)


def apply_route(settings: np.ndarray, x: Array) -> Array:
    """Send ``x [L, ...]`` through one Benes block whose switches only permute, with the network's own shuffles.

    >>> swap = np.array([[[0, 2, 1, 3]]])  # k = 1: a single switch
    >>> apply_route(swap, np.array([10, 20, 30, 40]))
    array([10, 30, 20, 40])
    """
    settings = np.asarray(settings)
    k = _check_settings(settings, x)
    first = np.arange(0, 4**k, 4)[:, None]  # [L / 4, 1]: the first position of each switch
    for layer, setting in zip(schedule(k), settings, strict=True):
        x = gather(x, (first + setting).reshape(-1), axis=0)
        if layer.steps:
            x = shuffle(x, layer.steps, axis=0)
    return x


def _four_colours(head: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Give edge e, from switch ``head[e] // 4`` to switch ``tail[e] // 4``, one of 4 colours; no switch has one twice.

    >>> _four_colours(np.array([0, 1, 2, 3]), np.array([0, 1, 2, 3])).tolist()  # four wires between two switches
    [3, 1, 2, 0]
    """
    high = _halve(head, tail)  # of two mates exactly one gets a 1: two edges of either kind at every switch

    def regroup(slot: np.ndarray) -> np.ndarray:  # the edges of one kind side by side, as new mates
        return slot // 4 * 4 + 2 * high + slot % 4 // 2

    low = _halve(regroup(head), regroup(tail))
    return 2 * high + low


def _halve(head: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Euler split: 0 or 1 for each edge, different for edges that are mates at their head or at their tail."""
    mate_at_head, mate_at_tail = _mates(head), _mates(tail)
    # One step along a cycle of mates changes the kind, two steps keep it: label the orbits of two steps.
    two_steps = csr_array((np.ones(len(head)), mate_at_tail[mate_at_head], np.arange(len(head) + 1)))
    _, orbit = connected_components(two_steps, connection="weak")
    return (orbit < orbit[mate_at_head]).astype(np.int64)


def _mates(slot: np.ndarray) -> np.ndarray:
    """Edges in slots 2i and 2i+1 are mates: the mate of every edge, given its slot.

    >>> _mates(np.array([2, 0, 3, 1]))  # edges 0 and 2 are in slots 2 and 3
    array([2, 3, 0, 1])
    """
    return inverse(slot)[slot ^ 1]


def _check_permutation(permutation: np.ndarray) -> np.ndarray:
    perm = np.asarray(permutation)
    if perm.ndim != 1 or not np.issubdtype(perm.dtype, np.integer):
        raise TypeError(f"a permutation is a 1D array of integers, got shape {perm.shape} of {perm.dtype}")
    if len(perm) < 4:
        raise ValueError(f"a Benes block has at least 4 inputs, got {len(perm)}; append fixed points")
    missing = np.setdiff1d(np.arange(len(perm)), perm)
    if len(missing):
        raise ValueError(f"a permutation holds each of 0..{len(perm) - 1} once, {missing[0]} is missing")
    return perm.astype(np.int64)


def _check_settings(settings: np.ndarray, x: Array) -> int:
    namespace(x)
    k = exponent(x.shape[0], 4, "the length of x", "route and apply the same length")
    if settings.shape != (2 * k - 1, 4**k // 4, 4):
        raise ValueError(f"settings for {4**k} elements have shape {(2 * k - 1, 4**k // 4, 4)}, got {settings.shape}")
    if (np.sort(settings, axis=-1) != np.arange(4)).any():
        raise ValueError("every switch must be a permutation of 0, 1, 2, 3; take settings from mse_ref.route")
    return k
