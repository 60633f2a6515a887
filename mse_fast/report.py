"""What a person sees while a network trains, and what a program reads."""

import json
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mse_fast.config import TrainConfig
from mse_fast.record import Metrics


def by_size(values: dict[str, float]) -> str:
    """Accuracies as ``size:accuracy``; only a flawless one reads 1.

    >>> by_size({"4": 1.0, "8": 0.99996, "16": 0.5})
    '4:1 8:.999 16:.500'
    """
    return " ".join(f"{n}:{'1' if v == 1 else f'{int(v * 1000) / 1000:.3f}'[1:]}" for n, v in values.items())


class Reporter:
    """Progress on a terminal, one line per evaluation in a log, or JSON lines on stdout."""

    def __init__(self, config: TrainConfig, folder: Path, step: int):
        self.config = config
        self.metrics = Metrics(folder / "metrics.jsonl", step)
        live = config.progress and sys.stderr.isatty()
        self.bar = tqdm(
            total=config.steps, initial=step, disable=not live, dynamic_ncols=True, unit="step", smoothing=0.05
        )
        self.board = open_board(folder) if config.tensorboard else None

    def show(self, line: dict[str, Any], evaluation: dict[str, Any] | None, seconds: float) -> None:
        """Tell about one step, and about the evaluation that followed it, if one did."""
        time = {"seconds": round(seconds, 1)}
        if line["step"] % self.config.log_every == 0:
            self.metrics.write(line | time)
            self.bar.set_postfix_str(f"loss {line['loss']:.4f}  {by_size(line['accuracy'])}", refresh=False)
            self.plot({"train/loss": line["loss"], "train/lr": line["lr"]}, line["step"])
        self.bar.update()
        if evaluation is None:
            return
        self.metrics.write(evaluation | time)
        if self.config.progress:
            text = f"step {evaluation['step']:>6}  loss {evaluation['loss']:.4f}  accuracy"
            self.bar.write(f"{text} {by_size(evaluation['accuracy'])}", file=sys.stderr)
            sys.stderr.flush()
        else:
            print(json.dumps(evaluation), flush=True)
        for key in ("accuracy", "solved"):
            self.plot({f"{key}/{n}": value for n, value in evaluation[key].items()}, evaluation["step"])

    def plot(self, values: dict[str, float], step: int) -> None:
        """Numbers for TensorBoard, when it was asked for."""
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(name, value, step)

    def close(self) -> None:
        self.bar.close()
        self.metrics.close()
        if self.board:
            self.board.close()


def open_board(folder: Path):
    """TensorBoard's writer, loaded only when asked for."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("--tensorboard needs TensorBoard: pip install 'matrix-se[fast]'") from error
    return SummaryWriter(str(folder / "tensorboard"))


def summary(folder: Path, evaluation: dict[str, Any], reason: str) -> str:
    """The last lines of a run."""
    text = f"{reason}; see {folder}"
    if evaluation:
        text = f"step {evaluation['step']}: accuracy on fresh instances {by_size(evaluation['accuracy'])}\n{text}"
    return text
