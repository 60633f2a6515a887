"""Matrix Shuffle-Exchange networks, written to be read: every function names the paper's part it implements.

::

    tokens   [B, n, n]          n = 2^k
      |  embed                  network.py     a vector of m feature maps per cell
      v
    matrix   [B, n, n, m]
      |  Z-order                zorder.py      quadrants of quadrants, one after the other
      v
    sequence [B, L, m]          L = n^2 = 4^k
      |  Benes block            benes.py       repeated with new weights, 2 blocks in the paper
      |    k-1 times  QSwitch(forward), QShuffle
      |    k-1 times  QSwitch(reverse), QShuffle^-1
      |    once       QSwitch(last)
      |                         switch.py      mixes 4 neighbours: what a block learns
      |                         shuffle.py     rotates base-4 addresses: new neighbours
      v
    sequence [B, L, m]
      |  Z-order^-1             zorder.py
      v
    matrix   [B, n, n, m]
      |  readout                network.py     a linear map per cell
      v
    logits   [B, n, n, classes]

Read network.py first. recurrent.py repeats the network (Sudoku), sequence.py is the 1D original, params.py
has shapes and initial values, and three files prove things: receptive.py, routing.py and handmade.py.
losses.py and metrics.py say what is trained and reported, tasks/ holds the problems with their oracles.
Works on NumPy, CuPy and any other array-API library; arrays stay in the library they came from.
"""

from mse_ref.benes import benes_block, digits_touched, schedule
from mse_ref.network import embed, matrix_se, pad, readout
from mse_ref.params import count, from_authors, init_matrix_se, init_shuffle_exchange, init_unit, map_params
from mse_ref.receptive import field_size, receptive_field
from mse_ref.recurrent import matrix_se_recurrent
from mse_ref.routing import apply_route, route
from mse_ref.sequence import shuffle_exchange
from mse_ref.shuffle import qrotate, rotate
from mse_ref.switch import switch_unit
from mse_ref.zorder import flatten, inverse, unflatten, zorder

__all__ = [
    "apply_route",
    "benes_block",
    "count",
    "digits_touched",
    "embed",
    "field_size",
    "flatten",
    "from_authors",
    "init_matrix_se",
    "init_shuffle_exchange",
    "init_unit",
    "inverse",
    "map_params",
    "matrix_se",
    "matrix_se_recurrent",
    "pad",
    "qrotate",
    "readout",
    "receptive_field",
    "rotate",
    "route",
    "schedule",
    "shuffle_exchange",
    "switch_unit",
    "unflatten",
    "zorder",
]
