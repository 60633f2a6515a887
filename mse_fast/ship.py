"""Put a finished run into the zoo: ``python -m mse_fast.ship RUN NAME``.

Weights are stored in half precision, half the size; a network computes with them in float32. What is measured must
be what is shipped, so evaluate the name afterwards, not the run.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save as save_tensors

from mse_fast.checkpoint import write_json
from mse_fast.config import OneLineParser, UsageError, fail
from mse_fast.hub import CONFIG, WEIGHTS, ZOO, read_config, read_weights, write_atomically
from mse_fast.train import INTERRUPTED


def ship(run: Path, target: Path) -> None:
    """Write the network of a run, its arguments and its record into a folder of the zoo."""
    try:
        weights, config, record = (
            read_weights(run / WEIGHTS),
            read_config(run / CONFIG),
            read_config(run / "record.json"),
        )
    except ValueError as error:
        raise UsageError(f"{run} cannot be shipped: {error}") from None
    if record.get("finished") in (None, INTERRUPTED):
        raise UsageError(f"{run} is not finished, it stands at step {record.get('step')}: train it to its end first")
    halves = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
    lost = [name for name, value in halves.items() if not torch.isfinite(value).all()]
    if lost:
        raise UsageError(f"{run} cannot be shipped: half precision does not hold the numbers of {', '.join(lost)}")
    write_atomically(target / WEIGHTS, save_tensors(halves))
    write_json(target / CONFIG, config)
    write_json(target / "record.json", record | {"name": target.name, "stored_as": "float16"})


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = OneLineParser(
        prog="python -m mse_fast.ship", description="Put a finished run into the zoo, in half precision."
    )
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("name", help="its name in the zoo")
    parser.add_argument("--zoo", type=Path, default=ZOO, help="folder of the zoo [the package's own]")
    options = parser.parse_args(arguments)
    try:
        ship(options.run, options.zoo / options.name)
    except UsageError as error:
        fail(str(error))
    print(f"{options.zoo / options.name}: {(options.zoo / options.name / WEIGHTS).stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
