"""A task of one's own: found by its name, refused with a reason, and trained as the documentation says."""

import json
import re
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from mse_fast.config import load_preset
from mse_fast.evaluate import main as evaluate_main
from mse_fast.tasks import Task, get_task
from mse_fast.train import main

DOCS = Path(__file__).parents[1] / "docs"
OWN = """
import torch
from mse_fast.tasks import Task
from mse_ref.tasks import TaskSpec

class Ones(Task):
    spec = TaskSpec("ones", 2, 2, (4, 8), 1, "pad-weighted", "always one")
    def sample(self, batch, n, generator):
        ones = torch.ones(batch, n, n, dtype=torch.long, device=generator.device)
        return ones, ones

class Stranger: ...
class Unfinished(Task): ...
class Unspecified(Task):
    def sample(self, batch, n, generator): ...
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_tasks.py").write_text(OWN)
    (tmp_path / "needs_more.py").write_text("import surely_not_installed")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_task_of_ones_own_is_found_by_module_and_class(own_module):
    task = get_task("own_tasks:Ones")
    assert isinstance(task, Task) and task.spec.name == "ones"
    assert task.sample(2, 4, torch.Generator())[0].shape == (2, 4, 4)


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("nowhere.tasks:Ones", ValueError, "no module 'nowhere' found; run from the folder"),
        ("own_tasks.deeper:Ones", ValueError, "no module 'own_tasks.deeper' found"),
        ("own_tasks:Twos", ValueError, "module 'own_tasks' has no class 'Twos'"),
        ("own_tasks:Stranger", ValueError, "Stranger is not a subclass of mse_fast.tasks.Task"),
        ("own_tasks:OWN", ValueError, "has no class 'OWN'"),
        ("own_tasks:torch", ValueError, "torch is not a subclass"),
        ("own_tasks:Unfinished", ValueError, "Unfinished does not implement sample"),
        ("own_tasks:Unspecified", ValueError, "Unspecified has no spec; set spec = TaskSpec"),
        ("own_tasks:", ValueError, "unknown task 'own_tasks:'"),
        (":Ones", ValueError, "unknown task ':Ones'"),
        ("needs_more:Ones", ModuleNotFoundError, "surely_not_installed"),
    ],
)
def test_a_task_that_cannot_be_loaded_says_why(own_module, name, error, told):
    with pytest.raises(error, match=told):
        get_task(name)


def blocks_of(language: str) -> list[str]:
    text = (DOCS / "adding_a_task.md").read_text()
    return [textwrap.dedent(block) for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)]


def test_the_task_in_the_documentation_trains_as_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    task, check = blocks_of("python")
    Path("flip.py").write_text(task)
    exec(check, {})
    Path("flip.toml").write_text(blocks_of("toml")[0])
    train, look = (block.removeprefix("$ python -m ").split() for block in blocks_of("console"))
    assert train[0] == "mse_fast.train" and look[0] == "mse_fast.evaluate"
    smaller = [
        "--feature-maps",
        "16",
        "--sizes",
        "2",
        "4",
        "--batch",
        "16",
        "--steps",
        "250",
        "--warmup",
        "20",
        "--lr",
        "1e-2",
        "--no-progress",
    ]
    assert main([*train[1:], *smaller]) == 0
    assert json.loads(Path("runs/flip/record.json").read_text())["evaluation"]["accuracy"]["4"] > 0.9
    assert evaluate_main([*look[1:], "--instances", "4", "--sizes", "4", "8"]) == 0
    assert Path("flip.png").exists()
    assert load_preset("flip.toml").task == "flip:Flip"
    del sys.modules["flip"]
