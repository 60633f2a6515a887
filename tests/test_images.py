"""Pictures: tiny archives in the official formats, folders, the classifier and the image tasks."""

import hashlib
import io
import pickle
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from mse_fast.config import TrainConfig
from mse_fast.images import report as command
from mse_fast.images.classifier import ImageClassifier, join_patches
from mse_fast.images.reader import OFFICIAL, read_digits, read_pictures
from mse_fast.tasks import get_task
from mse_fast.train import main as train
from mse_fast.train import make_loss
from mse_ref.tasks import images as reference

RESULTS = Path(__file__).parents[1] / "results"
PER_FILE = 4
FILES = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]


def planes(file):
    """Rows [4, 3072] and labels of one file: all different, and different for every file."""
    rng = np.random.default_rng(file)
    return rng.integers(0, 256, (PER_FILE, 3072), dtype=np.uint8), rng.integers(0, 10, PER_FILE)


def add(archive, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def write_archive(path, contents):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            add(archive, name, content)
    return {path.name: hashlib.md5(path.read_bytes()).hexdigest()}


def python_files():
    batches = {f"cifar-10-batches-py/{name}": planes(i) for i, name in enumerate(FILES)}
    made = {k: pickle.dumps({b"data": rows, b"labels": labels.tolist()}, 2) for k, (rows, labels) in batches.items()}
    return made | {"cifar-10-batches-py/readme.html": b"<html>"}


def binary_files():
    batches = {f"cifar-10-batches-bin/{name}.bin": planes(i) for i, name in enumerate(FILES)}
    return {
        k: b"".join(bytes([label]) + row.tobytes() for row, label in zip(rows, labels, strict=True))
        for k, (rows, labels) in batches.items()
    }


def expected(file, picture, row, column, plane):
    return planes(file)[0][picture, 1024 * plane + 32 * row + column]


# --- official archives -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "files"), [("cifar-10-python.tar.gz", python_files()), ("cifar-10-binary.tar.gz", binary_files())]
)
def test_official_archives_give_every_pixel_and_label_its_place(tmp_path, name, files):
    sums = write_archive(tmp_path / name, files)
    made = read_pictures(tmp_path / name, sums)
    assert made.train.shape == (20, 32, 32, 3) and made.test.shape == (4, 32, 32, 3)
    for file, picture, row, column, plane in [(0, 0, 0, 1, 0), (3, 2, 31, 0, 1), (4, 3, 5, 17, 2)]:
        assert made.train[4 * file + picture, row, column, plane] == expected(file, picture, row, column, plane)
    assert made.test[1, 2, 3, 2] == expected(5, 1, 2, 3, 2)
    np.testing.assert_array_equal(made.train_labels[4:8], planes(1)[1])
    np.testing.assert_array_equal(made.test_labels, planes(5)[1])


def test_the_order_of_files_in_an_archive_does_not_matter(tmp_path):
    files = python_files()
    sums = write_archive(tmp_path / "cifar-10-python.tar.gz", dict(reversed(files.items())))
    made = read_pictures(tmp_path / "cifar-10-python.tar.gz", sums)
    np.testing.assert_array_equal(made.train_labels[:4], planes(0)[1])


@pytest.mark.parametrize("name", list(OFFICIAL))
def test_an_archive_that_is_not_the_official_one_is_refused_by_its_checksum(tmp_path, name):
    write_archive(tmp_path / name, python_files())
    with pytest.raises(ValueError, match=f"damaged: its MD5 sum is .* not {OFFICIAL[name]}; download it again"):
        read_pictures(tmp_path / name)


def test_a_pickle_that_names_a_function_is_refused_and_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    files = python_files() | {"cifar-10-batches-py/test_batch": pickle.dumps({b"data": Evil()})}
    sums = write_archive(tmp_path / "cifar-10-python.tar.gz", files)
    with pytest.raises(ValueError, match="holds only arrays"):
        read_pictures(tmp_path / "cifar-10-python.tar.gz", sums)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"cifar-10-batches-bin/test_batch.bin": b"12"}, "2 bytes is cut short"), ({}, "has no test_batch.bin")],
)
def test_an_incomplete_binary_archive_is_refused(tmp_path, change, reason):
    files = binary_files()
    del files["cifar-10-batches-bin/test_batch.bin"]
    sums = write_archive(tmp_path / "cifar-10-binary.tar.gz", files | change)
    with pytest.raises(ValueError, match=reason):
        read_pictures(tmp_path / "cifar-10-binary.tar.gz", sums)


