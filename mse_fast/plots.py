"""Figures: how a run learned, and how far what it learned reaches."""

from io import BytesIO
from pathlib import Path
from typing import Any

from mse_fast.hub import write_atomically
from mse_fast.record import read_metrics

# Okabe and Ito's colours, told apart by everyone; markers say the same without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
NO_ERROR = 1e-5  # where a logarithmic axis shows that there was none
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def new_figure(width: float = 6.4, height: float = 4.0):
    """A figure that needs no display; matplotlib loads only now."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'matrix-se[fast]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of its name; the same figure gives the same bytes."""
    buffer = BytesIO()
    kind = path.suffix.removeprefix(".")
    stable = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=stable.get(kind))
    write_atomically(path, buffer.getvalue())


def tidy(axes: Any) -> None:
    """Less ink: no frame on the right and top, a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


def learning_curve(folder: Path) -> None:
    """``curve.svg`` and ``curve.png`` of a run: the loss, and the error at every size."""
    lines = read_metrics(folder / "metrics.jsonl")
    train = [line for line in lines if line["kind"] == "train"]
    looks = [line for line in lines if line["kind"] == "eval"]
    figure = new_figure(7.2, 5.2)
    top, bottom = figure.subplots(2, 1, sharex=True)
    top.semilogy([t["step"] for t in train], [max(t["loss"], 1e-6) for t in train], color=COLOURS[6], lw=0.8)
    top.set_ylabel("training loss")
    for formatter in (top.yaxis.set_major_formatter, top.yaxis.set_minor_formatter):
        formatter("{x:g}")
    for i, n in enumerate(looks[-1]["accuracy"] if looks else []):
        steps = [look["step"] for look in looks]
        errors = [max(1 - look["accuracy"][n], NO_ERROR) for look in looks]
        style = {"color": COLOURS[i % 7], "marker": MARKERS[i % 7], "ms": 4, "lw": 1.2}
        bottom.semilogy(steps, errors, label=f"{n}×{n}", **style)
    bottom.set_ylabel("error on fresh instances")
    bottom.set_xlabel("step")
    error_axis(bottom)
    if looks:
        bottom.legend(title="size", ncols=2, fontsize="small", loc="upper right")
    for axes in (top, bottom):
        tidy(axes)
    for kind in ("svg", "png"):
        save_figure(figure, folder / f"curve.{kind}")


def error_axis(axes: Any, floor: str = "none") -> None:
    """A logarithmic axis of errors that ends where there is none, or no more than so many."""
    axes.set_yscale("log")  # also when nothing was evaluated yet
    axes.set_ylim(NO_ERROR / 1.5, 1.5)
    axes.set_yticks([1, 1e-1, 1e-2, 1e-3, 1e-4, NO_ERROR], ["1", "0.1", "0.01", "0.001", "0.0001", floor])


def reach_curve(axes: Any, rows: list[dict[str, Any]], label: str, place: int, **style: Any) -> None:
    """Accuracy by size, with its confidence interval when the rows carry one."""
    sizes = [row["size"] for row in rows]
    colour = COLOURS[place % 7]
    look = {"color": colour, "marker": MARKERS[place % 7], "ms": 5, "lw": 1.5} | style
    axes.plot(sizes, [row["accuracy"] for row in rows], label=label, **look)
    if "accuracy_low" in rows[0]:
        low, high = ([row[key] for row in rows] for key in ("accuracy_low", "accuracy_high"))
        axes.fill_between(sizes, low, high, color=colour, alpha=0.15, lw=0)


def finish_reach(axes: Any, sizes: list[int], trained_to: int | None) -> None:
    """Axes of an accuracy-by-size plot; sizes seen in training are shaded and named."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.set_ylim(-0.03, 1.12)
    axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    axes.set_xlabel("size n of the n×n matrix")
    axes.set_ylabel("accuracy")
    if trained_to:
        axes.axvspan(min(sizes) / 1.2, trained_to * 1.19, color="0.9", zorder=0)
        axes.text(min(sizes), 1.055, "sizes trained on", fontsize="small", color="0.35")
    axes.set_xlim(min(sizes) / 1.2, max(sizes) * 1.2)
    tidy(axes)
