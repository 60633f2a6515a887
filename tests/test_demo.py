"""The networks of the browser demo: the page computes what PyTorch does, and the committed files are the zoo's."""

import base64
import json
import math

import numpy as np
import pytest
import torch
from webpage import PAGE, javascript, needs_browser, needs_node

from mse_fast import MatrixSE, MatrixSERecurrent
from mse_fast.export_web import every, export, find, script
from mse_fast.export_web import main as export_main

AGAIN = "the zoo has changed: run `make web` (python -m mse_fast.export_web) and commit docs/explorer/networks"


def random_network(kind: str):
    """A small network with weights nothing like the initial ones, so that every part of it matters."""
    torch.manual_seed(0)
    options = {"in_classes": 7, "out_classes": 5, "feature_maps": 6, "blocks": 2}
    if kind == "recurrent":
        net = MatrixSERecurrent(**options, reinject=True)
    else:
        net = MatrixSE(**options, norm=kind if kind == "position" else "feature", skip=kind == "skip")
    with torch.no_grad():
        for value in net.parameters():
            value.add_(0.3 * torch.randn_like(value))
    return (net.half().float() if kind == "half" else net).eval()


@needs_node
@pytest.mark.parametrize("kind", ["feature", "position", "skip", "recurrent", "half"])
@pytest.mark.parametrize("n", [2, 8])
def test_the_pages_forward_pass_equals_pytorch(kind, n, tmp_path):
    net = random_network(kind)
    tokens = torch.randint(7, (1, n, n), generator=torch.Generator().manual_seed(n))
    with torch.no_grad():
        want = net(tokens, steps=3) if kind == "recurrent" else [net(tokens)]
    (tmp_path / "net.js").write_text(script("net", net))
    got = javascript(
        "(() => { globalThis.self = globalThis; require(given.file);"
        " const net = N.load(self.MSE_NETWORKS.net);"
        " return [...N.run(net, given.tokens, given.n, given.steps)].map(logits => [...logits]); })()",
        {"file": str(tmp_path / "net.js"), "tokens": tokens.flatten().tolist(), "n": n, "steps": len(want)},
    )
    for step, logits in zip(got, want, strict=True):
        np.testing.assert_allclose(np.reshape(step, (n, n, 5)), logits[0].numpy(), atol=1e-4)


@needs_node
def test_the_page_reads_every_number_of_half_precision():
    bits = [b for b in range(2**16) if (b >> 10) & 31 != 31]  # all but the infinite ones
    data = base64.b64encode(np.array(bits, "<u2").tobytes()).decode()
    got = javascript(
        "[...N.load({config: {}, shapes: [['all', [given.length], 16]], data: given.data}).weights.all]",
        {"data": data, "length": len(bits)},
    )
    np.testing.assert_array_equal(np.array(got), np.array(bits, "<u2").view("<f2").astype(np.float64))


def stored(path):
    """What a script of the page assigns: ``name = JSON;``"""
    return json.loads(path.read_text(encoding="utf-8").split(" = ", 1)[1].rstrip().removesuffix(";"))


def shipped() -> list[dict]:
    return stored(PAGE / "networks" / "index.js")


def weights(path) -> np.ndarray:
    network, at, parts = stored(path), 0, []
    data = base64.b64decode(network["data"])
    for _, shape, bits in network["shapes"]:
        parts.append(np.frombuffer(data, f"<f{bits // 8}", math.prod(shape), at).astype(np.float64))
        at += math.prod(shape) * bits // 8
    return np.concatenate(parts)


def test_the_shipped_networks_are_those_of_the_zoo(tmp_path):
    export(every(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (PAGE / "networks").iterdir()}, AGAIN
    assert stored(tmp_path / "index.js") == shipped(), AGAIN
    for name in every():
        fresh, old = (folder / f"{name}.js" for folder in (tmp_path, PAGE / "networks"))
        for part in ("config", "shapes"):
            assert stored(fresh)[part] == stored(old)[part], AGAIN
        np.testing.assert_allclose(weights(old), weights(fresh), rtol=1e-6, err_msg=AGAIN)


def test_the_files_of_the_networks_stay_small():
    sizes = {path.name: path.stat().st_size for path in (PAGE / "networks").iterdir()}
    assert max(sizes.values()) < 1_500_000 and sum(sizes.values()) < 5_000_000, sizes


@needs_browser
@pytest.mark.parametrize("entry", shipped(), ids=lambda entry: entry["name"])
def test_every_shipped_network_gives_pytorchs_logits_in_the_browser(page, entry, tmp_path):
    net, _ = find(entry["name"])
    page.click("summary")
    page.wait_for_function("document.body.dataset.network")
    page.select_option("#network", entry["name"])
    page.wait_for_function("name => document.body.dataset.network === name", arg=entry["name"])
    n, steps = (16, 2) if entry["task"] == "sudoku" else (8, 1)
    tokens = torch.randint(net.config["in_classes"], (1, n, n), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want = net(tokens, steps=steps)[-1] if steps > 1 else net(tokens)
    got = page.evaluate(
        "([name, tokens, n, steps]) => Array.from([...MSENetwork.run(MSEDemo.nets[name], tokens, n, steps)].pop())",
        [entry["name"], tokens.flatten().tolist(), n, steps],
    )
    np.testing.assert_allclose(np.reshape(got, (n, n, -1)), want[0].numpy(), atol=1e-4, err_msg=AGAIN)
    page.screenshot(path=tmp_path / "demo.png", full_page=True)
    assert (tmp_path / "demo.png").stat().st_size > 10_000


@needs_browser
def test_what_is_painted_comes_out_transposed(page):
    page.goto((PAGE / "index.html").as_uri() + "#demo=1")
    page.reload()
    page.wait_for_function("document.body.dataset.network")
    page.select_option("#network", "handmade-transpose")
    page.wait_for_function("document.body.dataset.network === 'handmade-transpose'")
    assert page.inner_text("#verdict").startswith("all 64 cells right")
    page.locator(".palette button").nth(6).click()  # symbol 7
    page.locator('[data-at="2,5"]').click()
    page.wait_for_function("document.querySelector('[data-at=\"2,5\"]').textContent === '7'")
    answer = page.locator("[aria-label='what the network answers'] button").all_inner_texts()
    assert answer[5 * 8 + 2] == "7"
    assert page.inner_text("#verdict").startswith("all 64 cells right")


def test_an_unknown_network_cannot_be_exported(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        export_main(["nonsense", "--out", str(tmp_path)])
    assert end.value.code == 2
    assert "no network 'nonsense'; there are" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
