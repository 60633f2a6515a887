"""What a run leaves behind besides weights: its record and its metrics."""

import dataclasses
import json
import os
import platform
import shlex
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mse_fast.config import HARMLESS, TrainConfig
from mse_fast.hub import write_atomically
from mse_fast.models import find_folder


def now() -> str:
    """The time, as records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def command(module: str, arguments: list[str]) -> str:
    """The command line that started this program, as one would type it."""
    return shlex.join(["python", "-m", f"mse_fast.{module}", *arguments])


def commit() -> str | None:
    """The commit of the source this program runs from, with a ``+`` when it was edited since."""
    here = Path(__file__).parent
    git = ["git", "-C", str(here)]
    try:
        # installed into a folder of another repository, the package is in none of that one's commits
        subprocess.run([*git, "ls-files", "--error-unmatch", __file__], capture_output=True, check=True)
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        edited = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", str(here)], capture_output=True).returncode
    except (OSError, subprocess.CalledProcessError):
        return None  # no git, or installed from a wheel
    return head + ("+" if edited else "")


def hardware(device: torch.device) -> str:
    """One line about what computes."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        name = names[0] if names else name
    return f"{name}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    return {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}


def start_record(folder: Path, config: TrainConfig, device: torch.device, processes: int) -> dict[str, Any]:
    """Under which conditions a run begins or resumes now."""
    path = folder / "record.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    settings = json.loads(json.dumps(dataclasses.asdict(config)))
    telling = set(settings) - HARMLESS | {"steps", "amp"}
    if before and any(before["config"].get(name) != settings[name] for name in telling):
        # most often a higher number of steps: how the first ones were made must stay known
        part = {name: before.get(name) for name in ("command", "commit", "step")}
        before["earlier"] = [*before.get("earlier", []), part]
    begun = {"stages": before.get("stages") or stages(config.start)} if config.start else {}
    return (
        ({"earlier": before["earlier"]} if "earlier" in before else {})
        | begun
        | {
            "config": settings,
            "commit": commit(),
            "seed": config.seed,
            "hardware": hardware(device),
            "processes": processes,
            "versions": versions(),
            "started": before.get("started", now()),
            "resumptions": before.get("resumptions", -1) + 1,
        }
    )


def stages(start: str) -> list[dict[str, Any]]:
    """The records of the runs that the weights of ``start`` went through, the first one first."""
    record = json.loads((find_folder(start) / "record.json").read_text())
    return [*record.pop("stages", []), record]


def training_seconds(run: dict[str, Any]) -> float:
    """The wall time of a run and of those it began with.

    >>> training_seconds({"wall_seconds": 5.0, "stages": [{"wall_seconds": 20.0}]})
    25.0
    """
    return run["wall_seconds"] + sum(stage["wall_seconds"] for stage in run.get("stages", []))


def training_steps(run: dict[str, Any]) -> str:
    """The steps of a run, after those of the runs it began with.

    >>> training_steps({"step": 530, "stages": [{"step": 14000}]})
    '14,000 + 530'
    """
    return " + ".join(f"{part['step']:,}" for part in [*run.get("stages", []), run])


class Metrics:
    """``metrics.jsonl``: one JSON object per line, in step order, whatever happened in between."""

    def __init__(self, path: Path, step: int):
        """Continue the file of a run that resumes at ``step``: what was written after it never happened."""
        kept = [line for line in read_metrics(path) if line["step"] <= step] if path.exists() else []
        write_atomically(path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self.file = open(path, "a")  # noqa: SIM115  (lives as long as the run)

    def write(self, line: dict[str, Any]) -> None:
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def read_metrics(path: Path) -> list[dict]:
    """The lines of a metrics file; a last line that a crash cut short is left out."""
    lines = path.read_text().splitlines()
    whole = []
    for line in lines:
        try:
            whole.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return whole
