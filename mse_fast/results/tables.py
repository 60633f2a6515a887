"""Our numbers beside the paper's: tables, figures and the file for programs."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mse_fast.evaluate import cut
from mse_fast.plots import finish_reach, new_figure, reach_curve, save_figure
from mse_fast.record import training_seconds, training_steps
from mse_fast.results.paper import Paper
from mse_fast.results.records import (
    TITLES,
    Record,
    average,
    duration,
    model_of,
    model_place,
    stopped_early,
    title,
    zoo_runs,
)
from mse_fast.summaries import table


def csv_text(columns: list[str], lines: Iterable[dict[str, Any]]) -> str:
    """A table for programs; what a line lacks stays empty, what is no column is left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def score_table(task: str, runs: list[list[Record]], paper: Paper) -> list[str]:
    """One task: our networks and the paper's, by size; bold where ours is at least the paper's."""
    theirs = paper.of(task)
    shown: list[tuple[str, dict[int, str]]] = []
    for same in runs:
        model, rows = model_of(same[0]), average(same)
        who = title(same[0]) + (f", mean of {len(same)} seeds" if len(same) > 1 else "")
        goal = {row["size"]: row["accuracy"] for row in theirs.get(model, [])}
        on_edges = model == "gin"  # the paper scores GIN on edges alone
        for key, note in (("accuracy", ""), ("edge_accuracy", ", on GIN's cells")):
            compared = goal if on_edges == (key == "edge_accuracy") else {}
            cells = {row["size"]: mark(row[key], compared.get(row["size"])) for row in rows if key in row}
            shown += [(who + note, cells)] if cells else []
    for model, rows in theirs.items():
        who = f"{TITLES.get(model, model)} in the paper" + (", on its own cells" if model == "gin" else "")
        shown.append((who, {row["size"]: f"{row['accuracy']:.{digits(row['accuracy'])}f}" for row in rows}))
    blind = {row["size"]: cut(row["commonest"]) for same in runs for row in same[0]["rows"] if "commonest" in row}
    shown += [("the commonest answer to a cell's own input", blind)] if blind else []
    sizes = sorted({n for _, cells in shown for n in cells})
    return table(["accuracy at size", *sizes], ([who, *(cells.get(n, "–") for n in sizes)] for who, cells in shown))


def digits(value: float) -> int:
    """How many digits the paper gives: two, or three."""
    return 2 if round(value, 2) == value else 3


def mark(value: float, goal: float | None) -> str:
    """A number, bold when it reaches the paper's in the digits that one has.

    >>> mark(0.9961, 1.0), mark(0.9949, 1.0), mark(0.9654, 0.966), mark(0.5, None)
    ('**0.9961**', '0.9949', '0.9654', '0.5000')
    """
    reached = goal is not None and round(value, digits(goal)) >= goal
    return f"**{cut(value)}**" if reached else cut(value)


def places(runs: list[list[Record]]) -> list[int]:
    """A colour and a marker for each recipe: its model's, or the next free ones if those are taken."""
    taken: list[int] = []
    spare = iter(range(len(TITLES), len(TITLES) + len(runs)))
    for same in runs:
        place = model_place(model_of(same[0]))
        taken.append(next(spare) if place in taken else place)
    return taken


def figure_of(path: Path, task: str, runs: list[list[Record]], paper: Paper) -> None:
    """Accuracy by size: ours in full lines, the paper's dashed; a model has its colour and its marker."""
    figure = new_figure()
    axes = figure.subplots()
    sizes: set[int] = set()
    for place, same in zip(places(runs), runs, strict=True):
        rows = average(same)
        reach_curve(axes, rows, title(same[0]).replace("`", ""), place)
        sizes |= {row["size"] for row in rows}
    for model, rows in paper.of(task).items():
        label = f"{TITLES.get(model, model)} in the paper"
        reach_curve(axes, rows, label, model_place(model), linestyle="--", fillstyle="none")
        sizes |= {row["size"] for row in rows}
    finish_reach(axes, sorted(sizes), max(n for same in runs for n in same[0]["record"]["config"]["sizes"]))
    axes.set_title(task)
    axes.legend(fontsize="small")
    save_figure(figure, path)


