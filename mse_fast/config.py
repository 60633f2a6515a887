"""Everything a training run can be told, and the three places it is told from.

    dataclass defaults  <  preset (TOML)  <  command line

A preset states only what differs from the defaults, so the defaults *are* the CPU recipe.
"""

import argparse
import dataclasses
import difflib
import math
import os
import sys
import tomllib
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

PRESETS = Path(__file__).parent / "presets"


class UsageError(Exception):
    """A mistake of the user: reported as one line, exit code 2, nothing written."""


def option(default: Any, help: str) -> Any:
    """A dataclass field that carries its own help text."""
    return dataclasses.field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class TrainConfig:
    """One training run, completely described.

    >>> TrainConfig(lr=1e-3).lr
    0.001
    """

    # what to learn
    task: str = option("transpose", "task name, or package.module:Class for a task of your own")
    data: str = option("", "file or folder for tasks that read their instances (puzzles, images)")
    sizes: tuple[int, ...] = option((), "matrix sides trained at every step; none given: the task's own")
    batch: tuple[int, ...] = option((8,), "instances per size and step: one number, or one per size")
    grow: float = option(0.0, "0: all sizes at once; a: add the next size when all are a-accurate (try .99)")
    seed: int = option(0, "decides initial weights, data and dropout; same seed, same run")

    # the network
    model: str = option("matrix-se", "matrix-se, matrix-se-recurrent, resnet29, gin, rse or attention")
    feature_maps: int = option(32, "width m of the network")
    blocks: int = option(2, "number of Benes blocks b")
    norm: Literal["feature", "position"] = option("feature", "what RMSNorm averages over")
    flatten: Literal["zorder", "raster"] = option("zorder", "how the matrix becomes a sequence")
    skip: bool = option(
        False, "matrix-se: each cell's own input adds to its logits, for outputs that lie where inputs do"
    )
    start: str = option("", "run, or network of the zoo, whose weights to begin with; none: random ones")
    dropout: float = option(0.1, "share of the switch units' inputs dropped in training")
    block_dropout: float = option(0.0, "share of the features dropped between blocks")
    drift: float = option(0.0, "matrix-se: noise on how fast features fade from layer to layer (try .1)")
    train_steps: int = option(10, "recurrent networks: applications in training")
    test_steps: int = option(30, "recurrent networks: applications in evaluation")
    backprop_steps: int = option(0, "recurrent networks: applications a gradient flows back through; 0: all")
    free_steps: int = option(0, "recurrent networks: up to so many applications before those, without gradients")
    reinject: bool = option(False, "recurrent networks: add the embedded input at every application")
    checkpointing: bool = option(False, "recompute activations in the backward pass: less memory, more time")

    # the loss
    smoothing: float = option(0.1, "label smoothing")
    weighting: Literal["task", "pad", "balanced", "none"] = option("task", "cell weights; task: as it declares")
    pad_weight: float = option(0.1, "weight of label-0 cells under weighting=pad")

    # the optimiser
    steps: int = option(3000, "training steps; may be raised later to continue a finished run")
    optimizer: Literal["adamw", "muon", "radam-authors"] = option(
        "adamw", "adamw; muon: orthogonal steps for the matrices; or the authors' own RAdam"
    )
    lr: float = option(3e-3, "peak learning rate")
    warmup: int = option(200, "steps of linear warm-up")
    schedule: Literal["linear", "cosine", "constant"] = option("linear", "after warm-up, down to 0 (or constant)")
    betas: tuple[float, ...] = option((0.9, 0.95), "moment decays of the optimiser")
    weight_decay: float = option(0.1, "decoupled decay of matrices (not of embeddings and vectors)")
    clip: float = option(1.0, "largest gradient norm; 0: no clipping")
    ema: float = option(0.0, "decay of averaged weights, which are then evaluated and saved; 0: off (try .999)")

    # when to look, save and stop
    log_every: int = option(10, "steps between training lines in metrics.jsonl")
    eval_every: int = option(250, "steps between evaluations on fresh instances")
    eval_instances: int = option(64, "fresh instances per size in each of them")
    stop_perfect: int = option(0, "stop after this many evaluations in a row without a mistake; 0: never")
    stop_stalled: int = option(0, "stop when the evaluation loss has not improved for this many steps; 0: never")
    save_every: int = option(500, "steps between checkpoints")
    save_minutes: float = option(5.0, "minutes between checkpoints, whichever comes first")
    keep: int = option(3, "checkpoints kept")

    # where and how
    out: str = option("", "run folder; none given: runs/NAME")
    device: str = option("auto", "cpu, cuda, cuda:1, mps or auto")
    threads: int = option(0, "CPU threads of one operation; 0: PyTorch's choice")
    amp: bool = option(False, "bfloat16 autocast, on hardware that multiplies bfloat16; elsewhere float32")
    compile: bool = option(False, "torch.compile")
    tensorboard: bool = option(False, "write TensorBoard events to the run folder")
    progress: bool = option(True, "progress bar; off: one JSON line per evaluation on stdout")

    def __post_init__(self):
        check(self)

    def batch_of(self, position: int) -> int:
        """Instances per step of the size at this position of ``sizes``."""
        return self.batch[0] if len(self.batch) == 1 else self.batch[position]


