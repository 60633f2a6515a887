"""Evaluation counts what it says it counts."""

import json
import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from mse_fast import evaluate as module
from mse_fast.config import TrainConfig, UsageError
from mse_fast.evaluate import bootstrap, evaluate_size, instances_for, main, sizes_for, wilson
from mse_fast.metrics import accuracy, solved
from mse_fast.tasks import get_task
from mse_fast.train import main as train


class Oracle(nn.Module):
    """Transposes without a mistake, except that it says 1 in the first ``wrong`` rows."""

    def __init__(self, wrong: int = 0):
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(()))
        self.wrong = wrong
        self.seen: list[torch.Tensor] = []

    def forward(self, tokens):
        self.seen.append(tokens)
        answer = tokens.mT.clone()
        answer[:, : self.wrong] = 1
        return F.one_hot(answer, 12).float() + self.nothing


def test_a_network_without_mistakes_scores_one_everywhere():
    for n in (4, 64):
        row = evaluate_size(Oracle(), get_task("transpose"), n, 7, seed=0)
        assert (row["size"], row["accuracy"], row["solved"], row["instances"]) == (n, 1.0, 1.0, 7)
        assert row["accuracy_high"] == row["solved_high"] == 1.0 and row["solved_low"] < 0.7


def test_the_scores_are_those_of_the_metrics_on_the_very_instances_the_network_saw():
    model, task = Oracle(wrong=1), get_task("transpose")
    row = evaluate_size(model, task, 8, 40, seed=0)
    inputs = torch.cat(model.seen)
    assert len(inputs) == 40 and len(torch.unique(inputs, dim=0)) > 30
    predicted = Oracle(wrong=1)(inputs).argmax(-1)
    assert row["accuracy"] == pytest.approx(accuracy(predicted, inputs.mT).item())
    assert row["solved"] == pytest.approx(solved(predicted, inputs.mT).item())
    assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]
    assert row["solved_low"] <= row["solved"] < row["solved_high"]


def test_a_network_that_always_answers_no_scores_as_the_commonest_answer():
    class No(Oracle):
        def forward(self, inputs):
            return F.one_hot(2 * (inputs > 0).long(), 3)  # not in a triangle

    row = evaluate_size(No(), get_task("triangles"), 32, 30, seed=0)
    assert row["commonest"] == row["accuracy"] > 0.9
    assert "commonest" not in evaluate_size(Oracle(), get_task("transpose"), 8, 5, seed=0)


