"""Figures of the wires: receptive fields, routed permutations, and the whole network at a glance."""

from __future__ import annotations

import numpy as np

from mse_ref.benes import schedule
from mse_ref.draw.canvas import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    QUADRANTS,
    SKY,
    VERMILLION,
    Axes,
    Figure,
    Rectangle,
    Wire,
    arrow,
    canvas,
    cells,
    digits_of,
    frame,
    quaternary,
    wires,
)
from mse_ref.routing import route
from mse_ref.shuffle import qrotate
from mse_ref.zorder import zorder

HEIGHT = 10.0  # of a block, whatever its size
SWITCH, GAP = 1.0, 2.6  # width of a switch, and of the wires between two switches


def _shuffles(k: int) -> list[np.ndarray]:
    """Gather indices between the 2k-1 switch layers."""
    return [qrotate(k, layer.steps) for layer in schedule(k)[:-1]]


def _units(k: int) -> list[str]:
    return [layer.unit for layer in schedule(k)]


def _left(layer: int) -> float:
    return layer * (SWITCH + GAP)


def _y(slot: int, length: int) -> float:
    """The height of a wire; groups of four stand apart so that each switch can be seen."""
    return -(slot + 0.5 + 0.8 * (slot // 4)) * HEIGHT / (1.2 * length)


def _switch(ax: Axes, length: int, layer: int, group: int, *, face: str, edge: str, state: str) -> None:
    top, bottom = _y(4 * group, length), _y(4 * group + 3, length)
    margin = (top - bottom) / 5
    ax.add_patch(
        Rectangle(
            (_left(layer), bottom - margin),
            SWITCH,
            top - bottom + 2 * margin,
            facecolor=face,
            edgecolor=edge,
            lw=min(0.8, 40 / length),
            gid=f"switch-{layer}-{group}-{state}",
            zorder=2,
        )
    )


def sources(k: int, layer: int, slot: int) -> list[set[int]]:
    """Walk back from one slot after switch layer ``layer`` (counted from 1).

    Element ``i`` holds the slots after switch layer ``i`` that are on a path to it; element 0 the inputs.

    >>> [len(slots) for slots in sources(2, 3, 0)]
    [16, 16, 4, 1]
    """
    shuffles = _shuffles(k)
    reach = [{slot}]
    for i in range(layer - 1, -1, -1):
        entering = {4 * (p // 4) + j for p in reach[0] for j in range(4)}  # a switch mixes its four slots
        reach.insert(0, {int(shuffles[i - 1][p]) for p in entering} if i else entering)
    return reach


def draw_benes(n: int = 4, output: int = 0) -> Figure:
    """One Beneš block with every path that reaches one output: lit switches are filled, lit wires thick.

    >>> draw_benes(4, 5).axes[0].get_title()
    'every input reaches output 5 (n = 4: 3 switch layers)'

    Paper: appendix B, the receptive-field figure, for any n.

    :param n: the side of the matrix, a power of two.
    :param output: a Z-order slot.
    """
    k = digits_of(n)
    length = 4**k
    if not 0 <= output < length:
        raise ValueError(f"output must be a slot from 0 to {length - 1} for n = {n}, got {output}")
    reach = sources(k, 2 * k - 1, output)
    figure, (ax,) = canvas(1.8 + 1.5 * (2 * k - 1), 5.2)
    for layer, unit in enumerate(_units(k)):
        for group in range(length // 4):
            on = any(4 * group + i in reach[layer + 1] for i in range(4))
            colours = (GREEN, INK) if on else (PALE, GREY)
            _switch(ax, length, layer, group, face=colours[0], edge=colours[1], state="on" if on else "off")
        ax.text(_left(layer) + SWITCH / 2, 0.3, unit, ha="center", va="bottom", fontsize=8, color=INK)
    lit: list[Wire] = []
    dim: list[Wire] = []
    for layer, gather in enumerate(_shuffles(k)):
        for slot in range(length):
            source = int(gather[slot])
            ends = (_left(layer) + SWITCH, _y(source, length), _left(layer + 1), _y(slot, length))
            (lit if source in reach[layer + 1] else dim).append(ends)
    right = _left(2 * k - 2) + SWITCH
    inputs = [(-0.8, _y(slot, length), 0.0, _y(slot, length)) for slot in sorted(reach[0])]
    outputs = [(right, _y(slot, length), right + 0.8, _y(slot, length)) for slot in range(length) if slot != output]
    wires(ax, dim + outputs, GREY, width=min(0.5, 30 / length), gid="wires-dim", z=0.5)
    wires(ax, lit + inputs, ORANGE, width=max(0.3, min(1.6, 60 / length)), gid="wires-lit")
    wires(ax, [(right, _y(output, length), right + 0.8, _y(output, length))], ORANGE, width=2.4, gid="output")
    if n <= 4:
        for slot in range(length):
            ax.text(-0.95, _y(slot, length), quaternary(slot, k), ha="right", va="center", fontsize=7, color=INK)
    ax.text(
        right + 0.95,
        _y(output, length),
        f"output\n{quaternary(output, k)}",
        va="center",
        fontsize=8,
        color=INK,
    )
    ax.set_title(f"every input reaches output {output} (n = {n}: {2 * k - 1} switch layers)", fontsize=11)
    frame(ax, -2, right + 2.6, -HEIGHT - 0.3, 1.1)
    return figure


def draw_receptive_field(n: int = 8, cell: tuple[int, int] = (2, 5)) -> Figure:
    """The inputs (dots) one feature has seen after each of the first k switch layers, on the matrix.

    The feature is followed where the shuffles carry it; its own cell has a frame.

    >>> [ax.get_title() for ax in draw_receptive_field(4, (0, 0)).axes]
    ['layer 1: 4 of 16 inputs', 'layer 2: 16 of 16 inputs']

    :param n: the side of the matrix, a power of two.
    :param cell: (row, column) of the feature.
    """
    k = digits_of(n)
    row, column = cell
    if not (0 <= row < n and 0 <= column < n):
        raise ValueError(f"cell must be (row, column) from 0 to {n - 1}, got {cell}")
    raster = zorder(n)
    slot = int(np.argsort(raster)[row * n + column])
    figure, axes = canvas(2.9 * k, 3.4, k)
    for layer, ax in enumerate(axes, start=1):
        seen = {int(raster[p]) for p in sources(k, layer, slot)[0]}
        colours = [SKY if i in seen else PALE for i in range(n * n)]
        labels = ["•" if i in seen else "" for i in range(n * n)]
        cells(ax, colours, labels if n <= 16 else None, n=n, size=min(14, 90 / n))
        ax.add_patch(Rectangle((column, -row - 1), 1, 1, facecolor="none", edgecolor=VERMILLION, lw=2.2, gid="feature"))
        ax.set_title(f"layer {layer}: {len(seen)} of {n * n} inputs", fontsize=10)
        frame(ax, -0.1, n + 0.1, -n - 0.1, 0.1)
        if layer < k:
            slot = int(np.argsort(_shuffles(k)[layer - 1])[slot])  # the slot that reads ours
    return figure


def _carry(ax: Axes, k: int, settings: np.ndarray, colours: np.ndarray, width: float) -> np.ndarray:
    """Draw a set block, each item with its own colour all the way; returns the items as they come out."""
    length = 4**k
    items = np.arange(length)
    for layer, setting in enumerate(np.asarray(settings)):
        x = _left(layer)
        inner = []
        for group in range(length // 4):
            crossed = list(setting[group]) != [0, 1, 2, 3]
            _switch(
                ax,
                length,
                layer,
                group,
                face="#FFF6DD" if crossed else "white",
                edge=GREY,
                state="crossed" if crossed else "straight",
            )
            for i in range(4):
                inner.append((x, _y(4 * group + int(setting[group][i]), length), x + SWITCH, _y(4 * group + i, length)))
        items = np.take_along_axis(items.reshape(-1, 4), np.asarray(setting), axis=1).ravel()  # (L/4, 4) -> (L,)
        wires(ax, inner, list(colours[items]), width=width, gid=f"inside-{layer}", z=3)
        if layer < len(settings) - 1:
            gather = _shuffles(k)[layer]
            items = items[gather]
            ends = [(x + SWITCH, _y(int(gather[p]), length), _left(layer + 1), _y(p, length)) for p in range(length)]
            wires(ax, ends, list(colours[items]), width=width, gid=f"shuffle-{layer}", z=1)
    return items


def draw_route(permutation: np.ndarray) -> Figure:
    """A permutation carried through the switches: slot p of the output holds item ``permutation[p]``.

    >>> figure = draw_route(np.arange(16)[::-1])
    >>> figure.axes[0].get_title()
    'a permutation of 16 items, routed'

    :param permutation: gather indices of length 4**k.
    """
    permutation = np.asarray(permutation)
    settings = route(permutation)  # refuses what is not a permutation
    length = len(permutation)
    k = digits_of(round(length**0.5))
    figure, (ax,) = canvas(1.8 + 1.5 * (2 * k - 1), 5.2)
    colours = np.array([QUADRANTS[4 * item // length] for item in range(length)])
    items = _carry(ax, k, settings, colours, min(1.8, 60 / length))
    right = _left(2 * k - 2) + SWITCH
    if length <= 64:
        for slot in range(length):
            y = _y(slot, length)
            ax.text(-0.25, y, str(slot), ha="right", va="center", fontsize=min(8, 200 / length), color=INK)
            ax.text(right + 0.25, y, str(items[slot]), va="center", fontsize=min(8, 200 / length), color=INK)
    ax.set_title(f"a permutation of {length} items, routed", fontsize=11)
    frame(ax, -1.2, right + 1.2, -HEIGHT - 0.3, 0.4)
    return figure


def draw_network(n: int = 8) -> Figure:
    """The whole network at a glance, set to transpose its input: follow the letter's wires with a finger.

    >>> len(draw_network(4).axes)
    1

    Paper: Fig. 1.

    :param n: the side of the matrix, a power of two.
    """
    k = digits_of(n)
    length = 4**k
    figure, (ax,) = canvas(12.6, 4.9)
    letter = np.zeros((8, 8), dtype=bool)
    letter[1:7, 2] = letter[1, 2:7] = letter[3, 2:5] = True  # an F, which no symmetry hides
    letter = (
        letter
        if n == 8
        else np.kron(letter, np.ones((max(1, n // 8),) * 2, dtype=bool))[:: max(1, 8 // n), :: max(1, 8 // n)]
    )
    raster = zorder(n)
    ink = letter.ravel()
    shade = np.where(ink, BLUE, "#DCE6EE")
    swap = [0, 2, 1, 3]
    settings = np.array([[[0, 1, 2, 3] if unit == "forward" else swap] * (length // 4) for unit in _units(k)])
    colours = np.where(ink[raster], BLUE, "#C9CFD4")
    right = _left(2 * k - 2) + SWITCH
    items = _carry(ax, k, settings, colours, min(1.5, 80 / length))
    out = np.empty(n * n, dtype=int)
    out[raster] = raster[items]
    side, top, middle = 6.0 / n, 3.0 - HEIGHT / 2, -HEIGHT / 2
    for x, gid, picture, title in (
        (-9.6, "in", shade, "input: n×n tokens"),
        (right + 3.6, "out", shade[out], "output: here, the transpose"),
    ):
        cells(ax, list(picture), n=n, corner=(x, top), side=side, gid=gid)
        curve = x + (raster % n + 0.5) * side, top - (raster // n + 0.5) * side
        ax.plot(*curve, color=ORANGE, lw=0.9, alpha=0.8, gid=f"curve-{gid}")
        ax.text(x + 3, top + 0.3, title, ha="center", va="bottom", fontsize=11, color=INK)
    for x, text in ((-3.3, "embed,\nZ-order\nflatten"), (right + 0.3, "Z-order\nunflatten,\nreadout")):
        arrow(ax, (x, middle), (x + 3.0, middle), width=1.6)
        ax.text(x + 1.4, middle + 0.3, text, ha="center", va="bottom", fontsize=9.5, color=INK)
    for layer in range(2 * k - 1):
        ax.text(_left(layer) + SWITCH / 2, 0.25, "QSwitch", ha="center", va="bottom", fontsize=8.5, color=INK)
        if layer < 2 * k - 2:
            name = "QShuffle" if layer < k - 1 else "QShuffle$^{-1}$"
            ax.text(_left(layer) + SWITCH + GAP / 2, 0.25, name, ha="center", va="bottom", fontsize=8.5, color=INK)
    spans = (
        ("forward", 0, k - 1, "k−1 layers, one set of weights"),
        ("reverse", k - 1, k - 1, "k−1 layers, one set of weights"),
        ("last", 2 * k - 2, 1, ""),
    )
    for unit, first, count, note in spans:
        if count:
            x, x1 = _left(first), _left(first + count - 1) + SWITCH
            ax.plot(
                [x, x, x1, x1],
                [-HEIGHT - 0.2, -HEIGHT - 0.45, -HEIGHT - 0.45, -HEIGHT - 0.2],
                color=INK,
                lw=1,
                gid=f"span-{unit}",
            )
            ax.text(
                (x + x1) / 2,
                -HEIGHT - 0.6,
                unit,
                ha="center",
                va="top",
                fontsize=9.5,
                color=INK,
                style="italic",
            )
            ax.text((x + x1) / 2, -HEIGHT - 1.25, note, ha="center", va="top", fontsize=8, color=INK)
    ax.text(
        right / 2,
        1.2,
        "one of b Beneš blocks: 2k−1 switch layers for n = 2$^k$",
        ha="center",
        fontsize=11,
        color=INK,
    )
    frame(ax, -9.7, right + 9.7, -HEIGHT - 1.9, 1.9)
    return figure
