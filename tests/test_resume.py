"""Whatever ends a run, running the same command again continues it as if nothing had happened."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

from mse_fast.checkpoint import load_checkpoint, saved
from mse_fast.train import main

# Small, but with everything that could be forgotten: dropout, averaged weights, growing sizes, moments.
RUN = "transpose --feature-maps 4 --blocks 1 --sizes 4 8 16 --batch 2 --grow 0.05 --steps 40 --warmup 5 --ema 0.9"
RUN += " --log-every 1 --eval-every 8 --eval-instances 4 --save-every 6 --keep 2 --threads 1 --no-progress"


def start(folder, *more, **options):
    command = [sys.executable, "-m", "mse_fast.train", *RUN.split(), "--out", str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def history(folder):
    """All that was computed, without how long it took."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if "seconds" not in k} for line in lines]


def outcome(folder):
    return history(folder), (folder / "model.safetensors").read_bytes()


def wait_for_steps(process, folder, count):
    path = folder / "metrics.jsonl"
    while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < count):
        time.sleep(0.001)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert main([*RUN.split(), "--out", str(folder)]) == 0
    return folder


def test_a_run_killed_at_random_moments_ends_bit_identical_to_an_undisturbed_one(undisturbed, tmp_path):
    rng = random.Random()  # another moment on every run of this test
    folder, kills = tmp_path / "run", 0
    for wanted in sorted(rng.sample(range(1, 44), 2)):
        process = start(folder)
        wait_for_steps(process, folder, wanted)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        process.communicate()
    assert kills >= 1
    process = start(folder)
    assert process.wait() == 0, process.communicate()
    process.communicate()
    assert outcome(folder) == outcome(undisturbed)
    record = json.loads((folder / "record.json").read_text())
    assert record["finished"] == "all 40 steps are done"


def test_ctrl_c_saves_the_step_it_is_at_and_the_resumed_run_is_bit_identical(undisturbed, tmp_path, capsys):
    folder = tmp_path / "run"
    process = start(folder)
    wait_for_steps(process, folder, 9)
    process.send_signal(signal.SIGSTOP)  # meanwhile nobody else may write to its folder
    with pytest.raises(SystemExit) as end:
        main([*RUN.split(), "--out", str(folder)])
    assert end.value.code == 2 and "another process" in capsys.readouterr().err
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors and "interrupted" in errors
    steps_logged = max(line["step"] for line in history(folder))
    assert saved(folder)[-1][0] == steps_logged < 40
    assert main([*RUN.split(), "--out", str(folder)]) == 0
    assert outcome(folder) == outcome(undisturbed)