def test_large_instances_pass_one_at_a_time_and_are_all_different():
    model = Oracle()
    evaluate_size(model, get_task("transpose"), 512, 3, seed=0)
    assert [len(batch) for batch in model.seen] == [1, 1, 1]
    assert not any(torch.equal(model.seen[i], model.seen[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


def test_a_seed_fixes_the_instances_and_another_gives_others():
    seen = []
    for seed in (0, 0, 1):
        model = Oracle()
        evaluate_size(model, get_task("transpose"), 8, 5, seed)
        seen.append(torch.cat(model.seen))
    assert torch.equal(seen[0], seen[1]) and not torch.equal(seen[0], seen[2])


def test_test_instances_are_not_the_training_instances():
    from mse_fast.train import DATA, EVALUATION, seed_of

    model = Oracle()
    evaluate_size(model, get_task("transpose"), 32, 4, seed=0)
    for stream in ((DATA, 0), (EVALUATION, 0, 0)):
        generator = torch.Generator().manual_seed(seed_of(0, *stream, 32))
        trained = get_task("transpose").sample(4, 32, generator)[0]
        assert not torch.equal(model.seen[0], trained)


def test_by_default_sizes_to_256_get_a_hundred_instances_and_larger_ones_twenty():
    assert [instances_for(n) for n in (4, 256, 512, 1024)] == [100, 100, 20, 20]


@given(trials=st.integers(1, 500), share=st.floats(0, 1))
def test_the_interval_of_a_proportion_holds_it_and_stays_within_0_and_1(trials, share):
    successes = round(share * trials)
    low, high = wilson(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1 and low < high


def test_the_interval_of_a_proportion_covers_the_truth_as_often_as_it_says():
    draws = np.random.default_rng(0).binomial(100, 0.9, 4000)
    covered = np.mean([low <= 0.9 <= high for low, high in (wilson(int(k), 100) for k in draws)])
    assert 0.93 < covered < 0.97


def test_the_interval_of_an_accuracy_treats_instances_not_cells_as_the_evidence():
    rng = np.random.default_rng(0)
    counted = np.full(50, 1000)
    right = np.where(rng.random(50) < 0.5, 1000, 500)  # instances go wrong as a whole
    low, high = bootstrap(right, counted)
    spread = right.std() / 1000 / np.sqrt(50)
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.15)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "net"
    options = "--feature-maps 4 --blocks 1 --sizes 4 8 --steps 2 --eval-instances 2 --no-progress --out"
    assert train(["transpose", *options.split(), str(folder)]) == 0
    return folder


def test_a_run_comes_before_the_zoos_network_of_its_name_and_the_table_says_which_it_is(
    run, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["transpose", "--sizes", "4", "--instances", "1"]) == 0
    assert capsys.readouterr().out.startswith("evaluating transpose of the zoo\n")
    shutil.copytree(run, tmp_path / "runs" / "transpose")
    assert main(["transpose", "--sizes", "4", "--instances", "1"]) == 0
    assert capsys.readouterr().out.startswith("evaluating the run runs/transpose\n")


def test_more_measures_the_missing_sizes_alone_and_says_how_each_row_was_made(run, tmp_path):
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    main([str(run), "--sizes", "4", "8", "16", "--instances", "5", "--json", str(whole)])
    main([str(run), "--sizes", "4", "16", "--instances", "5", "--json", str(parts), "--more"])
    before = json.loads(parts.read_text())
    before["rows"][0]["accuracy"] = 0.125  # to be found again, if it is not measured again
    parts.write_text(json.dumps(before))
    main([str(run), "--sizes", "4", "8", "--instances", "5", "--json", str(parts), "--more"])
    result = json.loads(parts.read_text())
    assert [row["size"] for row in result["rows"]] == [4, 8, 16]
    assert result["rows"][0]["accuracy"] == 0.125
    assert result["rows"][1:] == json.loads(whole.read_text())["rows"][1:]
    assert result["evaluation"]["earlier"] == [before["evaluation"]]


def test_more_measures_again_what_had_another_number_of_instances(run, tmp_path):
    path = tmp_path / "rows.json"
    main([str(run), "--sizes", "4", "--instances", "3", "--json", str(path)])
    main([str(run), "--sizes", "4", "--instances", "5", "--json", str(path), "--more"])
    assert [row["instances"] for row in json.loads(path.read_text())["rows"]] == [5]


def test_rows_are_on_disk_after_each_size(run, tmp_path, monkeypatch):
    def dies_at_16(model, task, n, *rest, **options):
        if n == 16:
            raise KeyboardInterrupt
        return evaluate_size(model, task, n, *rest, **options)

    monkeypatch.setattr("mse_fast.evaluate.evaluate_size", dies_at_16)
    with pytest.raises(KeyboardInterrupt):
        main([str(run), "--sizes", "4", "8", "16", "--instances", "2", "--json", str(tmp_path / "rows.json")])
    assert [row["size"] for row in json.loads((tmp_path / "rows.json").read_text())["rows"]] == [4, 8]


@pytest.mark.parametrize("damage", ["{", '{"rows": []}', "another seed"])
def test_rows_that_cannot_be_continued_are_refused_and_kept(run, tmp_path, capsys, damage):
    path = tmp_path / "rows.json"
    if damage == "another seed":
        main([str(run), "--sizes", "4", "--instances", "2", "--json", str(path), "--seed", "1"])
    else:
        path.write_text(damage)
    content = path.read_bytes()
    with pytest.raises(SystemExit) as exit:
        main([str(run), "--sizes", "4", "--instances", "2", "--json", str(path), "--more"])
    assert exit.value.code == 2
    assert str(path) in capsys.readouterr().err
    assert path.read_bytes() == content


def test_more_without_a_file_is_refused(run, capsys):
    with pytest.raises(SystemExit):
        main([str(run), "--more"])
    assert "--more needs --json FILE" in capsys.readouterr().err


def test_the_program_writes_a_table_a_json_file_and_a_plot(run, tmp_path, capsys):
    rows, figure = tmp_path / "rows.json", tmp_path / "deep" / "reach.svg"
    arguments = [str(run), "--sizes", "16", "4", "--instances", "5", "--json", str(rows), "--plot", str(figure)]
    assert main(arguments) == 0
    result = json.loads(rows.read_text())
    assert result["name"] == "transpose"
    assert [(row["size"], row["instances"]) for row in result["rows"]] == [(4, 5), (16, 5)]
    assert all({"accuracy", "solved", "accuracy_low", "accuracy_high"} <= set(row) for row in result["rows"])
    assert result["record"]["command"].startswith("python -m mse_fast.train transpose")
    assert "<svg" in figure.read_text()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["size", "accuracy"] and len(lines) == 4
    assert lines[3].split()[0] == "16" and lines[3].endswith("never trained on")


def test_a_label_goes_into_the_file_and_only_when_there_is_one(run, tmp_path):
    file, asked = tmp_path / "rows.json", [str(run), "--sizes", "4", "--instances", "2", "--json"]
    assert main([*asked, str(file), "--label", "no dropout"]) == 0
    assert json.loads(file.read_text())["label"] == "no dropout"
    assert main([*asked, str(file)]) == 0
    assert "label" not in json.loads(file.read_text())


def test_the_rows_can_go_to_stdout_for_other_programs(run, capsys):
    assert main([str(run), "--sizes", "4", "--instances", "2", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["size"] == 4


def test_a_recurrent_network_is_evaluated_at_its_last_step(tmp_path, capsys, monkeypatch):
    options = "--model matrix-se-recurrent --train-steps 2 --test-steps 3 --feature-maps 4 --blocks 1 --sizes 4"
    assert train(["transpose", *options.split(), "--steps", "1", "--eval-instances", "1", "--out", str(tmp_path)]) == 0
    asked = []
    loaded = module.load_model

    def watch(*arguments):
        model = loaded(*arguments)
        model.register_forward_pre_hook(lambda _, __, options: asked.append(options), with_kwargs=True)
        return model

    monkeypatch.setattr(module, "load_model", watch)
    assert main([str(tmp_path), "--instances", "2"]) == 0
    assert asked[0] == {"steps": 3}
    assert main([str(tmp_path), "--instances", "2", "--steps", "5"]) == 0
    assert asked[-1] == {"steps": 5}


def test_more_keeps_no_rows_of_another_number_of_steps(tmp_path, capsys):
    path = tmp_path / "sudoku.json"
    ask = ["sudoku", "--sizes", "16", "--instances", "2", "--threads", "1", "--json", str(path)]
    assert main([*ask, "--steps", "1"]) == 0
    before = path.read_text()
    with pytest.raises(SystemExit):
        main([*ask, "--steps", "2", "--more"])
    assert "holds rows of another network, seed, steps or data" in capsys.readouterr().err
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--threads", "-1"], "threads is -1, but must be at least 0"),
        (["--seed", "-1"], "seed is -1, but must be at least 0"),
        (["--steps", "0"], "steps is 0, but must be at least 1"),
        (["--instances", "0"], "instances is 0, but must be at least 1"),
    ],
)
def test_numbers_that_cannot_be_are_one_line(run, capsys, arguments, says):
    with pytest.raises(SystemExit) as stop:
        main([str(run), *arguments])
    assert stop.value.code == 2 and capsys.readouterr().err == f"error: {says}\n"


@pytest.mark.parametrize(("name", "own"), [("sudoku", 9), ("sudoku-boxes", 16), ("digits", 8), ("cifar10", 32)])
def test_a_task_of_one_size_is_measured_at_that_size_alone(name, own):
    config = TrainConfig(task=name, sizes=(own,))
    assert sizes_for(config, None, get_task(name)) == sizes_for(config, [own], get_task(name)) == [own]
    with pytest.raises(UsageError, match=f"size 64: {name} has the size {own} alone"):
        sizes_for(config, [64], get_task(name))


def test_sizes_default_to_those_trained_on_and_on_to_256(run):
    _, config = module.read_run(run)
    assert sizes_for(config, None, get_task("transpose")) == [4, 8, 16, 32, 64, 128, 256]