# Headings of the help text, by the field each begins with.
SECTIONS = {"task": "what to learn", "model": "the network", "steps": "the optimiser", "out": "where and how"}
SECTIONS |= {"smoothing": "the loss: mean over sizes, and over the applications of a recurrent network"}
SECTIONS |= {"log_every": "when to look, save and stop"}

# Fields that do not change what is computed, only how far, how fast and how it is watched.
HARMLESS = {"steps", "stop_perfect", "stop_stalled", "test_steps", "log_every", "eval_every", "eval_instances"}
HARMLESS |= {"save_every", "save_minutes", "keep", "out", "progress", "tensorboard"}
HARMLESS |= {"device", "threads", "amp", "compile", "checkpointing"}


def check(config: TrainConfig) -> None:
    """Raise `UsageError` for a value no run can have.

    >>> TrainConfig(steps=0)
    Traceback (most recent call last):
    ...
    mse_fast.config.UsageError: steps is 0, but must be at least 1
    """
    at_least = {"steps": 1, "feature_maps": 1, "blocks": 1, "keep": 1, "log_every": 1, "eval_every": 1}
    at_least |= {"eval_instances": 1, "save_every": 1, "train_steps": 1, "test_steps": 1, "warmup": 0}
    at_least |= {
        "threads": 0,
        "backprop_steps": 0,
        "free_steps": 0,
        "stop_perfect": 0,
        "stop_stalled": 0,
        "seed": 0,
        "clip": 0,
        "drift": 0,
        "weight_decay": 0,
    }
    for name, low in at_least.items():
        value = getattr(config, name)
        if value < low:
            raise UsageError(f"{name} is {value}, but must be at least {low}")
    for name in ("dropout", "block_dropout", "smoothing", "ema"):
        value = getattr(config, name)
        if not 0 <= value < 1:
            raise UsageError(f"{name} is {value}, but must lie in [0, 1)")
    if not (math.isfinite(config.lr) and config.lr > 0):
        raise UsageError(f"lr is {config.lr}, but must be a positive number")
    if not 0 <= config.grow <= 1:
        raise UsageError(f"grow is {config.grow}, but must lie in [0, 1]: it is an accuracy")
    if config.pad_weight < 0:
        raise UsageError(f"pad_weight is {config.pad_weight}, but must be at least 0")
    if not config.save_minutes > 0:
        raise UsageError(f"save_minutes is {config.save_minutes}, but must be positive")
    if len(config.betas) != 2 or not all(0 <= beta < 1 for beta in config.betas):
        raise UsageError(f"betas is {config.betas}, but must be two numbers in [0, 1)")
    if not config.batch or any(b < 1 for b in config.batch):
        raise UsageError(f"batch is {config.batch}, but must be positive numbers")
    if len(set(config.sizes)) != len(config.sizes):
        raise UsageError(f"sizes is {config.sizes}, but each size may appear only once")
    if config.sizes and len(config.batch) not in (1, len(config.sizes)):
        raise UsageError(f"batch has {len(config.batch)} numbers for {len(config.sizes)} sizes: give one, or one each")


def check_numbers(options: argparse.Namespace, **lowest: int) -> None:
    """Refuse numbers of a command line that are too small; those not given are fine.

    >>> check_numbers(argparse.Namespace(seed=0, steps=None), seed=0, steps=1)
    """
    for name, low in lowest.items():
        value = getattr(options, name)
        if value is not None and value < low:
            raise UsageError(f"{name.replace('_', '-')} is {value}, but must be at least {low}")


def with_sizes(config: TrainConfig, own: tuple[int, ...], smallest: int) -> TrainConfig:
    """Fill in a task's own sizes, or check that it can be made in the sizes asked for; each keeps its batch."""
    if not config.sizes:
        return dataclasses.replace(config, sizes=tuple(own))
    for n in config.sizes:
        if n not in own and (n < 1 or n & (n - 1)):
            near = 2 ** round(math.log2(n)) if n > 0 else smallest
            raise UsageError(f"size {n} is not a power of two; the nearest one is {near}")
        if n not in own and n < smallest:
            raise UsageError(f"size {n} is too small for task {config.task}: the smallest is {smallest}")
    order = sorted(range(len(config.sizes)), key=config.sizes.__getitem__)
    batch = tuple(config.batch[i] for i in order) if len(config.batch) > 1 else config.batch
    return dataclasses.replace(config, sizes=tuple(config.sizes[i] for i in order), batch=batch)


def presets() -> list[str]:
    """Names of the presets in the package.

    >>> "transpose" in presets() and "paper/transpose" in presets()
    True
    """
    return sorted(p.relative_to(PRESETS).with_suffix("").as_posix() for p in PRESETS.rglob("*.toml"))


def load_preset(name: str) -> TrainConfig:
    """The configuration a preset (or a TOML file) describes.

    >>> load_preset("paper/transpose").feature_maps
    96
    """
    path = PRESETS / f"{name}.toml"
    if name not in presets():
        path = Path(name)
        if path.suffix != ".toml" or not path.exists():
            raise UsageError(f"unknown preset {name!r}{_hint(name, presets())}")
    try:
        values = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read preset {path}: {error}") from None
    return from_dict(values, source=str(name))


