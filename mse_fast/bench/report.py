"""Rows to sentences, tables and figures; nothing here is typed by hand."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

from mse_fast.config import UsageError
from mse_fast.hub import write_atomically
from mse_fast.plots import COLOURS, MARKERS, new_figure, save_figure, tidy

Row = dict[str, Any]
COLUMNS = ("contender", "mode", "n", "feature_maps", "blocks", "batch", "seconds", "ratio_to_gemm", "peak_mib")
FITTED_FROM = 64  # smaller matrices cost overhead more than arithmetic
PLOTTED = ("matrix-se", "matrix-se, compiled", "gather port", "resnet29", "rse", "gin", "attention")
DASHES = ("-", "--", "-.", ":", "-", "--", "-.")


def read_rows(path: Path) -> list[Row]:
    """The rows of an earlier run."""
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and set(COLUMNS) <= set(row) for row in rows):
        raise UsageError(f"{path} must hold a list of rows with the keys {', '.join(COLUMNS)}")
    return rows


def row_line(row: Row) -> str:
    """One row as one line of text.

    >>> row_line({"mode": "inference", "n": 16, "batch": 1, "contender": "rse", "feature_maps": 208, "seconds": None,
    ...           "skipped": "out of time"})
    'inference    16×16          rse                        m=208  skipped: out of time'
    """
    size = f"{row['n']}×{row['n']}" + (f" B={row['batch']}" if row["batch"] > 1 else "")
    start = f"{row['mode']:<12} {size:<14} {row['contender']:<26} m={row['feature_maps']:<4}"
    if row["seconds"] is None:
        return f"{start} skipped: {row['skipped']}"
    peak = "-" if row["peak_mib"] is None else f"{row['peak_mib']:.0f} MiB"
    share = f"{row['ratio_to_gemm']:.2f} of its limit"
    return f"{start} {duration(row['seconds']):>9}  {share}  {peak:>10}  best of {row['best_of']}"


def duration(seconds: float) -> str:
    """Seconds with a unit that fits.

    >>> duration(0.01234), duration(2.5), duration(150)
    ('12.3 ms', '2.50 s', '150 s')
    """
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"


def growth_exponent(points: list[tuple[int, float]]) -> float | None:
    """The p of seconds ~ n^p, by least squares on logarithms; None with fewer than two sizes.

    >>> round(growth_exponent([(64, 1.0), (128, 4.0), (256, 16.0)]), 6)
    2.0
    """
    if len(points) < 2:
        return None
    x, y = [math.log(n) for n, _ in points], [math.log(seconds) for _, seconds in points]
    centre_x, centre_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - centre_x) * (b - centre_y) for a, b in zip(x, y, strict=True))
    return slope / sum((a - centre_x) ** 2 for a in x)


def series(rows: list[Row], contender: str, mode: str, batch: int = 1) -> list[tuple[int, float]]:
    """(n, seconds) of a contender at its widest, by size."""
    mine = [r for r in rows if (r["contender"], r["mode"], r["batch"]) == (contender, mode, batch) and r["seconds"]]
    widest = max((r["feature_maps"] for r in mine), default=0)
    return sorted((r["n"], r["seconds"]) for r in mine if r["feature_maps"] == widest)


def write_plot(rows: list[Row], prefix: Path) -> None:
    """Time against size, both logarithmic, and the data beside it."""
    figure = new_figure(9.6, 4.4)
    for axes, mode in zip(figure.subplots(1, 2, sharey=True), ("inference", "training"), strict=True):
        for i, contender in enumerate(PLOTTED):
            points = series(rows, contender, mode)
            if not points:
                continue
            power = growth_exponent([point for point in points if point[0] >= FITTED_FROM])
            label = contender + (f", n^{power:.2f}" if power is not None else "")
            style = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": DASHES[i], "ms": 4, "lw": 1.2}
            axes.loglog(*zip(*points, strict=True), label=label, **style)
        axes.set_xlabel("side n of the matrix")
        sizes = sorted({row["n"] for row in rows})
        axes.set_xticks(sizes, [str(n) for n in sizes], minor=False)
        axes.minorticks_off()
        axes.set_title(f"{mode}, one instance")
        tidy(axes)
        if axes.lines:
            axes.legend(fontsize="x-small", title="contender, growth", title_fontsize="x-small")
    figure.axes[0].set_ylabel("seconds")
    for kind in ("svg", "png"):
        save_figure(figure, prefix.with_name(f"{prefix.name}.{kind}"))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(prefix.with_name(f"{prefix.name}.csv"), text.getvalue().encode())
