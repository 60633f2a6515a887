"""The figures say what the reference computes: structure is compared, never pixels."""

import hashlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from matplotlib.path import Path

from mse_ref import qrotate, receptive_field, zorder
from mse_ref.draw import (
    draw_benes,
    draw_butterfly,
    draw_network,
    draw_receptive_field,
    draw_route,
    draw_shuffle,
    draw_sudoku,
    draw_switch,
    draw_zorder,
    save,
)
from mse_ref.draw.__main__ import FIGURES, main
from mse_ref.draw.canvas import BLUE, QUADRANTS
from mse_ref.draw.paths import _y


def wires_of(ax, gid):
    """Start and end of every wire of the collection with that gid."""
    ends = []
    for collection in ax.collections:
        if isinstance(collection, PathCollection) and collection.get_gid() == gid:
            for path in collection.get_paths():
                starts = np.flatnonzero(path.codes == Path.MOVETO)
                ends += [(tuple(path.vertices[i]), tuple(path.vertices[i + 3])) for i in starts]
    return ends


def coloured_cells(ax, gid):
    """{(row, column): colour} of a drawn matrix."""
    found = {}
    for patch in ax.patches:
        match = re.fullmatch(rf"{gid}-(\d+)-(\d+)", patch.get_gid() or "")
        if match and isinstance(patch, Rectangle):
            found[int(match[1]), int(match[2])] = to_hex(patch.get_facecolor())
    return found


