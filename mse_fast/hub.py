"""Weights on disk: safetensors for the numbers, JSON for the constructor arguments, no code executed on loading."""

import inspect
import json
import os
import re
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

try:  # push_to_hub and the hub's model card, where huggingface_hub is installed
    from huggingface_hub import PyTorchModelHubMixin as HubMixin
except ImportError:

    class HubMixin:  # type: ignore[no-redef]
        """Stands in when huggingface_hub is missing: everything but the hub itself works."""

        def push_to_hub(self, *args: Any, **kwargs: Any) -> None:
            raise ImportError("push_to_hub needs huggingface_hub: pip install 'matrix-se[hub]'")


ZOO = Path(__file__).parent / "zoo"
WEIGHTS, CONFIG = "model.safetensors", "config.json"


def zoo_names() -> list[str]:
    """The names :meth:`Pretrained.from_pretrained` finds inside the package."""
    return sorted(folder.parent.name for folder in ZOO.glob(f"*/{WEIGHTS}"))


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary name and rename, so that a crash leaves the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def own_arguments(variables: dict[str, Any]) -> dict[str, Any]:
    """A constructor's arguments, from its ``locals()`` before it makes variables of its own."""
    return {name: value for name, value in variables.items() if name not in ("self", "__class__")}


class Pretrained(HubMixin):
    """``save_pretrained`` and ``from_pretrained`` for a module that keeps its constructor arguments in ``config``."""

    model_name: ClassVar[str]
    arguments: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        """A plain dict that rebuilds the module: its model name and the constructor's arguments."""
        return {"model": self.model_name, **self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Build an untrained module from :attr:`config`."""
        arguments = {key: value for key, value in config.items() if key != "model"}
        if config.get("model", cls.model_name) != cls.model_name:
            raise ValueError(f"{cls.__name__} cannot load a config of model {config['model']!r}")
        unknown = set(arguments) - set(inspect.signature(cls).parameters)
        if unknown:
            raise ValueError(f"config has arguments {cls.__name__} does not know: {', '.join(sorted(unknown))}")
        return cls(**arguments)

    def save_pretrained(self, save_directory: str | Path, **_: Any) -> None:
        """Write ``model.safetensors`` and ``config.json`` into a folder."""
        save_network(self, Path(save_directory))

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **hub_options: Any) -> Self:
        """Load from a folder, from the bundled zoo by name, or from the Hugging Face hub by ``owner/name``."""
        folder = find_weights(str(pretrained_model_name_or_path), **hub_options)
        module = cls.from_config(read_config(folder / CONFIG))
        assert isinstance(module, nn.Module)
        load_weights(module, folder / WEIGHTS)
        return module.eval()


def save_network(module: Any, folder: Path) -> None:
    """Write the weights and the ``config`` of a module, from which it can be built again."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
    write_atomically(folder / WEIGHTS, save_tensors(tensors))
    write_atomically(folder / CONFIG, (json.dumps(module.config, indent=2) + "\n").encode())


def find_weights(name: str, **hub_options: Any) -> Path:
    """The folder that holds a network: a path, a name of the zoo, or a download from the hub (``owner/name``)."""
    for folder in (Path(name), ZOO / name):
        if (folder / WEIGHTS).is_file():
            return folder
    nearby = Path(name).parent
    if (nearby != Path() and nearby.is_dir()) or not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name):
        raise ValueError(
            f"no {WEIGHTS} for {name!r}: give a folder that save_pretrained wrote or a name of the zoo "
            f"({', '.join(zoo_names()) or 'empty'})"
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise ImportError(f"loading {name!r} from the hub needs: pip install 'matrix-se[hub]'") from None
    try:
        return Path(snapshot_download(name, allow_patterns=[WEIGHTS, CONFIG], **hub_options))
    except OSError as error:
        raise ValueError(f"{name!r} is no folder here, and the Hugging Face hub gave none: {error}") from error


def read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read the model's config {path}: {error}") from error
    if not isinstance(config, dict):
        raise ValueError(f"the model's config {path} must be a JSON object, got {type(config).__name__}")
    return config


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or a ValueError that says what is wrong with it."""
    try:
        return load_tensors(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}); save or copy it again") from error


def load_weights(module: nn.Module, path: Path, optional: tuple[str, ...] = ()) -> None:
    """Fill a module from a safetensors file; names and shapes must agree, only ``optional`` ones may be missing."""
    own = module.state_dict()
    tensors = {name: own[name] for name in optional if name in own} | read_weights(path)
    missing, extra = sorted(set(own) - set(tensors)), sorted(set(tensors) - set(own))
    if missing or extra:
        raise ValueError(f"{path} does not fit its config: missing {missing or 'none'}, unexpected {extra or 'none'}")
    for name, wanted in own.items():
        if tensors[name].shape != wanted.shape:
            raise ValueError(
                f"{path} does not fit its config: {name} is {list(tensors[name].shape)}, "
                f"the config wants {list(wanted.shape)}"
            )
    with torch.no_grad():
        module.load_state_dict(tensors)
