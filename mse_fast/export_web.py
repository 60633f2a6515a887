"""Weights for the browser demo: ``python -m mse_fast.export_web [NAME ...] --out docs/explorer/networks``

Each network becomes ``NAME.js``, a script that a page can load from a server or straight from disk; ``index.js``
lists them all. NAME is a network of the zoo, the folder of a run, or ``handmade-transpose``/``handmade-rotate90``.
"""

import argparse
import base64
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mse_fast.config import OneLineParser, UsageError, fail
from mse_fast.convert import Network, from_reference, to_reference
from mse_fast.export import load
from mse_fast.hub import ZOO, write_atomically, zoo_names
from mse_fast.sudoku.layout import LINES
from mse_fast.tasks import get_task
from mse_fast.tasks.sudoku import Sudoku
from mse_ref import handmade

HANDMADE = {"handmade-transpose": "transpose", "handmade-rotate90": "rotate90"}
TITLES = {"transpose": "Transpose", "rotate90": "Turn by 90°", "sudoku": "Sudoku"}
TOLD = (17, 25, 30, 35, 40, 50, 70)  # numbers of givens that the page's menu speaks of
KEPT = ("in_classes", "out_classes", "feature_maps", "blocks", "norm", "flatten", "reinject")


def every() -> list[str]:
    """All networks the demo can show, in the order of its menu: what the zoo has, then the hand-made ones."""
    return [*(name for name in TITLES if name in zoo_names()), *HANDMADE]


def find(name: str) -> tuple[Network, dict[str, Any]]:
    """The network of that name, and what the page's menu says about it."""
    if name in HANDMADE:
        task = HANDMADE[name]
        about = {"title": f"{TITLES[task]}, weights written by hand", "about": "Never trained: a proof in weights."}
        # a hand-made rotation turns the whole padded square, so only full squares are offered
        return from_reference(getattr(handmade, task)(12)).float(), {
            "task": task, "squares": task == "rotate90", **about,
        }  # fmt: skip
    folder = Path(name) if Path(name).is_dir() else ZOO / name
    if not (folder / "config.json").exists():
        raise UsageError(f"no network {name!r}; there are {', '.join([*zoo_names(), *HANDMADE])}")
    net = load(str(folder))
    record = json.loads((folder / "record.json").read_text())
    task = record["config"]["task"]
    trained_on = get_task(task)
    if isinstance(trained_on, Sudoku):  # where its cells stand, and how often the network is applied
        more = {"lines": LINES[trained_on.layout], "steps": record["config"]["test_steps"]}
        return net, {"task": "sudoku", "title": f"{TITLES['sudoku']}, learned", "about": puzzle_summary(record), **more}
    if task not in TITLES:
        raise UsageError(f"the demo knows {', '.join(TITLES)}; {name!r} was trained on {task!r}")
    return net, {"task": task, "title": f"{TITLES[task]}, learned", "about": summary(record)}


def summary(record: dict[str, Any]) -> str:
    """How well it did at the end of training, rounded down: 99.9 % is not all.

    >>> summary({"evaluation": {"accuracy": {"4": 1.0, "8": 0.9996}, "solved": {"4": 1.0, "8": 0.5}}})
    'Trained on examples alone; on fresh 8×8 ones it had 99.9 % of the cells right and solved 50.0 %.'
    """
    scores = record["evaluation"]
    size = max(scores["accuracy"], key=int)
    cells, whole = (math.floor(1000 * scores[kind][size]) / 10 for kind in ("accuracy", "solved"))
    return (
        f"Trained on examples alone; on fresh {size}×{size} ones it had {cells} % of the cells right "
        f"and solved {whole} %."
    )


def puzzle_summary(record: dict[str, Any]) -> str:
    """How many fresh puzzles it solved by number of givens, where that was measured; rounded down.

    >>> rows = [{"givens": g, "steps": s, "solved": s * g / 3000} for g in (17, 29, 40, 70) for s in (10, 30)]
    >>> puzzle_summary({"solved": rows})
    'Trained on examples alone; of fresh puzzles it solved 17 % with 17 givens, 40 % with 40, 70 % with 70.'
    """
    rows = record.get("solved")
    if not rows:
        return summary(record)
    longest = max(row["steps"] for row in rows)
    share = {row["givens"]: math.floor(100 * row["solved"] + 1e-9) for row in rows if row["steps"] == longest}
    told = [f"{share[givens]} % with {givens}" for givens in TOLD if givens in share]
    first, *others = told or [f"{share[givens]} % with {givens}" for givens in sorted(share)]
    return f"Trained on examples alone; of fresh puzzles it solved {', '.join([f'{first} givens', *others])}."


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of a nested dict with dotted names.

    >>> [name for name, _ in leaves({"a": {"b": np.zeros(2)}, "c": [np.zeros(1)]})]
    ['a.b', 'c.0']
    """
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, tree


def narrowest(value: np.ndarray) -> np.ndarray:
    """As float16 if that loses nothing of float32, else as float32.

    >>> narrowest(np.array([0.5])).dtype, narrowest(np.array([0.1])).dtype
    (dtype('float16'), dtype('float32'))
    """
    single = np.asarray(value, dtype="<f4")
    with np.errstate(over="ignore"):  # too large for half precision: infinite, so not equal
        half = single.astype("<f2")
    return half if np.array_equal(half.astype("<f4"), single) else single


def script(name: str, net: Network) -> str:
    """The JavaScript file of one network: little-endian, base64, in the order of ``shapes``; each array in half
    precision if that loses nothing (much of the zoo is stored so), else in single.

    >>> from mse_fast import MatrixSE
    >>> print(script("tiny", MatrixSE(in_classes=2, out_classes=2, feature_maps=1, blocks=1))[:50])
    (self.MSE_NETWORKS ||= {})["tiny"] = {"config": {"
    """
    arrays = [(key, narrowest(value)) for key, value in leaves(to_reference(net))]
    stored = {
        "config": {key: net.config[key] for key in KEPT if key in net.config},
        "shapes": [[key, list(value.shape), 8 * value.itemsize] for key, value in arrays],
        "data": base64.b64encode(b"".join(value.tobytes() for _, value in arrays)).decode(),
    }
    return f"(self.MSE_NETWORKS ||= {{}})[{json.dumps(name)}] = {json.dumps(stored)};\n"


def export(names: list[str], out: Path) -> list[Path]:
    """Write every network and the index; returns the files written."""
    menu, written = [], []
    for name in names:
        net, entry = find(name)
        key = Path(name).name
        text = script(key, net)
        write_atomically(out / f"{key}.js", text.encode())
        written.append(out / f"{key}.js")
        menu.append({"name": key, **entry, "bytes": len(text)})
    write_atomically(out / "index.js", f"self.MSE_INDEX = {json.dumps(menu, ensure_ascii=False, indent=1)};\n".encode())
    return [*written, out / "index.js"]


def main(arguments: list[str] | None = None) -> int:
    parser = OneLineParser(
        prog="python -m mse_fast.export_web",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks, in the order of the page's menu; none: all")
    parser.add_argument("--out", type=Path, default=Path("docs/explorer/networks"), help="folder to write to")
    try:
        options = parser.parse_args(arguments)
        for path in export(options.names or every(), options.out):
            print(f"{path}  {path.stat().st_size / 1e6:.2f} MB")
    except (UsageError, ValueError, OSError) as error:
        fail(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
