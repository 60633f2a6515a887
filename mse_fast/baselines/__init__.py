"""The networks Matrix-SE is compared with, called as it is: tokens [B, H, W] → logits [B, H, W, classes].

====================  =================================================  ======================
name                  network                                            parameters (default)
====================  =================================================  ======================
``resnet29``          pre-activation ResNet, 3×3 convolutions            4.3 M
``gin``               graph isomorphism network on the adjacency matrix  4.7 M
``rse``               1D Residual Shuffle-Exchange on the flat matrix    3.5 M
``attention``         transformer over all cells                         3.5 M
====================  =================================================  ======================
"""

from importlib import import_module

from torch import nn

_HOMES = {
    "resnet29": ("resnet", "ResNet"),
    "gin": ("gin", "GIN"),
    "rse": ("rse", "RSE"),
    "attention": ("attention", "Attention"),
}
BASELINES = tuple(_HOMES)


def baseline(name: str) -> type[nn.Module]:
    """The class of a baseline; its module loads only now, because GIN needs an optional package.

    >>> baseline("resnet29").__name__
    'ResNet'
    """
    if name not in _HOMES:
        raise ValueError(f"unknown baseline {name!r}; choose from {', '.join(BASELINES)}")
    module, cls = _HOMES[name]
    return getattr(import_module(f"mse_fast.baselines.{module}"), cls)
