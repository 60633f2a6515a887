"""Train a network: ``python -m mse_fast.train transpose``.

Every random number of step t is a function of (seed, t) alone: the batch, the dropout, the instances of an
evaluation. So a checkpoint needs no generator state, "the data position" is the step, and a run that was
killed and resumed computes bit for bit what an undisturbed run computes.
"""

import copy
import dataclasses
import inspect
import math
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mse_fast import distributed
from mse_fast.checkpoint import (
    load_newest,
    newest,
    pack_optimizer,
    save_checkpoint,
    set_aside_damaged,
    unpack_optimizer,
    write_json,
)
from mse_fast.config import TrainConfig, UsageError, fail, parse, with_sizes
from mse_fast.hub import save_network
from mse_fast.losses import cross_entropy
from mse_fast.models import begin_with, build_model
from mse_fast.optim import Muon, RAdamAuthors, decay_groups, muon_groups
from mse_fast.plots import learning_curve
from mse_fast.record import command, start_record
from mse_fast.report import Reporter, summary
from mse_fast.runfolder import folder_of, open_run, release_runs
from mse_fast.tasks import open_task

INTERRUPTED = "interrupted"
INIT, DATA, DROPOUT, EVALUATION, FREE_STEPS = range(5)  # independent streams of random numbers


class NotFinite(Exception):
    """The loss or its gradient is infinite or not a number."""


class Stopped(Exception):
    """The run cannot go on; the message says why, and which checkpoint is the last good one."""


def seed_of(*key: int) -> int:
    """A 64-bit seed for a key such as (run seed, stream, step).

    >>> seed_of(0, DATA, 1) == seed_of(0, DATA, 1), seed_of(0, DATA, 1) == seed_of(0, DATA, 2)
    (True, False)
    """
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])


def seed_everything(seed: int) -> None:
    """Set the global generators, which dropout and initial weights draw from."""
    torch.manual_seed(seed)
    random.seed(seed)  # for tasks that ignore the generator they are given
    np.random.seed(seed % 2**32)  # noqa: NPY002


def learning_rate(config: TrainConfig, step: int) -> float:
    """The rate of a step, counted from 0: linear warm-up, then down to 0 at the last step.

    >>> config = TrainConfig(lr=1.0, warmup=2, steps=6)
    >>> [learning_rate(config, step) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if step < config.warmup:
        return config.lr * (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    shape = {"linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2, "constant": 1.0}
    return config.lr * shape[config.schedule]


def make_optimizer(config: TrainConfig, model: nn.Module) -> torch.optim.Optimizer:
    """Decay acts on matrices, not on embeddings and vectors (biases, residual scales)."""
    settings: dict[str, Any] = {"lr": config.lr, "betas": tuple(config.betas)}
    if config.optimizer == "muon":
        products = torch.bfloat16 if config.amp else torch.float32
        return Muon(muon_groups(model, config.weight_decay), products=products, **settings)
    make = {"adamw": torch.optim.AdamW, "radam-authors": RAdamAuthors}[config.optimizer]
    return make(decay_groups(model, config.weight_decay), **settings)


def make_loss(config: TrainConfig, task: Any):
    """``loss(logits, labels)``: the task's own, or cross-entropy as configured."""
    if hasattr(task, "loss"):
        smooth = "smoothing" in inspect.signature(task.loss).parameters
        return partial(task.loss, smoothing=config.smoothing) if smooth else task.loss
    declared = {"pad-weighted": "pad", "class-balanced": "balanced"}.get(task.spec.loss, "none")
    weighting = declared if config.weighting == "task" else config.weighting
    return partial(cross_entropy, smoothing=config.smoothing, weighting=weighting, pad_weight=config.pad_weight)


