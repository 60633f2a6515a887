"""Matrix Shuffle-Exchange networks in PyTorch: gather-free, trainable, checked against ``mse_ref``.

    tokens -> embed -> zorder -> benes: ([switch -> shuffle]* -> switch) -> zorder^-1 -> readout

>>> import torch
>>> from mse_fast import MatrixSE
>>> net = MatrixSE(in_classes=12, out_classes=12, feature_maps=16)
>>> net(torch.randint(12, (1, 20, 30))).shape
torch.Size([1, 20, 30, 12])
"""

from mse_fast.network import MatrixSE
from mse_fast.recurrent import MatrixSERecurrent
from mse_fast.sequence import ShuffleExchange

__all__ = ["MatrixSE", "MatrixSERecurrent", "ShuffleExchange"]
