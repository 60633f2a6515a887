"""Where the time goes: ``python -m mse_fast.bench.profile`` splits Matrix-SE's time by kind of operation."""

import math
import sys

from torch.profiler import ProfilerActivity, profile

from mse_fast.bench.contenders import CONTENDERS, MATRIX_SE, Case
from mse_fast.bench.measure import CLOCKS, contender_run
from mse_fast.bench.page import Rows, one_table
from mse_fast.summaries import table

KINDS = {  # the beginning of an operator's name → what it does here
    "matrix products": ("aten::mm", "aten::addmm", "aten::bmm", "aten::matmul", "aten::linear"),
    "copies in and out of the layout": ("aten::copy_", "aten::clone", "aten::contiguous"),
    "GELU": ("aten::silu", "aten::sigmoid"),
    "norm": ("aten::linalg_vector_norm", "aten::rsqrt", "aten::mul_", "aten::mean", "aten::square", "aten::rms_norm"),
    "residual": ("aten::addcmul",),
    "optimiser": ("aten::_fused_adamw", "Optimizer"),
}
REST = "other element-wise operations and bookkeeping"
CALLS = 5
CASES = (
    Case("inference", 64),
    Case("inference", 64, feature_maps=32),
    Case("inference", 256),
    Case("inference", 256, feature_maps=32),
    Case("training", 32, batch=8),
)


def kind_of(operator: str) -> str:
    """What an operator does in Matrix-SE.

    >>> kind_of("aten::addmm_"), kind_of("aten::silu_"), kind_of("aten::embedding")
    ('matrix products', 'GELU', 'other element-wise operations and bookkeeping')
    """
    return next((kind for kind, names in KINDS.items() if operator.startswith(names)), REST)


def shares(case: Case) -> dict[str, float]:
    """The share of each kind of operation in the time of a call: each kind at its best of some calls."""
    run = contender_run(CONTENDERS[MATRIX_SE], case, CLOCKS["wall"])
    run()
    best = dict.fromkeys([*KINDS, REST], math.inf)
    for _ in range(CALLS):
        spent = dict.fromkeys(best, 0.0)
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            run()
        for event in recorded.key_averages():
            spent[kind_of(event.key)] += event.self_cpu_time_total
        best = {kind: min(best[kind], spent[kind]) for kind in best}
    return {kind: seconds / sum(best.values()) for kind, seconds in best.items()}


def markdown(rows: Rows) -> str:
    """Kinds of operation by case, in per cent."""
    header = ["operation"]
    for row in rows:
        batch = f", B={row['batch']}" if row["batch"] > 1 else ""
        header.append(f"{row['mode']}, {row['n']}×{row['n']}{batch}, m={row['feature_maps']}")
    lines = ([kind, *(f"{row['shares'][kind]:.0%}" for row in rows)] for kind in [*KINDS, REST])
    return "\n".join(table(header, lines))


def main(arguments: list[str] | None = None) -> int:
    """The exit code of the command line."""

    def rows() -> Rows:
        return [vars(case) | {"shares": shares(case)} for case in CASES]

    return one_table("profile", __doc__, rows, markdown, arguments)


if __name__ == "__main__":
    sys.exit(main())
