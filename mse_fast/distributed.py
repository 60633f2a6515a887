"""Several processes, one training run: ``torchrun --nproc-per-node N -m mse_fast.train …``

Every process draws the *same* global batch and works on its own slice. Logits are gathered before the
loss, so a loss that is normalised over the batch (cell weights, class counts) means the same as in one
process, and every process sees the same numbers and takes the same decisions. Gradients are summed once
per step: a step runs the network at several sizes, which is why this is not a wrapper around the network.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mse_fast.config import UsageError


@dataclass(frozen=True)
class World:
    """This process's place among all processes.

    >>> World().share(torch.arange(4))
    tensor([0, 1, 2, 3])
    >>> World(rank=1, size=2).share(torch.arange(4))
    tensor([2, 3])
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the one process that writes files."""
        return self.rank == 0

    def share(self, batch: Tensor) -> Tensor:
        """This process's slice of a global batch."""
        part = len(batch) // self.size
        return batch[self.rank * part : (self.rank + 1) * part]  # [B/size, ...]

    def gather(self, part: Tensor) -> Tensor:
        """The global batch from everyone's slices; only the own slice carries gradients."""
        if self.size == 1:
            return part
        parts = [torch.empty_like(part) for _ in range(self.size)]
        dist.all_gather(parts, part.detach().contiguous())
        parts[self.rank] = part
        return torch.cat(parts)  # [B, ...]

    def sum_gradients(self, parameters: list[Tensor], stop: bool) -> bool:
        """Add up everyone's gradients; tells whether anyone was asked to stop, in the same message."""
        if self.size == 1:
            return stop
        gradients = [p.grad for p in parameters if p.grad is not None]
        flag = gradients[0].new_tensor([float(stop)])
        message = torch.cat([g.flatten() for g in gradients] + [flag])
        dist.all_reduce(message)
        for gradient, total in zip(gradients, message.split([g.numel() for g in gradients] + [1]), strict=False):
            gradient.copy_(total.view_as(gradient))
        return bool(message[-1] > 0)

    def tell(self, value: Any) -> Any:
        """The leading process's value, everywhere."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box)
        return box[0]

    def wait(self) -> None:
        """Return when every process got here."""
        if self.size > 1:
            dist.barrier()


def processes() -> int:
    """How many processes torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def join(device: torch.device) -> World:
    """Meet the other processes torchrun started, if it did."""
    if processes() == 1:
        return World()
    if device.type == "cuda":
        torch.cuda.set_device(device)  # objects are told through the current GPU, and no two processes may share one
    backend, patience = "nccl" if device.type == "cuda" else "gloo", timedelta(minutes=10)
    store, rank, size = next(dist.rendezvous("env://", timeout=patience))
    # After a restart torchrun hands out the same store, with the dead processes' addresses still in it.
    store = dist.PrefixStore(f"start-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience)
    return World(rank, size)


def leave() -> None:
    """Say goodbye to the other processes."""
    if dist.is_initialized():
        dist.destroy_process_group()


def native_bfloat16(device: torch.device) -> bool:
    """Whether products in bfloat16 are faster than in float32; a processor without them is many times slower."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return True


def pick_device(name: str) -> torch.device:
    """The device of a name; ``auto`` prefers a GPU. Under torchrun each process gets its own GPU.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        name = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)  # fail here, not in the middle of a run
    except (RuntimeError, AssertionError) as error:
        first_line = str(error).partition("\n")[0]
        raise UsageError(f"device {name!r} cannot be used: {first_line}; --device cpu always works") from None
    return device
