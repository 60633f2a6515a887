"""The authors' RAdam: the golden trajectory, its laws, its checkpoints; Muon; and what decays."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from mse_fast import MatrixSE, MatrixSERecurrent
from mse_fast.config import TrainConfig
from mse_fast.optim import Muon, RAdamAuthors, decay_groups, muon_groups, orthogonalise, rectifier, warmup_linear
from mse_fast.train import make_optimizer

GOLDEN = np.load(Path(__file__).parent / "golden" / "authors.npz")
STEPS = len(GOLDEN["radam/grads"])


def walk(optimizer, weight, steps, lr=1e-2):
    """Apply the golden gradients of these steps on the authors' schedule; yields the weights after each."""
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr * warmup_linear(step + 1, STEPS)
        weight.grad = torch.tensor(GOLDEN["radam/grads"][step]).to(weight.dtype)
        optimizer.step()
        yield weight.detach().clone()


def start(dtype=torch.float32, **options):
    weight = nn.Parameter(torch.tensor(GOLDEN["radam/w0"]).to(dtype))
    return RAdamAuthors([weight], **{"lr": 1e-2, "weight_decay": 1e-3} | options), weight


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_trajectory_is_the_one_of_the_authors_code(dtype):
    made = torch.stack([*walk(*start(dtype), range(STEPS))])
    assert_allclose(made, GOLDEN["radam/trajectory"], atol=5e-6)


@pytest.mark.parametrize(
    "options", [{"weight_decay": 0.0}, {"betas": (0.9, 0.99)}, {"betas": (0.8, 0.999)}, {"clip": 1e9}, {"eps": 1e-2}]
)
def test_every_option_of_the_golden_run_shows_in_its_trajectory(options):
    made = torch.stack([*walk(*start(**options), range(STEPS))])
    assert np.abs(made.numpy() - GOLDEN["radam/trajectory"]).max() > 5e-5


def test_the_first_gradient_is_clipped_to_the_floor_whatever_its_length():
    def first_variance(scale):
        weight = nn.Parameter(torch.zeros(3))
        optimizer = RAdamAuthors([weight])
        weight.grad = scale * torch.tensor([2.0, 2.0, 1.0])
        optimizer.step()
        return optimizer.state[weight]["variance"].sum().item() / (1 - 0.999)

    assert_allclose(first_variance(1e-3) ** 0.5, 3e-3, rtol=1e-5)  # below the floor: untouched
    assert_allclose(first_variance(1.0) ** 0.5, 0.01, rtol=1e-5)
    assert_allclose(first_variance(1e6) ** 0.5, 0.01, rtol=1e-5)


def test_a_sudden_gradient_is_clipped_at_three_times_its_usual_length():
    weight = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = RAdamAuthors([weight], clip_floor=0.0)
    optimizer.state[weight].update(
        step=9, momentum=torch.zeros_like(weight), variance=torch.full_like(weight, 4.0 * (1 - 0.999**10))
    )
    weight.grad = torch.full_like(weight, 1e5)
    optimizer.step()
    grown = optimizer.state[weight]["variance"] - 0.999 * 4.0 * (1 - 0.999**10)
    assert_allclose((grown / 0.001).sqrt().item(), 3 * 2.0, rtol=1e-9)


def test_decay_shrinks_the_weights_by_the_rate_times_the_decay():
    weight = nn.Parameter(torch.ones(2, 2, dtype=torch.float64))
    optimizer = RAdamAuthors([weight], lr=0.5, weight_decay=0.1)
    weight.grad = torch.zeros_like(weight)
    optimizer.step()
    assert_allclose(weight.detach(), 0.95)


def test_a_parameter_without_a_gradient_stays():
    weight = nn.Parameter(torch.ones(2, 2))
    RAdamAuthors([weight], weight_decay=0.1).step()
    assert_allclose(weight.detach(), 1.0)


