"""Parameters in three dialects: this backend's modules, the reference's nested dicts, the authors' flat arrays.

    module  <-- from_reference / to_reference -->  params of mse_ref  <-- from_authors / to_authors -->  arrays

Nothing is computed on the way but transpositions and exact doublings, so every round trip is lossless.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from mse_fast.network import MatrixSE
from mse_fast.recurrent import MatrixSERecurrent
from mse_fast.sequence import ShuffleExchange
from mse_fast.switch import Switch
from mse_ref.params import from_authors as reference_from_authors

Params = dict[str, Any]
Network = MatrixSE | MatrixSERecurrent | ShuffleExchange


def to_reference(module: Network) -> Params:
    """The parameters of a module as ``mse_ref`` takes them (NumPy arrays, kernels ``[in, out]``).

    >>> params = to_reference(MatrixSE(in_classes=12, out_classes=5, feature_maps=4, blocks=1))
    >>> params["embedding"].shape, params["blocks"][0]["forward"]["Z"].shape, params["readout"]["kernel"].shape
    ((12, 4), (16, 32), (4, 5))
    """
    params: Params = {"embedding": array(module.stack.embed.weight)}
    params["blocks"] = [
        {
            name: unit_to_reference(getattr(block, f"switch_{name}"))
            for name in ("forward", "reverse", "last")
            if getattr(block, f"switch_{name}") is not None
        }
        for block in module.stack.blocks
    ]
    if isinstance(module.stack.last, Switch):
        params["last"] = unit_to_reference(module.stack.last)
    if isinstance(module, MatrixSERecurrent):
        params["head"] = linear_to_reference(module.readout.head)
        params["readout"] = linear_to_reference(module.readout.readout)
    elif module.readout is not None:
        params["readout"] = linear_to_reference(module.readout)
    if isinstance(module, MatrixSE) and module.skip is not None:
        params["skip"] = array(module.skip.weight)
    return params


def from_reference(
    params: Params, *, norm: str = "feature", flatten: str = "zorder", features: bool = False, **options: Any
) -> Network:
    """A module with the reference's parameters, of their precision.

    Units of 4m make a :class:`MatrixSE` (with a ``"head"``, a :class:`MatrixSERecurrent`), units of 2m a
    :class:`ShuffleExchange`.  ``features`` declares that the input is float features, not tokens; ``options``
    go to the constructor (dropout, steps, ...).

    >>> import numpy as np
    >>> from mse_ref import init_matrix_se
    >>> params = init_matrix_se(np.random.default_rng(0), in_classes=3, out_classes=2, feature_maps=4)
    >>> from_reference(params).config["out_classes"]
    2
    """
    rows, m = params["embedding"].shape
    sizes: dict[str, Any] = {
        "in_features" if features else "in_classes": rows,
        "out_classes": params["readout"]["bias"].shape[0] if "readout" in params else None,
        "feature_maps": m,
        "blocks": len(params["blocks"]),
    }
    module: Network
    if params["blocks"][0]["forward"]["s"].shape[0] == 2 * m:
        layout = "rse" if "last" in params else "paper"
        module = ShuffleExchange(**sizes, layout=layout, norm=norm, **options)
    elif "head" in params:
        module = MatrixSERecurrent(**sizes, norm=norm, flatten=flatten, **options)
    else:
        module = MatrixSE(**sizes, norm=norm, flatten=flatten, skip="skip" in params, **options)
    module.to(torch.from_numpy(np.asarray(params["embedding"])).dtype)
    with torch.no_grad():
        fill(module.stack.embed.weight, params["embedding"])
        for block, units in zip(module.stack.blocks, params["blocks"], strict=True):
            for name, unit in units.items():
                fill_unit(getattr(block, f"switch_{name}"), unit)
        if isinstance(module.stack.last, Switch):
            fill_unit(module.stack.last, params["last"])
        if isinstance(module, MatrixSERecurrent):
            fill_linear(module.readout.head, params["head"])
            fill_linear(module.readout.readout, params["readout"])
        elif module.readout is not None:
            fill_linear(module.readout, params["readout"])
        if isinstance(module, MatrixSE) and module.skip is not None:
            fill(module.skip.weight, params["skip"])
    return module.eval()


def from_authors(arrays: Mapping[str, np.ndarray], prefix: str) -> Network:
    """A module from arrays named as in the authors' released code, with the norm they use.

    ``prefix`` is the like of ``"matrixse_n8_m4_b2"``, ``"multistep_n16_m4_b2"`` or ``"rse_n8_m4_b2"``; the last
    is a headless 1D network on the raster-flattened matrix.
    """
    params = reference_from_authors(arrays, prefix)
    if "embedding" in params:
        return from_reference(params, norm="position")
    width = params["blocks"][0]["forward"]["s"].shape[0] // 2
    identity = np.eye(width, dtype=params["blocks"][0]["forward"]["s"].dtype)
    return from_reference({"embedding": identity, **params}, features=True)


def to_authors(module: Network, prefix: str) -> dict[str, np.ndarray]:
    """The inverse of :func:`from_authors`: a flat dict of arrays under the authors' names.

    It refuses networks that the authors' code cannot have: another norm than theirs, a skip, or the paper's 1D layout.
    """
    params, flat = to_reference(module), {}
    if isinstance(module, ShuffleExchange):
        if "last" not in params:
            raise ValueError(f"the authors' 1D network has layout='rse', this one {module.config['layout']!r}")
        units = {f"{i}_{name}": unit for i, block in enumerate(params["blocks"]) for name, unit in block.items()}
        for name, unit in {**units, "last": params["last"]}.items():
            at = f"{prefix}/benes_recursive/{name}"
            flat[f"{at}/cand1/c/CvK"], flat[f"{at}/cand2/c/CvK"] = unit["Z"], unit["W"]
            flat[f"{at}/cand2/c/CvB"], flat[f"{at}/residual"] = unit["b"], unit["s"] / 2
            flat[f"{at}/norm/c/norm_bias/offset"] = unit["offset"].reshape(1, 1, -1)
        return flat
    if module.config["norm"] != "position":
        raise ValueError(f"the authors' network has norm='position', this one {module.config['norm']!r}")
    if "skip" in params:
        raise ValueError("the authors' network has no skip, this one does")
    flat[f"{prefix}/embedding"] = params["embedding"]
    for i, block in enumerate(params["blocks"]):
        for ours, theirs in (("forward", "forward"), ("reverse", "reverse"), ("last", "middle")):
            for name, value in block[ours].items():
                flat[f"{prefix}/block{i}/{theirs}/{'residual' if name == 's' else name}"] = value
    for ours, theirs in (("head", "head"), ("readout", "out")):
        for name, value in params.get(ours, {}).items():
            flat[f"{prefix}/{theirs}/{name}"] = value
    return flat


def array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().copy()


def unit_to_reference(switch: Switch) -> dict[str, np.ndarray]:
    return {name: array(value) for name, value in switch.named_parameters()}


def linear_to_reference(linear: nn.Linear) -> dict[str, np.ndarray]:
    return {"kernel": array(linear.weight.T), "bias": array(linear.bias)}  # nn.Linear stores [out, in]


def fill(parameter: torch.Tensor, value: Any) -> None:
    if tuple(parameter.shape) != tuple(value.shape):
        raise ValueError(f"a parameter has shape {list(value.shape)}, the network wants {list(parameter.shape)}")
    parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)))


def fill_unit(switch: Switch, unit: dict[str, Any]) -> None:
    for name, parameter in switch.named_parameters():
        if name not in unit:
            raise ValueError(f"a switch unit lacks {name!r}; it has {', '.join(unit)}")
        fill(parameter, unit[name])


def fill_linear(linear: nn.Linear, values: dict[str, Any]) -> None:
    fill(linear.weight, values["kernel"].T)
    fill(linear.bias, values["bias"])