# --- folders and tar files of pictures -------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Flat colours: red dogs and blue cats, five of each to learn from and one to be tested on."""
    from PIL import Image

    root = tmp_path_factory.mktemp("pictures")
    for split, count in (("train", 10), ("test", 2)):
        for label, colour in (("dog", (200, 10, 10)), ("cat", (10, 10, 200))):
            (root / split / label).mkdir(parents=True)
            for i in range(count):
                Image.new("RGB", (32, 32), colour).save(root / split / label / f"{i:04}.png")
    return root


def test_a_folder_and_a_tar_file_of_it_hold_the_same_pictures(folder, tmp_path):
    path = tmp_path / "pictures.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        for split in ("test", "train"):
            archive.add(folder / split, split)
    from_folder, from_tar = read_pictures(folder), read_pictures(path)
    np.testing.assert_array_equal(from_folder.train, from_tar.train)
    np.testing.assert_array_equal(from_folder.test_labels, from_tar.test_labels)
    assert from_folder.train.shape == (20, 32, 32, 3)
    assert from_folder.train_labels.tolist() == [0] * 10 + [1] * 10  # cat before dog
    assert from_folder.train[0, 0, 0].tolist() == [10, 10, 200]
    assert from_tar.source == "pictures in pictures.tar.xz"
    (folder / "test" / "cat" / "0000.png").rename(folder / "test" / "cat" / "0000.jpg")
    assert read_pictures(folder).source.startswith("JPEG copy in ")  # lossy, and said so


def test_pictures_in_the_wrong_place_of_another_size_or_unreadable_are_named(folder, tmp_path):
    from PIL import Image

    def complaint():
        with pytest.raises(ValueError) as caught:
            read_pictures(tmp_path)
        return str(caught.value)

    assert "no pictures in train/" in complaint()
    Image.new("RGB", (32, 32)).save(tmp_path / "lost.png")
    assert "lost.png: pictures must lie in" in complaint()
    (tmp_path / "lost.png").unlink()
    for split, side in (("train", 32), ("test", 32), ("train", 16)):
        (tmp_path / split / "dog").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (side, side)).save(tmp_path / split / "dog" / f"{side}.png")
    assert "different sizes" in complaint()
    (tmp_path / "train" / "dog" / "16.png").write_bytes(b"no picture")
    assert "16.png is no readable picture" in complaint()


@pytest.mark.parametrize("name", ["none", "file.tar"])
def test_a_path_that_holds_nothing_readable_is_refused(tmp_path, name):
    (tmp_path / "file.tar").write_bytes(b"no tar")
    with pytest.raises(ValueError, match=r"does not exist|no readable tar"):
        read_pictures(tmp_path / name)


# --- the classifier --------------------------------------------------------------------------------------


def test_joining_patches_agrees_with_the_reference():
    pictures = torch.arange(2 * 8 * 8 * 3).reshape(2, 8, 8, 3)
    joined = join_patches(pictures, 4)
    for one, many in zip(pictures.numpy(), joined.numpy(), strict=True):
        np.testing.assert_array_equal(many, reference.patches(one, 4))
    assert torch.equal(join_patches(pictures, 1), pictures)
    with pytest.raises(ValueError, match="8×8 cells cannot be cut into patches of 3×3"):
        join_patches(pictures, 3)


def test_the_readout_is_linear_in_the_mean_of_the_cells_features():
    torch.manual_seed(0)
    net = ImageClassifier(in_features=3, out_classes=5, feature_maps=8).eval()
    x = torch.randn(2, 8, 8, 3)
    with torch.no_grad():
        mean = net.body(x).mean((1, 2))
        torch.testing.assert_close(net(x), mean @ net.readout.weight.T + net.readout.bias)


