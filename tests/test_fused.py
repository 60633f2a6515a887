"""The fused switch layer is the plain one: same values, same gradients, whatever the chunks, dropout and types."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mse_fast import MatrixSE
from mse_fast.switch import Switch


def outputs_and_gradients(layer, x, seed=0, **options):
    torch.manual_seed(seed)  # both ways draw the same dropout
    x = x.clone().requires_grad_()
    y = layer(x, **options)
    weight = torch.linspace(-1, 1, y.numel(), dtype=torch.float64).sin().to(y.dtype).view_as(y)
    owner = layer.__self__
    return y.detach(), torch.autograd.grad((y * weight).sum(), [x, *owner.parameters()])


def randomised(switch: Switch, seed: int) -> Switch:
    generator = torch.Generator().manual_seed(seed)
    for parameter in switch.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(parameter)
    return switch


@given(
    m=st.integers(1, 5),
    radix=st.sampled_from([2, 4]),
    groups=st.integers(1, 9),
    chunk=st.integers(1, 12),
    rate=st.sampled_from([0.0, 0.1, 0.6]),
    seed=st.integers(0, 2**16),
)
def test_values_and_gradients_are_those_of_the_plain_layer(m, radix, groups, chunk, rate, seed):
    switch = randomised(Switch(m, radix, dropout=rate).double(), seed)
    x = torch.randn(2, radix * groups, m, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    expected, expected_gradients = outputs_and_gradients(switch.plain, x)
    got, gradients = outputs_and_gradients(switch.fused, x, chunk=chunk)
    torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-10, atol=1e-11)


def test_under_autocast_it_is_as_near_to_float32_as_the_plain_layer():
    switch = randomised(Switch(16, dropout=0.1), 1)
    x = torch.randn(2, 64, 16, generator=torch.Generator().manual_seed(1))
    exact, exact_gradients = outputs_and_gradients(switch.plain, x)
    errors = {}
    for layer in (switch.plain, switch.fused):
        with torch.autocast("cpu", torch.bfloat16):
            y, gradients = outputs_and_gradients(layer, x)
        pairs = zip([y, *gradients], [exact, *exact_gradients], strict=True)
        errors[layer.__name__] = [((a - b).norm() / b.norm()).item() for a, b in pairs]
    assert max(errors["fused"]) > 1e-4  # the products really are made in bfloat16
    for fused, plain in zip(errors["fused"], errors["plain"], strict=True):
        assert fused < 1.5 * plain + 1e-3


def test_training_on_the_cpu_takes_it_and_nothing_else_does(monkeypatch):
    taken = []
    fused = Switch.fused
    monkeypatch.setattr(Switch, "fused", lambda self, x: taken.append(self.norm) or fused(self, x))
    tokens = torch.zeros(1, 4, 4, dtype=torch.int64)
    network = MatrixSE(in_classes=3, out_classes=3, feature_maps=2, blocks=1)
    network.train()(tokens)
    assert taken == ["feature"] * 3
    with torch.no_grad():
        network(tokens)
        network.eval()(tokens)
    MatrixSE(in_classes=3, out_classes=3, feature_maps=2, blocks=1, norm="position").train()(tokens)
    network.to("meta").train()(tokens.to("meta"))
    assert len(taken) == 3


def test_it_keeps_less_for_the_backward_pass_than_the_plain_layer():
    switch = Switch(8)
    x = torch.randn(1, 256, 8, requires_grad=True)

    def kept(layer) -> int:
        sizes = {}

        def keep(saved: torch.Tensor) -> torch.Tensor:
            sizes[saved.data_ptr()] = saved.nbytes
            return saved

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
            layer(x)
        return sum(sizes.values())

    assert kept(switch.fused) < 0.7 * kept(switch.plain)


@pytest.mark.parametrize("frozen", ["Z", "W", "b", "s"])
def test_a_frozen_weight_gets_no_gradient_and_changes_no_other(frozen):
    switch = randomised(Switch(3).double(), 5)
    x = torch.randn(1, 16, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    switch.plain(x).sum().backward()
    expected = {name: p.grad for name, p in switch.named_parameters()}
    switch.zero_grad()
    getattr(switch, frozen).requires_grad_(False)
    switch.fused(x).sum().backward()
    for name, parameter in switch.named_parameters():
        if name == frozen:
            assert parameter.grad is None
        else:
            torch.testing.assert_close(parameter.grad, expected[name])
