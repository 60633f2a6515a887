"""The page itself: ``docs/results.md``, and the tables that stand in other pages."""

import re
from pathlib import Path

from mse_fast.config import UsageError
from mse_fast.evaluate import cut, instances_for
from mse_fast.images import report as images
from mse_fast.results import ablations, curves
from mse_fast.results.paper import Paper
from mse_fast.results.records import (
    GRAPHS,
    MATRICES,
    ORDER,
    Record,
    average,
    in_order,
    label_of,
    read_json,
    read_other_runs,
    read_records,
    read_trials,
    recipes,
    title,
    zoo_runs,
)
from mse_fast.results.tables import figure_of, score_table, terms, training_table
from mse_fast.sudoku import report as sudoku
from mse_fast.summaries import fill, recipe_table, zoo_table

SPEED = """## Speed

Time and memory of Matrix-SE beside ResNet-29, RSE, GIN and attention, at inference and in training, are in
[performance](performance.md).
"""


def document(records: list[Record], paper: Paper, folder: Path, figures: Path) -> str:
    """The page."""
    tasks = in_order(record["task"] for record in records)
    lines = introduction(records, paper)
    parts = (
        ("Table 1: matrices", [task for task in tasks if task in MATRICES]),
        ("Table 2: graphs", [task for task in tasks if task in GRAPHS]),
        ("Other tasks", [task for task in tasks if task not in ORDER]),
    )
    for heading, names in parts:
        lines += [f"## {heading}", ""] if names else []
        for task in names:
            lines += task_section(task, [record for record in records if record["task"] == task], paper, figures)
    lines += terms(records, read_trials(folder))
    lines += notes(folder / "notes.md")
    lines += curves.section(folder / "curves", figures)
    lines += ablations.sections(folder / "ablation", figures)
    lines += sudoku.section(folder, figures) + images.section(folder)
    lines += SPEED.splitlines()
    lines += ["", "## How each network was trained", "", *training_table([*records, *read_other_runs(folder)]), ""]
    return "\n".join(lines)


def introduction(records: list[Record], paper: Paper) -> list[str]:
    """How to read the numbers."""
    trained_to = max(n for record in records for n in record["record"]["config"]["sizes"])
    return [
        "# Results",
        "",
        "<!-- Made by `python -m mse_fast.results` from the files in results/; edit those instead. -->",
        "",
        f"Every number is from fresh instances: {counts(records)}.",
        f"No network was trained on a side above {trained_to}.",
        "`accuracy` is the authors': the share of right cells, not counting those where",
        "label and answer are both padding. Numbers are cut, not rounded, after four digits: 1.0000 means no mistake;",
        "– was not measured.",
        "**Bold** is at least the paper's number, to its digits. Shaded bands are 95 % intervals over instances",
        "(or the range over seeds). All numbers, with intervals and solved instances: [results.csv](results.csv).",
        "",
        f"The paper: {paper.source}.",
        "",
    ]


def counts(records: list[Record]) -> str:
    """How many instances, in words; whatever was measured on fewer than is usual is named.

    >>> def of(file, **rows):
    ...     rows = [{"size": int(n[1:]), "instances": count} for n, count in rows.items()]
    ...     return {"name": file, "file": file, "record": {"config": {"model": "attention"}}, "rows": rows}
    >>> counts([of("a", n4=100, n512=20), of("b", n4=100, n256=5, n512=2)])
    'at least 100 per size up to 256 and 20 above (attention (`b`): 5 at 256, 2 at 512)'
    """
    few = []
    for record in records:
        short = [row for row in record["rows"] if row["instances"] < instances_for(row["size"])]
        told = ", ".join(f"{row['instances']} at {row['size']}" for row in short)
        few += [f"{title(record)}: {told}"] if short else []
    text = f"at least {instances_for(256)} per size up to 256 and {instances_for(257)} above"
    return text + (f" ({'; '.join(few)})" if few else "")


def task_section(task: str, records: list[Record], paper: Paper, figures: Path) -> list[str]:
    """One task: a figure, if there is a line to draw, and a table."""
    runs = recipes(records)
    lines = [f"### {task}", ""]
    if len({row["size"] for same in runs for row in average(same)}) > 1:
        name = f"results-{task.replace(':', '-')}.svg"
        figure_of(figures / name, task, runs, paper)
        alt = f"Accuracy of {task} by size, ours and the paper's; the numbers are in the table below."
        lines += [f"![{alt}](figures/{name})", ""]
    return [*lines, *score_table(task, runs, paper), ""]


def notes(path: Path) -> list[str]:
    """The hand-written part; nothing as long as there are only comments in it.

    Its accuracies come from the records beside it: ``{rse-xor@256}`` stands for that row of ``rse-xor.json``.
    """
    if not path.exists():
        return []
    text = re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL).strip()
    text = re.sub(r"\{([^{}@\s]+)@(\d+)\}", lambda found: told(path.parent, found[1], int(found[2])), text)
    return [*text.splitlines(), ""] if text else []


def told(folder: Path, name: str, size: int) -> str:
    """An accuracy as sentences have it: cut after two digits, like .98."""
    path = folder / f"{name}.json"
    if not path.exists():
        raise UsageError(f"notes.md speaks of {name}@{size}, but there is no {path}; name a record in {folder}")
    rows = {row["size"]: row["accuracy"] for row in read_json(path)["rows"]}
    if size not in rows:
        raise UsageError(f"notes.md speaks of {name}@{size}, but {path} has only {', '.join(map(str, rows))}")
    return cut(rows[size])[:4].removeprefix("0")


def fill_pages(out: Path, folder: Path, records: list[Record], paper: Paper) -> None:
    """Renew the tables that stand in written pages, where there are such pages: the README and the recipe."""
    if (out.parent / "README.md").exists():
        zoo = {task: record["rows"] for task, record in zoo_runs(records).items() if task in ORDER}
        theirs = {task: rows for (task, model), rows in paper.rows.items() if model == "matrix-se"}
        fill(out.parent / "README.md", {"results": zoo_table(zoo, theirs)})
    if (out / "recipe.md").exists():
        tried = sorted(read_records(folder / "recipe"), key=lambda record: record["file"])
        fill(out / "recipe.md", {"recipe": recipe_table([(label_of(record), record) for record in tried])})
