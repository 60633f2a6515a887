"""The tutorials run from top to bottom, their stored outputs belong to their sources, and they define no layers."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
SOURCES = sorted(FOLDER.glob("[0-9][0-9]_*.py"))
NAMES = ["zorder", "shuffle", "switch", "benes", "network", "training", "generalization", "sudoku", "your_own_task"]


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("notebooks_build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_is_a_notebook_for_every_stage():
    assert [source.stem for source in SOURCES] == [f"{i:02}_{name}" for i, name in enumerate(NAMES, start=1)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_notebook_runs_from_top_to_bottom(source, build):
    notebook = build.execute(source)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_stored_notebook_has_the_source_of_its_twin_and_no_errors(source, build):
    assert not build.stale(source), f"{source.name} changed: run `make notebooks`"
    notebook = build.nbformat.read(source.with_suffix(".ipynb"), 4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs and all(output.output_type != "error" for output in outputs)
    assert source.with_suffix(".ipynb").stat().st_size < 700_000


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_stored_figure_says_what_it_shows(source, build):
    notebook = build.nbformat.read(source.with_suffix(".ipynb"), 4)
    drawn = [(cell, figure) for cell in notebook.cells for figure in build.figures(cell)]
    assert drawn or source.stem == "09_your_own_task"
    texts = [figure.metadata.get("image/png", {}).get("alt", "") for _, figure in drawn]  # JupyterLab reads this
    assert all(len(text) > 40 for text in texts) and len(set(texts)) == len(texts)
    assert texts == [cell.metadata.mystnb.image.alt for cell, _ in drawn]  # and the documentation this


def drawing(text: str | None, images: int = 1):
    """A notebook of one cell with so many figures."""
    picture = nbformat.v4.new_output("display_data", {"image/png": "", "text/plain": "<Figure>"})
    cell = nbformat.v4.new_code_cell(
        "plot()", metadata={} if text is None else {"alt": text}, outputs=[picture] * images
    )
    return nbformat.v4.new_notebook(cells=[cell])


@pytest.mark.parametrize("text,images", [(None, 1), ("", 1), (" ", 1), ("nothing to see", 0), ("twins", 2)])
def test_a_figure_without_its_own_text_stops_the_build(build, text, images):
    with pytest.raises(ValueError, match=r"10_new.py, .* \(plot\(\)\): . figures and .*`# %% alt="):
        build.describe(drawing(text, images), "10_new.py")


def test_a_changed_text_is_noticed_and_renewed_without_running_anything(build, tmp_path):
    source = tmp_path / "10_small.py"
    source.write_text('# %% alt="a line"\nplot()\n')
    stored = drawing("a line")
    build.describe(stored, source.name)
    build.nbformat.write(stored, source.with_suffix(".ipynb"))
    assert not build.stale(source)
    source.write_text('# %% alt="a curve"\nplot()\n')
    assert build.stale(source)
    assert build.retell(source) and not build.stale(source) and not build.retell(source)
    (figure,) = build.figures(build.nbformat.read(source.with_suffix(".ipynb"), 4).cells[0])
    assert figure.metadata["image/png"]["alt"] == "a curve"
    source.write_text('# %% alt="a curve"\nplot(again)\n')
    with pytest.raises(ValueError, match="make notebooks"):
        build.retell(source)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_notebook_defines_no_layers_and_ends_with_summary_and_exercises(source):
    text = source.read_text()
    tree = ast.parse(text)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not used & {"Module", "Linear", "Conv2d", "Embedding", "Parameter"}
    headings = [line for line in text.splitlines() if line.startswith("# ## ")]
    assert headings[-2:] == ["# ## Summary", "# ## Exercises"]
    assert "<details><summary>Solutions</summary>" in text


def test_an_error_in_a_cell_stops_the_build(build, tmp_path):
    source = tmp_path / "10_broken.py"
    source.write_text("# %%\nassert 1 + 1 == 3\n")
    with pytest.raises(build.CellExecutionError, match="AssertionError"):
        build.build(source)
    assert not source.with_suffix(".ipynb").exists()


def test_a_changed_source_is_noticed(build, tmp_path):
    source = tmp_path / "10_small.py"
    source.write_text("# %%\n1 + 1\n")
    assert build.stale(source)
    build.nbformat.write(build.read(source), source.with_suffix(".ipynb"))
    assert not build.stale(source)
    source.write_text("# %%\n1 + 2\n")
    assert build.stale(source)


def test_an_unknown_number_ends_with_code_2():
    run = subprocess.run([sys.executable, FOLDER / "build.py", "77"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (2, "no notebook starts with 77\n")
