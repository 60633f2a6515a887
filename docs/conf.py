"""Sphinx configuration: ``sphinx-build -W -b html docs docs/_build/html``."""

import shutil
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "Matrix-SE"
copyright = "the Matrix-SE contributors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "explorer/*"]
html_theme = "furo"
html_math_renderer = "mathml"  # browsers draw it themselves: nothing is fetched, the site works offline
html_title = "Matrix-SE"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # `make notebooks` has executed them; their outputs are in the files
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures show them


def bring_notebooks() -> None:
    """The tutorials live in notebooks/, outside of the documentation: show copies of them."""
    for source in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        target = HERE / "tutorials" / source.name
        target.parent.mkdir(exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)


def from_terminal(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings are written for a terminal. Drawings and tables, set off by a blank line and indentation, are shown
    as they are; a continued line loses its indentation; bars are no substitutions."""
    shown: list[str] = []
    literal = section = prompt = False
    for number, line in enumerate(lines):
        above = shown[-1].strip() if shown else ""
        prompt = bool(line.strip()) and (prompt or line.lstrip().startswith(">>>"))  # with the output that follows
        if prompt:
            shown.append(line)
            continue
        section = section or (set(above) == {"-"} and len(above) > 2)  # napoleon reads what follows
        indented = line.startswith("    ")
        if indented and not literal and not section:
            if not above and not _introduced(lines, number):
                shown += ["::", ""]
            elif above and not _introduced(lines, number):
                line, indented = line.lstrip(), False
        literal = indented or (literal and not line.strip())
        shown.append(line if indented else _bars(line))
    lines[:] = shown


def _bars(line: str) -> str:
    """Bars outside of code are just bars.

    >>> _bars("of length |i|, ``a | b``")
    'of length \\\\|i\\\\|, ``a | b``'
    """
    parts = line.split("``")
    return "``".join(part if number % 2 else part.replace("|", r"\|") for number, part in enumerate(parts))


def _introduced(lines: list[str], number: int) -> bool:
    """Does the text before an indented line already say what it is (``::``, a directive, a list, a field, a prompt)?"""
    above = next((line for line in reversed(lines[:number]) if line.strip()), "")
    return above.rstrip().endswith("::") or above.lstrip().startswith((".. ", ":", "- ", "* ", ">>>", "..."))


def formula(writer, node) -> None:
    """A formula as MathML; ``aligned`` is ``align*`` to the converter."""
    block = isinstance(node, nodes.math_block)
    text = convert(node.astext().replace("{aligned}", "{align*}"), display="block" if block else "inline")
    writer.body.append(f'<div class="math">{text}</div>' if block else text)
    raise nodes.SkipNode


def show_explorer(app, error) -> None:
    """The explorer is a page of its own, copied as it is."""
    if error is None and app.builder.format == "html":
        shutil.copytree(HERE / "explorer", Path(app.outdir) / "explorer", dirs_exist_ok=True)


def setup(app) -> None:
    bring_notebooks()
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("autodoc-process-docstring", from_terminal, priority=400)  # before napoleon
    app.connect("build-finished", show_explorer)
