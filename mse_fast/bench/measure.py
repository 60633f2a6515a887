"""Taking turns with a clock: best of N, peak memory, and what is skipped for want of time or memory."""

import ctypes
import gc
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from mse_fast.bench.contenders import CONTENDERS, MATRIX_SE, Case, Contender, Gemm, inputs_of, passes
from mse_fast.record import hardware

LARGEST = 1 << 26  # elements of a preallocated matrix; a taller product is timed in part and scaled
LIMIT_SECONDS = 2.0  # of bare products per turn; more of the same are scaled
ENOUGH_TURNS = 10  # a contender takes turns in a case until it has so many, or its allowance is used up
ALLOWANCE, LONGEST_TURN, TWICE = 0.006, 0.1, 0.03  # shares of the budget: of all turns; of one turn; of one to repeat
COMPILE_SECONDS = 30.0  # first guess, replaced by what was measured
PESSIMISM = 3.0  # first guess of a contender's time over its limit
MIB = 1 << 20
Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass
class Turns:
    """The times of one contender in one case."""

    contender: str
    run: Callable[[], float]  # does the work once and returns its seconds
    gemms: tuple[Gemm, ...]
    width: tuple[int, int]
    seconds: list[float] = field(default_factory=list)
    peak_mib: float | None = None
    passed: float = 0.0  # seconds of the budget that the last turn took
    total: float = 0.0  # and all of them

    def take(self) -> None:
        """One more turn."""
        began = time.monotonic()
        self.seconds.append(self.run())
        self.passed = time.monotonic() - began
        self.total += self.passed


def clocked(work: Callable[[], Any], clock: Clock) -> Callable[[], float]:
    """The same work, returning the seconds it took."""

    def run() -> float:
        began = clock()
        work()
        return clock() - began

    return run


