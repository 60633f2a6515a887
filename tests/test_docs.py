"""The documentation builds without a warning, its links lead somewhere, and the paper map names what exists."""

import html.parser
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


class Anchors(html.parser.HTMLParser):
    """Every link target and every address of a page."""

    def __init__(self, page: Path):
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.images_without_text: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]
        alt = given.get("alt") or ""
        if tag == "img" and (not alt or re.fullmatch(r"\S*\.(png|svg|jpe?g)", alt)):  # Sphinx's way out: a file name
            self.images_without_text.append(given.get("src", ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx", reason="pip install 'matrix-se[docs]'")
    out = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", out / ".doctrees", DOCS, out],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr
    return {page: Anchors(page) for page in out.rglob("*.html")}


def test_the_site_has_every_page_it_promises(site):
    names = {page.name for page in site}
    promised = "index how_it_works tutorials explorer paper_map deviations results recipe performance adding_a_task api"
    assert {f"{name}.html" for name in promised.split()} <= names
    assert {f"{source.stem}.html" for source in (ROOT / "notebooks").glob("[0-9]*.py")} <= names


def test_every_link_within_the_site_leads_somewhere(site):
    broken = []
    for page, anchors in site.items():
        for link in anchors.links:
            if re.match(r"[a-z]+:", link) or link in ("#", "#!") or link.startswith("//"):
                continue
            path, fragment = urldefrag(link)
            target = (page.parent / unquote(path.split("?")[0])).resolve() if path else page
            if not target.exists() or (
                fragment and target.suffix == ".html" and unquote(fragment) not in site[target].names
            ):
                broken.append(f"{page.name}: {link}")
    assert not broken


def test_every_figure_of_the_pages_has_a_text(site):
    assert [(page.name, site[page].images_without_text) for page in site if site[page].images_without_text] == []


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")]), ids=lambda page: page.name)
def test_every_relative_link_of_a_page_exists_in_the_repository(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:href|src)="([^"]+)"', text)
    missing = []
    for link in links:
        path = urldefrag(link).url
        if path and not re.match(r"[a-z]+:", path) and not (page.parent / path).exists():
            missing.append(link)
    assert not missing


def test_the_paper_map_names_only_what_exists():
    text = (DOCS / "paper_map.md").read_text(encoding="utf-8")
    code = set(re.findall(r"`(mse_(?:ref|fast)(?:\.\w+)+)`", text))
    tests = set(re.findall(r"`(test_\w+)`", text + (DOCS / "deviations.md").read_text(encoding="utf-8")))
    assert len(code) > 40 and len(tests) > 30
    for name in sorted(code):
        parts = name.split(".")
        for split in range(len(parts), 0, -1):  # the longest part of the name that is a module
            try:
                found = importlib.import_module(".".join(parts[:split]))
                break
            except ModuleNotFoundError:
                continue
        for part in parts[split:]:
            found = getattr(found, part)  # an AttributeError names what is missing
    written = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_*.py"))
    assert [name for name in sorted(tests) if f"def {name}(" not in written] == []


def test_every_figure_of_the_pages_is_one_that_make_figures_draws():
    from mse_ref.draw.__main__ import FIGURES

    own = ["index.md", "how_it_works.md"]
    used = {name for page in own for name in re.findall(r"\(figures/(\w+)\.svg\)", (DOCS / page).read_text())}
    assert used <= set(FIGURES) and all((DOCS / "figures" / f"{name}.svg").exists() for name in used)
