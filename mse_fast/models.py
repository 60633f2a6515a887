"""From a configuration to a network, and from a folder back to the network it holds."""

import inspect
from pathlib import Path
from typing import Any

from torch import nn

import mse_fast
from mse_fast.baselines import BASELINES, baseline
from mse_fast.config import TrainConfig, UsageError
from mse_fast.hub import ZOO, load_weights, read_config, zoo_names

OWN = {"matrix-se": "MatrixSE", "matrix-se-recurrent": "MatrixSERecurrent"}


def model_class(name: str) -> type[nn.Module]:
    """The class behind a model's name.

    >>> model_class("matrix-se").__name__
    'MatrixSE'
    """
    if name in OWN:
        return getattr(mse_fast, OWN[name])
    if name in BASELINES:
        return baseline(name)
    raise UsageError(f"unknown model {name!r}; choose from {', '.join([*OWN, *BASELINES])}")


def build_model(config: TrainConfig, task: Any) -> nn.Module:
    """The network of a configuration for a task; settings it does not have are not passed on.

    A task with a ``build_model`` method of its own makes its network itself.
    """
    if hasattr(task, "build_model"):
        return task.build_model(config)
    cls = model_class(config.model)
    known = {name: getattr(config, name) for name in config.__dataclass_fields__}
    known |= {"in_classes": task.spec.in_classes, "out_classes": task.spec.out_classes}
    known |= {"in_features": getattr(task, "in_features", None)}
    known |= {"steps": config.train_steps, "non_edge": 1 if task.spec.name == "components" else 2}
    try:
        return cls(**{name: known[name] for name in inspect.signature(cls).parameters if name in known})
    except ValueError as error:
        raise UsageError(f"model {config.model}: {error}") from None


def find_folder(name: str) -> Path:
    """The folder of a run or of a trained network: a path, ``runs/NAME``, or a name in the zoo."""
    for folder in (Path(name), Path("runs") / name, ZOO / name):
        if (folder / "record.json").exists() and (folder / "model.safetensors").exists():
            return folder
    if Path(name).is_dir() or (Path("runs") / name).is_dir():
        raise UsageError(f"{name} holds no saved network yet: it needs record.json and model.safetensors")
    raise UsageError(f"no run and no trained network is called {name!r}; trained ones: {', '.join(zoo_names())}")


def begin_with(model: nn.Module, name: str) -> None:
    """Give a network the weights of a run or of the zoo; both must have the same shape, but the skip may be new."""
    folder = find_folder(name)
    try:
        load_weights(model, folder / "model.safetensors", optional=("skip.weight",))
    except ValueError as error:
        raise UsageError(f"cannot start from {name}: {error}") from None


def load_model(folder: Path, task: Any, config: TrainConfig) -> nn.Module:
    """The trained network in a folder, ready for evaluation."""
    try:
        if hasattr(task, "build_model"):
            model = task.build_model(config)
        else:
            settings = read_config(folder / "config.json")
            model = model_class(settings.pop("model"))(**settings)
        load_weights(model, folder / "model.safetensors")
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder}: {error}") from None
    return model.eval()
