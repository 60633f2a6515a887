"""Rewrite ``docs/results.md``, its figures and tables from the run records: ``python -m mse_fast.results``

Every number comes from a file: ours from ``results/*.json`` (written by ``python -m mse_fast.evaluate NAME --json``),
the paper's from ``results/paper.toml``.
"""

import csv
import io
import json
import math
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from mse_fast.config import OneLineParser, UsageError, fail
from mse_fast.evaluate import cut
from mse_fast.hub import write_atomically
from mse_fast.images import report as images
from mse_fast.plots import finish_reach, new_figure, reach_curve, save_figure
from mse_fast.sudoku import report as sudoku
from mse_fast.summaries import fill, recipe_table, zoo_table

TITLES = {"matrix-se": "Matrix-SE", "matrix-se-recurrent": "recurrent Matrix-SE", "resnet29": "ResNet-29"}
TITLES |= {"gin": "GIN", "rse": "RSE", "attention": "attention"}
ORDER = ["transpose", "rotate90", "xor", "squaring", "components", "triangles", "transitivity"]

Rows = list[dict[str, Any]]


def read_records(folder: Path) -> list[dict[str, Any]]:
    """All evaluations in a folder; other JSON files (benchmarks, say) are not evaluations and are left out."""
    records = []
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {path}: {error}") from None
        if isinstance(record, dict) and {"rows", "task", "record"} <= set(record):
            records.append(record)
    if not records:
        raise UsageError(f"no run records in {folder}: make one with python -m mse_fast.evaluate NAME --json FILE")
    return records


def read_paper(path: Path) -> tuple[str, dict[tuple[str, str], Rows]]:
    """Where the paper's numbers are from, and its rows by (task, model)."""
    try:
        paper = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the paper's numbers from {path}: {error}") from None
    rows = {}
    for table in paper["table"]:
        sizes, measure = table["sizes"], table["measure"]
        for task in set(table) - {"model", "measure", "sizes"}:
            pairs = zip(sizes, table[task], strict=False)  # a row may end where the network no longer fits
            rows[task, table["model"]] = [{"size": n, measure: value} for n, value in pairs]
    return paper["source"], rows


def average(records: list[dict[str, Any]]) -> Rows:
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


