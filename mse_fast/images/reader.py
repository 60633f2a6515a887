"""Labelled pictures from where the user has put them; nothing is ever downloaded.

cifar-10-python.tar.gz    official, pickled arrays        https://www.cs.toronto.edu/~kriz/cifar.html
cifar-10-binary.tar.gz    official, raw records
folder or tar[.gz|.xz]    train/<class>/*.jpg and test/<class>/*.jpg (or .png)
digits                    the 8×8 digits bundled with scikit-learn
"""

import hashlib
import io
import lzma
import pickle
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from mse_ref.tasks.images import decode_planes, decode_records

__all__ = ["OFFICIAL", "Pictures", "read_digits", "read_pictures"]

# MD5 sums published on the CIFAR page.
OFFICIAL = {
    "cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a",
    "cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
}
TRAIN_FILES, TEST_FILE = [f"data_batch_{i}" for i in range(1, 6)], "test_batch"
SUFFIXES = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True)
class Pictures:
    """Training and test pictures [N, H, W, C] of bytes with labels [N], and where they come from."""

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray
    source: str


def read_pictures(path: str | Path, checksums: dict[str, str] | None = None) -> Pictures:
    """Read whichever of the formats above the path holds.

    ``checksums`` maps names of archives to MD5 sums (default: the official ones); an archive of such a name
    must match.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist: give a CIFAR-10 archive, or a folder or tar file of pictures")
    if path.is_dir():
        return _labelled(_files_of_folder(path), path.name)
    expected = (OFFICIAL if checksums is None else checksums).get(path.name)
    if expected:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "md5").hexdigest()
        if found != expected:
            raise ValueError(f"{path} is damaged: its MD5 sum is {found}, not {expected}; download it again")
    try:
        with tarfile.open(path) as archive:
            if path.name == "cifar-10-python.tar.gz":
                return _official(_files_of_tar(archive, ""), _unpickle_batch, "", "CIFAR-10, python archive")
            if path.name == "cifar-10-binary.tar.gz":
                return _official(_files_of_tar(archive, ".bin"), decode_records, ".bin", "CIFAR-10, binary archive")
            return _labelled(_files_of_tar(archive, SUFFIXES), path.name)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is no readable tar archive: {error}") from None


def read_digits() -> Pictures:
    """The 1,797 digits of scikit-learn, every fifth one for testing; bytes up to 255 instead of 16.

    >>> read_digits().train.shape
    (1438, 8, 8, 1)
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError("the digits come with scikit-learn: pip install 'matrix-se[images]'") from None
    bundle = load_digits()
    pictures = (bundle.images * (255 / 16)).round().astype(np.uint8)[..., None]  # [N, 8, 8, 1]
    labels = bundle.target.astype(np.int64)
    test = np.arange(len(labels)) % 5 == 4
    return Pictures(pictures[~test], labels[~test], pictures[test], labels[test], "scikit-learn digits")


def _files_of_tar(archive: tarfile.TarFile, suffixes: str | tuple[str, ...]) -> Iterator[tuple[PurePosixPath, bytes]]:
    for member in archive:
        if member.isfile() and member.name.lower().endswith(suffixes):
            file = archive.extractfile(member)
            assert file is not None  # it is a regular file
            yield PurePosixPath(member.name), file.read()


def _files_of_folder(folder: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES:
            yield PurePosixPath(path.relative_to(folder).as_posix()), path.read_bytes()


def _official(files: Iterator[tuple[PurePosixPath, bytes]], decode: Any, suffix: str, source: str) -> Pictures:
    wanted = [name + suffix for name in (*TRAIN_FILES, TEST_FILE)]
    found = {path.name: decode(content) for path, content in files if path.name in wanted}
    missing = [name for name in wanted if name not in found]
    if missing:
        raise ValueError(f"the archive has no {', '.join(missing)}: it is not CIFAR-10")
    parts = [found[name + suffix] for name in TRAIN_FILES]
    train, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    test, test_labels = found[TEST_FILE + suffix]
    return Pictures(train, labels, test, test_labels, source)


def _unpickle_batch(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    batch = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
    return decode_planes(batch[b"data"]), np.array(batch[b"labels"], dtype=np.int64)


class _ArraysOnly(pickle.Unpickler):
    """Unpickles arrays and plain containers and refuses everything else: a pickle can name any function."""

    ALLOWED = frozenset(
        {
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy._core.numeric", "_frombuffer"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise ValueError(f"the archive wants to load {module}.{name}: a CIFAR-10 file holds only arrays")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _labelled(files: Iterator[tuple[PurePosixPath, bytes]], source: str) -> Pictures:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("reading pictures needs Pillow: pip install 'matrix-se[images]'") from None
    found: dict[str, list[tuple[str, str, np.ndarray]]] = {"train": [], "test": []}
    for path, content in files:
        if len(path.parts) < 3 or path.parts[-3] not in found:
            raise ValueError(f"{path}: pictures must lie in train/<class>/ or test/<class>/")
        try:
            with Image.open(io.BytesIO(content)) as picture:
                pixels = np.asarray(picture.convert("RGB"))
        except OSError as error:
            raise ValueError(f"{path} is no readable picture: {error}") from None
        found[path.parts[-3]].append((str(path), path.parts[-2], pixels))
    for split, items in found.items():
        if not items:
            raise ValueError(f"no pictures in {split}/<class>/: expected train/<class>/*.jpg and test/<class>/*.jpg")
    lossy = any(name.lower().endswith((".jpg", ".jpeg")) for items in found.values() for name, _, _ in items)
    source = f"{'JPEG copy' if lossy else 'pictures'} in {source}"
    classes = sorted({label for items in found.values() for _, label, _ in items})
    return Pictures(*_stack(found["train"], classes), *_stack(found["test"], classes), source)


def _stack(items: list[tuple[str, str, np.ndarray]], classes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    items = sorted(items, key=lambda item: item[0])  # the order of files in a tar is an accident
    sizes = {item[2].shape for item in items}
    if len(sizes) > 1:
        raise ValueError(f"pictures have different sizes ({', '.join(map(str, sorted(sizes)))}): resize them first")
    return np.stack([item[2] for item in items]), np.array([classes.index(item[1]) for item in items])