def test_a_run_continues_from_its_checkpoint_bit_for_bit():
    straight = [*walk(*start(), range(STEPS))]
    optimizer, weight = start()
    *_, middle = walk(optimizer, weight, range(17))
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    resumed_weight = nn.Parameter(middle)
    resumed = RAdamAuthors([resumed_weight], lr=123.0)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for after, expected in zip(walk(resumed, resumed_weight, range(17, STEPS)), straight[17:], strict=True):
        assert torch.equal(after, expected)


def test_a_closure_is_evaluated_with_gradients():
    weight = nn.Parameter(torch.tensor([3.0]))
    optimizer = RAdamAuthors([weight], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(100)]
    assert losses[0] == 9.0 and losses[-1] < 1.0


def test_the_schedule_rises_over_a_tenth_and_falls_to_zero():
    factors = [warmup_linear(step, 100) for step in range(1, 101)]
    assert_allclose(factors[:10], np.arange(1, 11) / 10)
    assert_allclose(factors[10:], 1 - np.arange(1, 91) / 90, atol=1e-12)
    assert warmup_linear(200, 100) == 0.0 and warmup_linear(1, 100, warmup=0.0) == 0.99


def test_the_rectifier_agrees_with_the_published_one():
    """PyTorch's RAdam on a constant gradient moves by rate · rectifier as soon as ρ > 5."""
    weight = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    published = torch.optim.RAdam([weight], lr=1.0, betas=(0.0, 0.999), eps=1e-300)
    for step in range(1, 31):
        before = weight.item()
        weight.grad = torch.ones_like(weight)
        published.step()
        assert_allclose(before - weight.item(), rectifier(step, 0.999), rtol=1e-9)


def names_in(model, group):
    wanted = {id(parameter) for parameter in group["params"]}
    return {name for name, parameter in model.named_parameters() if id(parameter) in wanted}


def test_matrices_decay_and_embeddings_and_vectors_do_not():
    model = MatrixSE(in_classes=5, out_classes=3, feature_maps=4, blocks=1)
    decayed, spared = decay_groups(model, 0.1)
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.1, 0.0)
    assert {name.split(".")[-1] for name in names_in(model, decayed)} == {"Z", "W", "weight"}
    assert not any("embed" in name for name in names_in(model, decayed))
    assert {name.split(".")[-1] for name in names_in(model, spared)} == {"b", "s", "bias", "weight"}
    assert names_in(model, decayed) | names_in(model, spared) == {name for name, _ in model.named_parameters()}


def test_a_linear_map_of_input_features_decays():
    decayed, _ = decay_groups(MatrixSERecurrent(in_features=2, out_classes=3, feature_maps=4, blocks=1), 0.1)
    assert any(list(parameter.shape) == [2, 4] for parameter in decayed["params"])


def test_frozen_parameters_and_empty_groups_are_left_out():
    model = nn.Linear(2, 2)
    model.weight.requires_grad_(False)
    (only,) = decay_groups(model, 0.1)
    assert names_in(model, only) == {"bias"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lr": -1.0}, "lr must not be negative, but is -1.0"),
        ({"betas": (0.9, 1.0)}, r"betas must be in \[0, 1\), not \(0.9, 1.0\)"),
        ({"eps": 0.0}, "eps=0.0"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1"),
        ({"clip": -1.0}, "clip=-1.0"),
    ],
)
def test_bad_options_are_named(options, told):
    with pytest.raises(ValueError, match=told):
        RAdamAuthors([nn.Parameter(torch.zeros(1))], **options)


# --- Muon ---


