"""Execute the notebooks: each ``NN_name.py`` (jupytext, percent format) becomes ``NN_name.ipynb`` with its outputs.

    python notebooks/build.py            all of them
    python notebooks/build.py 04 07      some
    python notebooks/build.py --check    only say which .ipynb do not hold the source of their .py
    python notebooks/build.py --alt      execute nothing, only bring the texts of the figures up to date

People edit the ``.py`` files; the ``.ipynb`` are for reading online. A cell that draws a figure says what it shows, for
those who cannot see it, in its first line: ``# %% alt="..."``.
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

__all__ = ["CellExecutionError", "build", "describe", "execute", "figures", "nbformat", "read", "retell", "stale"]

HERE = Path(__file__).parent
SOURCES = sorted(HERE.glob("[0-9][0-9]_*.py"))


def read(source: Path) -> nbformat.NotebookNode:
    """The notebook a ``.py`` file describes, without outputs; cells are numbered so that diffs stay small."""
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        if "alt" in cell.metadata:  # nbconvert reads "alt", MyST-NB this
            cell.metadata["mystnb"] = {"image": {"alt": cell.metadata["alt"]}}
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
    describe(notebook, source.name)
    return notebook


def figures(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The outputs of a cell that are pictures."""
    return [out for out in cell.get("outputs", []) if any(kind.startswith("image/") for kind in out.get("data", {}))]


def describe(notebook: nbformat.NotebookNode, name: str) -> None:
    """Give every figure the text of its cell; a figure without one, or a text without a figure, is an error."""
    for cell in notebook.cells:
        text, drawn = cell.metadata.get("alt", "").strip(), figures(cell)
        if bool(text) != bool(drawn) or len(drawn) > 1:
            first = cell.source.strip().partition("\n")[0]
            raise ValueError(
                f"{name}, {cell.id} ({first}): {len(drawn)} figures and {'a' if text else 'no'} text; a cell with one "
                'figure starts with `# %% alt="what the figure shows"`, any other has no alt'
            )
        for out in drawn:
            for kind in out.data:
                if kind.startswith("image/"):
                    out.metadata[kind] = {**out.metadata.get(kind, {}), "alt": text}


def retell(source: Path) -> bool:
    """Bring the texts of a stored notebook's figures up to date without running it; were they old?"""
    target = source.with_suffix(".ipynb")
    told, now, before = nbformat.read(target, 4), read(source), target.read_bytes()
    if [cell.source for cell in told.cells] != [cell.source for cell in now.cells]:
        raise ValueError(f"{source.name}: its code or text has changed too: run `make notebooks`")
    for cell, new in zip(told.cells, now.cells, strict=True):
        cell.metadata = new.metadata
    describe(told, source.name)
    write(told, target)
    return target.read_bytes() != before


def write(notebook: nbformat.NotebookNode, target: Path) -> None:
    part = target.with_suffix(".part")
    nbformat.write(notebook, part)
    os.replace(part, target)


def build(source: Path) -> Path:
    target = source.with_suffix(".ipynb")
    write(execute(source), target)
    return target


def stale(source: Path) -> bool:
    """Is the ``.ipynb`` missing, or made from another source than the ``.py`` now holds?"""
    target = source.with_suffix(".ipynb")
    if not target.exists():
        return True
    now, then = (
        [(cell.cell_type, cell.source, cell.metadata.get("alt")) for cell in notebook.cells]
        for notebook in (read(source), nbformat.read(target, 4))
    )
    return now != then


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", help="first characters of the notebooks to build; none: all")
    parser.add_argument("--check", action="store_true", help="build nothing, exit with 1 if one is stale")
    parser.add_argument("--alt", action="store_true", help="run nothing, only renew the texts of the figures")
    options = parser.parse_args()
    chosen = [s for s in SOURCES if not options.numbers or s.name.startswith(tuple(options.numbers))]
    if not chosen:
        print(f"no notebook starts with {' or '.join(options.numbers)}", file=sys.stderr)
        return 2
    if options.check:
        old = [source.name for source in chosen if stale(source)]
        print("\n".join(f"{name}: run `make notebooks`" for name in old) or "all notebooks are up to date")
        return 1 if old else 0
    if options.alt:
        try:
            for source in chosen:
                print(f"{source.stem}  {'renewed' if retell(source) else 'as it was'}")
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        return 0
    for source in chosen:
        start = time.monotonic()
        build(source)
        print(f"{source.stem}  {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