def from_dict(values: dict[str, Any], source: str) -> TrainConfig:
    """Build a configuration from plain values, checking names and types."""
    hints = typing.get_type_hints(TrainConfig)
    clean = {}
    for name, value in values.items():
        if name not in hints:
            raise UsageError(f"{source}: unknown field {name!r}{_hint(name, hints)}")
        clean[name] = _coerce(name, hints[name], value, source)
    return TrainConfig(**clean)


def _coerce(name: str, kind: Any, value: Any, source: str) -> Any:
    wanted = typing.get_origin(kind)
    if wanted is tuple:
        item = typing.get_args(kind)[0]
        value = value if isinstance(value, (list, tuple)) else [value]
        return tuple(_coerce(name, item, v, source) for v in value)
    if wanted is Literal:
        if value not in typing.get_args(kind):
            raise UsageError(f"{source}: {name} is {value!r}, but must be one of {', '.join(typing.get_args(kind))}")
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UsageError(f"{source}: {name} is {value!r}, but must be of type {kind.__name__}")
    return value


def _hint(name: str, known) -> str:
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"


class OneLineParser(argparse.ArgumentParser):
    """argparse, but a mistake is one line and exit code 2, and no option may be abbreviated."""

    def __init__(self, **settings: Any):
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> typing.NoReturn:
        for word in message.split():
            if message.startswith("unrecognized") and word.startswith("--"):
                known = [s for action in self._actions for s in action.option_strings]
                message = f"unknown option {word!r}{_hint(word.split('=')[0], known)}"
                break
        fail(message)


def fail(message: str) -> typing.NoReturn:
    """End the program with one line on stderr and exit code 2."""
    if os.environ.get("RANK", "0") == "0":  # under torchrun every process makes the same mistake
        print("error: " + " ".join(str(message).split()), file=sys.stderr)
    raise SystemExit(2)


def parse(arguments: list[str]) -> tuple[str, TrainConfig, bool]:
    """Command line to (run name, configuration, start afresh?).

    >>> name, config, fresh = parse(["transpose", "--lr", "1e-3", "--sizes", "4", "8"])
    >>> name, config.lr, config.sizes, fresh
    ('transpose', 0.001, (4, 8), False)
    """
    parser = OneLineParser(
        prog="python -m mse_fast.train",
        description="Train a network. Run the same command again to resume it.",
        usage="python -m mse_fast.train [NAME] [--fresh] [--SETTING VALUE ...]",
        epilog=f"presets: {', '.join(presets())}",
    )
    parser.add_argument(
        "name", nargs="?", help="preset, or path of a TOML file; without one, the values in brackets hold"
    )
    parser.add_argument("--fresh", action="store_true", help="start over, in a new folder")
    given = arguments[0] if arguments and not arguments[0].startswith("-") else None
    base = load_preset(given) if given else TrainConfig()
    hints = typing.get_type_hints(TrainConfig)
    section: argparse._ArgumentGroup | None = None
    for field in dataclasses.fields(TrainConfig):
        if field.name in SECTIONS:
            section = parser.add_argument_group(SECTIONS[field.name])
        _add_option(section or parser, field, hints[field.name], getattr(base, field.name))
    values = vars(parser.parse_args(arguments))
    if values["name"] != given:
        fail(f"the preset {values['name']!r} must come first: python -m mse_fast.train {values['name']} ...")
    name = Path(given).stem if given and given.endswith(".toml") else given or values["task"].replace(":", ".")
    chosen = {f.name: values[f.name] for f in dataclasses.fields(TrainConfig)}
    return name, from_dict(chosen, source="command line"), values["fresh"]


def _add_option(parser: argparse._ActionsContainer, field, kind: Any, default: Any) -> None:
    flag, help = "--" + field.name.replace("_", "-"), field.metadata["help"]
    shown = " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
    help += f" [{shown}]" if shown and kind is not bool else ""
    if kind is bool:
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=help)
    elif typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        parser.add_argument(flag, type=item, nargs="+", default=default, help=help, metavar="N")
    elif typing.get_origin(kind) is Literal:
        parser.add_argument(flag, choices=typing.get_args(kind), default=default, help=help)
    else:
        parser.add_argument(flag, type=kind, default=default, help=help, metavar=kind.__name__.upper())


def differences(old: dict[str, Any], new: TrainConfig) -> list[str]:
    """What changed between two configurations, beyond harmless fields.

    >>> differences(dataclasses.asdict(TrainConfig()), TrainConfig(steps=9, lr=1.0))
    ['lr: 0.003 -> 1.0']
    """
    now = dataclasses.asdict(new)
    old = dataclasses.asdict(TrainConfig()) | old  # a field added since then had its default
    changed = [k for k in now if k not in HARMLESS and _plain(old[k]) != _plain(now[k])]
    return [f"{k}: {_plain(old[k])} -> {_plain(now[k])}" for k in changed]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
