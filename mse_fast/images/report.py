"""Test accuracy of an image model: ``python -m mse_fast.images.report RUN --data PATH --json results/cifar10.json``.

`section` turns such records into a part of ``docs/results.md``.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from mse_fast.checkpoint import write_json
from mse_fast.config import OneLineParser, UsageError, check_numbers, fail
from mse_fast.evaluate import read_run, wilson
from mse_fast.models import find_folder, load_model
from mse_fast.record import command, commit, hardware, now, versions
from mse_fast.results.paper import read_paper
from mse_fast.tasks import get_task
from mse_fast.tasks.images import ImageTask

RECORDS = ("digits.json", "cifar10.json")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = OneLineParser(prog="python -m mse_fast.images.report", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", help="a run folder, the name of a run in runs/, or a trained network of the zoo")
    parser.add_argument("--data", metavar="PATH", help="CIFAR-10 archive, or folder or tar file of pictures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record of the test as JSON")
    parser.add_argument("--batch", type=int, default=128, help="pictures classified together (default 128)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: PyTorch's choice")
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, default=True, help="progress bar")
    return parser.parse_args(arguments)


@torch.no_grad()
def test(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Classify every test picture once; returns the record of the test."""
    folder = find_folder(name)
    record, config = read_run(folder)
    task = get_task(config.task)
    if not isinstance(task, ImageTask):
        raise UsageError(f"{name} was trained on {config.task}, which has no pictures: use mse_fast.evaluate")
    if options.data:
        task.read(options.data)
    pictures = task.load()
    model = load_model(folder, task, config)
    right = 0
    for start in tqdm(range(0, len(pictures.test), options.batch), disable=not options.progress):
        part = torch.from_numpy(pictures.test[start : start + options.batch])
        labels = torch.from_numpy(pictures.test_labels[start : start + options.batch])
        right += int((model(task.standardise(part)).argmax(-1) == labels).sum())
    low, high = wilson(right, len(pictures.test))
    result: dict[str, Any] = {"accuracy": right / len(pictures.test), "accuracy_low": low, "accuracy_high": high}
    result |= {"pictures": len(pictures.test), "source": pictures.source}
    about: dict[str, Any] = {"command": command("images.report", options.arguments), "commit": commit(), "date": now()}
    about |= {"hardware": hardware(torch.device("cpu")), "versions": versions()}
    return {"name": record["name"], "task": config.task, "test": result, "evaluation": about, "record": record}


def section(records: Path) -> list[str]:
    """Markdown lines on the image models for ``docs/results.md``; none when there are no records."""
    found = [json.loads((records / name).read_text()) for name in RECORDS if (records / name).exists()]
    if not found:
        return []
    lines = [
        "## Pictures",
        "",
        "Accuracy on the whole test set, which no training and no choice has seen. The readout,",
    ]
    lines += ["which the paper leaves open, is the mean over all cells followed by one linear layer."]
    lines += ["`cifar10` reads a picture as 8×8 cells, each a patch of 4×4 pixels, and the paper as 32×32 pixels.", ""]
    lines += ["| name | test accuracy | 95 % interval | test pictures | source | parameters | steps |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for made in found:
        test, run = made["test"], made["record"]
        span = f"{test['accuracy_low']:.4f}-{test['accuracy_high']:.4f}"
        who = f"| `{made['name']}` | {test['accuracy']:.4f} | {span} | {test['pictures']:,} | {test['source']} "
        lines += [who + f"| {run['parameters']:,} | {run['step']:,} |"]
    theirs = read_paper(records).of("cifar10")["matrix-se"][0]["accuracy"]
    return [*lines, "", f"For comparison, CIFAR-10: {100 * theirs:.0f} % (the paper, original pictures).", ""]


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    options.arguments = arguments
    try:
        check_numbers(options, batch=1, threads=0)
        if options.threads:
            torch.set_num_threads(options.threads)
        made = test(options.name, options)
        if options.json:
            write_json(options.json, made)
    except (UsageError, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    result = made["test"]
    span = f"95 % interval {result['accuracy_low']:.4f}-{result['accuracy_high']:.4f}"
    print(f"test accuracy {result['accuracy']:.4f} ({span}) on {result['pictures']} pictures: {result['source']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
