"""The cost of an optimiser: ``python -m mse_fast.bench.optimisers`` times its step beside forward and backward pass."""

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F

from mse_fast.bench.contenders import CONTENDERS, MATRIX_SE, Case, inputs_of
from mse_fast.bench.measure import CLOCKS, clocked
from mse_fast.bench.page import Rows, one_table
from mse_fast.distributed import native_bfloat16
from mse_fast.optim import Muon, decay_groups, muon_groups
from mse_fast.summaries import table

GRADIENTS = ("gradients", "gradients, bfloat16")
STEPS = ("AdamW", "Muon", "Muon, bfloat16")
WIDTHS, N, BATCH, TURNS = (32, 48, 64, 96), 32, 8, 5


def contestants(feature_maps: int, n: int = N, batch: int = BATCH) -> dict[str, Callable[[], Any]]:
    """The work to be timed: forward and backward pass in both precisions, and the step of each optimiser."""
    case = Case("training", n, feature_maps, batch=batch)
    tokens, labels = inputs_of(CONTENDERS[MATRIX_SE], case, torch.Generator().manual_seed(0))
    model = CONTENDERS[MATRIX_SE].make(case)

    def gradients(cast: Callable[[], AbstractContextManager[Any]]) -> Callable[[], None]:
        def work() -> None:
            model.zero_grad(set_to_none=True)
            with cast():
                loss = F.cross_entropy(model(tokens).flatten(0, 2).float(), labels.flatten())
            loss.backward()

        return work

    return {
        "gradients": gradients(nullcontext),
        "gradients, bfloat16": gradients(lambda: torch.autocast("cpu", dtype=torch.bfloat16)),
        "AdamW": torch.optim.AdamW(decay_groups(model, 0.1), lr=1e-9).step,
        "Muon": Muon(muon_groups(model, 0.1), lr=1e-9).step,
        "Muon, bfloat16": Muon(muon_groups(model, 0.1), lr=1e-9, products=torch.bfloat16).step,
    }


def measure(feature_maps: int, turns: int = TURNS, **size: int) -> dict[str, float]:
    """Seconds of each, the best of some turns; all take turns, so that a disturbance costs everybody one."""
    runs = {name: clocked(work, CLOCKS["wall"]) for name, work in contestants(feature_maps, **size).items()}
    best = dict.fromkeys(runs, math.inf)
    for _ in range(turns):
        for name, run in runs.items():
            best[name] = min(best[name], run())
    return best


def markdown(rows: Rows) -> str:
    """A line per width: the gradients in milliseconds, each optimiser as a share of those of its precision."""
    lines = []
    for row in rows:
        seconds = row["seconds"]
        shares = [seconds[step] / seconds[GRADIENTS["bfloat16" in step]] for step in STEPS]
        gradients = [f"{1000 * seconds[name]:.0f} ms" for name in GRADIENTS]
        lines.append([f"m={row['feature_maps']}", *gradients, *(f"{share:.0%}" for share in shares)])
    return "\n".join(table(["network", *GRADIENTS, *STEPS], lines))


def main(arguments: list[str] | None = None) -> int:
    """The exit code of the command line."""

    def rows() -> Rows:
        about = {"n": N, "batch": BATCH, "native_bfloat16": native_bfloat16(torch.device("cpu"))}
        return [{"feature_maps": m, "seconds": measure(m)} | about for m in WIDTHS]

    return one_table("optimisers", __doc__, rows, markdown, arguments)


if __name__ == "__main__":
    sys.exit(main())