def test_dropout_acts_between_the_blocks_in_training_only():
    torch.manual_seed(0)
    net = ImageClassifier(in_features=3, out_classes=5, feature_maps=8, block_dropout=0.5)
    x = torch.randn(1, 8, 8, 3)
    assert not torch.equal(net.train()(x), net.train()(x))
    with torch.no_grad():
        assert torch.equal(net.eval()(x), net.eval()(x))
    single = ImageClassifier(in_features=3, out_classes=5, feature_maps=8, blocks=1, block_dropout=0.5).train()
    assert torch.equal(single(x), single(x))  # one block: there is no between


def test_the_papers_network_has_its_three_and_a_half_million_parameters():
    net = ImageClassifier(in_features=3, out_classes=10, feature_maps=92, blocks=2)
    assert round(sum(p.numel() for p in net.parameters()) / 1e6, 1) == 3.3  # the paper says 3.5 M


def test_a_classifier_survives_saving(tmp_path):
    net = ImageClassifier(in_features=3, out_classes=5, feature_maps=8, patch=2).eval()
    net.save_pretrained(tmp_path)
    again = ImageClassifier.from_pretrained(tmp_path)
    x = torch.randn(1, 8, 8, 3)
    with torch.no_grad():
        assert torch.equal(net(x), again(x))


# --- the tasks -------------------------------------------------------------------------------------------


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_training_and_evaluation_draw_from_different_training_pictures():
    task = get_task("digits")
    pictures = task.load()
    seen = []
    for progress in (0.5, None):
        task.stage(progress)
        inputs, labels = task.sample(3000, 8, generator())
        assert inputs.shape == (3000, 8, 8, 1) and labels.shape == (3000,)
        seen.append({row.numpy().tobytes() for row in inputs})
    assert not seen[0] & seen[1]
    test = {row.numpy().tobytes() for row in task.standardise(torch.from_numpy(pictures.test))}
    assert not test & (seen[0] | seen[1])


def test_labels_belong_to_their_pictures(folder):
    task = get_task("cifar10")
    task.read(str(folder))
    task.stage(0.0)
    inputs, labels = task.sample(50, 32, generator())
    red_wins = inputs[:, 0, 0, 0] > inputs[:, 0, 0, 2]
    assert torch.equal(red_wins, labels == 1)
    assert 0 < labels.sum() < 50


def test_pictures_are_standardised_as_in_the_reference(folder):
    task = get_task("cifar10")
    task.read(str(folder))
    raw = task.load().train[:3]
    np.testing.assert_allclose(task.standardise(torch.from_numpy(raw)), reference.standardise(raw), rtol=1e-4)


def test_flips_mirror_half_of_the_training_pictures_left_to_right_and_no_others(folder):
    task = get_task("cifar10")
    task.read(str(folder))
    ramp = np.broadcast_to(np.arange(32, dtype=np.uint8)[None, None, :, None], (20, 32, 32, 3))
    object.__setattr__(task.pictures, "train", ramp)
    for progress, share in ((0.0, (0.35, 0.65)), (None, (0.0, 0.0))):
        task.stage(progress)
        inputs, _ = task.sample(200, 32, generator())
        mirrored = inputs[:, 0, 0, 0] > inputs[:, 0, -1, 0]
        assert torch.equal(inputs[:, 0], inputs[:, -1])  # never top to bottom
        assert share[0] <= mirrored.float().mean() <= share[1]


def test_accuracy_counts_class_0_like_any_other():
    task = get_task("digits")
    right, counted = task.count_right(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 1, 1]))
    assert right.tolist() == [1, 0, 1, 1] and counted.tolist() == [1, 1, 1, 1]


def test_cifar_without_pictures_or_with_pictures_of_another_size_says_what_to_do(tmp_path, folder):
    from PIL import Image

    with pytest.raises(ValueError, match="--data PATH"):
        get_task("cifar10").sample(1, 32, generator())
    for split in ("train", "test"):
        (tmp_path / split / "dog").mkdir(parents=True)
        Image.new("RGB", (16, 16)).save(tmp_path / split / "dog" / "a.png")
    with pytest.raises(ValueError, match="16 pixels wide, cifar10 needs 32"):
        get_task("cifar10").read(str(tmp_path))


