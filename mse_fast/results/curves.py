"""How fast networks learn: error against steps and against time.

`keep_curve` copies what a run noted about itself into the folder of records; `section` draws all that were kept.
"""

import shlex
from pathlib import Path, PurePath
from typing import Any

from mse_fast.checkpoint import write_json
from mse_fast.config import UsageError
from mse_fast.evaluate import read_run
from mse_fast.hub import write_atomically
from mse_fast.models import find_folder
from mse_fast.plots import COLOURS, MARKERS, NO_ERROR, error_axis, new_figure, save_figure, tidy
from mse_fast.record import read_metrics
from mse_fast.results.records import Record, duration, in_order, model_of, model_place, read_json, stopped_early, title
from mse_fast.results.tables import csv_text, places
from mse_fast.summaries import table
from mse_fast.tasks import get_task

LEARNED = 0.01  # the error at which a size counts as learned
NAME = "results-convergence"


def keep_curve(name: str, records: Path) -> Path:
    """Copy the evaluations a run made while it learned, with its record, to ``curves/`` in the folder of records."""
    folder = find_folder(name)
    record, config = read_run(folder)
    metrics = folder / "metrics.jsonl"
    looks = [line for line in read_metrics(metrics) if line["kind"] == "eval"] if metrics.exists() else []
    if not looks:
        raise UsageError(f"{folder} has no learning curve: {metrics} has no evaluation in it")
    run = {key: value for key, value in record.items() if key not in ("evaluation", "stages")}
    run["command"] = shlex.join(_own_name(word) for word in shlex.split(run["command"]))
    run["config"] = {key: _own_name(value) for key, value in run["config"].items()}
    curve = [{key: look[key] for key in ("step", "seconds", "accuracy")} for look in looks]
    path = records / "curves" / f"{folder.name}.json"
    write_json(path, {"name": record["name"], "task": get_task(config.task).spec.name, "curve": curve, "record": run})
    return path


def _own_name(value: Any) -> Any:
    """A folder of this machine loses the way to it.

    >>> _own_name("/home/me/runs/xor"), _own_name("runs/xor"), _own_name(3)
    ('xor', 'runs/xor', 3)
    """
    return PurePath(value).name if isinstance(value, str) and PurePath(value).is_absolute() else value


def read_curves(folder: Path) -> list[Record]:
    """The curves that were kept, Matrix-SE first."""
    found = [read_json(path) | {"file": path.stem} for path in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda record: model_place(model_of(record)))


def errors(record: Record) -> dict[str, list[float]]:
    """The error at the largest size trained on, and its mean over the sizes, look by look.

    >>> look = {"step": 10, "seconds": 1.0, "accuracy": {"4": 1.0, "8": 0.5}}
    >>> errors({"curve": [look]})
    {'largest': [0.5], 'mean': [0.25]}
    """
    seen = [[1 - value for _, value in sorted(look["accuracy"].items(), key=_size)] for look in record["curve"]]
    return {"largest": [each[-1] for each in seen], "mean": [sum(each) / len(each) for each in seen]}


def _size(item: tuple[str, float]) -> int:
    return int(item[0])


def learned_at(record: Record) -> dict[str, Any] | None:
    """The first look from which on the error at the largest size stays at 1 % or below."""
    bad = [place for place, error in enumerate(errors(record)["largest"]) if error > LEARNED]
    later = record["curve"][bad[-1] + 1 if bad else 0 :]
    return later[0] if later else None


def section(folder: Path, figures: Path) -> list[str]:
    """Markdown lines on the curves for ``docs/results.md``, with their figure and data; none without curves."""
    records = read_curves(folder)
    if not records:
        return []
    tasks = in_order(record["task"] for record in records)
    by_task = {task: [record for record in records if record["task"] == task] for task in tasks}
    draw(by_task, figures / f"{NAME}.svg")
    write_atomically(figures / f"{NAME}.csv", csv_of(by_task).encode())
    alt = f"Error against steps and against minutes for {', '.join(tasks)}; the table below sums it up."
    lines = ["## How fast they learn", "", f"![{alt}](figures/{NAME}.svg)", ""]
    lines += [
        "Error on fresh instances while training: full lines at the largest size trained on, dashed lines the mean"
    ]
    lines += [
        f"over all sizes trained on. The axis is logarithmic and ends at {NO_ERROR:.5f}: what is below, no error at"
    ]
    lines += ["all included, stands there. Minutes are wall time on the hardware named below, evaluations included."]
    lines += ["A network that was continued later is shown up to the end of its first run."]
    lines += [f"The data: [{NAME}.csv](figures/{NAME}.csv).", ""]
    header = ["task", "network", "parameters", "steps", "time", "hardware", "error ≤ 1 % at the largest size from"]
    made = []
    for task, same in by_task.items():
        for record in same:
            run, at = record["record"], learned_at(record)
            said = f"step {at['step']:,}, {duration(at['seconds'])}" if at else "never"
            last = errors(record)["largest"][-1]
            steps = f"{run['step']:,}{stopped_early(run)}"
            about = [task, title(record), f"{run['parameters']:,}", steps, duration(run["wall_seconds"])]
            made.append([*about, run["hardware"], said, f"{last:.2g}" if last else "none"])
    return [*lines, *table([*header, "last error"], made), ""]


def draw(by_task: dict[str, list[Record]], path: Path) -> None:
    """One line of panels a task: by steps on the left, by minutes on the right."""
    figure = new_figure(7.2, 0.4 + 2.5 * len(by_task))
    grid = figure.subplots(len(by_task), 2, sharey=True, squeeze=False)
    for panels, (task, records) in zip(grid, by_task.items(), strict=True):
        for place, record in zip(places([[record] for record in records]), records, strict=True):
            looks, error = record["curve"], errors(record)
            by_steps, by_minutes = [look["step"] for look in looks], [look["seconds"] / 60 for look in looks]
            style = {"color": COLOURS[place % 7], "marker": MARKERS[place % 7], "ms": 3.5, "lw": 1.2}
            for axes, across in zip(panels, (by_steps, by_minutes), strict=True):
                full, dashed = ([max(value, NO_ERROR) for value in error[key]] for key in ("largest", "mean"))
                axes.plot(across, full, label=title(record).replace("`", ""), **style)
                axes.plot(across, dashed, **style | {"linestyle": "--", "fillstyle": "none", "lw": 0.8})
        for axes, what in zip(panels, ("step", "minutes"), strict=True):
            axes.set_xlabel(what)
            axes.set_title(task, fontsize="medium")
            axes.set_xlim(left=0)
            error_axis(axes, f"≤ {NO_ERROR:.5f}")
            tidy(axes)
        panels[0].set_ylabel("error")
        panels[1].legend(fontsize="x-small")
    save_figure(figure, path)


def csv_of(by_task: dict[str, list[Record]]) -> str:
    """Every point of every line."""
    columns = ["task", "model", "name", "run", "seed", "step", "seconds", "error_largest", "error_mean"]
    lines = []
    for task, records in by_task.items():
        for record in records:
            about = {"task": task, "model": model_of(record), "name": record["name"], "run": record["file"]}
            about |= {"seed": record["record"]["seed"]}
            error = errors(record)
            for look, largest, mean in zip(record["curve"], error["largest"], error["mean"], strict=True):
                point = {"step": look["step"], "seconds": look["seconds"]}
                lines.append(about | point | {"error_largest": round(largest, 8), "error_mean": round(mean, 8)})
    return csv_text(columns, lines)
