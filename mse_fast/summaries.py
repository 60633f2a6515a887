"""Short tables inside written pages: the zoo in the README, the experiments in the recipe.

A table stands between ``<!-- NAME -->`` and ``<!-- /NAME -->`` and is replaced whole; the prose around it stays.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mse_fast.config import TrainConfig, UsageError, load_preset
from mse_fast.evaluate import cut
from mse_fast.hub import write_atomically
from mse_fast.record import training_seconds, training_steps
from mse_fast.tasks import get_task

Rows = list[dict[str, Any]]
TELLING = (
    *("task", "model", "sizes", "batch", "grow", "feature_maps", "blocks", "norm", "flatten", "skip", "dropout"),
    *("drift", "smoothing", "weighting", "steps", "optimizer", "lr", "schedule", "weight_decay", "ema", "amp"),
    *("seed", "start"),
)


def table(header: Iterable[Any], lines: Iterable[Iterable[Any]]) -> list[str]:
    """The lines of a Markdown table.

    >>> table(["a", 1], [["b", 2]])
    ['| a | 1 |', '|---|---|', '| b | 2 |']
    """
    cells = [list(map(str, line)) for line in (header, *lines)]
    text = ["| " + " | ".join(line) + " |" for line in cells]
    return [text[0], "|" + "---|" * len(cells[0]), *text[1:]]


def fill(path: Path, sections: dict[str, str]) -> None:
    """Replace the named parts of a page; a page without any of them is a mistake."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    found = 0
    for name, made in sections.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        parts = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", text, flags=re.DOTALL)
        text = f"{begin}{made}\n{end}".join(parts)
        found += len(parts) - 1
    if not found:
        raise UsageError(f"{path} has no line <!-- {' | '.join(sections)} --> to fill in after")
    write_atomically(path, text.encode())


def zoo_table(runs: dict[str, Rows], paper: dict[str, Rows]) -> str:
    """Accuracy by task and size, the paper's in brackets; sizes to 32 share a column, which shows the worst.

    >>> ours = {"xor": [{"size": n, "accuracy": a} for n, a in ((16, 1.0), (32, 0.99), (64, 0.5))]}
    >>> print(zoo_table(ours, {"xor": [{"size": 32, "accuracy": 1.0}, {"size": 64, "accuracy": 0.96}]}))
    | task | to 32 | 64 |
    |---|---|---|
    | xor | 0.9900 (1.00) | 0.5000 (0.96) |
    """
    columns = sorted({max(32, row["size"]) for rows in runs.values() for row in rows})
    lines = []
    for task, rows in runs.items():
        ours, theirs = worst_by_column(rows), worst_by_column(paper.get(task, []))
        cells = [f"{cut(ours[n])} ({theirs[n]:.2f})" if n in ours and n in theirs else "–" for n in columns]
        lines.append([task, *cells])
    return "\n".join(table(["task", *(f"to {n}" if n == 32 else n for n in columns)], lines))


def worst_by_column(rows: Rows) -> dict[int, float]:
    """The lowest accuracy of the sizes that share a column."""
    found: dict[int, float] = {}
    for row in rows:
        column = max(32, row["size"])
        found[column] = min(row["accuracy"], found.get(column, 1.0))
    return found


def recipe_table(records: list[tuple[str, dict[str, Any]]]) -> str:
    """One line an experiment: what it changed in its task's preset, how long it ran, how far it reached."""
    sizes = sorted({row["size"] for _, record in records for row in record["rows"] if row["size"] >= 32})
    lines = []
    for label, record in records:
        run = record["record"]
        scores = {row["size"]: cut(row["accuracy"]) for row in record["rows"]}
        about = [label, changes(run["config"], record["task"]), training_steps(run)]
        lines.append([*about, f"{training_seconds(run) / 60:.0f} min", *(scores.get(n, "–") for n in sizes)])
    return "\n".join(table(["run", "differs from the preset in", "steps", "time", *sizes], lines))


def changes(config: dict[str, Any], task: str) -> str:
    """The settings an experiment has otherwise than its task's preset.

    >>> import dataclasses
    >>> changes(dataclasses.asdict(load_preset("transpose")) | {"dropout": 0.3}, "transpose")
    'dropout 0.3'
    """
    usual: TrainConfig = load_preset(task)
    own_sizes = get_task(usual.task).spec.sizes
    told = []
    for name in TELLING:
        default = getattr(usual, name)
        value = config.get(name, getattr(TrainConfig(), name))  # a record older than the setting had its default
        value = tuple(value) if isinstance(value, list) else value
        if name == "sizes":  # none given: the task's own
            value, default = value or own_sizes, default or own_sizes
        if value != default:
            told.append(f"{name} {spelled(value)}")
    return ", ".join(told) or "nothing"


def spelled(value: Any) -> str:
    """A setting as one would type it.

    >>> spelled([4, 8]), spelled(0.1)
    ('4 8', '0.1')
    """
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
