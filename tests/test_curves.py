"""Learning curves are copied from runs and drawn as they are."""

import csv
import json
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mse_fast.config import UsageError
from mse_fast.results.curves import keep_curve, learned_at, section
from mse_fast.train import main as train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "small"
    options = "--feature-maps 4 --blocks 1 --sizes 4 8 --steps 6 --eval-every 2 --eval-instances 2 --no-progress --out"
    assert train(["transpose", *options.split(), str(folder)]) == 0
    return folder


def made_up(task, model, errors, seconds=60.0, **config):
    """A kept curve: one look a hundred steps, with this error at 8 and none at 4."""
    looks = [
        {"step": 100 * i, "seconds": seconds * i, "accuracy": {"8": 1 - error, "4": 1.0}}
        for i, error in enumerate(errors, start=1)
    ]
    about = {"parameters": 1234, "hardware": "a CPU", "seed": 0, "step": looks[-1]["step"]}
    about |= {"wall_seconds": looks[-1]["seconds"], "config": {"model": model, "sizes": [4, 8], **config}}
    return {"name": f"{model}-{task}", "task": task, "curve": looks, "record": about}


@pytest.fixture
def draw(tmp_path):
    """Writes made-up curves and makes the section; returns its lines, and its points by (task, model)."""

    def make(**curves):
        (tmp_path / "curves").mkdir(exist_ok=True)
        for name, content in curves.items():
            (tmp_path / "curves" / f"{name}.json").write_text(json.dumps(content))
        lines = section(tmp_path / "curves", tmp_path / "figures")
        points = {}
        if lines:
            with open(tmp_path / "figures" / "results-convergence.csv") as file:
                for line in csv.DictReader(file):
                    points.setdefault((line["task"], line["model"]), []).append(line)
        return lines, points

    return make


def test_a_kept_curve_holds_every_evaluation_of_the_run_and_no_path_of_the_machine(run, tmp_path):
    path = keep_curve(str(run), tmp_path)
    assert path == tmp_path / "curves" / "small.json"
    kept = json.loads(path.read_text())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    looks = [line for line in lines if line["kind"] == "eval"]
    assert [look["step"] for look in kept["curve"]] == [2, 4, 6]
    assert [look["accuracy"] for look in kept["curve"]] == [look["accuracy"] for look in looks]
    assert [look["seconds"] for look in kept["curve"]] == [look["seconds"] for look in looks]
    assert kept["task"] == "transpose" and kept["record"]["config"]["feature_maps"] == 4
    assert kept["record"]["command"].endswith("--out small")
    assert str(run.parent) not in path.read_text() and path.stat().st_size < 5000


def test_a_run_without_evaluations_has_no_curve(run, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(run, bare)
    (bare / "metrics.jsonl").unlink()
    with pytest.raises(UsageError, match="no learning curve"):
        keep_curve(str(bare), tmp_path)
    with pytest.raises(UsageError, match="no-such-run"):
        keep_curve("no-such-run", tmp_path)


def test_without_curves_there_is_no_section(draw):
    assert draw() == ([], {})


def test_the_points_are_the_errors_at_the_largest_size_and_on_average(draw):
    _, points = draw(b=made_up("xor", "resnet29", [0.5, 0.25], seconds=90.0), a=made_up("xor", "matrix-se", [0.5, 0.0]))
    assert list(points) == [("xor", "matrix-se"), ("xor", "resnet29")]
    resnet = [
        [float(line[key]) for key in ("step", "seconds", "error_largest", "error_mean")]
        for line in points["xor", "resnet29"]
    ]
    assert resnet == [[100, 90, 0.5, 0.25], [200, 180, 0.25, 0.125]]


def test_a_size_counts_as_learned_from_where_it_stays_so():
    assert learned_at(made_up("xor", "gin", [0.5, 0.001, 0.02, 0.009, 0.0]))["step"] == 400
    assert learned_at(made_up("xor", "gin", [0.0, 0.0]))["step"] == 100
    assert learned_at(made_up("xor", "gin", [0.0, 0.5])) is None


def test_the_table_says_when_each_network_had_learned_its_task(draw):
    curves = {
        "r": made_up("xor", "resnet29", [0.5, 0.25], steps=900),
        "m": made_up("xor", "matrix-se", [0.5, 0.001, 0.0]),
    }
    lines, _ = draw(**curves, t=made_up("transpose", "matrix-se", [0.0]))
    rows = [line for line in lines if line.startswith("| ")][1:]
    assert [row.split(" | ")[0] for row in rows] == ["| transpose", "| xor", "| xor"]
    assert "Matrix-SE" in rows[1] and "| step 200, 2 min | none |" in rows[1]
    assert "| 200 (stopped early) |" in rows[2] and "| never | 0.25 |" in rows[2]


def test_there_is_a_panel_by_steps_and_one_by_minutes_for_every_task(draw, tmp_path):
    lines, _ = draw(a=made_up("xor", "matrix-se", [0.5]), b=made_up("transpose", "matrix-se", [0.5]))
    text = (tmp_path / "figures" / "results-convergence.svg").read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert text.count(">step<") == text.count(">minutes<") == 2 and text.count(">xor<") == 2
    assert "![Error against steps and against minutes for transpose, xor" in lines[2]


def test_the_curves_in_the_repository_end_with_their_runs_and_name_no_folder_of_a_machine():
    folder = Path(__file__).parents[1] / "results" / "curves"
    for path in folder.glob("*.json"):
        kept = json.loads(path.read_text())
        assert kept["curve"][-1]["step"] <= kept["record"]["step"]
        assert not any(word.startswith("/") for word in kept["record"]["command"].split())