def recipes(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Records of the same name side by side: one recipe, several seeds."""
    found = defaultdict(list)
    for record in records:
        found[record["name"]].append(record)
    return list(found.values())


def model_of(record: dict[str, Any]) -> str:
    return record["record"]["config"]["model"]


def duration(seconds: float) -> str:
    """Wall time for reading.

    >>> duration(95), duration(4000)
    ('2 min', '1 h 7 min')
    """
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def score_table(task: str, runs: list[list[dict[str, Any]]], paper: dict[tuple[str, str], Rows]) -> list[str]:
    """One task: our networks and the paper's, by size; bold where ours is at least the paper's."""
    theirs = {model: rows for (t, model), rows in paper.items() if t == task}
    measure = "solved" if any("solved" in rows[0] for rows in theirs.values()) else "accuracy"
    shown: list[tuple[str, dict[int, str]]] = []
    for same in runs:
        who = title(same[0]) + (f", mean of {len(same)} seeds" if len(same) > 1 else "")
        rows = average(same)
        goal = {row["size"]: row[measure] for row in theirs.get(model_of(same[0]), [])}
        by_edges = "edge_accuracy" in rows[0]
        # GIN is compared with the paper's GIN on the cells the paper counts
        key = "edge_accuracy" if by_edges and model_of(same[0]) == "gin" else measure
        cells = {row["size"]: mark(row[measure], goal.get(row["size"]) if key == measure else None) for row in rows}
        shown.append((who, cells))
        if by_edges:
            on_edges = {
                row["size"]: mark(row["edge_accuracy"], goal.get(row["size"]) if key != measure else None)
                for row in rows
            }
            shown.append((f"{who}, on GIN's cells", on_edges))
    for model, rows in theirs.items():
        who = f"{TITLES.get(model, model)} in the paper" + (", on its own cells" if model == "gin" else "")
        shown.append((who, {row["size"]: f"{row[measure]:.{digits(row[measure])}f}" for row in rows}))
    sizes = sorted({n for _, cells in shown for n in cells})
    lines = [f"| {measure} at size | " + " | ".join(map(str, sizes)) + " |", "|---|" + "---|" * len(sizes)]
    return lines + [f"| {who} | " + " | ".join(cells.get(n, "–") for n in sizes) + " |" for who, cells in shown]


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


def title(record: dict[str, Any]) -> str:
    model = model_of(record)
    return f"{TITLES.get(model, model)} (`{record['name']}`)"


def figure_of(path: Path, task: str, runs: list[list[dict[str, Any]]], paper: dict[tuple[str, str], Rows]) -> None:
    """Accuracy by size: ours in full lines, the paper's dashed, each with its own marker."""
    figure = new_figure()
    axes = figure.subplots()
    sizes: set[int] = set()
    for place, same in enumerate(runs):
        rows = average(same)
        reach_curve(axes, rows, title(same[0]).replace("`", ""), place)
        sizes |= {row["size"] for row in rows}
    for place, model in enumerate(m for t, m in paper if t == task and "accuracy" in paper[t, m][0]):
        label = f"{TITLES.get(model, model)} in the paper"
        reach_curve(axes, paper[task, model], label, len(runs) + place, linestyle="--", fillstyle="none")
        sizes |= {row["size"] for row in paper[task, model]}
    trained_to = max(n for same in runs for n in same[0]["record"]["config"]["sizes"])
    finish_reach(axes, sorted(sizes), trained_to)
    axes.set_title(task)
    axes.legend(fontsize="small")
    save_figure(figure, path)


def csv_of(records: list[dict[str, Any]], paper: dict[tuple[str, str], Rows]) -> str:
    """Every number as one line: whose, which task, network and size, and what."""
    columns = ["source", "task", "model", "name", "seed", "size", "accuracy", "accuracy_low", "accuracy_high"]
    columns += ["solved", "solved_low", "solved_high", "edge_accuracy", "instances"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for record in records:
        about = {"source": "here", "task": record["task"], "model": model_of(record), "name": record["name"]}
        for row in record["rows"]:
            writer.writerow(about | {"seed": record["record"]["seed"]} | row)
    for (task, model), rows in paper.items():
        for row in rows:
            writer.writerow({"source": "paper", "task": task, "model": model} | row)
    return text.getvalue()


def training_table(records: list[dict[str, Any]]) -> list[str]:
    """How each network came about."""
    lines = [
        "| name | command | parameters | steps | time | hardware | seed | commit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        run = record["record"]
        who = f"| `{record['name']}` | `{run['command']}` | {run['parameters']:,} | {run['step']:,} "
        where = (
            f"| {duration(run['wall_seconds'])} | {run['hardware']} | {run['seed']} | {(run['commit'] or '–')[:10]} |"
        )
        lines.append(who + where)
    return lines


def counts(records: list[dict[str, Any]]) -> str:
    """How many instances, in words."""
    small = [row["instances"] for record in records for row in record["rows"] if row["size"] <= 256]
    large = [row["instances"] for record in records for row in record["rows"] if row["size"] > 256]
    text = f"at least {min(small)} per size" if small else ""
    return text + (f" up to 256 and {min(large)} above" if large else "")


def document(records: list[dict[str, Any]], paper: dict[tuple[str, str], Rows], source: str, figures: Path) -> str:
    """The page."""
    known = [task for task in ORDER if any(record["task"] == task for record in records)]
    tasks = known + sorted({record["task"] for record in records} - set(known))
    trained_to = max(n for record in records for n in record["record"]["config"]["sizes"])
    lines = [
        "# Results",
        "",
        "<!-- Made by `python -m mse_fast.results` from results/*.json and results/paper.toml; edit those instead. -->",
        "",
        f"Every number is from fresh instances: {counts(records)}.",
        f"No network was trained on a side above {trained_to}.",
        "`accuracy` is the authors': the share of right cells, not counting those where",
        "label and answer are both padding. Numbers are cut, not rounded, after four digits: 1.0000 means no mistake.",
        "**Bold** is at least the paper's number, to its digits. Shaded bands are 95 % intervals over instances",
        "(or the range over seeds). All numbers, with intervals and solved instances: [results.csv](results.csv).",
        "",
        f"The paper: {source}.",
        "",
    ]
    for task in tasks:
        runs = recipes([record for record in records if record["task"] == task])
        name = f"results-{task.replace(':', '-')}.svg"
        lines += [f"## {task}", ""]
        if len({row["size"] for same in runs for row in average(same)}) > 1:
            figure_of(figures / name, task, runs, paper)
            alt = f"Accuracy of {task} by size, ours and the paper's; the numbers are in the table below."
            lines += [f"![{alt}](figures/{name})", ""]
        lines += [*score_table(task, runs, paper), ""]
    lines += ["## How each network was trained", "", *training_table(records), ""]
    return "\n".join(lines)


def fill_pages(out: Path, folder: Path, records: list[dict[str, Any]], paper: dict[tuple[str, str], Rows]) -> None:
    """Renew the tables that stand in written pages, where there are such pages: the README and the recipe."""
    if (out.parent / "README.md").exists():
        zoo = {r["task"]: r["rows"] for r in records if r["name"] == r["task"] and model_of(r) == "matrix-se"}
        ordered = {task: zoo[task] for task in ORDER if task in zoo}
        theirs = {task: rows for (task, model), rows in paper.items() if model == "matrix-se"}
        fill(out.parent / "README.md", {"results": zoo_table(ordered, theirs)})
    if (out / "recipe.md").exists():
        fill(out / "recipe.md", {"recipe": recipe_table(read_records(folder / "recipe"))})


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = OneLineParser(prog="python -m mse_fast.results", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=Path, default=Path("results"), help="folder of run records")
    parser.add_argument(
        "--out", type=Path, default=Path("docs"), help="folder to write results.md, results.csv, figures/ to"
    )
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    try:
        records = read_records(options.records)
        source, paper = read_paper(options.records / "paper.toml")
        text = document(records, paper, source, options.out / "figures")
        others = sudoku.section(options.records, options.out / "figures") + images.section(options.records)
        text += "".join(f"\n{line}" for line in others)
        write_atomically(options.out / "results.csv", csv_of(records, paper).encode())
        write_atomically(options.out / "results.md", text.encode())
        fill_pages(options.out, options.records, records, paper)
    except UsageError as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot write to {options.out}: {error.strerror}")
    print(f"wrote {options.out / 'results.md'} from {len(records)} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
