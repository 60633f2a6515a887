"""Execute the notebooks: each ``NN_name.py`` (jupytext, percent format) becomes ``NN_name.ipynb`` with its outputs.

    python notebooks/build.py            all of them
    python notebooks/build.py 04 07      some
    python notebooks/build.py --check    only say which .ipynb do not hold the source of their .py

People edit the ``.py`` files; the ``.ipynb`` are for reading online.
"""

import argparse
import os
import sys
import time
from pathlib import Path

try:
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
except ImportError as error:
    sys.exit(f"the notebooks need {error.name}: pip install 'matrix-se[notebooks]'")

# Small networks gain nothing from a second thread, and two threads that wait for each other on a busy machine lose.
os.environ.setdefault("OMP_NUM_THREADS", "1")

__all__ = ["CellExecutionError", "build", "execute", "nbformat", "read", "stale"]

HERE = Path(__file__).parent
SOURCES = sorted(HERE.glob("[0-9][0-9]_*.py"))


def read(source: Path) -> nbformat.NotebookNode:
    """The notebook a ``.py`` file describes, without outputs; cells are numbered so that diffs stay small."""
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    notebook.metadata = {
        "jupytext": {"formats": "ipynb,py:percent"},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def execute(source: Path) -> nbformat.NotebookNode:
    """Run a notebook from top to bottom in its own kernel; an error in a cell is an error here."""
    notebook = read(source)
    quiet = ["--IPKernelApp.log_level=ERROR"]
    NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": HERE}}, extra_arguments=quiet
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
    return notebook


def build(source: Path) -> Path:
    target = source.with_suffix(".ipynb")
    part = target.with_suffix(".part")
    nbformat.write(execute(source), part)
    os.replace(part, target)
    return target


def stale(source: Path) -> bool:
    """Is the ``.ipynb`` missing, or made from another source than the ``.py`` now holds?"""
    target = source.with_suffix(".ipynb")
    if not target.exists():
        return True
    pairs = [[(c.cell_type, c.source) for c in n.cells] for n in (read(source), nbformat.read(target, 4))]
    return pairs[0] != pairs[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", help="first characters of the notebooks to build; none: all")
    parser.add_argument("--check", action="store_true", help="build nothing, exit with 1 if one is stale")
    options = parser.parse_args()
    chosen = [s for s in SOURCES if not options.numbers or s.name.startswith(tuple(options.numbers))]
    if not chosen:
        print(f"no notebook starts with {' or '.join(options.numbers)}", file=sys.stderr)
        return 2
    if options.check:
        old = [source.name for source in chosen if stale(source)]
        print("\n".join(f"{name}: run `make notebooks`" for name in old) or "all notebooks are up to date")
        return 1 if old else 0
    for source in chosen:
        start = time.monotonic()
        build(source)
        print(f"{source.stem}  {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
