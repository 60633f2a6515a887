"""Run records: reading them, and what a reader wants to know of one."""

import json
import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mse_fast.config import HARMLESS, UsageError
from mse_fast.results.paper import Rows

TITLES = {"matrix-se": "Matrix-SE", "resnet29": "ResNet-29", "gin": "GIN", "rse": "RSE", "attention": "attention"}
TITLES |= {"matrix-se-recurrent": "recurrent Matrix-SE"}
MATRICES = ("transpose", "rotate90", "xor", "squaring")
GRAPHS = ("components", "triangles", "transitivity")
ORDER = (*MATRICES, *GRAPHS)
ORDERS = {"zorder": "Z-order", "raster": "raster order"}

Record = dict[str, Any]


def read_json(path: Path) -> Any:
    """The content of a file, or an error that names it."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def read_records(folder: Path) -> list[Record]:
    """All evaluations in a folder, each with the name of its ``file``, Matrix-SE first.

    Other JSON files (benchmarks, say) are not evaluations and are left out.
    """
    records = []
    for path in sorted(folder.glob("*.json")):
        record = read_json(path)
        if isinstance(record, dict) and {"rows", "task", "record"} <= set(record):
            records.append(record | {"file": path.stem})
    if not records:
        raise UsageError(f"no run records in {folder}: make one with python -m mse_fast.evaluate NAME --json FILE")
    return sorted(records, key=lambda record: model_place(model_of(record)))


def read_other_runs(folder: Path) -> list[Record]:
    """The runs that are scored otherwise than by size: pictures and Sudoku."""
    found = [read_json(path) for path in sorted(folder.glob("*.json"))]
    scored = [made for made in found if isinstance(made, dict) and "record" in made and "rows" not in made]
    return [made | {"record": made["record"] | {"stages": made.get("stages", [])}} for made in scored]


def read_trials(folder: Path) -> dict[str, list[str]]:
    """What was tried before a record, in words, one entry a training run; by the name of the record's file."""
    path = folder / "trials.toml"
    if not path.exists():
        return {}
    try:
        trials = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    for name, tried in trials.items():
        if not isinstance(tried, list) or not all(isinstance(what, str) for what in tried):
            raise UsageError(f"{path}: {name} must be a list of texts, one for each run that was tried, got {tried!r}")
    return trials


def label_of(record: Record) -> str:
    """What the experiment is called."""
    if "label" not in record:
        raise UsageError(
            f"the record {record['file']}.json has no label: python -m mse_fast.evaluate --label TEXT writes one"
        )
    return record["label"]


def model_of(record: Record) -> str:
    return record["record"]["config"]["model"]


def model_place(model: str) -> int:
    """Where a model stands in tables and which colour it has in figures."""
    return list(TITLES).index(model) if model in TITLES else len(TITLES)


def title(record: Record) -> str:
    """A network in words; RSE comes in two ways of reading a matrix."""
    model, config = model_of(record), record["record"]["config"]
    along = f" on {ORDERS[config['flatten']]}" if model == "rse" else ""
    return f"{TITLES.get(model, model)}{along} (`{record['name']}`)"


def recipes(records: list[Record]) -> list[list[Record]]:
    """Records side by side that differ in the seed alone: one recipe, several seeds."""
    found = defaultdict(list)
    for record in records:
        config = record["record"]["config"]
        same = {key: value for key, value in config.items() if key not in HARMLESS - {"amp"} | {"seed"}}
        found[record["name"], json.dumps(same, sort_keys=True)].append(record)
    return list(found.values())


def average(records: list[Record]) -> Rows:
    """The rows of one recipe: as they are, or the mean over its seeds with the range they span.

    >>> def run(value):
    ...     return {"rows": [{"size": 4, "accuracy": value, "solved": value, "instances": 10}]}
    >>> average([run(0.5), run(1.0)])[0]
    {'size': 4, 'accuracy': 0.75, 'solved': 0.75, 'instances': 20, 'accuracy_low': 0.5, 'accuracy_high': 1.0}
    """
    if len(records) == 1:
        return records[0]["rows"]
    by_size = defaultdict(list)
    for record in records:
        for row in record["rows"]:
            by_size[row["size"]].append(row)
    rows = []
    for n, same in sorted(by_size.items()):
        scored = [key for key in ("accuracy", "solved", "edge_accuracy") if key in same[0]]
        mean = {key: sum(row[key] for row in same) / len(same) for key in scored}
        scores = [row["accuracy"] for row in same]
        spread = {"accuracy_low": min(scores), "accuracy_high": max(scores)}
        rows.append({"size": n, **mean, "instances": sum(row["instances"] for row in same), **spread})
    return rows


def zoo_runs(records: list[Record]) -> dict[str, Record]:
    """The Matrix-SE of each task that the others are compared with: the one that bears its name."""
    found = {r["task"]: r for r in records if r["name"] == r["task"] and model_of(r) == "matrix-se"}
    return {task: found[task] for task in in_order(found)}


def in_order(tasks: Iterable[str]) -> list[str]:
    """Tasks as the paper lists them, others after those.

    >>> in_order({"mine", "xor", "transpose"})
    ['transpose', 'xor', 'mine']
    """
    return sorted(set(tasks), key=lambda task: (ORDER.index(task) if task in ORDER else len(ORDER), task))


def duration(seconds: float) -> str:
    """Wall time for reading.

    >>> duration(95), duration(4000)
    ('2 min', '1 h 7 min')
    """
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def stopped_early(run: dict[str, Any]) -> str:
    """A remark on a run that did not make the steps its schedule was made for."""
    return " (stopped early)" if run["step"] < run["config"].get("steps", 0) else ""