class Trainer:
    """The state of a run, and what one step does to it."""

    def __init__(self, config: TrainConfig, task: Any, device: torch.device, world: distributed.World):
        self.config, self.task, self.device, self.world = config, task, device, world
        seed_everything(seed_of(config.seed, INIT))
        self.model = build_model(config, task).to(device)
        self.average = copy.deepcopy(self.model).eval() if config.ema else None
        self.network = torch.compile(self.model) if config.compile else self.model
        self.optimizer = make_optimizer(config, self.model)
        self.loss = make_loss(config, task)
        recurrent = config.model == "matrix-se-recurrent"
        self.train_options = {"backprop_steps": config.backprop_steps} if recurrent else {}
        self.test_options = {"steps": config.test_steps} if recurrent else {}
        self.step = 0
        self.seconds = 0.0  # wall time, summed over resumptions
        self.active = len(config.sizes) if not config.grow else min(2, len(config.sizes))
        self.perfect = 0  # evaluations in a row without a mistake
        self.best_loss, self.best_step = math.inf, 0
        self.evaluation: dict[str, Any] = {}

    def begin_with(self, name: str) -> None:
        """Take the weights of a run or of the zoo."""
        begin_with(self.model, name)
        if self.average:
            self.average.load_state_dict(self.model.state_dict())

    def outputs(self, network: Callable, inputs: Tensor, **options) -> list[Tensor]:
        """Logits of the global batch; a recurrent network gives one per application, others one."""
        cast = torch.autocast(self.device.type, dtype=torch.bfloat16) if self.config.amp else nullcontext()
        with cast:
            made = network(self.world.share(inputs), **options)
        return [self.world.gather(logits.float()) for logits in (made if isinstance(made, list) else [made])]

    def draw(self, position: int, *key: int) -> tuple[Tensor, Tensor]:
        """A global batch of the size at this position; the same on every process."""
        n = self.config.sizes[position]
        generator = torch.Generator(self.device).manual_seed(seed_of(self.config.seed, *key, n))
        return self.task.sample(self.config.batch_of(position), n, generator)

    def train_step(self, asked_to_stop: bool) -> tuple[dict[str, Any], bool]:
        """One step on all active sizes; returns what happened, and whether any process wants to stop."""
        config = self.config
        rate = learning_rate(config, self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        seed_everything(seed_of(config.seed, DROPOUT, self.step, self.world.rank))
        losses, right, data_seconds = {}, {}, 0.0
        self.task.stage(self.step / config.steps)
        for position, n in enumerate(config.sizes[: self.active]):
            began = time.perf_counter()
            inputs, labels = self.draw(position, DATA, self.step)
            data_seconds += time.perf_counter() - began
            options = self.train_options
            if config.free_steps and options:
                drawn = np.random.default_rng(seed_of(config.seed, FREE_STEPS, self.step))
                options = options | {"free_steps": int(drawn.integers(config.free_steps + 1))}
            outputs = self.outputs(self.network, inputs, **options)
            loss = sum(self.loss(logits, labels) for logits in outputs) / len(outputs)
            (loss / self.active).backward()  # gradients add up: the loss of a step is the mean over sizes
            losses[str(n)] = loss.item()
            if (self.step + 1) % config.log_every == 0:
                right[str(n)] = self.score(outputs[-1].detach(), labels)["accuracy"]
        stop = self.world.sum_gradients(list(self.model.parameters()), asked_to_stop)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), config.clip or math.inf).item()
        loss = sum(losses.values()) / len(losses)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise NotFinite(f"step {self.step + 1}: loss is {loss}, gradient norm is {norm}; try a smaller --lr")
        self.optimizer.step()
        self.step += 1
        self.update_average()
        line = {"kind": "train", "step": self.step, "loss": loss, "losses": losses, "accuracy": right}
        return line | {"lr": rate, "grad_norm": norm, "data_seconds": round(data_seconds, 4)}, stop

    def update_average(self) -> None:
        if self.average is None:
            return
        decay = min(self.config.ema, (1 + self.step) / (10 + self.step))  # short memory while all is new
        with torch.no_grad():
            for mean, value in zip(self.average.state_dict().values(), self.model.state_dict().values(), strict=True):
                if value.is_floating_point():
                    mean.lerp_(value, 1 - decay)
                else:
                    mean.copy_(value)

    def score(self, logits: Tensor, labels: Tensor) -> dict[str, float]:
        """The share of right cells, and of instances without a mistake."""
        right, counted = self.task.count_right(logits.argmax(-1), labels)  # [B] each
        solved = (right == counted).float().mean()
        return {"accuracy": float(right.sum() / counted.sum().clamp(min=1)), "solved": float(solved)}

    @torch.no_grad()
    def evaluate(self) -> dict[str, Any]:
        """Look at fresh instances of all sizes; then decide whether to grow and note perfection."""
        config = self.config
        network = self.average or self.model
        network.eval()
        self.task.stage(None)
        line: dict[str, Any] = {"kind": "eval", "step": self.step, "loss": 0.0, "accuracy": {}, "solved": {}}
        for position, n in enumerate(config.sizes):
            batches = []
            for i in range(math.ceil(config.eval_instances / config.batch_of(position))):
                inputs, labels = self.draw(position, EVALUATION, self.step, i)
                batches.append((self.outputs(network, inputs, **self.test_options)[-1], labels))
            logits, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
            scores = self.score(logits, labels)
            line["loss"] += float(self.loss(logits, labels)) / len(config.sizes)
            line["accuracy"][str(n)], line["solved"][str(n)] = scores["accuracy"], scores["solved"]
        learned = list(line["accuracy"].values())[: self.active]
        if config.grow and self.active < len(config.sizes) and min(learned) >= config.grow:
            self.active += 1
        self.perfect = self.perfect + 1 if min(line["accuracy"].values()) == 1 else 0
        if line["loss"] < self.best_loss:
            self.best_loss, self.best_step = line["loss"], self.step
        self.evaluation = line
        return line

    def finished(self) -> str | None:
        """Why the run is over, if it is."""
        config = self.config
        if self.step >= config.steps:
            return f"all {config.steps} steps are done"
        if config.stop_perfect and self.perfect >= config.stop_perfect:
            return f"no mistake in {self.perfect} evaluations in a row"
        if config.stop_stalled and self.step - self.best_step >= config.stop_stalled:
            return f"no improvement in {self.step - self.best_step} steps"
        return None

    COUNTERS = ("step", "seconds", "active", "perfect", "best_loss", "best_step", "evaluation")

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything the next step depends on, as tensors and plain values."""
        memory, numbers = pack_optimizer(self.optimizer)
        tensors = {f"model/{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"average/{k}": v for k, v in self.average.state_dict().items()} if self.average else {}
        tensors |= {f"optimizer/{k}": v for k, v in memory.items()}
        values = {name: getattr(self, name) for name in self.COUNTERS}
        return tensors, values | {"optimizer": numbers, "config": dataclasses.asdict(self.config)}

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Continue from what `state` gave."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

        self.model.load_state_dict(part("model/"))
        if self.average:
            self.average.load_state_dict(part("average/"))
        unpack_optimizer(self.optimizer, part("optimizer/"), values["optimizer"])
        for name in self.COUNTERS:
            setattr(self, name, values[name])


def run(trainer: Trainer, folder: Path, record: dict[str, Any], asked: "Interrupt") -> str:
    """Step, look, save; until finished or interrupted. Returns the reason it ended."""
    config, world = trainer.config, trainer.world
    began = saved_at = time.monotonic()
    before = trainer.seconds
    reason = trainer.finished()
    with closing(Reporter(config, folder, trainer.step)) if world.leads else nullcontext() as reporter:
        while reason is None:
            line, stop = trainer.train_step(asked.now)
            looked = trainer.step % config.eval_every == 0 or trainer.step >= config.steps
            evaluation = trainer.evaluate() if looked else None
            reason = trainer.finished() or (INTERRUPTED if stop else None)
            trainer.seconds = before + time.monotonic() - began
            if reporter is None:
                continue
            reporter.show(line, evaluation, trainer.seconds)
            late = time.monotonic() - saved_at > 60 * config.save_minutes
            if late or reason or trainer.step % config.save_every == 0:
                saved_at = time.monotonic()
                save_checkpoint(folder, trainer.step, *trainer.state(), keep=config.keep)
                save_network(trainer.average or trainer.model, folder)
                progress = {"step": trainer.step, "wall_seconds": round(trainer.seconds, 1), "finished": reason}
                write_json(folder / "record.json", record | progress | {"evaluation": trainer.evaluation})
    world.wait()
    return reason


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Name the last good checkpoint when a run cannot go on."""
    try:
        yield
    except (NotFinite, OSError) as error:
        why = str(error) if isinstance(error, NotFinite) else f"cannot write to {folder}: {error.strerror}"
        raise Stopped(f"{why}; last good checkpoint: {newest(folder) or 'none yet'}") from error


