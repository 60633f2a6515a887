"""Checkpoints that survive whatever ends a run.

A checkpoint is one ordinary safetensors file, so reading it can execute nothing: tensors, plus one JSON
document in the header. Its name ends in the SHA-256 of its content,

    checkpoints/step-00001500.1f3a….safetensors

and it appears by renaming a finished, flushed temporary file. So a file of that name is either complete,
or does not match its own name.
"""

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from mse_fast.config import UsageError
from mse_fast.hub import write_atomically

NAME = re.compile(r"step-(\d{8,})\.([0-9a-f]{64})\.safetensors")


def write_json(path: Path, value: Any) -> None:
    """Write one JSON document atomically."""
    write_atomically(path, (json.dumps(value, indent=2) + "\n").encode())


def saved(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints of a run as (step, path), oldest first."""
    found = ((NAME.fullmatch(path.name), path) for path in (folder / "checkpoints").glob("step-*"))
    return sorted((int(match[1]), path) for match, path in found if match)


def newest(folder: Path) -> Path | None:
    """The last checkpoint of a run."""
    found = saved(folder)
    return found[-1][1] if found else None


def save_checkpoint(folder: Path, step: int, tensors: dict[str, Tensor], state: dict, keep: int) -> Path:
    """Write the checkpoint of a step and forget all but the last ``keep``."""
    # safetensors refuses tensors that share memory, and clones are cheap beside a training step
    plain = {name: t.detach().to("cpu", copy=True).contiguous() for name, t in tensors.items()}
    content = save(plain, metadata={"state": json.dumps(state)})
    path = folder / "checkpoints" / f"step-{step:08d}.{hashlib.sha256(content).hexdigest()}.safetensors"
    write_atomically(path, content)
    for _, old in saved(folder)[:-keep]:
        old.unlink()
    return path


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Tensors and state of one file; `ValueError` when it is not what its name promises."""
    match = NAME.fullmatch(path.name)
    content = path.read_bytes()
    if match is None or hashlib.sha256(content).hexdigest() != match[2]:
        raise ValueError(f"{path} is damaged: its content does not match the checksum in its name")
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return load(content), json.loads(header["__metadata__"]["state"])


def load_newest(folder: Path) -> tuple[dict[str, Tensor], dict] | None:
    """The newest intact checkpoint of a run, or None when it never saved one.

    A damaged file is reported and skipped. `UsageError` when every one of them is damaged.
    """
    checkpoints = saved(folder)
    for _, path in reversed(checkpoints):
        try:
            return load_checkpoint(path)
        except (ValueError, OSError) as error:
            print(f"warning: {error}; trying the one before", file=sys.stderr)
    if checkpoints:
        raise UsageError(f"no checkpoint in {folder / 'checkpoints'} is intact; start over with --fresh")
    return None


def set_aside_damaged(folder: Path, good: int) -> None:
    """Rename checkpoints newer than the one a run resumes from, so that they are not tried again."""
    for step, path in saved(folder):
        if step > good:
            path.rename(path.with_name(path.name + ".damaged"))
    for leftover in (folder / "checkpoints").glob(".*.tmp"):
        leftover.unlink()


def pack_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict]:
    """Split an optimiser's memory into tensors and plain numbers; settings come from the configuration."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for index, memory in optimizer.state_dict()["state"].items():
        for key, value in memory.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{index}/{key}"] = value
    return tensors, numbers


def unpack_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], numbers: dict) -> None:
    """Give an optimiser the memory that `pack_optimizer` took."""
    memory: dict[int, dict[str, Any]] = {}
    for name, value in {**tensors, **numbers}.items():
        index, key = name.split("/", 1)
        memory.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": memory, "param_groups": optimizer.state_dict()["param_groups"]})
