"""The command line: measure, or report what was measured before."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from mse_fast.bench.contenders import CONTENDERS, MATRIX_SE, Case
from mse_fast.bench.measure import Bench
from mse_fast.bench.report import read_rows, row_line, write_plot
from mse_fast.bench.tables import write_markdown
from mse_fast.config import OneLineParser, UsageError, fail
from mse_fast.hub import write_atomically

SIZES = (16, 32, 64, 128, 256, 512, 1024)
PORT, COMPILED, PLAIN = "gather port", "matrix-se, compiled", "matrix-se, plain layers"
RIVALS = ("resnet29", "gin", "attention", "rse")
VARIANTS = ("matrix-se, out of place", "matrix-se, one chunk", "matrix-se, norm=position")
QUICK_MINUTES = 0.6
Entry = tuple[Case, tuple[str, ...]]
Table = list[dict[str, Any]]


def all_cases() -> Iterator[Entry]:
    """Small sizes first, so that every size teaches what the next one costs."""
    for n in SIZES:
        variants = VARIANTS if n in (64, 256, 1024) else ()
        compiled = (COMPILED,) if n in (64, 256) else ()  # every size is another graph to compile
        yield Case("inference", n), (MATRIX_SE, PORT, *compiled, *variants, *RIVALS, "rse, gather port")
        yield Case("inference", n, feature_maps=32), (MATRIX_SE, PORT, *variants)
        plain = (PLAIN,) if n == 128 else ()
        yield Case("training", n), (MATRIX_SE, PORT, *plain, *RIVALS)
        if n == 32:
            yield Case("training", n, batch=8), (MATRIX_SE, PORT, PLAIN, COMPILED)
            yield Case("training", n, feature_maps=32, batch=8), (MATRIX_SE, PORT, PLAIN)


def quick_cases() -> Iterator[Entry]:
    """Less than a minute: no compiler, no large matrices."""
    yield Case("inference", 16), (MATRIX_SE, PORT, *RIVALS)
    yield Case("inference", 64), (MATRIX_SE, PORT, "resnet29", "rse")
    yield Case("inference", 64, feature_maps=32), (MATRIX_SE, PORT)
    yield Case("training", 32, batch=8), (MATRIX_SE, PORT)
    yield Case("inference", 256), (MATRIX_SE,)


def chosen(cases: Iterable[Entry], sizes: list[int], contenders: list[str]) -> Iterator[Entry]:
    """The cases of some sizes with some contenders; an empty choice keeps all.

    >>> [(case.n, names) for case, names in chosen(quick_cases(), [16], ["rse", "matrix-se"])]
    [(16, ('matrix-se', 'rse'))]
    """
    for case, names in cases:
        kept = tuple(name for name in names if not contenders or name in contenders)
        if kept and (not sizes or case.n in sizes):
            yield case, kept


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = OneLineParser(prog="python -m mse_fast.bench", description=__doc__)
    made.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file")
    made.add_argument(
        "--more",
        action="store_true",
        help="keep the rows of --json and measure the cases in which they have no time of Matrix-SE",
    )
    made.add_argument("--quick", action="store_true", help="a few small sizes, within 60 seconds")
    made.add_argument("--budget", type=float, default=15.0, metavar="MIN", help="minutes in all (default 15)")
    made.add_argument("--sizes", type=int, nargs="+", default=[], metavar="N", help="only these sides")
    made.add_argument(
        "--contenders", nargs="+", default=[], choices=CONTENDERS, metavar="NAME", help=f"only: {', '.join(CONTENDERS)}"
    )
    made.add_argument("--threads", type=int, default=0, metavar="N", help="CPU threads (default: PyTorch's choice)")
    made.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: processor time of one thread, for a machine that is busy with other things",
    )
    made.add_argument("--from", type=Path, dest="source", metavar="FILE", help="measure nothing, read these rows")
    made.add_argument("--plot", type=Path, metavar="PREFIX", help="write PREFIX.svg, PREFIX.png and PREFIX.csv")
    made.add_argument("--markdown", type=Path, metavar="DOC", help="refill the tables between the markers of DOC")
    return made


def unfinished(bench: Bench, rows: Table, cases: list[Entry]) -> tuple[Table, list[Entry]]:
    """The rows to keep of an earlier bench, which learns from them, and the cases it had no time for.

    A case is kept or measured again as a whole: its ratios come from one run.
    """
    again = []
    for case, names in cases:
        of_case = bench.rows_of(case, names, rows)
        if any(row["contender"] == MATRIX_SE and row["seconds"] for row in of_case):
            bench.learn(case, of_case)
        else:
            rows = [row for row in rows if row not in of_case]
            again.append((case, names))
    return rows, again


def measure(options: argparse.Namespace) -> Table:
    """Run the cases, printing every row as it comes and keeping the file up to date."""
    if options.clock == "cpu":
        options.threads = 1  # waiting threads would be counted as working
    if options.threads:
        torch.set_num_threads(options.threads)
    bench = Bench(60 * (min(QUICK_MINUTES, options.budget) if options.quick else options.budget), options.clock)
    cases = list(chosen(quick_cases() if options.quick else all_cases(), options.sizes, options.contenders))
    if not cases:
        known = ", ".join(str(n) for n in sorted({case.n for case, _ in all_cases()}))
        raise UsageError(f"no case has the sizes and contenders asked for; sizes: {known}")
    rows: Table = []
    if options.more:
        rows, cases = unfinished(bench, read_rows(options.json), cases)
    for row in bench.run(cases):
        rows.append(row)
        print(row_line(row), flush=True)
        if options.json:
            write_atomically(options.json, (json.dumps(rows, indent=1) + "\n").encode())
    return rows


def main(arguments: list[str] | None = None) -> int:
    """The exit code of the command line."""
    options = parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    if not options.budget > 0:
        fail(f"--budget is {options.budget}, but must be a positive number of minutes")
    if options.more and not options.json:
        fail("--more needs --json FILE, the rows to go on from")
    if options.threads < 0:
        fail(f"--threads is {options.threads}, but must be at least 1, or 0 for PyTorch's choice")
    try:
        rows = read_rows(options.source) if options.source else measure(options)
        if options.plot:
            write_plot(rows, options.plot)
        if options.markdown:
            write_markdown(rows, options.markdown)
    except UsageError as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot write {error.filename}: {error.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