@pytest.fixture(scope="module")
def eighteen_steps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eighteen") / "run"
    assert main([*RUN.split(), "--schedule", "constant", "--steps", "18", "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def halfway(eighteen_steps, tmp_path):
    """A copy, to be damaged or continued, of a run that was told to make 18 steps."""
    return shutil.copytree(eighteen_steps, tmp_path / "run")


def test_raising_steps_continues_a_finished_run(halfway, tmp_path):
    constant = [*RUN.split(), "--schedule", "constant"]
    assert main([*constant, "--out", str(halfway)]) == 0
    assert main([*constant, "--out", str(tmp_path / "whole")]) == 0
    # the shorter run looked at its last step, and so grew at other moments: weights agree while sizes do
    shorter = {line["step"]: line["loss"] for line in history(halfway) if line["kind"] == "train"}
    whole = {line["step"]: line["loss"] for line in history(tmp_path / "whole") if line["kind"] == "train"}
    assert list(shorter) == list(range(1, 41))
    assert [shorter[step] for step in range(1, 19)] == [whole[step] for step in range(1, 19)]
    record, straight = (json.loads((folder / "record.json").read_text()) for folder in (halfway, tmp_path / "whole"))
    assert [(part["step"], "--steps 18" in part["command"]) for part in record["earlier"]] == [(18, True)]
    assert "earlier" not in straight


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty"])
def test_a_damaged_newest_checkpoint_is_reported_and_the_one_before_is_used(halfway, capsys, damage):
    (before, _), (last, path) = saved(halfway)
    reference = outcome(halfway)
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes({"flipped": bytes(content), "cut": bytes(content[:-7]), "empty": b""}[damage])
    with pytest.raises(ValueError, match="checksum"):
        load_checkpoint(path)
    assert main([*RUN.split(), "--schedule", "constant", "--steps", "18", "--out", str(halfway)]) == 0
    errors = capsys.readouterr().err
    assert f"warning: {path} is damaged" in errors
    assert f"at step {before} of" in errors and before < last
    assert outcome(halfway) == reference
    assert saved(halfway)[-1][0] == last and load_checkpoint(saved(halfway)[-1][1])


def test_a_run_without_an_intact_checkpoint_is_refused_and_left_alone(halfway, capsys):
    for _, path in saved(halfway):
        path.write_bytes(path.read_bytes()[:-1])
    before = sorted((p, p.stat().st_mtime_ns) for p in halfway.rglob("*") if p.name not in (".lock", "train.json"))
    with pytest.raises(SystemExit) as end:
        main([*RUN.split(), "--schedule", "constant", "--out", str(halfway)])
    assert end.value.code == 2
    assert "--fresh" in capsys.readouterr().err.splitlines()[-1]
    assert before == sorted(
        (p, p.stat().st_mtime_ns) for p in halfway.rglob("*") if p.name not in (".lock", "train.json")
    )


def test_a_full_disk_stops_with_a_clear_line_and_leaves_the_old_checkpoints_intact(halfway):
    """A limit on file size fails the write as a full disk does, half-way through the file."""
    old = saved(halfway)
    limit = old[-1][1].stat().st_size - 1000

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    process = start(halfway, "--schedule", "constant", preexec_fn=small_files)
    _, errors = process.communicate()
    assert process.returncode == 1, errors
    last = errors.splitlines()[-1]
    assert last.startswith("error: cannot write to") and f"last good checkpoint: {old[-1][1]}" in last
    assert "Traceback" not in errors
    assert saved(halfway) == old
    assert [load_checkpoint(path)[1]["step"] for _, path in old] == [step for step, _ in old]
    assert not [p for p in (halfway / "checkpoints").iterdir() if p not in [path for _, path in old]]


def test_a_loss_that_is_not_finite_stops_naming_the_step_and_the_last_good_checkpoint(tmp_path, capsys):
    folder = tmp_path / "run"
    wild = [*RUN.split(), "--lr", "1e30", "--warmup", "0", "--save-every", "1", "--out", str(folder)]
    assert main(wild) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    step, good = saved(folder)[-1]
    assert f"step {step + 1}: loss is" in last and f"last good checkpoint: {good}" in last


def test_the_same_command_on_a_finished_run_changes_nothing(undisturbed):
    before = {p: p.read_bytes() for p in undisturbed.rglob("*") if p.is_file()}
    assert main([*RUN.split(), "--out", str(undisturbed)]) == 0
    assert before == {p: p.read_bytes() for p in undisturbed.rglob("*") if p.is_file()}


def test_checkpoints_hold_no_pickles_and_only_the_last_few_are_kept(undisturbed):
    kept = saved(undisturbed)
    assert [step for step, _ in kept] == [36, 40]
    tensors, state = load_checkpoint(kept[-1][1])
    assert {name.split("/")[0] for name in tensors} == {"model", "average", "optimizer"}
    assert state["step"] == 40 and state["config"]["ema"] == 0.9
    for path in undisturbed.rglob("*"):
        assert path.is_dir() or path.read_bytes()[:2] != b"\x80\x04", f"{path} is a pickle"


def test_a_run_in_bfloat16_goes_on_in_float32_where_the_processor_cannot_multiply_it(tmp_path):
    folder = tmp_path / "run"
    assert main([*RUN.split(), "--out", str(folder), "--steps", "4"]) == 0
    plain = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}  # as on a processor that has nothing newer
    process = start(folder, "--amp", "--steps", "6", env=plain)
    _, told = process.communicate()
    assert process.returncode == 0 and "float32 instead" in told and "at step 4 of 6" in told
    record = json.loads((folder / "record.json").read_text())
    assert record["config"]["amp"] is False and record["step"] == 6  # the record says what was computed
