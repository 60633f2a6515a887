"""The command line of a bench that makes one table of the performance page."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from mse_fast.config import OneLineParser, UsageError, fail
from mse_fast.hub import write_atomically
from mse_fast.record import hardware
from mse_fast.summaries import fill

Rows = list[dict[str, Any]]


def one_table(
    name: str,
    description: str | None,
    measure: Callable[[], Rows],
    markdown: Callable[[Rows], str],
    arguments: list[str] | None,
) -> int:
    """Measure, or read what was measured; write the rows, the table between ``bench:NAME``, and print it."""
    parser = OneLineParser(prog=f"python -m mse_fast.bench.{name}", description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the measurements to this file")
    parser.add_argument("--from", type=Path, dest="source", metavar="FILE", help="measure nothing, read this file")
    parser.add_argument("--markdown", type=Path, metavar="DOC", help="refill the table between the markers of DOC")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    try:
        if options.source:
            rows = json.loads(options.source.read_text())
        else:
            machine = f"{hardware(torch.device('cpu'))}, torch {torch.__version__}"
            rows = [row | {"machine": machine} for row in measure()]
        if options.json:
            write_atomically(options.json, (json.dumps(rows, indent=1) + "\n").encode())
        made = markdown(rows)
        if options.markdown:
            fill(options.markdown, {f"bench:{name}": made})
        print(made)
    except UsageError as error:
        fail(str(error))
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"cannot read or write the measurements of bench.{name}: {type(error).__name__} {error}")
    return 0
