"""Vectorised batch samplers: one call draws a whole batch of solved instances on the generator's device.

The alphabet, sizes and meaning of a task are declared in ``mse_ref.tasks``; the labels made here are tested
against the oracles there.
"""

import importlib
import inspect
from abc import ABC, abstractmethod

import torch

from mse_fast.config import UsageError
from mse_fast.metrics import count_right
from mse_ref.tasks import TaskSpec, check_size

__all__ = ["TASKS", "Task", "TaskSpec", "get_task", "open_task"]

# Loaded on demand, so that a task's own dependencies are needed only by those who use it.
TASKS: dict[str, str] = {
    "transpose": "mse_fast.tasks.matrix:Transpose",
    "rotate90": "mse_fast.tasks.matrix:Rotate90",
    "xor": "mse_fast.tasks.matrix:Xor",
    "xor-wide": "mse_fast.tasks.matrix:WideXor",
    "squaring": "mse_fast.tasks.matrix:Squaring",
    "squaring-sparse": "mse_fast.tasks.matrix:SparseSquaring",
    "components": "mse_fast.tasks.graph:Components",
    "triangles": "mse_fast.tasks.graph:Triangles",
    "transitivity": "mse_fast.tasks.graph:Transitivity",
    "sudoku": "mse_fast.tasks.sudoku:Sudoku",
    "sudoku-boxes": "mse_fast.tasks.sudoku:BoxedSudoku",
    "sudoku-easy": "mse_fast.tasks.sudoku:EasySudoku",
    "cifar10": "mse_fast.tasks.images:Cifar10",
    "cifar10-patches": "mse_fast.tasks.images:Cifar10Patches",
    "digits": "mse_fast.tasks.images:Digits",
}


class Task(ABC):
    """A source of solved instances; a subclass sets ``spec`` and implements ``sample``.

    >>> inputs, labels = get_task("transpose").sample(2, 4, torch.Generator().manual_seed(0))
    >>> bool((labels == inputs.mT).all())
    True
    """

    spec: TaskSpec
    training: bool = False  # a task may train on other instances than those it is evaluated on
    one_size: bool = False  # its instances have one side, that of ``spec.sizes``: pictures, Sudoku

    @abstractmethod
    def sample(self, batch: int, n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """``batch`` fresh instances: (inputs [B, n, n], labels [B, n, n]), int64, on ``generator.device``.

        All randomness comes from ``generator``, so its state is the position in the data.
        """

    def read(self, path: str) -> None:
        """Take instances from this file or folder (the option ``--data``); tasks that make their own refuse."""
        raise ValueError(f"{self.spec.name} makes its own instances and reads no data: leave out --data")

    def ready(self) -> None:  # noqa: B027  (most tasks need no data)
        """Called before a run begins: raise a ValueError if instances cannot be made, as when data is missing."""

    def stage(self, progress: float | None) -> None:
        """Told before instances are drawn: the share of training done (0 to 1), or None for an evaluation."""
        self.training = progress is not None

    def count_right(self, prediction: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Right and counted cells of every instance, [B] each; by default padding on both sides does not count."""
        return count_right(prediction, labels)

    def check_request(self, batch: int, n: int) -> None:
        """Refuse an empty batch, and a side that cannot hold an instance."""
        if batch < 1:
            raise ValueError(f"a batch needs at least 1 instance, not {batch}")
        check_size(self.spec, n)


def open_task(name: str, data: str | None = None) -> Task:
    """The task of a command line with its data read, ready to draw from; or a `UsageError`."""
    try:
        task = get_task(name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        if data:
            task.read(data)
        task.ready()
    except (ValueError, OSError, ImportError) as error:
        raise UsageError(str(error)) from None
    return task


def get_task(name: str) -> Task:
    """The task of that name, or the user's own as ``package.module:Class``.

    >>> get_task("xor").spec.in_classes
    4
    >>> get_task("mse_fast.tasks.graph:Triangles").spec.name
    'triangles'
    """
    module_name, colon, class_name = TASKS.get(name, name).partition(":")
    if not (colon and module_name and class_name):
        raise ValueError(f"unknown task {name!r}: choose one of {', '.join(TASKS)}; your own is package.module:Class")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise  # the module is there; something that it imports is not
        raise ValueError(
            f"task {name!r}: no module {error.name!r} found; run from the folder that holds it, or install it"
        ) from error
    made = getattr(module, class_name, None)
    if made is None:
        raise ValueError(f"task {name!r}: module {module_name!r} has no class {class_name!r}")
    if not (isinstance(made, type) and issubclass(made, Task)):
        raise ValueError(f"task {name!r}: {class_name} is not a subclass of mse_fast.tasks.Task; derive it from Task")
    if inspect.isabstract(made):
        raise ValueError(
            f"task {name!r}: {class_name} does not implement {', '.join(sorted(made.__abstractmethods__))}"
        )
    task = made()
    if not hasattr(task, "spec"):
        raise ValueError(f"task {name!r}: {class_name} has no spec; set spec = TaskSpec(...) in the class")
    return task