class Interrupt:
    """Turns Ctrl-C and SIGTERM into a question asked once per step; a second one ends at once."""

    def __init__(self):
        self.now = False
        main_thread = threading.current_thread() is threading.main_thread()  # others cannot have handlers
        self.signals = (signal.SIGINT, signal.SIGTERM) if main_thread else ()

    def __enter__(self):
        self.before = [signal.signal(number, self.note) for number in self.signals]
        return self

    def __exit__(self, *error):
        for number, handler in zip(self.signals, self.before, strict=True):
            signal.signal(number, handler)

    def note(self, number, frame):
        if self.now:
            raise KeyboardInterrupt
        self.now = True


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        name, config, fresh = parse(arguments)
        trainer, folder = prepare(name, config, fresh)
        parameters = sum(p.numel() for p in trainer.model.parameters())
        about = {"name": name, "command": command("train", arguments), "parameters": parameters}
        record = about | start_record(folder, trainer.config, trainer.device, trainer.world.size)
        with Interrupt() as asked, explained(folder):
            reason = run(trainer, folder, record, asked)
        if trainer.world.leads:
            learning_curve(folder)
            print(summary(folder, trainer.evaluation, reason), file=sys.stderr)
        return 130 if reason == INTERRUPTED else 0
    except UsageError as error:
        fail(str(error))
    except Stopped as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # before the first step or at the second Ctrl-C; what was saved is intact
        return 130
    finally:
        release_runs()
        distributed.leave()