def gemm_limit(gemms: tuple[Gemm, ...], mode: str, rate: float, clock: Clock) -> Callable[[], float]:
    """A run of bare products into preallocated outputs, returning the seconds that all of them would take."""
    plan = []
    for gemm in gemms:
        rows = max(1, min(gemm.rows, LARGEST // max(gemm.inner, gemm.columns)))
        a, b, c = torch.rand(rows, gemm.inner), torch.rand(gemm.inner, gemm.columns), torch.empty(rows, gemm.columns)
        total = gemm.count * gemm.rows / rows * passes(mode)  # products of this height
        seconds = 2.0 * rows * gemm.inner * gemm.columns / rate
        plan.append((a, b, c, total, max(1, math.ceil(min(total, LIMIT_SECONDS / len(gemms) / seconds)))))

    def run() -> float:
        seconds = 0.0
        for a, b, c, total, repeats in plan:
            began = clock()
            for _ in range(repeats):
                torch.mm(a, b, out=c)
            seconds += (clock() - began) * total / repeats
        return seconds

    return run


def contender_run(contender: Contender, case: Case, clock: Clock) -> Callable[[], float]:
    """One inference, or one training step with AdamW, as a clocked call."""
    generator = torch.Generator().manual_seed(0)
    tokens, labels = inputs_of(contender, case, generator)
    model = contender.make(case)
    network = torch.compile(model, fullgraph=True, dynamic=False) if contender.compiled else model
    if case.mode == "inference":
        model.eval()

        def infer() -> None:
            with torch.no_grad():
                contender.call(network, tokens)

        return clocked(infer, clock)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        logits = contender.call(network, tokens)  # [B, n, n, classes]
        F.cross_entropy(logits.flatten(0, 2), labels.flatten()).backward()
        optimizer.step()

    return clocked(step, clock)


def peak_of(work: Callable[[], Any]) -> float | None:
    """Do some work; the MiB by which the process grew at the worst moment (None where the system does not say).

    The kernel keeps the high-water mark of the resident memory and can be told to start it afresh.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # else freed blocks would be reused unseen
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
    except OSError:
        work()
        return None
    work()
    return round(max(0.0, (_status("VmHWM") - before) / MIB), 1)


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


def free_memory() -> float:
    """Bytes that can be had without swapping; unlimited where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return math.inf
    return next((int(line.split()[1]) * 1024.0 for line in lines if line.startswith("MemAvailable:")), math.inf)


def gemm_rate(clock: Clock) -> float:
    """Floating-point operations per second of one large product, best of five."""
    a, b, c = torch.rand(1024, 1024), torch.rand(1024, 1024), torch.empty(1024, 1024)
    seconds = min(clocked(lambda: torch.mm(a, b, out=c), clock)() for _ in range(5))
    return 2.0 * 1024**3 / seconds


class Bench:
    """Runs cases one after the other and remembers what the next, larger, one will cost."""

    def __init__(self, budget_seconds: float, clock: str = "wall") -> None:
        self.budget, self.ends = budget_seconds, time.monotonic() + budget_seconds
        self.clock = CLOCKS[clock]
        self.rate = gemm_rate(self.clock)
        self.passed = self.counted = 0.0  # seconds that passed and that the clock counted: others may work, too
        self.known: dict[tuple, dict[str, Any]] = {}  # the row of (contender, mode, maps, batch) at the last n
        self.compile_seconds = COMPILE_SECONDS
        self.machine = f"{hardware(torch.device('cpu'))}, torch {torch.__version__}, {clock} time"

    def left(self) -> float:
        return self.ends - time.monotonic()

    def slowdown(self) -> float:
        """Seconds that pass per second of the clock."""
        return self.passed / self.counted if self.counted else 1.0

    def guess(self, contender: Contender, case: Case) -> float:
        """Seconds of one turn, scaled from the last size by the number of operations."""
        row = self.known.get(self._key(contender, case))
        if row and row["seconds"]:
            smaller = Case(case.mode, row["n"], case.feature_maps, case.blocks, case.batch)
            return row["seconds"] * contender.flops(case) / contender.flops(smaller)
        return contender.flops(case) / self.rate * PESSIMISM

    def _key(self, contender: Contender, case: Case) -> tuple:
        return contender.name, case.mode, case.feature_maps, case.batch

    def rows_of(self, case: Case, names: Iterable[str], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of the rows that belong to a case and some contenders, their limits included."""
        there = [CONTENDERS[name] for name in names]
        keys = {(who, *contender.width(case)) for contender in there for who in (contender.name, contender.limit)}
        same = [row for row in rows if (row["mode"], row["n"], row["batch"]) == (case.mode, case.n, case.batch)]
        return [row for row in same if (row["contender"], row["feature_maps"], row["blocks"]) in keys]

    def learn(self, case: Case, rows: Iterable[dict[str, Any]]) -> None:
        """Take over from an earlier bench what its contenders cost in a case."""
        for row in rows:
            if row["contender"] in CONTENDERS and row["seconds"]:
                self.known[self._key(CONTENDERS[row["contender"]], case)] = row

    def cost(self, contender: Contender, case: Case) -> float:
        """Seconds of the budget that taking part costs at least."""
        seconds = self.guess(contender, case) * self.slowdown()
        return 2 * seconds + self.compile_seconds if contender.compiled else seconds

    def obstacle(self, contender: Contender, case: Case, later: Iterable[Case]) -> str | None:
        """Why a contender cannot take part, in a sentence; None if it can.

        A rival may take a tenth of the budget, and up to half of what is left is kept for Matrix-SE in the cases to
        come: else one slow rival at a large size would leave no time for the others.
        """
        row = self.known.get(self._key(contender, case))
        if row and row["skipped"]:
            return f"already skipped at n={row['n']}: {row['skipped'].split(': ')[-1]}"
        cost, left = self.cost(contender, case), self.left()
        if contender.name != MATRIX_SE:
            left -= min(left / 2, sum(self.cost(CONTENDERS[MATRIX_SE], other) for other in later))
            left = min(left, LONGEST_TURN * self.budget)
        if cost > left:
            return f"would take about {cost:.0f} s, {max(0.0, left):.0f} s of the budget are left for it"
        if row and row["peak_mib"]:
            need, free = row["peak_mib"] * MIB * (case.n / row["n"]) ** 2, free_memory()
            if need > 0.9 * free:
                return f"would need about {need / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free"
        return None

    def run(self, cases: Iterable[tuple[Case, tuple[str, ...]]]) -> Iterator[dict[str, Any]]:
        """The rows of all cases."""
        queue = [(case, [CONTENDERS[name] for name in names]) for case, names in cases]
        for number, (case, contenders) in enumerate(queue, 1):
            later = [other for other, rivals in queue[number:] if CONTENDERS[MATRIX_SE] in rivals]
            yield from self.line_up(case, contenders, later)

    def line_up(self, case: Case, contenders: list[Contender], later: Iterable[Case] = ()) -> list[dict[str, Any]]:
        """Let the contenders of a case, and their limits, take turns."""
        limits: dict[str, Turns] = {}
        players, rows = [], []
        for contender in contenders:
            reason = self.obstacle(contender, case, later)
            if reason:
                rows.append(self._row(case, contender.name, contender.width(case), skipped=reason))
                self.known[self._key(contender, case)] = rows[-1]
                continue
            try:
                gemms, own_run = contender.gemms(case), contender_run(contender, case, self.clock)
            except ImportError as error:  # an extra that is not installed
                rows.append(self._row(case, contender.name, contender.width(case), skipped=str(error)))
                continue
            limit = limits.get(contender.limit)
            if limit is None:
                run = gemm_limit(gemms, case.mode, self.rate, self.clock)
                limit = Turns(contender.limit, run, gemms, contender.width(case))
                limits[contender.limit] = limit
                limit.take()
            player = Turns(contender.name, own_run, gemms, contender.width(case))
            player.peak_mib = peak_of(player.take)
            if contender.compiled:
                compiling = player.passed
                player.take()
                self.compile_seconds = compiling - player.passed
            self.passed += player.passed
            self.counted += player.seconds[-1]
            players.append((contender, player, limit))
        everyone = [player for _, player, _ in players] + list(limits.values())
        while eager := [turns for turns in everyone if self.wants_more(turns)]:
            for turns in eager:
                turns.take()
        for contender, player, limit in players:
            row = self._row(case, contender.name, player.width, player, limit)
            self.known[self._key(contender, case)] = row
            rows.append(row)
        rows += [self._row(case, limit.contender, limit.width, limit, limit) for limit in limits.values()]
        return rows

    def wants_more(self, turns: Turns) -> bool:
        """Whether one more turn is worth its time; nearly everybody takes two, because a first call is slower."""
        if len(turns.seconds) >= ENOUGH_TURNS or turns.passed > self.left():
            return False
        repeat = len(turns.seconds) == 1 and turns.passed <= TWICE * self.budget
        return repeat or turns.total + turns.passed <= ALLOWANCE * self.budget

    def _row(
        self,
        case: Case,
        contender: str,
        width: tuple[int, int],
        turns: Turns | None = None,
        limit: Turns | None = None,
        skipped: str | None = None,
    ) -> dict[str, Any]:
        seconds = min(turns.seconds) if turns else None
        return {
            "contender": contender,
            "mode": case.mode,
            "n": case.n,
            "feature_maps": width[0],
            "blocks": width[1],
            "batch": case.batch,
            "seconds": seconds,
            "ratio_to_gemm": min(limit.seconds) / seconds if limit and seconds else None,
            "peak_mib": turns.peak_mib if turns else None,
            "first_seconds": turns.seconds[0] if turns else None,
            "best_of": len(turns.seconds) if turns else 0,
            "skipped": skipped,
            "machine": self.machine,
        }