def texts_by_cell(ax):
    return {(int(-t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts}


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_the_curve_visits_the_cells_in_z_order(n):
    (ax,) = draw_zorder(n).axes
    (curve,) = [line for line in ax.lines if line.get_gid() == "curve"]
    x, y = curve.get_data()
    cells = (-np.asarray(y) - 0.5) * n + np.asarray(x) - 0.5
    np.testing.assert_array_equal(cells, zorder(n))


@pytest.mark.parametrize("n", [2, 4, 8])
def test_the_shuffled_matrix_shows_what_each_slot_reads(n):
    k = n.bit_length() - 1
    last = texts_by_cell(draw_shuffle(n).axes[2])
    for slot, cell in enumerate(zorder(n)):
        assert int(last[divmod(cell, n)], 4) == qrotate(k)[slot]


@pytest.mark.parametrize("n", [2, 4, 8])
def test_interleaving_the_columns_of_the_middle_panel_gives_the_shuffled_panel(n):
    _, rows, after = (texts_by_cell(ax) for ax in draw_shuffle(n).axes)
    for r in range(n):
        for c in range(n):
            assert after[r, c] == rows[r, c // 2 + (c % 2) * n // 2]


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_the_patch_of_digit_j_is_dilated_by_two_to_the_j(n):
    for j, ax in enumerate(draw_butterfly(n).axes):
        marked = {text: cell for cell, text in texts_by_cell(ax).items() if text}
        (r, c), step = marked["a"], 2**j
        assert marked == {"a": (r, c), "b": (r, c + step), "c": (r + step, c), "d": (r + step, c + step)}
        assert (r // step) % 2 == 0 and (c // step) % 2 == 0  # bit j of the first cell is 0: a real switch


@pytest.mark.parametrize("n,output", [(2, 3), (4, 0), (4, 6), (8, 63), (16, 77)])
def test_the_lit_inputs_are_the_receptive_field_of_the_output(n, output):
    k = n.bit_length() - 1
    (ax,) = draw_benes(n, output).axes
    heights = {round(float(_y(slot, 4**k)), 9): slot for slot in range(4**k)}
    lit = {heights[round(start[1], 9)] for start, end in wires_of(ax, "wires-lit") if start[0] < 0}
    field = receptive_field(k, 2 * k - 1)[output]
    assert lit == set(np.flatnonzero(field))


@pytest.mark.parametrize("n,lit_switches", [(4, 9), (8, 53)])
def test_four_times_as_many_switches_are_lit_a_layer_back_until_all_are(n, lit_switches):
    (ax,) = draw_benes(n).axes
    on = [p for p in ax.patches if (p.get_gid() or "").endswith("-on")]
    assert len(on) == lit_switches  # 4: 1+4+4, 8: 1+4+16+16+16


@pytest.mark.parametrize("n", [2, 4, 8])
def test_every_layer_marks_the_inputs_the_reference_names(n):
    k = n.bit_length() - 1
    cell = (n // 2, n - 1)
    slot = int(np.flatnonzero(zorder(n) == cell[0] * n + cell[1])[0])
    for layer, ax in enumerate(draw_receptive_field(n, cell).axes, start=1):
        marked = {r * n + c for (r, c), text in texts_by_cell(ax).items() if text}
        carried = slot
        for _ in range(layer - 1):  # where the shuffles have carried the feature
            carried = int(np.flatnonzero(qrotate(k) == carried)[0])
        assert marked == set(zorder(n)[receptive_field(k, layer)[carried]])


@pytest.mark.parametrize("length", [4, 16, 64])
def test_a_routed_permutation_arrives_as_asked(length):
    permutation = np.random.default_rng(length).permutation(length)
    (ax,) = draw_route(permutation).axes
    right = [t for t in ax.texts if t.get_ha() == "left"]
    arrived = [int(t.get_text()) for t in sorted(right, key=lambda t: -t.get_position()[1])]
    np.testing.assert_array_equal(arrived, permutation)


def test_the_wires_of_a_route_connect_each_item_to_its_place():
    permutation = np.random.default_rng(1).permutation(16)
    (ax,) = draw_route(permutation).axes
    at = {round(float(_y(slot, 16)), 9): slot for slot in range(16)}
    place = {slot: slot for slot in range(16)}  # where item i is now
    for gid in ("inside-0", "shuffle-0", "inside-1", "shuffle-1", "inside-2"):
        hop = {at[round(start[1], 9)]: at[round(end[1], 9)] for start, end in wires_of(ax, gid)}
        place = {item: hop[slot] for item, slot in place.items()}
    assert all(permutation[slot] == item for item, slot in place.items())


@pytest.mark.parametrize("n", [4, 8, 16])
def test_the_network_figure_ends_with_the_transposed_letter(n):
    (ax,) = draw_network(n).axes
    before, after = coloured_cells(ax, "in"), coloured_cells(ax, "out")
    letter = {cell for cell, colour in before.items() if colour == BLUE.lower()}
    assert 0 < len(letter) < n * n
    assert {(c, r) for r, c in letter} == {cell for cell, colour in after.items() if colour == BLUE.lower()}
    assert {(c, r) for r, c in letter} != letter  # a symmetric letter would prove nothing


def test_a_sudoku_shows_every_digit_of_every_board():
    puzzle = np.arange(81).reshape(9, 9) % 10
    answer = (puzzle + 3) % 10
    for ax, board in zip(draw_sudoku(puzzle, answer).axes, (puzzle, answer), strict=True):
        shown = texts_by_cell(ax)
        assert all(shown.get((r, c), "") == (str(d) if d else "") for (r, c), d in np.ndenumerate(board))


def test_saved_figures_are_well_formed_and_the_same_every_time(tmp_path):
    prints = []
    for run in ("a", "b"):
        paths = save(draw_switch(), tmp_path / run, "switch")
        ElementTree.parse(paths[0])
        prints.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in paths])
    assert prints[0] == prints[1]
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["switch.png", "switch.svg"]  # no leftovers


def test_the_palette_is_told_apart_by_lightness_too():
    lightness = sorted(0.299 * int(c[1:3], 16) + 0.587 * int(c[3:5], 16) + 0.114 * int(c[5:7], 16) for c in QUADRANTS)
    assert len(set(round(value) for value in lightness)) == 4


def test_the_command_draws_the_named_figures(tmp_path, capsys):
    assert main(["--out", str(tmp_path), "shuffle", "zorder"]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {"shuffle.svg", "shuffle.png", "zorder.svg", "zorder.png"}
    assert len(capsys.readouterr().out.split()) == 4


def test_every_documented_figure_can_be_drawn():
    for name, draw in FIGURES.items():
        assert draw().axes, name


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: draw_zorder(6), "power of two from 2 to 64, got 6"),
        (lambda: draw_benes(4, 16), "slot from 0 to 15 for n = 4, got 16"),
        (lambda: draw_receptive_field(4, (0, 4)), r"from 0 to 3, got \(0, 4\)"),
        (lambda: draw_route(np.array([0, 0, 1, 2])), "permutation"),
        (lambda: draw_sudoku(np.zeros((3, 3), dtype=int)), r"9×9 board .* got shape \(3, 3\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_unknown_figure_ends_with_code_2_and_one_line(capsys):
    assert main(["nonsense"]) == 2
    assert capsys.readouterr().err.startswith("no figure is named 'nonsense'; there are network,")


def test_without_matplotlib_the_error_names_the_install_command():
    code = "import sys; sys.modules['matplotlib'] = None; import mse_ref.draw"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert "pip install 'matrix-se[draw]'" in run.stderr.splitlines()[-1]
