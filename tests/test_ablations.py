"""Experiments that differ in one setting: the page says in which, and shows what came of it."""

import csv
import dataclasses
import json
import xml.etree.ElementTree as ElementTree

import pytest

from mse_fast.config import UsageError, load_preset
from mse_fast.results.ablations import sections


def variant(label, accuracy, **settings):
    """A made-up evaluation at 8 and 64 of a run that differs from the preset in ``settings``."""
    config = dataclasses.asdict(load_preset("transpose")) | {"sizes": [4, 8]} | settings
    rows = [
        {"size": n, "accuracy": a, "accuracy_low": a - 0.1, "accuracy_high": a, "solved": a / 2, "instances": 20}
        for n, a in ((8, 1.0), (64, accuracy))
    ]
    run = {"parameters": 1234, "step": 1500, "wall_seconds": 130, "seed": 0, "config": config}
    return {"name": "transpose", "task": "transpose", "rows": rows, "record": run, "label": label}


@pytest.fixture
def make(tmp_path):
    """Writes a group of records and makes the sections."""

    def write(group, *records):
        folder = tmp_path / "ablation" / group
        folder.mkdir(parents=True, exist_ok=True)
        for number, record in enumerate(records):
            (folder / f"{number}.json").write_text(json.dumps(record))
        return sections(tmp_path / "ablation", tmp_path / "figures")

    return write


def test_without_records_there_is_nothing(make, tmp_path):
    assert sections(tmp_path / "nowhere", tmp_path) == []
    assert make("flatten-transpose") == []


def test_a_group_says_what_differs_and_what_is_shared(make):
    lines = make("flatten-transpose", variant("Z-order", 0.9), variant("raster", 0.25, flatten="raster"))
    assert "### Flattening: transpose" in lines
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[0] == "| run | differs in | parameters | steps | time | 8 | 64 |"
    assert rows[1] == "| Z-order | flatten zorder | 1,234 | 1,500 | 3 min | 1.0000 | 0.9000 |"
    assert rows[2] == "| raster | flatten raster | 1,234 | 1,500 | 3 min | 1.0000 | 0.2500 |"
    shared = next(line for line in lines if "In common" in line)
    assert "dropout 0.1;" in shared and "sizes 4 8;" in shared and "at least 20" in shared and "flatten z" not in shared


def test_every_point_stands_beside_the_figure_for_programs(make, tmp_path):
    make("dropout", variant("none", 0.5, dropout=0.0), variant("some", 0.75))
    with open(tmp_path / "figures" / "results-ablation-dropout.csv") as file:
        lines = [(line["label"], line["dropout"], line["size"], line["accuracy"]) for line in csv.DictReader(file)]
    assert lines == [
        ("none", "0.0", "8", "1.0"),
        ("none", "0.0", "64", "0.5"),
        ("some", "0.1", "8", "1.0"),
        ("some", "0.1", "64", "0.75"),
    ]
    text = (tmp_path / "figures" / "results-ablation-dropout.svg").read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg") and ">none<" in text and ">some<" in text


def test_groups_follow_each_other_under_one_heading_each_with_a_described_figure(make):
    make("width-xor", variant("16 maps", 0.5, feature_maps=16), variant("32 maps", 0.75))
    lines = make("norm", variant("feature", 0.5), variant("position", 0.75, norm="position"))
    assert [line for line in lines if line.startswith("#")] == [
        "## What each part is good for",
        "### What the norm averages over",
        "### Feature maps: xor",
    ]
    figures = [line for line in lines if line.startswith("![")]
    assert [line.partition("(figures/")[2] for line in figures] == [
        "results-ablation-norm.svg)",
        "results-ablation-width-xor.svg)",
    ]
    assert all(line.startswith("![Accuracy by size, ") for line in figures)


def test_a_run_that_was_stopped_early_is_marked(make):
    lines = make("norm", variant("feature", 0.5, steps=9000))
    assert any("| 1,500 (stopped early) |" in line for line in lines)


def test_a_record_without_a_label_is_named_with_the_remedy(make):
    record = variant("", 0.5)
    del record["label"]
    with pytest.raises(UsageError, match=r"0\.json has no label.*--label"):
        make("norm", record)
