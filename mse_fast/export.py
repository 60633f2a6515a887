"""Export a network to ONNX: ``python -m mse_fast.export NAME out.onnx``.

The exported graph takes one fixed matrix size (the number of layers depends on it) and any batch.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from mse_fast.hub import CONFIG, find_weights, read_config
from mse_fast.network import MatrixSE
from mse_fast.recurrent import MatrixSERecurrent
from mse_fast.sequence import ShuffleExchange

NETWORKS = {kind.model_name: kind for kind in (MatrixSE, MatrixSERecurrent, ShuffleExchange)}
Network = MatrixSE | MatrixSERecurrent | ShuffleExchange


class StackedAnswers(nn.Module):
    """A recurrent network whose list of answers becomes one tensor ``[steps, B, H, W, classes]``."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        answer = self.network(x)
        return torch.stack(answer) if isinstance(answer, list) else answer


def load(name: str) -> Network:
    """The network of a folder, the zoo or the hub, whichever of our kinds it is."""
    kind = read_config(find_weights(name) / CONFIG).get("model")
    if kind not in NETWORKS:
        raise ValueError(f"{name!r} holds a {kind!r}; only {', '.join(NETWORKS)} can be exported")
    return NETWORKS[kind].from_pretrained(name)


def example_input(network: Network, size: tuple[int, int], batch: int = 2) -> Tensor:
    """Zeros of the shape and type the network takes."""
    config = network.config
    if config.get("in_features"):
        return torch.zeros(batch, *size, config["in_features"])
    return torch.zeros(batch, *size, dtype=torch.int64)


def export_program(network: Network, size: tuple[int, int]) -> torch.export.ExportedProgram:
    """``torch.export`` of the network for matrices of one size and any batch."""
    batch = torch.export.Dim("batch", min=1)
    return torch.export.export(
        StackedAnswers(network.eval()), (example_input(network, size),), dynamic_shapes=({0: batch},)
    )


def export_onnx(network: Network, path: str | Path, size: tuple[int, int]) -> None:
    """Write the network as one ONNX file, input ``input``, output ``logits``."""
    try:
        import onnxscript  # noqa: F401  torch.onnx needs it
    except ImportError:
        raise ImportError("ONNX export needs: pip install 'matrix-se[export]'") from None
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's own deprecations
            torch.onnx.export(
                StackedAnswers(network.eval()),
                (example_input(network, size),),
                str(temporary),
                input_names=["input"],
                output_names=["logits"],
                dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mse_fast.export", description=__doc__)
    parser.add_argument("name", help="a network of the zoo, or a folder with model.safetensors and config.json")
    parser.add_argument("path", type=Path, help="the ONNX file to write")
    parser.add_argument("--size", type=int, nargs="+", default=[32], metavar="N", help="height and width (one: both)")
    options = parser.parse_args(arguments)
    if len(options.size) > 2 or min(options.size) < 1:
        parser.error(f"--size takes one or two positive numbers, got {options.size}")
    if not options.path.parent.is_dir():
        parser.error(f"the folder {options.path.parent} does not exist; create it first")
    try:
        network = load(options.name)
    except ValueError as error:
        parser.error(str(error))
    export_onnx(network, options.path, (options.size[0], options.size[-1]))
    print(f"{options.path}: {options.path.stat().st_size / 1e6:.1f} MB, input 'input', output 'logits'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
