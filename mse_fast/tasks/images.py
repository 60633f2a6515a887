"""Picture classification for the trainer: batches of standardised, randomly flipped pictures and their classes."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mse_fast.config import UsageError
from mse_fast.images.classifier import ImageClassifier
from mse_fast.images.reader import Pictures, read_digits, read_pictures
from mse_fast.tasks import Task, TaskSpec
from mse_ref.tasks.images import MEAN, STD

__all__ = ["Cifar10", "Cifar10Patches", "Digits", "ImageTask"]

HELD_OUT = 10  # every tenth training picture is kept for the evaluations during training
NO_TOKENS = 0  # pictures have features, not an alphabet


class ImageTask(Task):
    """What the image tasks share; a subclass says where its pictures come from and how to standardise them.

    Training draws from nine tenths of the training pictures; evaluations during training see the last tenth.
    The test set is read by ``python -m mse_fast.images.report`` alone.
    """

    mean: ClassVar[Any]
    std: ClassVar[Any]
    flips: ClassVar[bool]
    patch: ClassVar[int] = 1
    one_size = True

    def __init__(self):
        self.pictures: Pictures | None = None

    def find(self) -> Pictures:
        """The pictures, when no ``--data`` was given."""
        raise ValueError(f"{self.spec.name} needs its pictures: give a CIFAR-10 archive or a folder with --data PATH")

    def load(self) -> Pictures:
        """The pictures, read when they are first needed."""
        if self.pictures is None:
            self.pictures = self.find()
        return self.pictures

    def ready(self) -> None:
        self.load()

    def read(self, path: str) -> None:
        self.pictures = read_pictures(path)
        side, wanted = self.pictures.train.shape[1], self.spec.sizes[0]
        if side != wanted:
            raise ValueError(f"{path}: the pictures are {side} pixels wide, {self.spec.name} needs {wanted}")
        classes = 1 + max(self.pictures.train_labels.max(), self.pictures.test_labels.max())
        if classes > self.spec.out_classes:
            raise ValueError(f"{path}: {classes} classes, {self.spec.name} has {self.spec.out_classes}")

    def sample(self, batch: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        if n != self.spec.sizes[0]:
            raise ValueError(f"{self.spec.name} has pictures of side {self.spec.sizes[0]}, not {n}")
        pictures = self.load()
        held_out = np.arange(len(pictures.train)) % HELD_OUT == HELD_OUT - 1
        usable = torch.from_numpy(np.flatnonzero(held_out != self.training)).to(generator.device)
        chosen = usable[torch.randint(len(usable), (batch,), generator=generator, device=generator.device)]
        inputs = self.standardise(torch.from_numpy(pictures.train[chosen.cpu()])).to(generator.device)
        if self.training and self.flips:
            flipped = torch.rand(batch, 1, 1, 1, generator=generator, device=generator.device) < 0.5
            inputs = torch.where(flipped, inputs.flip(2), inputs)  # left and right exchanged
        return inputs, torch.from_numpy(pictures.train_labels[chosen.cpu()]).to(generator.device)

    def standardise(self, pictures: Tensor) -> Tensor:
        """Bytes [B, H, W, C] to features of about zero mean and unit variance."""
        mean, std = (torch.as_tensor(v, dtype=torch.float32) for v in (self.mean, self.std))
        return (pictures.float() / 255 - mean) / std

    def build_model(self, config: Any) -> nn.Module:
        if config.model != "matrix-se":
            raise UsageError(f"model {config.model} cannot classify pictures: use matrix-se")
        return ImageClassifier(
            in_features=len(self.mean),
            out_classes=self.spec.out_classes,
            feature_maps=config.feature_maps,
            blocks=config.blocks,
            norm=config.norm,
            dropout=config.dropout,
            block_dropout=config.block_dropout,
            patch=self.patch,
        )

    def loss(self, logits: Tensor, labels: Tensor, smoothing: float = 0.1) -> Tensor:
        return F.cross_entropy(logits, labels, label_smoothing=smoothing)

    def count_right(self, prediction: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return (prediction == labels).long(), torch.ones_like(labels)  # class 0 is a class, not padding


class Cifar10(ImageTask):
    """CIFAR-10 as in the paper: one cell per pixel."""

    spec = TaskSpec("cifar10", NO_TOKENS, 10, (32,), 32, "pad-weighted", "classify 32×32 pictures")
    mean, std, flips = MEAN, STD, True


class Cifar10Patches(Cifar10):
    """CIFAR-10 for CPUs: one cell per patch of 4×4 pixels, a sixteenth of the cells."""

    spec = TaskSpec("cifar10-patches", NO_TOKENS, 10, (32,), 32, "pad-weighted", "classify 32×32 pictures by patches")
    patch = 4


class Digits(ImageTask):
    """The 8×8 digits of scikit-learn: no file needed."""

    spec = TaskSpec("digits", NO_TOKENS, 10, (8,), 8, "pad-weighted", "classify 8×8 handwritten digits")
    mean, std, flips = (0.3,), (0.4,), False

    def find(self) -> Pictures:
        return read_digits()