def prepare(name: str, config: TrainConfig, fresh: bool) -> tuple[Trainer, Path]:
    """Check everything that can be checked, open the run folder, and resume if it holds this run."""
    task = open_task(config.task, config.data)
    if task.one_size and not set(config.sizes) <= set(task.spec.sizes):
        raise UsageError(f"task {config.task} has the size {task.spec.sizes[0]} alone: leave out --sizes")
    config = with_sizes(config, task.spec.sizes, task.spec.min_size)
    device = distributed.pick_device(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    count = distributed.processes()
    for batch in config.batch:
        if batch % count:
            raise UsageError(f"batch {batch} cannot be shared by {count} processes: use a multiple of {count}")
    world = distributed.join(device)
    emulated = config.amp and not distributed.native_bfloat16(device)
    if emulated:
        config = dataclasses.replace(config, amp=False)  # what the record will say
    trainer = Trainer(config, task, device, world)
    resumes = not fresh and newest(folder_of(name, config)) is not None  # the checkpoint has all weights
    if config.start and not resumes:
        trainer.begin_with(config.start)
    folder = open_run(name, config, fresh, world)
    if emulated and world.leads:
        print("no bfloat16 products on this processor: training in float32 instead", file=sys.stderr)
    checkpoint = load_newest(folder)
    world.wait()
    if checkpoint:
        tensors, values = checkpoint
        trainer.restore(tensors, values)
        if world.leads:
            set_aside_damaged(folder, trainer.step)
            print(f"resuming {folder} at step {trainer.step} of {config.steps}", file=sys.stderr)
    elif config.start and resumes:  # every checkpoint is damaged
        trainer.begin_with(config.start)
    return trainer, folder


if __name__ == "__main__":
    sys.exit(main())