def csv_of(records: list[Record], paper: Paper) -> str:
    """Every number as one line: whose, which task, network and size, and what."""
    columns = ["source", "task", "model", "name", "flatten", "seed", "size", "accuracy", "accuracy_low"]
    columns += ["accuracy_high", "solved", "solved_low", "solved_high", "edge_accuracy", "commonest", "instances"]
    lines = []
    for record in records:
        about = {"source": "here", "task": record["task"], "model": model_of(record), "name": record["name"]}
        about |= {"flatten": record["record"]["config"].get("flatten", ""), "seed": record["record"]["seed"]}
        lines += [about | row for row in record["rows"]]
    for (task, model), rows in paper.rows.items():
        lines += [{"source": "paper", "task": task, "model": model} | row for row in rows]
    return csv_text(columns, lines)


def terms(records: list[Record], trials: dict[str, list[str]]) -> list[str]:
    """What each baseline was given beside the Matrix-SE of its task: parameters, time, and attempts to tune it."""
    zoo = zoo_runs(records)
    rivals = [record for record in records if record["task"] in zoo and model_of(record) != "matrix-se"]
    if not rivals:
        return []
    lines, short = [], []
    for record in sorted(rivals, key=lambda record: list(zoo).index(record["task"])):
        run, own = record["record"], zoo[record["task"]]["record"]
        tried, tried_own = trials.get(record["file"], []), trials.get(zoo[record["task"]]["file"], [])
        seconds, seconds_own = training_seconds(run), training_seconds(own)
        share = seconds / seconds_own
        lines.append(
            [
                f"{title(record)}, {record['task']}",
                f"{run['parameters']:,} ({own['parameters']:,})",
                f"{duration(seconds)} ({duration(seconds_own)})",
                f"{share:.2f}",
                f"{len(tried)} ({len(tried_own)})",
            ]
        )
        if share < 1 or not tried or not tried_own or len(tried) < len(tried_own):  # unrecorded trials prove nothing
            short.append(title(record))
    said = "Each baseline had at least the wall time of the Matrix-SE run of its task and as many trials."
    if short:
        said = f"Less time, or fewer (known) trials, than the Matrix-SE of its task had: {', '.join(short)}."
    header = ["network, task", "parameters", "wall time", "ratio of times", "trials"]
    about = [
        "All networks go through the same trainer, samplers, metrics and evaluation. In brackets: the Matrix-SE",
        "of the same task. A trial is a training run made to choose settings, the final one included; the wall time is",
        f"that of the final run, with the runs it was continued from. {said}",
    ]
    files = [record["file"] for record in [*zoo.values(), *rivals]]
    each = [f"* `{file}`: {'; '.join(trials[file])}" for file in files if trials.get(file)]
    lists = (
        ["", "<details><summary>Every trial, network by network</summary>", "", *each, "", "</details>"] if each else []
    )
    return ["## On which terms", "", *about, "", *table(header, lines), *lists, ""]


def training_table(records: list[Record]) -> list[str]:
    """How each network came about."""
    lines = []
    for record in records:
        run = record["record"]
        steps = f"{training_steps(run)}{stopped_early(run)}"
        before = [*run.get("stages", []), *run.get("earlier", [])]
        commands = [f"`{part['command']}` ({part['step']:,} steps), then " for part in before]
        told = "".join(commands) + f"`{run['command']}`"
        who = [f"`{record['name']}`", told, f"{run['parameters']:,}", steps]
        commit = (run["commit"] or "–")[:10]
        lines.append([*who, duration(training_seconds(run)), run["hardware"], run["seed"], commit])
    return table(["name", "command", "parameters", "steps", "time", "hardware", "seed", "commit"], lines)
