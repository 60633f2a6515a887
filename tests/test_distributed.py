"""Two real processes train one network: the same numbers as one process, whoever is killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mse_fast.train import main

# No dropout and no drift: their draws are each process's own. Balanced weights are normalised over the whole batch,
# which a mean of two half-batch losses would get wrong.
RUN = "triangles --feature-maps 4 --blocks 1 --sizes 4 8 --batch 4 --dropout 0 --steps 60 --warmup 0 --threads 1"
RUN += " --no-amp --ema 0 --grow 0 --drift 0 --optimizer adamw --lr 0.003"
RUN += " --weighting balanced --log-every 1 --eval-every 20 --eval-instances 8 --save-every 5 --no-progress"


def torchrun(folder, *more):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", "2", "-m", "mse_fast.train", *RUN.split(), "--out", str(folder), *more]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def history(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if "seconds" not in k} for line in lines]


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two") / "run"
    process = torchrun(folder)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return folder


def test_two_processes_with_the_same_global_batch_train_the_same_network_as_one(two_processes, tmp_path):
    assert main([*RUN.split(), "--out", str(tmp_path / "one")]) == 0
    one, two = history(tmp_path / "one"), history(two_processes)
    assert [line["step"] for line in one] == [line["step"] for line in two]
    assert two[0]["losses"] == pytest.approx(one[0]["losses"], rel=1e-5)
    assert two[0]["grad_norm"] == pytest.approx(one[0]["grad_norm"], rel=1e-5)
    # from here on the optimiser divides by the size of tiny gradients, and so enlarges their rounding
    for alone, together in zip(one[1:10], two[1:10], strict=True):
        assert together["losses"] == pytest.approx(alone["losses"], rel=1e-2)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds workers through /proc")
def test_a_killed_worker_is_restarted_and_the_run_ends_bit_identical(two_processes, tmp_path):
    folder = tmp_path / "run"
    agent = torchrun(folder)
    wanted = random.randrange(7, 40)
    path = folder / "metrics.jsonl"
    while agent.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < wanted):
        time.sleep(0.001)
    workers = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    victim = random.choice([pid for pid in workers if b"RANK=" in Path(f"/proc/{pid}/environ").read_bytes()])
    os.kill(int(victim), signal.SIGKILL)
    output, _ = agent.communicate()
    assert agent.returncode == 0, output
    assert "resuming" in output
    assert history(folder) == history(two_processes)
    assert (folder / "model.safetensors").read_bytes() == (two_processes / "model.safetensors").read_bytes()


def test_a_batch_that_cannot_be_shared_is_refused_before_anything_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "3")  # as torchrun --nproc-per-node 3 tells every process
    with pytest.raises(SystemExit) as end:
        main([*RUN.split(), "--out", str(tmp_path / "run")])
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: batch 4 cannot be shared by 3 processes: use a multiple of 3\n"
    assert not (tmp_path / "run").exists()
