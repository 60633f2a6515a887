"""The command line: make the page from the records."""

import sys
from pathlib import Path

from mse_fast.config import OneLineParser, UsageError, fail
from mse_fast.hub import write_atomically
from mse_fast.results.curves import keep_curve
from mse_fast.results.page import document, fill_pages
from mse_fast.results.paper import read_paper
from mse_fast.results.records import read_records
from mse_fast.results.tables import csv_of


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    about = "Rewrite docs/results.md, its figures and tables from the run records."
    parser = OneLineParser(prog="python -m mse_fast.results", description=about)
    parser.add_argument("--records", type=Path, default=Path("results"), help="folder of run records")
    parser.add_argument(
        "--out", type=Path, default=Path("docs"), help="folder to write results.md, results.csv, figures/ to"
    )
    parser.add_argument(
        "--keep-curve",
        nargs="+",
        default=[],
        metavar="RUN",
        help="first copy the learning curves of these runs to curves/ in the folder of records",
    )
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    try:
        for name in options.keep_curve:
            print(f"wrote {keep_curve(name, options.records)}")
        records, paper = read_records(options.records), read_paper(options.records)
        text = document(records, paper, options.records, options.out / "figures")
        write_atomically(options.out / "results.csv", csv_of(records, paper).encode())
        write_atomically(options.out / "results.md", text.encode())
        fill_pages(options.out, options.records, records, paper)
    except UsageError as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot write to {options.out}: {error.strerror}")
    print(f"wrote {options.out / 'results.md'} from {len(records)} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
