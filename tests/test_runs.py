"""What a run leaves in its folder, and whose weights it begins with."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from test_train import QUICK

from mse_fast import record as record_module
from mse_fast.hub import read_weights
from mse_fast.record import training_seconds
from mse_fast.train import main


def test_a_run_leaves_a_complete_record(tmp_path, capsys):
    folder = tmp_path / "run"
    arguments = ["transpose", *QUICK, "--steps", "5", "--log-every", "1", "--eval-every", "2", "--eval-instances", "2"]
    arguments += ["--tensorboard", "--out", str(folder)]
    assert main(arguments) == 0
    record = json.loads((folder / "record.json").read_text())
    assert record["command"].startswith("python -m mse_fast.train transpose --feature-maps 4")
    assert record["config"]["feature_maps"] == 4 and record["seed"] == 0 and record["step"] == 5
    assert record["parameters"] > 0 and record["wall_seconds"] > 0 and record["resumptions"] == 0
    assert {"commit", "hardware", "versions", "started", "evaluation"} <= set(record)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["kind"] == "train"] == [1, 2, 3, 4, 5]
    assert [line["step"] for line in lines if line["kind"] == "eval"] == [2, 4, 5]
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {k: v for k, v in line.items() if k != "seconds"} for line in lines if line["kind"] == "eval"
    ]
    assert (folder / "curve.svg").read_text().lstrip().startswith("<?xml")
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert b"accuracy/8" in next((folder / "tensorboard").iterdir()).read_bytes()


def test_a_run_that_begins_with_another_ones_weights_records_the_way_they_came(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    still = ["transpose", *QUICK, "--steps", "2", "--eval-instances", "2", "--ema", "0"]
    assert main([*still, "--out", "first"]) == 0
    for start, out in (("first", "second"), ("second", "third")):
        assert main([*still, "--lr", "1e-30", "--start", start, "--out", out]) == 0
    assert main([*still, "--lr", "1e-30", "--steps", "3", "--start", "second", "--out", "third"]) == 0  # resumed
    record = json.loads(Path("third/record.json").read_text())
    assert [stage["command"].split()[-1] for stage in record["stages"]] == ["first", "second"]
    assert all("stages" not in stage for stage in record["stages"])
    parts = [json.loads(Path(out, "record.json").read_text())["wall_seconds"] for out in ("first", "second", "third")]
    assert training_seconds(record) == pytest.approx(sum(parts))
    assert Path("third/model.safetensors").read_bytes() == Path("first/model.safetensors").read_bytes()


def test_a_run_with_a_skip_may_begin_with_weights_that_have_none_and_not_the_other_way(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    quick = ["transpose", *QUICK, "--steps", "1", "--eval-instances", "2", "--ema", "0"]
    assert main([*quick, "--out", "first"]) == 0
    assert main([*quick, "--lr", "1e-30", "--start", "first", "--skip", "--out", "second"]) == 0
    first, second = (read_weights(Path(out) / "model.safetensors") for out in ("first", "second"))
    assert set(second) == {*first, "skip.weight"}
    assert all(torch.equal(first[name], second[name]) for name in first)
    with pytest.raises(SystemExit):
        main([*quick, "--start", "second", "--out", "third"])
    assert "cannot start from second" in capsys.readouterr().err


def test_a_run_goes_on_when_the_run_it_began_with_is_gone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    quick = ["transpose", *QUICK, "--eval-instances", "2", "--ema", "0.5"]
    assert main([*quick, "--steps", "1", "--out", "one"]) == 0
    two = [*quick, "--lr", "1e-30", "--start", "one", "--out", "two"]
    assert main([*two, "--steps", "1"]) == 0
    Path("one").rename("elsewhere")
    assert main([*two, "--steps", "2"]) == 0  # its own checkpoint has the weights
    assert Path("two/model.safetensors").read_bytes() == Path("elsewhere/model.safetensors").read_bytes()
    with pytest.raises(SystemExit):
        main([*two, "--out", "three"])  # this one has none
    assert "no run and no trained network is called 'one'" in capsys.readouterr().err
    assert not Path("three").exists()


def test_a_folder_with_nothing_but_a_lock_is_free(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("out/.lock").touch()  # killed before it had written anything
    assert main(["transpose", *QUICK, "--steps", "1", "--eval-instances", "2", "--out", "out"]) == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="git is missing")
def test_an_installed_package_has_no_commit_of_the_repository_around_it(tmp_path):
    package = Path(record_module.__file__).parents[1]
    run = partial(subprocess.run, check=True, capture_output=True, text=True, cwd=tmp_path)
    run(["git", "init", "-q"])
    run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "theirs"])
    shutil.copytree(package / "mse_fast", tmp_path / "site" / "mse_fast", ignore=shutil.ignore_patterns("zoo"))
    shutil.copytree(package / "mse_ref", tmp_path / "site" / "mse_ref")
    ask = "from mse_fast import record; print(record.__file__, record.commit())"
    said = run([sys.executable, "-c", ask], env=os.environ | {"PYTHONPATH": str(tmp_path / "site")}).stdout.split()
    assert said == [str(tmp_path / "site" / "mse_fast" / "record.py"), "None"]


def test_fresh_starts_over_in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        assert main(["transpose", *QUICK, "--steps", "1", "--eval-instances", "2", "--fresh"]) == 0
    assert sorted(p.name for p in Path("runs").iterdir()) == ["transpose", "transpose-2", "transpose-3"]
    assert main(["transpose", *QUICK, "--steps", "1", "--eval-instances", "2"]) == 0  # finished: nothing to do
