"""Mistakes on the command line cost one line and nothing else."""

import dataclasses
import subprocess
import sys

import pytest

from mse_fast.config import TrainConfig, from_dict, load_preset, parse, presets
from mse_fast.evaluate import main as evaluate
from mse_fast.results.__main__ import main as results
from mse_fast.train import main as train

MISTAKES = [
    ("transposs", "unknown preset 'transposs'; did you mean 'transpose'?"),
    ("nowhere/my.toml", "unknown preset 'nowhere/my.toml'"),
    ("broken.toml", "cannot read preset broken.toml"),
    ("odd.toml", "odd.toml: unknown field 'learning_rate'"),
    ("wrong.toml", "wrong.toml: steps is 'many', but must be of type int"),
    ("transpose --task transposse", "unknown task 'transposse'"),
    ("transpose --task no.such:Task", "no module 'no'"),
    ("transpose --task mse_fast.config:TrainConfig", "not a subclass of"),
    ("transpose --model vgg", "unknown model 'vgg'; choose from matrix-se"),
    ("transpose --learning-rate 1", "unknown option '--learning-rate'"),
    ("transpose --step 5", "unknown option '--step'; did you mean '--steps'?"),
    ("transpose --steps many", "invalid int value: 'many'"),
    ("transpose --norm batch", "invalid choice: 'batch'"),
    ("--steps 5 transpose", "the preset 'transpose' must come first"),
    ("transpose --steps 0", "steps is 0, but must be at least 1"),
    ("transpose --steps -3", "steps is -3, but must be at least 1"),
    ("transpose --sizes 4 12", "size 12 is not a power of two; the nearest one is 16"),
    ("transpose --sizes 0", "size 0 is not a power of two"),
    ("xor --sizes 2 4", "size 2 is too small for task xor"),
    ("transpose --sizes 4 4", "each size may appear only once"),
    ("transpose --batch 0", "batch is (0,), but must be positive"),
    ("transpose --sizes 4 8 --batch 1 2 3", "batch has 3 numbers for 2 sizes"),
    ("transpose --batch 1 2 3", "batch has 3 numbers for 4 sizes"),
    ("transpose --lr 0", "lr is 0.0, but must be a positive number"),
    ("transpose --lr nan", "lr is nan, but must be a positive number"),
    ("transpose --dropout 1", "dropout is 1.0, but must lie in [0, 1)"),
    ("transpose --betas 0.9", "betas is (0.9,), but must be two numbers"),
    ("transpose --device gpu", "device 'gpu' cannot be used"),
    ("transpose --data puzzles.csv", "reads no data: leave out --data"),
    ("transpose --out taken", "taken exists but holds no training run"),
    ("transpose --out taken/file", "cannot use the run folder taken/file: Not a directory"),
]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the files the mistakes are about."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    (tmp_path / "broken.toml").write_text("steps = ")
    (tmp_path / "odd.toml").write_text("learning_rate = 1.0")
    (tmp_path / "wrong.toml").write_text('steps = "many"')
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(program, line, capsys):
    """Run a command that must fail; returns its one line."""
    with pytest.raises(SystemExit) as end:
        program(line.split())
    captured = capsys.readouterr()
    assert end.value.code == 2
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1, captured.err
    return captured.err


@pytest.mark.parametrize(("line", "message"), MISTAKES)
def test_a_mistake_is_one_line_exit_code_2_and_nothing_written(line, message, desk, capsys):
    before = contents(desk)
    assert message in refused(train, line, capsys)
    assert contents(desk) == before and not (desk / "runs").exists()


def test_a_folder_that_holds_another_run_is_refused_naming_the_difference(desk, capsys):
    small = "transpose --feature-maps 4 --blocks 1 --sizes 4 --steps 1 --eval-instances 1 --out mine --no-progress"
    assert train(small.split()) == 0
    capsys.readouterr()
    before = contents(desk)
    error = refused(train, small.replace("--feature-maps 4", "--feature-maps 8"), capsys)
    assert "mine holds another run (feature_maps: 4 -> 8)" in error and "--fresh" in error
    error = refused(train, small.replace("transpose", "rotate90"), capsys)
    assert "task: transpose -> rotate90" in error
    assert contents(desk) == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing-here", "no run and no trained network is called 'nothing-here'"),
        ("taken", "taken holds no saved network yet"),
        ("net --sizes 12", "size 12 must be a power of two"),
        ("net --sizes -4", "size -4 must be a power of two"),
        ("net --instances 0", "instances is 0, but must be at least 1"),
        ("net --plot figure.doc", "its name must end in .svg, .png, .pdf"),
        ("net --device gpu", "device 'gpu' cannot be used"),
        ("net --size 4", "unknown option '--size'; did you mean '--sizes'?"),
        ("damaged", "not a whole safetensors file"),
        ("unread", "cannot read unread/record.json"),
    ],
)
def test_a_mistake_in_evaluation_is_one_line_and_exit_code_2(line, message, desk, capsys):
    small = "transpose --feature-maps 4 --blocks 1 --sizes 4 --steps 1 --eval-instances 1 --no-progress --out"
    for folder in ("net", "damaged", "unread"):
        if folder in line:
            assert train([*small.split(), folder]) == 0
    if line == "damaged":
        (desk / line / "model.safetensors").write_bytes(b"not tensors")
    if line == "unread":
        (desk / line / "record.json").write_text("{")
    capsys.readouterr()
    assert message in refused(evaluate, line, capsys)


def test_results_without_records_are_refused(desk, capsys):
    assert "no run records in nowhere" in refused(results, "--records nowhere", capsys)


def test_help_explains_every_setting(capsys):
    with pytest.raises(SystemExit) as end:
        train(["--help"])
    text = "".join(capsys.readouterr().out.split())  # wherever lines were broken
    assert end.value.code == 0
    for field in dataclasses.fields(TrainConfig):
        assert "--" + field.name.replace("_", "-") in text
        assert "".join(field.metadata["help"].split()) in text
    assert all(name in text for name in presets())


def test_the_command_line_overrules_the_preset_and_the_preset_the_defaults():
    assert TrainConfig().feature_maps == 32
    assert load_preset("paper/transpose").feature_maps == 96
    assert parse(["paper/transpose", "--feature-maps", "5"])[1].feature_maps == 5
    assert parse(["paper/transpose", "--amp"])[1].amp and not parse(["paper/transpose", "--no-amp"])[1].amp


def test_a_configuration_survives_a_round_trip_through_plain_values():
    for name in presets():
        config = load_preset(name)
        assert from_dict(dataclasses.asdict(config), source=name) == config


def test_the_real_program_exits_with_2_and_no_traceback(tmp_path):
    command = [sys.executable, "-m", "mse_fast.train", "transposs"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == "error: unknown preset 'transposs'; did you mean 'transpose'?\n"
    assert not list(tmp_path.iterdir())
