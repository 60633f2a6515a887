"""Pictures of the network, drawn by the code they explain (needs matplotlib).

::

    draw_zorder  draw_shuffle  draw_butterfly          layout.py   where things are
    draw_network draw_benes  draw_receptive_field  draw_route      paths.py    where things go
    draw_switch  draw_resnet  draw_sudoku               boxes.py    what things are made of

Every function returns a matplotlib ``Figure``; ``save`` writes it as SVG and PNG.
``python -m mse_ref.draw --out docs/figures`` redraws every figure of the documentation.
"""

from mse_ref.draw.boxes import draw_resnet, draw_sudoku, draw_switch
from mse_ref.draw.canvas import save
from mse_ref.draw.layout import draw_butterfly, draw_shuffle, draw_zorder
from mse_ref.draw.paths import draw_benes, draw_network, draw_receptive_field, draw_route

__all__ = [
    "draw_benes",
    "draw_butterfly",
    "draw_network",
    "draw_receptive_field",
    "draw_resnet",
    "draw_route",
    "draw_shuffle",
    "draw_sudoku",
    "draw_switch",
    "draw_zorder",
    "save",
]
