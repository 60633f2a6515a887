"""What one change does: groups of runs that differ in little, ``results/ablation/GROUP/*.json``."""

from pathlib import Path
from typing import Any

from mse_fast.config import TrainConfig
from mse_fast.evaluate import cut
from mse_fast.hub import write_atomically
from mse_fast.plots import finish_reach, new_figure, reach_curve, save_figure
from mse_fast.results.records import Record, duration, label_of, read_records, stopped_early
from mse_fast.results.tables import csv_text
from mse_fast.summaries import TELLING, spelled, table

HEADINGS = {"flatten": "Flattening", "width": "Feature maps", "blocks": "Blocks"}
HEADINGS |= {"skip": "A word for the cell's own input"}
HEADINGS |= {"amp": "Precision of the products", "decay": "Weight decay"}
HEADINGS |= {"norm": "What the norm averages over", "dropout": "Dropout and smoothing"}


def heading(group: str) -> str:
    """The name of a group in words.

    >>> heading("flatten-transpose"), heading("norm"), heading("rates-xor")
    ('Flattening: transpose', 'What the norm averages over', 'Rates: xor')
    """
    what, _, task = group.partition("-")
    return HEADINGS.get(what, what.capitalize()) + (f": {task}" if task else "")


def settings(records: list[Record]) -> tuple[dict[str, Any], list[str]]:
    """What all runs of a group have in common, and the names of the settings in which they differ."""
    configs = [record["record"]["config"] for record in records]
    usual = TrainConfig()
    values = {name: [config.get(name, getattr(usual, name)) for config in configs] for name in TELLING}
    differing = [name for name, seen in values.items() if any(value != seen[0] for value in seen)]
    return {name: seen[0] for name, seen in values.items() if name not in differing}, differing


def sections(folder: Path, figures: Path) -> list[str]:
    """Markdown lines on all groups, with their figures and data; none when there are no groups."""
    groups = [path for path in sorted(folder.glob("*")) if any(path.glob("*.json"))]
    lines = [line for path in groups for line in section(path.name, read_records(path), figures)]
    return ["## What each part is good for", "", *lines] if lines else []


def section(group: str, records: list[Record], figures: Path) -> list[str]:
    """One group: a figure, what its runs share, and a table."""
    name = f"results-ablation-{group}"
    same, differing = settings(records)
    sizes = sorted({row["size"] for record in records for row in record["rows"]})
    draw(group, records, sizes, figures / f"{name}.svg")
    write_atomically(figures / f"{name}.csv", csv_of(records, differing).encode())
    lines = []
    for record in records:
        run, scores = record["record"], {row["size"]: cut(row["accuracy"]) for row in record["rows"]}
        differs = ", ".join(f"{key} {spelled(run['config'].get(key))}" for key in differing) or "nothing"
        about = [label_of(record), differs, f"{run['parameters']:,}", f"{run['step']:,}{stopped_early(run)}"]
        lines.append([*about, duration(run["wall_seconds"]), *(scores.get(n, "–") for n in sizes)])
    fewest = min(row["instances"] for record in records for row in record["rows"])
    told = "; ".join(f"{key} {spelled(value)}" for key, value in same.items() if value not in ("", [], ()))
    alt = f"Accuracy by size, {heading(group)}; the numbers are in the table below."
    return [
        *(f"### {heading(group)}", "", f"![{alt}](figures/{name}.svg)", ""),
        f"Accuracy by size, on at least {fewest} fresh instances each ([data](figures/{name}.csv)). In common: {told}.",
        *("", *table(["run", "differs in", "parameters", "steps", "time", *sizes], lines), ""),
    ]


def draw(group: str, records: list[Record], sizes: list[int], path: Path) -> None:
    """Accuracy by size, one line a run."""
    figure = new_figure()
    axes = figure.subplots()
    for place, record in enumerate(records):
        line = ("-", "--", "-.", ":")[place % 4]  # lines at 1 lie on top of each other
        reach_curve(axes, record["rows"], label_of(record), place, linestyle=line)
    finish_reach(axes, sizes, max(n for record in records for n in record["record"]["config"]["sizes"]))
    axes.set_title(heading(group))
    axes.legend(fontsize="small")
    save_figure(figure, path)


def csv_of(records: list[Record], differing: list[str]) -> str:
    """Every point of every line, with the settings in which the runs differ."""
    columns = ["label", "task", *(key for key in differing if key != "task"), "parameters", "steps", "size"]
    columns += ["accuracy", "accuracy_low", "accuracy_high", "solved", "instances"]
    lines = []
    for record in records:
        run = record["record"]
        about = {key: spelled(run["config"].get(key)) for key in differing}
        about |= {"label": label_of(record), "task": record["task"], "parameters": run["parameters"]}
        lines += [about | {"steps": run["step"]} | row for row in record["rows"]]
    return csv_text(columns, lines)