def test_nothing_is_written_when_the_pictures_are_missing_or_of_too_many_classes(tmp_path, monkeypatch, capsys):
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    for i in range(11):
        for split in ("train", "test"):
            (tmp_path / "many" / split / f"class{i:02}").mkdir(parents=True)
            Image.new("RGB", (32, 32)).save(tmp_path / "many" / split / f"class{i:02}" / "0.png")
    for arguments, says in (
        ([], "give a CIFAR-10 archive"),
        (["--data", "many"], "11 classes, cifar10-patches has 10"),
    ):
        with pytest.raises(SystemExit):
            train(["cifar10", *arguments])
        assert says in capsys.readouterr().err and not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--model", "resnet29"], "model resnet29 cannot classify pictures: use matrix-se"),
        (["--sizes", "8", "16"], "task digits has the size 8 alone: leave out --sizes"),
    ],
)
def test_a_setting_pictures_do_not_have_is_refused(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        train(["digits", *arguments])
    assert capsys.readouterr().err == f"error: {says}\n" and not Path("runs").exists()


def test_pictures_are_trained_with_the_smoothing_asked_for():
    task, logits = get_task("digits"), torch.tensor([[9.0, *[0.0] * 9]])
    losses = [make_loss(TrainConfig(task="digits", smoothing=s), task)(logits, torch.tensor([0])) for s in (0.0, 0.5)]
    torch.testing.assert_close(torch.stack(losses), torch.tensor([0.0011, 0.0011 + 0.5 * 0.9 * 9]), atol=1e-3, rtol=0)


def test_pictures_of_another_side_than_the_tasks_are_not_drawn():
    with pytest.raises(ValueError, match="digits has pictures of side 8, not 64"):
        get_task("digits").sample(2, 64, torch.Generator())


@pytest.mark.parametrize("packed", ["xz", "gz"])
def test_a_damaged_archive_of_pictures_is_named(tmp_path, packed):
    path = tmp_path / f"pictures.tar.{packed}"
    noise = np.random.default_rng(0).bytes(1 << 17)  # nothing to compress: the damage is in the middle of a file
    with tarfile.open(path, f"w:{packed}") as archive:
        add(archive, "train/dog/0.png", noise)
        add(archive, "train/dog/1.png", noise)
    content = bytearray(path.read_bytes())
    content[len(content) // 3 :] = content[: -(len(content) // 3)]
    path.write_bytes(content)
    with pytest.raises(ValueError, match="no readable tar archive"):
        read_pictures(path)


def test_the_digits_are_all_there_and_balanced():
    digits = read_digits()
    assert len(digits.train) + len(digits.test) == 1797
    assert digits.train.max() == 255
    assert np.bincount(digits.test_labels).min() > 20


def test_a_short_training_run_learns_digits_and_is_tested_on_the_test_set(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = {
        "steps": 150,
        "feature-maps": 16,
        "warmup": 20,
        "eval-every": 150,
        "dropout": 0,
        "block-dropout": 0,
        "ema": 0,
    }
    chosen = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert train(["digits", *chosen, "--no-progress", "--threads", "1"]) == 0
    assert command.main(["digits", "--no-progress", "--json", "test.json"]) == 0
    said = capsys.readouterr().out.strip().split("\n")[-1]
    assert "360 pictures" in said or "359 pictures" in said
    assert float(said.split()[2]) > 0.8
    assert command.section(tmp_path) == []
    shutil.copy("test.json", "digits.json")
    shutil.copy(RESULTS / "paper.toml", tmp_path)
    page = "\n".join(command.section(tmp_path))
    assert f"| `digits` | {said.split()[2]} |" in page and "scikit-learn digits" in page
    assert "CIFAR-10: 78 % (the paper" in page
    with pytest.raises(SystemExit) as stop:
        command.main(["no-such-run"])
    with pytest.raises(SystemExit):
        command.main(["digits", "--batch", "-5"])
    assert "batch is -5, but must be at least 1" in capsys.readouterr().err
    assert stop.value.code == 2
