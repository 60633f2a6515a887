"""A run put into the zoo is the same network, in half the space, with the story of its training."""

import json
from pathlib import Path

import pytest
import torch

from mse_fast import MatrixSE
from mse_fast.hub import WEIGHTS, ZOO, read_weights, zoo_names
from mse_fast.ship import main as ship
from mse_fast.train import main as train

RUN = [
    "transpose",
    "--feature-maps",
    "8",
    "--blocks",
    "1",
    "--sizes",
    "4",
    "--batch",
    "2",
    "--steps",
    "3",
    "--no-progress",
]


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "transpose"
    assert train([*RUN, "--eval-every", "3", "--eval-instances", "2", "--out", str(folder)]) == 0
    return folder


def test_a_shipped_network_answers_as_the_run_does_from_half_the_bytes(run, tmp_path):
    assert ship([str(run), "small", "--zoo", str(tmp_path)]) == 0
    tokens = torch.randint(12, (2, 8, 8), generator=torch.Generator().manual_seed(0))
    nets = [MatrixSE.from_pretrained(folder) for folder in (run, tmp_path / "small")]
    with torch.no_grad():
        before, after = (net(tokens) for net in nets)
    assert after.dtype == torch.float32 and not torch.equal(before, after)
    torch.testing.assert_close(after, before, rtol=0, atol=0.02)
    assert {value.dtype for value in read_weights(tmp_path / "small" / WEIGHTS).values()} == {torch.float16}
    sizes = [(folder / WEIGHTS).stat().st_size for folder in (tmp_path / "small", run)]
    assert sizes[0] < 0.7 * sizes[1]
    record = json.loads((tmp_path / "small" / "record.json").read_text())
    assert record["name"] == "small" and record["stored_as"] == "float16"
    assert record["command"] == json.loads((run / "record.json").read_text())["command"]


def test_what_is_unfinished_broken_or_too_large_for_half_precision_is_refused_and_nothing_written(
    run, tmp_path, capsys
):
    def refused(folder, told):
        with pytest.raises(SystemExit) as ended:
            ship([str(folder), "small", "--zoo", str(tmp_path / "zoo")])
        assert ended.value.code == 2 and told in capsys.readouterr().err
        assert not (tmp_path / "zoo").exists()

    refused(tmp_path / "missing", "missing")
    record = json.loads((run / "record.json").read_text())
    for reason in (None, "interrupted"):
        (run / "record.json").write_text(json.dumps(record | {"finished": reason}))
        refused(run, "it stands at step 3")
    (run / "record.json").write_text(json.dumps(record))
    net = MatrixSE.from_pretrained(run)
    net.readout.bias.data.fill_(1e6)
    net.save_pretrained(run)
    refused(run, "does not hold the numbers of readout.bias")


@pytest.mark.parametrize("name", [name for name in zoo_names() if name != "sudoku"])  # its puzzles are scored otherwise
def test_the_published_numbers_of_a_network_of_the_zoo_are_of_the_weights_that_are_shipped(name):
    measured = json.loads((Path(__file__).parents[1] / "results" / f"{name}.json").read_text())
    assert measured["record"] == json.loads((ZOO / name / "record.json").read_text())
