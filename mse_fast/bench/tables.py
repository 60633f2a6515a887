"""The tables of docs/performance.md, filled from measured rows between markers."""

from collections.abc import Callable, Iterable
from pathlib import Path

from mse_fast.bench.report import FITTED_FROM, Row, duration, growth_exponent, series
from mse_fast.summaries import fill, table

NAMES = (
    "matrix-se",
    "matrix-se, compiled",
    "matrix-se, norm=position",
    "gather port",
    "resnet29",
    "rse",
    "rse, gather port",
    "gin",
    "attention",
)
NOTHING = ("gather port", "nothing: index gathers, formulas written out")
SIMPLER = "shuffles as transpositions; GELU as SiLU, its constants folded into W"
STEPS = {  # each adds one technique to the one before
    "inference": (
        NOTHING,
        ("matrix-se, out of place", SIMPLER),
        ("matrix-se, one chunk", "in place on the digit itself: no shuffle, reused buffers, `addmm_` onto the input"),
        ("matrix-se", "chunks of groups whose hidden features stay in the cache"),
    ),
    "training": (
        NOTHING,
        ("matrix-se, plain layers", SIMPLER),
        ("matrix-se", "a switch layer with its own backward pass, in chunks that stay in the cache"),
    ),
}
ROOM_GIB = 20
SPOTS = {  # side, feature maps and batch of the columns
    "inference": [(n, m, 1) for n in (64, 256, 1024) for m in (96, 32)],
    "training": [(32, 96, 8), (32, 32, 8), (128, 96, 1)],
}


