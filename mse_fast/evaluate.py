"""How far does what was learned reach? ``python -m mse_fast.evaluate transpose --sizes 4 8 16 32 64``

Fresh instances from the training sampler at each size, from random numbers no training step uses.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from mse_fast.checkpoint import write_json
from mse_fast.config import OneLineParser, TrainConfig, UsageError, check_numbers, fail, from_dict
from mse_fast.distributed import pick_device
from mse_fast.hub import ZOO
from mse_fast.models import find_folder, load_model
from mse_fast.plots import finish_reach, new_figure, reach_curve, save_figure
from mse_fast.record import command, commit, hardware, now, versions
from mse_fast.tasks import Task, open_task

CELLS = 1 << 17  # cells per forward pass: one instance from 512×512 on, so 1024×1024 fits in a few GB
TEST = 0x7E57  # keeps the random numbers of tests apart from those of training


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """95 % confidence interval of a proportion (Wilson, 1927); sensible even at 0 and at 1.

    >>> [round(x, 3) for x in wilson(100, 100)]
    [0.963, 1.0]
    """
    p, shrink = successes / trials, 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / shrink
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / shrink
    return min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half))  # rounding must not exclude p


def bootstrap(right: np.ndarray, counted: np.ndarray, draws: int = 2000) -> tuple[float, float]:
    """95 % interval of ``sum(right) / sum(counted)`` when instances, not cells, are drawn anew.

    Cells of one instance are right or wrong together, so they are not independent evidence.

    >>> bootstrap(np.array([4, 4, 4]), np.array([4, 4, 4]))
    (1.0, 1.0)
    """
    picks = np.random.default_rng(0).integers(0, len(right), (draws, len(right)))
    ratios = right[picks].sum(1) / np.maximum(counted[picks].sum(1), 1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def instances_for(n: int) -> int:
    """Instances by default: enough for a narrow interval, few enough for a CPU."""
    return 100 if n <= 256 else 20


def gin_cells(task: str, inputs: Tensor) -> Tensor | None:
    """The cells on which the paper scores GIN: edges, and for transitivity all pairs of vertices.

    >>> gin_cells("triangles", torch.tensor([[2, 1, 0]])).tolist()
    [[False, True, False]]
    """
    cells = {"components": inputs > 1, "triangles": inputs == 1, "transitivity": inputs > 0}
    return cells.get(task)


def commonest(pairs: Tensor) -> float:
    """The accuracy of answering every cell with the commonest label of its own input, by how often the two meet.

    What a network is worth shows beside it: most edges of a large graph lie in no triangle.

    >>> commonest(torch.tensor([[90, 0, 0], [0, 1, 3], [0, 0, 6]]))  # [input, label]; label 0 is padding
    0.9
    """
    answer = pairs.argmax(1)  # [inputs]
    met = pairs.gather(1, answer[:, None]).squeeze(1)
    right, counted = int(met[answer != 0].sum()), int(pairs.sum() - met[answer == 0].sum())
    return right / max(counted, 1)


@torch.no_grad()
def evaluate_size(
    model: nn.Module, task: Task, n: int, instances: int, seed: int, progress: bool = False, **options: Any
) -> dict[str, Any]:
    """One row of the table: accuracy and solved instances at one size, with 95 % intervals.

    ``options`` go to the network (a recurrent one takes ``steps``).
    """
    device = next(model.parameters()).device
    chunk = max(1, min(instances, CELLS // (n * n)))
    right, counted, edges, pairs = [], [], [], []
    classes = task.spec.in_classes, task.spec.out_classes
    with tqdm(total=instances, desc=f"{n}×{n}", leave=False, disable=not progress) as bar:
        for start in range(0, instances, chunk):
            # a generator per chunk: the instances of a size do not depend on which other sizes are tested
            key = np.random.SeedSequence((seed, TEST, n, start)).generate_state(1, np.uint64)[0]
            generator = torch.Generator(device).manual_seed(int(key))
            inputs, labels = task.sample(min(chunk, instances - start), n, generator)
            made = model(inputs, **options)
            predicted = (made[-1] if isinstance(made, list) else made).argmax(-1)
            a, b = task.count_right(predicted, labels)
            right += a.tolist()
            counted += b.tolist()
            cells = gin_cells(task.spec.name, inputs)
            if cells is not None:
                edges.append([int((cells & (predicted == labels)).sum()), int(cells.sum())])
                pairs.append(torch.bincount((inputs * classes[1] + labels).flatten(), minlength=math.prod(classes)))
            bar.update(len(labels))
    good, all_ = np.array(right), np.array(counted)
    low, high = bootstrap(good, all_)
    solved = int((good == all_).sum())
    solved_low, solved_high = wilson(solved, instances)
    row = {"size": n, "accuracy": float(good.sum() / max(all_.sum(), 1)), "solved": solved / instances}
    row |= {"instances": instances, "accuracy_low": low, "accuracy_high": high}
    row |= {"solved_low": solved_low, "solved_high": solved_high}
    if edges:
        edge_right, edge_count = np.sum(edges, axis=0)
        row["edge_accuracy"] = float(edge_right / max(edge_count, 1))
        row["commonest"] = commonest(torch.stack(pairs).sum(0).view(classes))
    return row


HEADER = "   size   accuracy  95 % interval    solved  95 % interval    instances"


def table_line(row: dict[str, Any], trained_to: int) -> str:
    """A row for reading; 1.0000 is written only for a flawless score.

    >>> row = {"size": 64, "accuracy": 0.99999, "accuracy_low": 0.9, "accuracy_high": 1.0, "solved": 0.5}
    >>> row |= {"solved_low": 0.4, "solved_high": 0.6, "instances": 100}
    >>> print(table_line(row, trained_to=32))
         64     0.9999  0.9000-1.0000    0.5000  0.4000-0.6000          100  never trained on
    """
    parts = [f"{row['size']:>7}"]
    for key, width in (("accuracy", 11), ("solved", 10)):
        parts.append(f"{cut(row[key]):>{width}}  {cut(row[key + '_low'])}-{cut(row[key + '_high'])}")
    note = "  never trained on" if row["size"] > trained_to else ""
    return "".join(parts) + f"{row['instances']:>13}{note}"


def cut(value: float) -> str:
    """Four digits, never rounded up: that would turn 0.99999 into a perfect score.

    >>> cut(0.99999), cut(0.29), cut(1.0)
    ('0.9999', '0.2900', '1.0000')
    """
    return f"{math.floor(round(value * 1e4, 6)) / 1e4:.4f}"


def plot(path: Path, rows: list[dict[str, Any]], name: str, trained_to: int) -> None:
    """Accuracy and solved instances by size."""
    figure = new_figure()
    axes = figure.subplots()
    reach_curve(axes, rows, "accuracy (cells)", 0)
    axes.plot([r["size"] for r in rows], [r["solved"] for r in rows], "s--", color="#D55E00", label="solved instances")
    sizes = [row["size"] for row in rows]
    finish_reach(axes, sizes, trained_to if min(sizes) <= trained_to else None)
    axes.set_title(f"{name}: accuracy on fresh instances")
    axes.legend()
    save_figure(figure, path)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = OneLineParser(prog="python -m mse_fast.evaluate", description=__doc__.partition("\n")[0])
    parser.add_argument("name", help="a run folder, the name of a run in runs/, or a trained network of the zoo")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="matrix sides; default: as trained, to 256")
    parser.add_argument("--instances", type=int, metavar="N", help="per size; default 100, 20 above 256")
    parser.add_argument("--seed", type=int, default=0, help="which fresh instances (default 0)")
    parser.add_argument("--steps", type=int, help="applications of a recurrent network; default: its test_steps")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the rows as JSON, after each size; - for stdout"
    )
    parser.add_argument(
        "--more", action="store_true", help="keep the rows that --json FILE has of this network and seed"
    )
    parser.add_argument(
        "--label", metavar="TEXT", help="what the tables of experiments call this run; goes into the JSON"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a figure (.svg, .png or .pdf)")
    parser.add_argument("--data", metavar="PATH", help="file or folder for tasks that read their instances")
    parser.add_argument("--device", default="auto", help="cpu, cuda, mps or auto")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: PyTorch's choice")
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, default=True, help="progress bar")
    return parser.parse_args(arguments)


def read_run(folder: Path) -> tuple[dict[str, Any], TrainConfig]:
    """Record and configuration of a run or a trained network."""
    path = folder / "record.json"
    try:
        record = json.loads(path.read_text())
        return record, from_dict(record["config"], source=str(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def sizes_for(config: TrainConfig, asked: list[int] | None, task: Task) -> list[int]:
    """The sizes asked for, checked; or those trained on and their doubles up to 256."""
    if not asked:
        own = list(config.sizes)
        return own if task.one_size else own + [n for n in (2**k for k in range(9)) if n > max(own)]
    for n in asked:
        if task.one_size and n not in config.sizes:
            raise UsageError(f"size {n}: {task.spec.name} has the size {task.spec.sizes[0]} alone, leave out --sizes")
        if n not in config.sizes and (n < task.spec.min_size or n & (n - 1)):
            raise UsageError(f"size {n} must be a power of two of at least {task.spec.min_size}, such as 32, 64, 1024")
    return sorted(set(asked))


def evaluate(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Evaluate a run or a trained network; returns the content of the JSON file."""
    folder = find_folder(name)
    record, config = read_run(folder)
    check_numbers(options, instances=1, seed=0, steps=1, threads=0)
    device = pick_device(options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
    task = open_task(config.task, options.data)
    task.stage(None)
    sizes = sizes_for(config, options.sizes, task)
    model = load_model(folder, task, config).to(device)
    extra = {"steps": options.steps or config.test_steps} if config.model == "matrix-se-recurrent" else {}
    result = {"name": record["name"], "task": task.spec.name, "rows": [], "evaluation": {}, "record": record}
    if options.label:
        result["label"] = options.label
    about = {"seed": options.seed, **extra, **({"data": options.data} if options.data else {})}
    about |= {"command": command("evaluate", sys.argv[1:]), "commit": commit(), "date": now()}
    result["evaluation"] = about | {"hardware": hardware(device), "versions": versions()}
    if options.more:
        take_over(result, options.json)
    kept = {row["size"]: row["instances"] for row in result["rows"]}
    aloud = str(options.json) != "-"
    if aloud:
        # a run of yours comes before the zoo's network of the same name: say which it is
        print(f"evaluating {name} of the zoo" if folder.parent == ZOO else f"evaluating the run {folder}")
        print(HEADER)
    for n in sizes:
        count = options.instances or instances_for(n)
        if kept.get(n) != count:
            shown = options.progress and sys.stderr.isatty()
            made = evaluate_size(model, task, n, count, options.seed, shown, **extra)
            rows = [row for row in result["rows"] if row["size"] != n]
            result["rows"] = sorted([*rows, made], key=lambda row: row["size"])
            if aloud and options.json:
                write_json(options.json, result)  # hours of work must not hang on the last size
        if aloud:
            print(table_line(next(row for row in result["rows"] if row["size"] == n), max(config.sizes)), flush=True)
    return result


def take_over(result: dict[str, Any], path: Path) -> None:
    """Go on from an earlier evaluation of the same network on the same instances: its rows and how they were made."""
    if not path.exists():
        return
    try:
        earlier = json.loads(path.read_text())
        terms = [[each["evaluation"].get(key) for key in ("seed", "steps", "data")] for each in (earlier, result)]
        same = earlier["record"] == result["record"] and terms[0] == terms[1]
        rows = earlier["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read {path}: {error!r}") from None
    if not same:
        other = "another network, seed, steps or data"
        raise UsageError(f"{path} holds rows of {other}; name another file, or leave out --more")
    result["rows"] = rows
    before = earlier["evaluation"].pop("earlier", [])
    result["evaluation"]["earlier"] = [*before, earlier["evaluation"]]


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    kinds = (".svg", ".png", ".pdf")
    if options.more and (not options.json or str(options.json) == "-"):
        fail("--more needs --json FILE, the rows to go on from")
    if options.plot and options.plot.suffix not in kinds:
        fail(f"cannot plot to {options.plot}: its name must end in {', '.join(kinds)}")
    try:
        result = evaluate(options.name, options)
        if options.plot:
            plot(options.plot, result["rows"], result["name"], max(result["record"]["config"]["sizes"]))
        if str(options.json) == "-":
            print(json.dumps(result, indent=2))
        elif options.json:
            write_json(options.json, result)
    except UsageError as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot write {error.filename}: {error.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