@pytest.mark.parametrize("shape", [(8, 8), (8, 24), (24, 8)])
def test_an_orthogonalised_matrix_keeps_its_directions_and_evens_out_their_lengths(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = orthogonalise(1e4 * matrix)
    lengths = torch.linalg.svdvals(made)
    assert lengths.min() > 0.6 and lengths.max() < 1.3
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    turned = left.mT @ made @ right.mT  # diagonal, if the directions are those of the matrix
    assert_allclose(turned - turned.diagonal().diag(), 0, atol=1e-9)


@pytest.mark.parametrize("shape", [(32, 32), (24, 48), (48, 24)])
def test_a_matrix_made_orthogonal_in_bfloat16_is_the_same_to_its_three_digits(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    rounded = orthogonalise(matrix, dtype=torch.bfloat16)
    assert rounded.dtype == torch.float32
    exact = orthogonalise(matrix)
    assert 1e-4 < (rounded - exact).norm() / exact.norm() < 0.05  # rounded it is, and no more than that


def test_a_run_with_autocast_makes_its_matrices_orthogonal_in_bfloat16():
    model = MatrixSE(in_features=5, out_classes=3, feature_maps=4, blocks=1)
    for amp, products in ((True, torch.bfloat16), (False, torch.float32)):
        config = TrainConfig(task="transpose", optimizer="muon", amp=amp)
        assert make_optimizer(config, model).products == products


def test_what_is_no_matrix_inside_takes_the_steps_of_adamw():
    ours, theirs = (nn.Parameter(torch.linspace(-1, 1, 6).view(2, 3)) for _ in range(2))
    settings = {"lr": 0.02, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
    pair = [(Muon([ours], **settings), ours), (torch.optim.AdamW([theirs], **settings), theirs)]
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        gradient = torch.randn(2, 3, generator=generator)
        for optimizer, weight in pair:
            weight.grad = gradient.clone()
            optimizer.step()
    assert_allclose(ours.detach(), theirs.detach(), rtol=1e-5)


@pytest.mark.parametrize("shape", [(16, 16), (16, 48), (6, 4, 3, 3), (40, 2, 3, 3)])
def test_a_step_of_a_matrix_is_as_long_as_one_of_adamw_whatever_the_gradient(shape):
    for scale in (1e-4, 1e4):
        weight = nn.Parameter(torch.zeros(shape))
        optimizer = Muon([{"params": [weight], "orthogonal": True}], lr=1.0)
        weight.grad = scale * torch.randn(shape, generator=torch.Generator().manual_seed(2))
        optimizer.step()
        assert 0.14 < weight.square().mean().sqrt() < 0.26  # AdamW's is 0.2 on average


def test_momentum_carries_a_matrix_on_and_decay_shrinks_it():
    weight = nn.Parameter(torch.eye(2))
    optimizer = Muon([{"params": [weight], "orthogonal": True}], lr=0.1, weight_decay=0.5)
    weight.grad = torch.eye(2)
    optimizer.step()
    after_one = weight.detach().clone()
    weight.grad = torch.zeros(2, 2)
    optimizer.step()
    assert (after_one.diagonal() < 0.95).all()  # 0.95 is the decay alone
    assert (weight.diagonal() < 0.95 * after_one.diagonal()).all()


def test_only_matrices_between_embedding_and_readout_are_made_orthogonal():
    model = MatrixSE(in_features=5, out_classes=3, feature_maps=4, blocks=1, skip=True)
    inside, ends, rest = muon_groups(model, 0.1)
    assert [group["orthogonal"] for group in (inside, ends, rest)] == [True, False, False]
    assert [group["weight_decay"] for group in (inside, ends, rest)] == [0.1, 0.1, 0.0]
    assert {name.split(".")[-1] for name in names_in(model, inside)} == {"Z", "W"}
    assert names_in(model, ends) == {"stack.embed.weight", "readout.weight", "skip.weight"}
    assert len(names_in(model, inside) | names_in(model, ends) | names_in(model, rest)) == len([*model.parameters()])


def test_muon_names_bad_options():
    for options in ({"lr": -1.0}, {"betas": (0.9, 1.0)}, {"momentum": 1.0}, {"weight_decay": -1.0}):
        with pytest.raises(ValueError, match=str(*options)):
            Muon([nn.Parameter(torch.zeros(1))], **options)