class Rows:
    """Rows, found by what they measured."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.found = {(r["contender"], r["mode"], r["n"], r["feature_maps"], r["batch"]): r for r in rows}

    def get(self, contender: str, mode: str, n: int, batch: int = 1, feature_maps: int | None = None) -> Row | None:
        """The row of a contender; without ``feature_maps``, at its published width."""
        widths = [r["feature_maps"] for r in self.rows if r["contender"] == contender]
        width = feature_maps or max(widths, default=0)
        return self.found.get((contender, mode, n, width, batch))

    def sizes(self, mode: str, low: int = 0, high: int = 1 << 30) -> list[int]:
        return sorted({r["n"] for r in self.rows if r["mode"] == mode and low <= r["n"] <= high})

    def value(self, key: str, *where, **more) -> float | None:
        row = self.get(*where, **more)
        return row[key] if row else None

    def ratio(self, slower: str, mode: str, n: int, batch: int = 1, feature_maps: int | None = None) -> float | None:
        """How many times longer a contender takes than Matrix-SE."""
        a, b = (self.value("seconds", name, mode, n, batch, feature_maps) for name in (slower, "matrix-se"))
        return a / b if a and b else None


def times(rows: Rows, mode: str) -> str:
    """Time and share of the own limit, contender by size."""
    sizes = rows.sizes(mode)

    def cell(name: str, n: int) -> str:
        row = rows.get(name, mode, n)
        return "–" if not row or not row["seconds"] else f"{duration(row['seconds'])} ({row['ratio_to_gemm']:.2f})"

    def growth(name: str) -> str:
        power = growth_exponent([point for point in series(rows.rows, name, mode) if point[0] >= FITTED_FROM])
        return "–" if power is None else f"n^{power:.2f}"

    present = [name for name in NAMES if any(cell(name, n) != "–" for n in sizes)]
    lines = ([name, *(cell(name, n) for n in sizes), growth(name)] for name in present)
    return "\n".join(table(["contender", *(f"{n}×{n}" for n in sizes), "growth"], lines))


def memory(rows: Rows) -> str:
    """MiB by which the process grew, contender by size, and the largest side that would fit."""
    sizes = rows.sizes("inference", 64)

    def peak(name: str, n: int) -> float | None:
        return rows.value("peak_mib", name, "inference", n)

    def cell(name: str, n: int) -> str:
        grown = peak(name, n)
        return "–" if grown is None else f"{grown:,.0f}"

    def fits(name: str) -> str:
        n = largest_side([(n, grown) for n in sizes if (grown := peak(name, n))], 1024.0 * ROOM_GIB)
        return f"{n}×{n}"

    present = [name for name in NAMES if any(cell(name, n) != "–" for n in sizes)]
    header = ["contender", *(f"{n}×{n}" for n in sizes), f"fits into {ROOM_GIB} GiB"]
    return "\n".join(table(header, ([name, *(cell(name, n) for n in sizes), fits(name)] for name in present)))


def largest_side(peaks: list[tuple[int, float]], room: float) -> int:
    """The largest power of two whose peak fits, if every doubling beyond the last measured side takes four times more.

    >>> largest_side([(64, 10.0), (128, 30.0)], 500.0)
    512
    """
    n, grown = max(peaks)
    while 4 * grown <= room:
        n, grown = 2 * n, 4 * grown
    return n


def techniques(rows: Rows, mode: str) -> str:
    """What each technique bought: share of the limit, and the gain over the line before."""
    names = [name for name, _ in STEPS[mode]]
    spots = [(n, m, B) for n, m, B in SPOTS[mode] if all(rows.value("seconds", name, mode, n, B, m) for name in names)]
    if not spots:
        return "Not measured."
    lines, before = [], dict.fromkeys(spots)
    for name, what in STEPS[mode]:
        cells = []
        for n, m, B in spots:
            row = rows.found[name, mode, n, m, B]
            gain = f", ×{before[n, m, B] / row['seconds']:.2f}" if before[n, m, B] else ""
            cells.append(f"{row['ratio_to_gemm']:.2f}{gain}")
            before[n, m, B] = row["seconds"]
        lines.append([what, *cells])
    header = ["technique added", *(f"{n}×{n}{f', B={B}' if B > 1 else ''}, m={m}" for n, m, B in spots)]
    return "\n".join(table(header, lines))


def skipped(rows: Rows) -> str:
    """What was not measured and why, one line each."""
    lines = [
        f"* {r['contender']}, {r['mode']} at {r['n']}×{r['n']}"
        + (f", B={r['batch']}" if r["batch"] > 1 else "")
        + f" (m={r['feature_maps']}): {r['skipped']}"
        for r in rows.rows
        if r["skipped"]
    ]
    return "\n".join(lines) or "Nothing was skipped."


def targets(rows: Rows) -> str:
    """The goals beside what was measured; the worst size counts."""

    def worst(values: Iterable[float | None], pick: Callable = min) -> float | None:
        measured = [value for value in values if value is not None]
        return pick(measured) if measured else None

    def share(m: int) -> float | None:
        sizes = rows.sizes("inference", 64)
        return worst(rows.value("ratio_to_gemm", "matrix-se", "inference", n, feature_maps=m) for n in sizes)

    large, train = rows.sizes("inference", 256), rows.sizes("training", 32)
    against_port = [rows.ratio("gather port", "training", n) for n in train]
    against_port.append(rows.ratio("gather port", "training", 32, batch=8))
    first, later, turns = (
        rows.value(key, "matrix-se", "inference", 256) for key in ("first_seconds", "seconds", "best_of")
    )
    position = [rows.ratio("matrix-se, norm=position", "inference", n) for n in rows.sizes("inference", 64)]
    peak = rows.value("peak_mib", "matrix-se", "inference", 1024)
    goals = [
        ("inference, share of the limit, n ≥ 64, m = 96", 0.88, share(96), "≥"),
        ("inference, share of the limit, n ≥ 64, m = 32", 0.75, share(32), "≥"),
        (
            "training step, share of 3× the limit, n = 32, B = 8, m = 96",
            0.70,
            rows.value("ratio_to_gemm", "matrix-se", "training", 32, batch=8),
            "≥",
        ),
        (
            "over the gather port, inference, n ≥ 256",
            1.6,
            worst(rows.ratio("gather port", "inference", n) for n in large),
            "≥",
        ),
        ("over the gather port, training, n ≥ 32", 1.2, worst(against_port), "≥"),
        (
            "first call over a later call, 256×256",
            2.0,
            first / later if first and later and turns and turns > 1 else None,
            "≤",
        ),
        ("over RSE, n ≥ 256", 4.5, worst(rows.ratio("rse", "inference", n) for n in large), "≥"),
        (
            "over RSE with gathers, n ≥ 256 (the paper: 9)",
            None,
            worst(rows.ratio("rse, gather port", "inference", n) for n in large),
            "",
        ),
        (
            "over ResNet-29, n ≤ 128",
            1.0,
            worst(rows.ratio("resnet29", "inference", n) for n in rows.sizes("inference", 0, 128)),
            "≥",
        ),
        ("over ResNet-29, n = 1024", 0.75, rows.ratio("resnet29", "inference", 1024), "≥"),
        ('`norm="position"` over `"feature"`', 1.6, worst(position, max), "≤"),
        ("peak memory, 1024×1024, m = 96, b = 2, inference, GiB", 2.0, peak / 1024 if peak else None, "≤"),
        ("4096×4096, m = 96, GiB (16 times the line above)", 20.0, 16 * peak / 1024 if peak else None, "≤"),
    ]
    lines = []
    for what, goal, value, sign in goals:
        reached = "–" if value is None or goal is None else ("yes" if (value >= goal) == (sign == "≥") else "no")
        shown = "not measured" if value is None else f"{value:.2f}"
        lines.append([what, f"{sign} {goal}" if goal is not None else "–", shown, reached])
    return "\n".join(table(["what", "goal", "measured (worst size)", "reached"], lines))


def ratios(rows: Rows) -> str:
    """The goals' shares and ratios, size by size."""

    def share(name: str, m: int) -> Callable[[int], float | None]:
        return lambda n: rows.value("ratio_to_gemm", name, "inference", n, feature_maps=m)

    def over(name: str, mode: str, m: int | None = None) -> Callable[[int], float | None]:
        return lambda n: rows.ratio(name, mode, n, feature_maps=m)

    asked: dict[str, Callable[[int], float | None]] = {
        "inference, share of the limit, m = 96": share("matrix-se", 96),
        "the same of the gather port": share("gather port", 96),
        "inference, share of the limit, m = 32": share("matrix-se", 32),
        "the same of the gather port (m = 32)": share("gather port", 32),
        "over the gather port, inference, m = 96": over("gather port", "inference", 96),
        "over the gather port, inference, m = 32": over("gather port", "inference", 32),
        "over the gather port, training, m = 96": over("gather port", "training", 96),
        "over ResNet-29, inference": over("resnet29", "inference"),
        "over ResNet-29, training": over("resnet29", "training"),
        "over RSE, inference": over("rse", "inference"),
        "over RSE, training": over("rse", "training"),
    }
    sizes = rows.sizes("inference")
    lines = []
    for what, value_at in asked.items():
        values = [value_at(n) for n in sizes]
        lines.append([what, *("–" if value is None else f"{value:.2f}" for value in values)])
    return "\n".join(table(["Matrix-SE", *(f"{n}×{n}" for n in sizes)], lines))


def machine(rows: Rows) -> str:
    """On what, by which clock, and how often."""
    machines = sorted({r["machine"] for r in rows.rows if r.get("machine")})
    turns = [r["best_of"] for r in rows.rows if r.get("best_of")]
    return f"Measured on {'; '.join(machines)}; best of {min(turns, default=0)} to {max(turns, default=0)} turns."


SECTIONS: dict[str, Callable[[Rows], str]] = {
    "machine": machine,
    "targets": targets,
    "ratios": ratios,
    "techniques": lambda rows: techniques(rows, "inference"),
    "training-techniques": lambda rows: techniques(rows, "training"),
    "inference": lambda rows: times(rows, "inference"),
    "training": lambda rows: times(rows, "training"),
    "memory": memory,
    "skipped": skipped,
}


def write_markdown(rows: list[Row], path: Path) -> None:
    """Refill the tables of a document from measured rows."""
    index = Rows(rows)
    fill(path, {f"bench:{name}": make(index) for name, make in SECTIONS.items()})
