"""What the paper reports: ``results/paper.toml``."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mse_fast.config import UsageError

NAME = "paper.toml"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Paper:
    """The numbers of the paper."""

    source: str
    rows: dict[tuple[str, str], Rows]  # by task and model
    solvers: Rows  # the neural Sudoku solvers it compares: model, givens, solved

    def of(self, task: str) -> dict[str, Rows]:
        """The rows of a task, by model."""
        return {model: rows for (name, model), rows in self.rows.items() if name == task}


def read_paper(folder: Path) -> Paper:
    """The paper's numbers, from the folder of records."""
    path = folder / NAME
    try:
        paper = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the paper's numbers from {path}: {error}") from None
    rows = {}
    for table in paper["table"]:
        for task in [key for key in table if key not in ("model", "sizes")]:
            pairs = zip(table["sizes"], table[task], strict=False)  # a row may end where the network no longer fits
            rows[task, table["model"]] = [{"size": n, "accuracy": value} for n, value in pairs]
    return Paper(paper["source"], rows, paper["solver"])
