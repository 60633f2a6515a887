"""The bench measures what it says: the same mathematics, all the products, true peaks, and no silent omissions."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mse_fast import MatrixSE
from mse_fast.baselines.rse import RSE
from mse_fast.bench import optimisers, profile
from mse_fast.bench.__main__ import all_cases, main, quick_cases, unfinished
from mse_fast.bench.contenders import CONTENDERS, MATRIX_SE, Case, Gemm, inputs_of
from mse_fast.bench.gather import GatherPort
from mse_fast.bench.measure import CLOCKS, Bench, Turns, contender_run, gemm_limit, peak_of
from mse_fast.bench.report import COLUMNS, growth_exponent, read_rows, write_plot
from mse_fast.bench.tables import SECTIONS, Rows, ratios, targets, write_markdown

EAGER = [name for name, contender in CONTENDERS.items() if not contender.compiled]


def row(contender: str, n: int, seconds: float | None, mode: str = "inference", **more) -> dict:
    made = dict.fromkeys((*COLUMNS, "first_seconds", "skipped", "machine"))
    made |= {"contender": contender, "mode": mode, "n": n, "feature_maps": 96, "blocks": 2, "batch": 1}
    return made | {"seconds": seconds, "first_seconds": seconds, "ratio_to_gemm": 0.5, "best_of": 3} | more


@pytest.mark.parametrize("n", [2, 4, 16])
@pytest.mark.parametrize(
    "network",
    [
        MatrixSE(in_classes=5, out_classes=5, feature_maps=6),
        MatrixSE(in_classes=5, out_classes=5, feature_maps=6, norm="position", flatten="raster"),
        RSE(in_classes=5, out_classes=5, feature_maps=6),
    ],
    ids=["matrix-se", "matrix-se by position", "rse"],
)
def test_the_gather_port_computes_what_the_fast_network_computes(network, n):
    network = network.double().eval()
    tokens = torch.randint(0, 5, (2, n, n), generator=torch.Generator().manual_seed(n))
    with torch.no_grad():
        torch.testing.assert_close(GatherPort(network)(tokens), network(tokens), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EAGER)
def test_every_matrix_product_of_a_contender_is_in_its_limit(name):
    """PyTorch counts the operations of a real forward pass; the limit must hold neither more nor fewer."""
    contender, case = CONTENDERS[name], Case("inference", 8, feature_maps=8)
    tokens, _ = inputs_of(contender, case, torch.Generator().manual_seed(0))
    model = contender.make(case)
    # the counter does not know products that add in place: the path of one tensor per result has none
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.train()(tokens)
    counted = counter.get_total_flops()
    if name == "attention":  # the counter sees fused attention, but not the library's choice of it on every CPU
        fused = sum(
            g.flops for g in contender.gemms(case) if 64 in (g.inner, g.columns) and g.rows == 64 and g.count > 8
        )
        assert counted in (contender.flops(case), contender.flops(case) - fused)
    else:
        assert counted == contender.flops(case)


@pytest.mark.parametrize(
    "name", ["gather port", "matrix-se, out of place", "matrix-se, plain layers", "matrix-se, one chunk"]
)
def test_the_variants_of_matrix_se_differ_in_speed_alone(name):
    case = Case("inference", 16, feature_maps=8)
    tokens, _ = inputs_of(CONTENDERS[name], case, torch.Generator().manual_seed(0))
    ours, variant = CONTENDERS[MATRIX_SE].make(case).eval(), CONTENDERS[name].make(case)
    readout = {"readout." + key: value for key, value in ours.readout.state_dict().items()}
    variant.load_state_dict({"stack." + key: value for key, value in ours.stack.state_dict().items()} | readout)
    with torch.no_grad():
        result = CONTENDERS[name].call(variant, tokens)
        torch.testing.assert_close(result, ours(tokens), rtol=1e-4, atol=1e-5)


def test_the_limit_counts_every_product_even_those_it_scales(monkeypatch):
    monkeypatch.setattr("mse_fast.bench.measure.LARGEST", 1 << 16)
    ticks = iter(range(1000))  # a clock that advances by one per look: each product looks twice
    run = gemm_limit((Gemm(6, 4, 3, 2), Gemm(10, 1 << 20, 128, 2)), "inference", 1e6, lambda: float(next(ticks)))
    seconds = run()
    small = 6 / 6  # six products fit into the time of one turn
    large_rows = (1 << 16) // 128
    repeats = math.ceil(1.0 / (2.0 * large_rows * 128 * 2 / 1e6))
    large = 10 * (1 << 20) / large_rows / repeats
    assert seconds == pytest.approx(small + large)


def test_training_is_bounded_by_three_times_the_products():
    once, thrice = (CONTENDERS[MATRIX_SE].flops(Case(mode, 16)) for mode in ("inference", "training"))
    assert thrice == 3 * once


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the kernel keeps no high-water mark here")
def test_the_peak_is_the_memory_a_run_touched_even_if_it_was_freed():
    def run(mib: int) -> float | None:
        return peak_of(lambda: torch.ones(mib << 18).sum())

    run(1)
    assert run(200) == pytest.approx(200, abs=15)
    assert run(20) == pytest.approx(20, abs=15)


def test_a_training_step_changes_every_weight():
    case, contender = Case("training", 4, feature_maps=4), CONTENDERS[MATRIX_SE]
    made = []
    spy = type(contender)(**{**vars(contender), "make": lambda c: made.append(contender.make(c)) or made[0]})
    run = contender_run(spy, case, CLOCKS["wall"])
    before = [p.detach().clone() for p in made[0].parameters()]
    assert run() > 0
    assert all(not torch.equal(old, new) for old, new in zip(before, made[0].parameters(), strict=True))


def bench_rows(budget: float, monkeypatch) -> list[dict]:
    monkeypatch.setattr("mse_fast.bench.measure.ENOUGH_TURNS", 2)
    cases = [(Case("inference", n, feature_maps=4), (MATRIX_SE, "gather port", "attention")) for n in (4, 8)]
    return list(Bench(budget).run([*cases, (Case("training", 4, feature_maps=4), (MATRIX_SE, "resnet29"))]))


def test_every_contender_of_every_case_has_a_row_with_a_time_or_a_reason(monkeypatch):
    for budget in (1e4, 1e-6):
        rows = bench_rows(budget, monkeypatch)
        entered = [(r["contender"], r["mode"], r["n"]) for r in rows if not r["contender"].startswith("gemm")]
        assert sorted(entered) == sorted(
            [(name, "inference", n) for n in (4, 8) for name in (MATRIX_SE, "gather port", "attention")]
            + [(MATRIX_SE, "training", 4), ("resnet29", "training", 4)]
        )
        assert all((r["seconds"] is None) == bool(r["skipped"]) for r in rows)
        assert all(set(COLUMNS) <= set(r) for r in rows)
        if budget > 1:
            timed = [r for r in rows if r["seconds"]]
            assert {"gemm", "gemm of attention", "gemm of resnet29"} <= {r["contender"] for r in timed}
            assert all(r["ratio_to_gemm"] > 0 and r["seconds"] <= r["first_seconds"] for r in timed)
            limit = {(r["contender"], r["mode"], r["n"]): r["seconds"] for r in timed}
            ours = next(r for r in timed if r["contender"] == MATRIX_SE and r["n"] == 8)
            assert ours["ratio_to_gemm"] == pytest.approx(limit["gemm", "inference", 8] / ours["seconds"])
        else:
            assert all("budget" in r["skipped"] for r in rows)


def test_a_row_that_would_not_fit_into_memory_is_skipped_and_says_so(monkeypatch):
    monkeypatch.setattr("mse_fast.bench.measure.free_memory", lambda: 1e6)
    bench = Bench(60.0)
    contender, case = CONTENDERS[MATRIX_SE], Case("inference", 512)
    bench.known[contender.name, "inference", 96, 1] = row(MATRIX_SE, 256, 1e-3, peak_mib=300.0)
    assert "would need about 1.2 GiB" in (bench.obstacle(contender, case, []) or "")
    skipped = bench.line_up(case, [contender])
    assert skipped[0]["seconds"] is None and "GiB" in skipped[0]["skipped"]
    larger = bench.line_up(Case("inference", 1024), [contender])
    assert larger[0]["skipped"].startswith("already skipped at n=512: would need")


def test_a_slow_rival_may_not_take_the_time_kept_for_matrix_se():
    bench = Bench(100.0)
    small, large = Case("inference", 64), Case("inference", 128)
    for name, seconds in (("rse", 1.5), (MATRIX_SE, 16.0)):
        bench.known[name, "inference", 96, 1] = row(name, 64, seconds)
    assert bench.obstacle(CONTENDERS["rse"], large, [large]) is None  # 7 s; 100 are left, half of them for Matrix-SE
    bench.ends -= 88.0
    assert bench.obstacle(CONTENDERS["rse"], large, []) is None
    assert bench.obstacle(CONTENDERS["rse"], large, [large])
    assert bench.obstacle(CONTENDERS[MATRIX_SE], small, [large]) is not None  # 16 s do not fit into 12
    bench.ends += 88.0
    assert bench.obstacle(CONTENDERS[MATRIX_SE], large, [large]) is None
    bench.known["rse", "inference", 96, 1] = row("rse", 64, 11.0)
    assert "10 s of the budget are left for it" in (bench.obstacle(CONTENDERS["rse"], small, []) or "")


def test_a_contender_takes_turns_while_its_allowance_lasts_and_two_if_it_is_slow(monkeypatch):
    bench = Bench(1000.0)  # 6 s for all turns of a case, and at most 30 s for a turn to be repeated

    def turns_of(seconds: float) -> int:
        now = [0.0]
        monkeypatch.setattr("mse_fast.bench.measure.time.monotonic", lambda: now[0])
        bench.ends = 1000.0
        turns = Turns("", lambda: now.__setitem__(0, now[0] + seconds) or seconds, (), (1, 1))
        turns.take()
        while bench.wants_more(turns):
            turns.take()
        return len(turns.seconds)

    assert [turns_of(seconds) for seconds in (0.01, 1.0, 5.0, 30.0, 60.0)] == [10, 6, 2, 2, 1]


def test_more_keeps_whole_cases_learns_from_them_and_leaves_the_skipped_ones_to_do():
    bench, ours = Bench(60.0), CONTENDERS[MATRIX_SE]
    small, large = Case("inference", 16), Case("inference", 32)
    kept = [row(MATRIX_SE, 16, 0.5), row("gemm", 16, 0.3), row("rse", 32, 1.0, feature_maps=208)]
    lost = [row(MATRIX_SE, 32, None, skipped="would take too long"), row("gather port", 32, 0.1)]
    cases = [(small, (MATRIX_SE,)), (large, (MATRIX_SE, "gather port"))]
    assert unfinished(bench, kept + lost, cases) == (kept, cases[1:])
    assert bench.guess(ours, large) == pytest.approx(0.5 * ours.flops(large) / ours.flops(small))


def test_more_without_a_file_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--more"])
    assert "--more needs --json FILE" in capsys.readouterr().err


def test_growth_is_fitted_by_least_squares_on_logarithms():
    assert growth_exponent([(2, 3.0), (4, 24.0), (8, 192.0)]) == pytest.approx(3)
    assert growth_exponent([(2, 1.0)]) is None


def test_the_plot_is_written_as_svg_png_and_csv(tmp_path):
    rows = [row(MATRIX_SE, n, n**2.0) for n in (16, 64, 128)] + [row("rse", 64, None, skipped="out of time")]
    write_plot(rows, tmp_path / "speed")
    svg = (tmp_path / "speed.svg").read_text()
    assert "matrix-se, n^2.00" in svg and "rse" not in svg
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "speed.csv").read_text().splitlines()) == 1 + len(rows)


def test_goals_are_judged_by_the_worst_size():
    rows = [row(MATRIX_SE, n, 1.0, ratio_to_gemm=share) for n, share in ((16, 0.1), (64, 0.95), (256, 0.89))]
    rows += [row("gather port", n, 1.7) for n in (64, 256)] + [row("gather port", 512, 1.5), row(MATRIX_SE, 512, 1.0)]
    lines = targets(Rows(rows)).splitlines()
    found = {line.split(" | ")[0].strip("| "): line for line in lines}
    assert "| 0.50 | no |" in found["inference, share of the limit, n ≥ 64, m = 96"]
    assert "| 1.50 | no |" in found["over the gather port, inference, n ≥ 256"]
    assert "| 1.00 | yes |" in found["first call over a later call, 256×256"]
    assert "not measured" in found["over RSE, n ≥ 256"]


def test_ratios_stand_under_their_size_and_a_missing_one_is_a_dash():
    rows = [row(MATRIX_SE, 64, 2.0, ratio_to_gemm=0.8), row(MATRIX_SE, 128, 4.0, ratio_to_gemm=0.9)]
    rows += [row("rse", 128, 10.0), row("gather port", 64, 3.0, ratio_to_gemm=0.6)]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in ratios(Rows(rows)).splitlines()]
    header, _, *lines = lines
    assert header == ["Matrix-SE", "64×64", "128×128"]
    found = {what: values for what, *values in lines}
    assert found["inference, share of the limit, m = 96"] == ["0.80", "0.90"]
    assert found["the same of the gather port"] == ["0.60", "–"]
    assert found["over the gather port, inference, m = 96"] == ["1.50", "–"]
    assert found["over RSE, inference"] == ["–", "2.50"]
    assert found["inference, share of the limit, m = 32"] == found["over RSE, training"] == ["–", "–"]


def test_the_document_is_refilled_between_its_markers_and_nowhere_else(tmp_path):
    path = tmp_path / "doc.md"
    path.write_text("before\n<!-- bench:inference -->\nold\n<!-- /bench:inference -->\nafter old\n")
    write_markdown([row(MATRIX_SE, 64, 0.25)], path)
    text = path.read_text()
    assert text.startswith("before\n<!-- bench:inference -->\n| contender | 64×64 |") and text.endswith("after old\n")
    assert "| matrix-se | 250 ms (0.50) |" in text and "\nold\n" not in text
    write_markdown([row(MATRIX_SE, 64, 0.25)], path)
    assert path.read_text() == text


def test_every_table_of_the_performance_page_has_its_place():
    page = (Path(__file__).parent.parent / "docs" / "performance.md").read_text()
    for name in SECTIONS:
        assert page.count(f"<!-- bench:{name} -->") == 1 == page.count(f"<!-- /bench:{name} -->")


def test_the_published_tables_are_those_of_the_published_rows(tmp_path):
    root = Path(__file__).parent.parent
    copy = tmp_path / "performance.md"
    copy.write_text((root / "docs" / "performance.md").read_text())
    write_markdown(read_rows(root / "results" / "bench.json"), copy)
    for bench in (profile, optimisers):
        name = bench.__name__.rpartition(".")[2]
        assert bench.main(["--from", str(root / "results" / f"{name}.json"), "--markdown", str(copy)]) == 0
    assert copy.read_text() == (root / "docs" / "performance.md").read_text()


def test_the_cases_cover_all_sizes_modes_and_contenders():
    cases = list(all_cases())
    for mode in ("inference", "training"):
        assert {case.n for case, _ in cases if case.mode == mode} == {16, 32, 64, 128, 256, 512, 1024}
    assert {name for _, names in cases for name in names} == set(CONTENDERS)
    names = dict(cases)[Case("training", 32, batch=8)]
    assert names == (MATRIX_SE, "gather port", "matrix-se, plain layers", "matrix-se, compiled")
    assert all(name in CONTENDERS for _, names in quick_cases() for name in names)


def test_the_command_line_writes_rows_and_reports_them(tmp_path):
    path = tmp_path / "rows.json"
    command = [sys.executable, "-m", "mse_fast.bench", "--quick", "--budget", "0.001", "--json", str(path)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rows = json.loads(path.read_text())
    assert len(run.stdout.splitlines()) == len(rows) > 10
    assert main(["--from", str(path), "--plot", str(tmp_path / "speed")]) == 0
    assert (tmp_path / "speed.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--budget", "0"], "--budget is 0.0, but must be a positive number"),
        (["--sizes", "48"], "no case has the sizes and contenders asked for; sizes: 16, 32"),
        (["--threads", "-1"], "--threads is -1, but must be at least 1"),
        (["--bugdet", "3"], "unknown option '--bugdet'; did you mean '--budget'?"),
        (["--from", "missing.json"], "cannot read missing.json"),
        (["--from", __file__], "cannot read"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_and_exit_code_2(arguments, says, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_a_contender_whose_package_is_missing_is_skipped_and_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    monkeypatch.delitem(sys.modules, "mse_fast.baselines.gin", raising=False)
    path = tmp_path / "rows.json"
    assert main(["--quick", "--sizes", "16", "--contenders", "matrix-se", "gin", "--json", str(path)]) == 0
    rows = {row["contender"]: row for row in json.loads(path.read_text()) if row["mode"] == "inference"}
    assert "matrix-se[graph]" in rows["gin"]["skipped"] and rows["matrix-se"]["seconds"] > 0


def test_the_profile_accounts_for_all_the_time_and_knows_the_products(tmp_path):
    split = profile.shares(Case("inference", 16))
    assert sum(split.values()) == pytest.approx(1)
    assert split["matrix products"] > 0 and profile.REST in split
    row = {"mode": "inference", "n": 16, "batch": 1, "feature_maps": 96, "shares": split}
    assert f"| matrix products | {split['matrix products']:.0%} |" in profile.markdown([row])


def test_the_bench_of_the_optimisers_times_each_and_compares_like_with_like(tmp_path, capsys):
    seconds = optimisers.measure(4, turns=1, n=8, batch=1)
    assert min(seconds.values()) > 0
    made = {"gradients": 0.2, "gradients, bfloat16": 0.1, "AdamW": 0.02, "Muon": 0.1, "Muon, bfloat16": 0.04}
    assert made.keys() == seconds.keys()
    assert "| m=4 | 200 ms | 100 ms | 10% | 50% | 40% |" in optimisers.markdown([{"feature_maps": 4, "seconds": made}])
    rows, page = tmp_path / "rows.json", tmp_path / "page.md"
    rows.write_text(json.dumps([{"feature_maps": 4, "seconds": made}]))
    page.write_text("before <!-- bench:optimisers -->\nold\n<!-- /bench:optimisers --> after")
    assert optimisers.main(["--from", str(rows), "--markdown", str(page)]) == 0
    assert "old" not in page.read_text() and "| m=4 |" in page.read_text()
    rows.write_text("[{}]")
    with pytest.raises(SystemExit) as stopped:
        optimisers.main(["--from", str(rows)])
    assert stopped.value.code == 2 and "seconds" in capsys.readouterr().err
