"""The modules as a user meets them: any shape, device, precision and compiler; saved, loaded, exported; bad input."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from mse_fast import MatrixSE, MatrixSERecurrent, ShuffleExchange
from mse_fast.benes import BenesBlock
from mse_fast.export import export_onnx, export_program
from mse_fast.hub import ZOO, zoo_names
from mse_fast.switch import Switch, dropout

TOKENS = torch.randint(7, (3, 6, 5), generator=torch.Generator().manual_seed(0))


def small(kind=MatrixSE, **options):
    torch.manual_seed(0)
    return kind(**{"in_classes": 7, "out_classes": 4, "feature_maps": 4, "blocks": 2, **options}).eval()


def test_the_papers_parameter_counts():
    def millions(m):
        return round(
            sum(p.numel() for p in MatrixSE(in_classes=12, out_classes=12, feature_maps=m).parameters()) / 1e6, 1
        )

    assert (millions(96), millions(192)) == (3.5, 14.2)


def test_initial_values_follow_the_specification():
    net = MatrixSE(in_classes=50, out_classes=12, feature_maps=24)
    switch = net.stack.blocks[0].switch_forward
    bound = (6 / (96 + 192)) ** 0.5
    for matrix in (switch.Z, switch.W):
        assert 0.98 * bound < matrix.abs().max() <= bound
    assert torch.equal(switch.b, torch.zeros(96)) and torch.equal(net.readout.bias, torch.zeros(12))
    torch.testing.assert_close(torch.sigmoid(switch.s), torch.full((96,), 0.9))
    embedding = net.stack.embed.weight
    assert embedding.abs().max() <= 0.5 and 0.2 < embedding.std() < 0.24  # truncated at two deviations of .25


def test_a_headless_network_gives_its_features():
    layer = MatrixSE(in_features=3, feature_maps=8, blocks=1)
    assert layer(torch.randn(2, 5, 9, 3)).shape == (2, 5, 9, 8)


def test_inference_uses_no_index_gather_or_permutation_inside_the_blocks():
    class Spy(torch.utils._python_dispatch.TorchDispatchMode):
        seen: set = set()  # noqa: RUF012

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen.add(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    block = BenesBlock(4).eval()
    with Spy() as spy:
        block(torch.randn(1, 64, 4))
        block.inplace(torch.randn(1, 64, 4))
    assert "mm" in spy.seen
    assert not {name for name in spy.seen if any(word in name for word in ("index", "gather", "take", "embedding"))}


@pytest.mark.parametrize("norm", ["feature", "position"])
def test_inference_overwrites_only_its_own_buffer(norm):
    net = small(norm=norm)
    features = small(in_classes=None, in_features=2)
    tokens, x = TOKENS.clone(), torch.randn(2, 8, 8, 2)
    before = x.clone()
    with torch.no_grad():
        net(tokens)
        features(x)
    assert torch.equal(tokens, TOKENS) and torch.equal(x, before)


def test_products_kept_for_the_second_pass_of_a_norm_over_positions_change_nothing(monkeypatch):
    net = small(norm="position")
    given = []
    room = Switch.room_for_products
    monkeypatch.setattr(Switch, "room_for_products", lambda unit, x: given.append(room(unit, x)) or given[-1])
    with torch.no_grad():
        kept = net(TOKENS, chunk=3)
        monkeypatch.setattr("mse_fast.switch.KEPT_BYTES", 0)
        made_again = net(TOKENS, chunk=3)
    assert torch.equal(kept, made_again)
    blocks = len(net.stack.blocks)
    assert [memory is None for memory in given] == [False] * blocks + [True] * blocks
    assert room(small().stack.blocks[0].switch_forward, torch.zeros(1, 64, 8)) is None  # feature norm: one pass


def test_a_recurrent_network_gives_one_answer_per_step_and_longer_runs_begin_alike():
    net = small(MatrixSERecurrent, steps=3)
    with torch.no_grad():
        three, five = net(TOKENS), net(TOKENS, steps=5)
    assert (len(three), len(five)) == (3, 5)
    assert all(torch.equal(a, b) for a, b in zip(three, five, strict=False))


def test_truncated_back_propagation_cuts_the_gradient_and_not_the_answer():
    net = small(MatrixSERecurrent, steps=4)
    whole, cut = net(TOKENS), net(TOKENS, backprop_steps=2)
    assert all(torch.equal(a, b) for a, b in zip(whole, cut, strict=True))
    whole[-1].sum().backward()
    assert net.stack.embed.weight.grad is not None and net.stack.embed.weight.grad.abs().sum() > 0
    net.zero_grad(set_to_none=True)
    cut[-1].sum().backward()
    assert net.stack.embed.weight.grad is None or net.stack.embed.weight.grad.abs().sum() == 0


@pytest.mark.parametrize("training", [True, False])
def test_no_gradient_flows_through_the_free_steps(training):
    net = small(MatrixSERecurrent, steps=1).train(training)
    net(TOKENS, free_steps=1)[-1].sum().backward()
    assert net.stack.embed.weight.grad is None and net.readout.readout.weight.grad is not None


def test_a_rate_next_to_one_drops_nearly_all_and_divides_by_no_zero():
    made = dropout(torch.ones(100_000), 0.9999)
    assert made.isfinite().all() and made.mean() == pytest.approx(1, abs=0.2)


def test_dropout_acts_in_training_on_the_switch_and_never_on_the_residual_path():
    switch = Switch(2, dropout=0.9)
    nn.init.zeros_(switch.W)
    x = torch.randn(1, 16, 2)
    torch.testing.assert_close(switch.train()(x), 0.9 * x)  # no candidate: only the residual, undisturbed
    nn.init.ones_(switch.W)
    assert not torch.equal(switch(x), switch(x))
    assert torch.equal(switch.eval()(x), switch(x))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_drops_its_share_of_every_place_and_keeps_the_mean(rate):
    torch.manual_seed(0)
    dropped = dropout(torch.ones(20_000, 9), rate)  # 9: bytes of one random word spread over all places
    assert ((dropped == 0).double().mean(0) - rate).abs().max() < 0.015
    assert (dropped.mean(0) - 1).abs().max() < 0.1
    assert len(dropped.unique()) == 2


def test_dropout_between_blocks_acts_in_training_only():
    net = small(block_dropout=0.5)
    assert torch.equal(net(TOKENS), net(TOKENS))
    net.train()
    assert not torch.equal(net(TOKENS), net(TOKENS))


def test_a_skip_changes_no_logit_before_it_has_learned():
    tokens = torch.randint(5, (2, 8, 8), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    plain = MatrixSE(in_classes=5, out_classes=3, feature_maps=4)
    torch.manual_seed(0)
    skipping = MatrixSE(in_classes=5, out_classes=3, feature_maps=4, skip=True)
    assert torch.equal(plain(tokens), skipping(tokens))
    skipping(tokens)[tokens == 2].sum().backward()
    touched = skipping.skip.weight.grad.abs().sum(1) > 0
    assert touched.tolist() == [False, False, True, False, False]


def test_gradient_checkpointing_changes_no_gradient():
    plain, saving = small().train(), small(checkpointing=True).train()
    saving.load_state_dict(plain.state_dict())
    for net in (plain, saving):
        net(TOKENS).square().sum().backward()
    for a, b in zip(plain.parameters(), saving.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


@pytest.mark.parametrize("kind", [MatrixSE, MatrixSERecurrent])
def test_a_forward_on_the_meta_device_makes_no_tensor_elsewhere(kind):
    net = small(kind).to("meta")
    for context in (torch.no_grad(), torch.enable_grad()):
        with context:
            answer = net(TOKENS.to("meta"))
        answer = answer[-1] if isinstance(answer, list) else answer
        assert answer.device.type == "meta" and answer.shape == (3, 6, 5, 4)


@pytest.mark.parametrize("norm", ["feature", "position"])
def test_bfloat16_autocast_stays_near_full_precision(norm):
    net = small(norm=norm, feature_maps=16)
    with torch.no_grad():
        exact = net(TOKENS)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = net(TOKENS)
    assert (exact - rounded.float()).abs().max() < 0.05 * exact.abs().max()


@pytest.mark.parametrize("kind", [MatrixSE, MatrixSERecurrent])
def test_the_compiled_graph_has_no_break_and_the_eager_answer(kind):
    net = small(kind, steps=2) if kind is MatrixSERecurrent else small(kind)
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    for context in (torch.no_grad(), torch.enable_grad()):
        with context:
            eager, fast = net(TOKENS), compiled(TOKENS)
        for a, b in zip(*((y if isinstance(y, list) else [y]) for y in (eager, fast)), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("compiler")
def test_inductor_gives_the_eager_answer():
    net = small(blocks=1)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(net, fullgraph=True)(TOKENS), net(TOKENS), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [MatrixSE, MatrixSERecurrent])
def test_the_exported_program_gives_the_eager_answer_for_any_batch(kind):
    net = small(kind).double()  # in float32, some steps of the recurrent network add up to more than 1e-6
    program = export_program(net, (6, 5)).module()
    with torch.no_grad():
        expected = net(TOKENS)
    expected = torch.stack(expected) if isinstance(expected, list) else expected
    torch.testing.assert_close(program(TOKENS), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", [MatrixSE, MatrixSERecurrent])
def test_the_onnx_model_gives_the_eager_answer_in_onnxruntime(kind, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    net = small(kind, steps=2) if kind is MatrixSERecurrent else small(kind)
    export_onnx(net, tmp_path / "net.onnx", (6, 5))
    session = runtime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    (answer,) = session.run(["logits"], {"input": TOKENS.numpy()})
    with torch.no_grad():
        expected = net(TOKENS)
    expected = torch.stack(expected) if isinstance(expected, list) else expected
    np.testing.assert_allclose(answer, expected.numpy(), rtol=1e-4, atol=1e-5)
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]


def test_the_export_command_writes_a_model_and_explains_an_unknown_name(tmp_path):
    small().save_pretrained(tmp_path / "net")
    command = [sys.executable, "-m", "mse_fast.export"]
    made = subprocess.run(
        [*command, str(tmp_path / "net"), str(tmp_path / "net.onnx"), "--size", "4"], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "net.onnx").stat().st_size > 0
    failed = subprocess.run([*command, "nonsense", str(tmp_path / "x.onnx")], capture_output=True, text=True)
    assert failed.returncode == 2 and "'nonsense'" in failed.stderr and not (tmp_path / "x.onnx").exists()


@pytest.mark.parametrize("kind", [MatrixSE, MatrixSERecurrent, ShuffleExchange])
def test_a_saved_network_comes_back_the_same(kind, tmp_path):
    net = small(kind)
    net.save_pretrained(tmp_path / "net")
    back = kind.from_pretrained(tmp_path / "net")
    assert back.config == net.config and not back.training
    for (name, a), (other, b) in zip(net.state_dict().items(), back.state_dict().items(), strict=True):
        assert name == other and torch.equal(a, b)
    assert sorted(path.name for path in (tmp_path / "net").iterdir()) == ["config.json", "model.safetensors"]


def test_a_network_of_another_kind_is_refused(tmp_path):
    small().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="MatrixSERecurrent cannot load a config of model 'matrix-se'"):
        MatrixSERecurrent.from_pretrained(tmp_path)


def test_an_unknown_name_lists_the_zoo():
    with pytest.raises(ValueError, match=r"'nonsense'.*zoo"):
        MatrixSE.from_pretrained("nonsense")


def damage_truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def damage_other_format(folder):
    (folder / "model.safetensors").write_bytes(b"not safetensors at all, just text" * 10)


def damage_config_json(folder):
    (folder / "config.json").write_text("{")


def damage_config_list(folder):
    (folder / "config.json").write_text("[]")


def damage_config_argument(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "colour": "red"}))


def damage_width(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "feature_maps": 5}))


def damage_names(folder):
    save_file({"nothing": torch.zeros(1)}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_truncate, "not a whole safetensors file"),
        (damage_other_format, "not a whole safetensors file"),
        (damage_config_json, "cannot read the model's config"),
        (damage_config_list, "must be a JSON object, got list"),
        (damage_config_argument, "does not know: colour"),
        (damage_width, r"is \[7, 4\], the config wants \[7, 5\]"),
        (damage_names, "does not fit its config: missing .* unexpected .*nothing"),
    ],
)
def test_a_damaged_folder_is_refused_with_a_reason(tmp_path, damage, message):
    small().save_pretrained(tmp_path)
    damage(tmp_path)
    with pytest.raises(ValueError, match=message):
        MatrixSE.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MatrixSE(out_classes=2), "in_classes=None and in_features=None"),
        (lambda: MatrixSE(in_classes=3, in_features=3), "in_classes=3 and in_features=3"),
        (lambda: MatrixSE(in_classes=3, norm="batch"), "got 'batch'"),
        (lambda: MatrixSE(in_classes=3, norm="rse"), "got 'rse'"),
        (lambda: MatrixSE(in_classes=3, flatten="hilbert"), "got 'hilbert'"),
        (lambda: MatrixSE(in_classes=3, blocks=0), "at least one"),
        (lambda: MatrixSE(in_classes=0), "must be positive"),
        (lambda: MatrixSE(in_classes=3, feature_maps=0), "must be positive"),
        (lambda: MatrixSE(in_classes=3, dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (lambda: MatrixSE(in_classes=3, block_dropout=-0.1), "block_dropout"),
        (lambda: MatrixSE(in_classes=3, drift=-0.1), "drift must be at least 0, got -0.1"),
        (lambda: MatrixSE(in_classes=3, skip=True), "skip adds to the logits, so it needs out_classes"),
        (lambda: MatrixSERecurrent(in_classes=3, steps=0), "at least 1, got 0"),
        (lambda: ShuffleExchange(in_classes=3, layout="other"), "got 'other'"),
        (lambda: BenesBlock(2)(torch.zeros(1, 8, 2)), "power of 4 and at least 4, got 8"),
        (lambda: BenesBlock(2)(torch.zeros(1, 1, 2)), "got 1"),
    ],
)
def test_a_network_that_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.zeros(6, 5, dtype=torch.int64), ValueError, r"shape \[6, 5\]"),
        (torch.zeros(1, 6, 5, 2, dtype=torch.int64), ValueError, r"shape \[1, 6, 5, 2\]"),
        (torch.zeros(1, 6, 5), TypeError, "dtype torch.float32"),
        (torch.zeros(1, 6, 5, dtype=torch.bool), TypeError, "dtype torch.bool"),
        (torch.zeros(1, 6, 5, dtype=torch.complex64), TypeError, "dtype torch.complex64"),
        (torch.zeros(1, 0, 5, dtype=torch.int64), ValueError, r"at least one element, got shape \[1, 0, 5\]"),
        (torch.full((1, 6, 5), 7), ValueError, r"0\.\.6 \(in_classes=7\), got 7\.\.7"),
        (torch.full((1, 6, 5), -1), ValueError, r"got -1\.\.-1"),
    ],
)
def test_tokens_that_cannot_be_are_refused(x, error, message):
    with pytest.raises(error, match=message):
        small()(x)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_tokens_may_be_integers_of_any_size(dtype):
    net, tokens = small(), torch.arange(30).reshape(1, 6, 5) % 7
    assert torch.equal(net(tokens.to(dtype)), net(tokens))


def test_features_that_cannot_be_are_refused():
    net = small(in_classes=None, in_features=3)
    with pytest.raises(TypeError, match=r"float features \[B,H,W,3\], got dtype torch.int64"):
        net(torch.zeros(1, 4, 4, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="got 2 features"):
        net(torch.zeros(1, 4, 4, 2))


def test_every_network_of_the_zoo_loads_offline():
    for name in zoo_names():
        config = json.loads((ZOO / name / "config.json").read_text())
        kind = {"matrix-se": MatrixSE, "matrix-se-recurrent": MatrixSERecurrent}[config["model"]]
        assert not kind.from_pretrained(name).training
