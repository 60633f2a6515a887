"""The folder of a run: whose it is, and who may write to it."""

import dataclasses
import itertools
import json
import os
from pathlib import Path
from typing import IO

from mse_fast.checkpoint import write_json
from mse_fast.config import TrainConfig, UsageError, differences
from mse_fast.distributed import World

LOCK = ".lock"
_locks: list[IO] = []  # the system releases them when the process ends, however it ends


def open_run(name: str, config: TrainConfig, fresh: bool, world: World) -> Path:
    """The folder this run writes to, created or recognised as the same run; decided by one process for all."""
    answer: Path | UsageError = Path()
    if world.leads:
        try:
            answer = _open(name, config, fresh)
        except UsageError as error:
            answer = error
    answer = world.tell(answer)
    if isinstance(answer, UsageError):
        raise answer
    return answer


def folder_of(name: str, config: TrainConfig) -> Path:
    """Where a run is, or will be."""
    return Path(config.out or Path("runs") / name.replace("/", "-"))


def _open(name: str, config: TrainConfig, fresh: bool) -> Path:
    folder = folder_of(name, config)
    if fresh:
        numbered = (folder.with_name(f"{folder.name}-{i}") for i in itertools.count(2))
        folders = list(itertools.takewhile(Path.exists, itertools.chain([folder], numbered)))
        restarted = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"  # the first start already moved on
        if folders:
            folder = folders[-1] if restarted else folder.with_name(f"{folder.name}-{len(folders) + 1}")
    try:
        _check(folder, config)
        folder.mkdir(parents=True, exist_ok=True)
        _claim(folder)
        write_json(folder / "train.json", {"name": name, "config": dataclasses.asdict(config)})
    except OSError as error:
        raise UsageError(f"cannot use the run folder {folder}: {error.strerror}") from None
    return folder


def _check(folder: Path, config: TrainConfig) -> None:
    if not folder.exists() or not any(path.name != LOCK for path in folder.iterdir()):
        return
    description = folder / "train.json"
    if not description.exists():
        raise UsageError(f"{folder} exists but holds no training run: choose another --out")
    try:
        old = json.loads(description.read_text())["config"]
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{description} is damaged: choose another --out, or --fresh") from None
    changed = differences(old, config)
    if changed:
        what = "; ".join(changed)
        raise UsageError(f"{folder} holds another run ({what}): choose another --out, or --fresh for a new folder")


def _claim(folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no flock; two runs in one folder are then the user's to avoid
        return
    lock = open(folder / LOCK, "w")  # noqa: SIM115  (held on purpose)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UsageError(f"another process is training in {folder}: wait for it, or choose another --out") from None
    _locks.append(lock)


def release_runs() -> None:
    """Let other processes write to the folders this one opened."""
    while _locks:
        _locks.pop().close()
