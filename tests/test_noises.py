"""What training does to a network that inference does not: drift, and the blank sheet around a matrix."""

import pytest
import torch

from mse_fast import MatrixSE
from mse_fast.benes import BenesBlock
from mse_fast.config import TrainConfig
from mse_fast.models import build_model
from mse_fast.switch import Switch
from mse_fast.tasks import get_task

TOKENS = torch.randint(7, (3, 6, 5), generator=torch.Generator().manual_seed(0))


def small(**options) -> MatrixSE:
    torch.manual_seed(0)
    return MatrixSE(in_classes=7, out_classes=4, feature_maps=4, **options).eval()


def test_drift_acts_in_training_only():
    net = small(drift=0.1)
    assert torch.equal(net(TOKENS), small(drift=0.0)(TOKENS))
    net.train()
    assert not torch.equal(net(TOKENS), net(TOKENS))


def test_drift_is_one_factor_for_each_half_of_a_block_instance_and_feature():
    block = BenesBlock(2, drift=0.1).train()
    for unit in (block.switch_forward, block.switch_reverse, block.switch_last):
        torch.nn.init.zeros_(unit.W)  # nothing is written: what is left of the input is what is remembered
    torch.manual_seed(0)
    with torch.no_grad():
        drifted = (block(torch.ones(2000, 64, 2)) / block.eval()(torch.ones(1, 64, 2))).log()  # k = 3: 2 layers each
    torch.testing.assert_close(drifted, drifted[:, :1].expand_as(drifted))
    assert drifted.mean().abs() < 0.02
    assert (drifted[:, 0].std(0) - 0.1 * 2 * 2**0.5).abs().max() < 0.02  # 2 layers alike, two halves apart
    assert torch.corrcoef(drifted[:, 0].T)[0, 1].abs() < 0.1  # each feature on its own


def test_a_sheet_acts_in_training_only():
    net = small(sheet=64)
    assert torch.equal(net(TOKENS), small()(TOKENS))
    net.train()
    torch.manual_seed(0)
    assert len({net(TOKENS).sum().item() for _ in range(40)}) == 4  # 0, 1, 2 or 3 digits more than 8x8 has


@pytest.mark.parametrize("side", [4, 8])
def test_a_sheet_no_larger_than_the_matrix_changes_nothing(side):
    net = small(sheet=side).train()
    assert torch.equal(net(TOKENS), net(TOKENS))


@pytest.mark.parametrize("norm", ["feature", "position"])
@pytest.mark.parametrize("radix", [2, 4])
def test_a_cornered_layer_is_the_layer_with_blank_neighbours(norm, radix):
    torch.manual_seed(0)
    unit = Switch(5, radix, norm)
    torch.nn.init.normal_(unit.b)
    torch.nn.init.normal_(unit.s)
    x = torch.randn(3, 16, 5)
    blank = x[-1:, :, None].expand(3, 16, radix - 1, 5)
    groups = torch.cat([x[:, :, None], blank], 2).reshape(3, 16 * radix, 5)
    torch.testing.assert_close(unit.cornered(x), unit.plain(groups)[:, ::radix])


def test_dropout_of_a_cornered_layer_spares_the_residual_path():
    unit = Switch(4, dropout=0.5).train()
    x = torch.randn(2, 64, 4)
    assert not torch.equal(unit.cornered(x), unit.cornered(x))
    torch.nn.init.zeros_(unit.W)
    torch.testing.assert_close(unit.cornered(x), torch.sigmoid(unit.s[:4]) * x)


def test_on_the_way_there_a_sheet_is_exact_for_any_matrix():
    """Without the way back, the corner of a blank 16x16 sheet is what the shortcut says it is."""
    torch.manual_seed(0)
    block = BenesBlock(4, norm="feature")
    torch.nn.init.zeros_(block.switch_reverse.W)  # ... and the other half writes nothing
    torch.nn.init.zeros_(block.switch_last.W)
    cells = torch.randn(1, 16, 4)
    sheet = torch.full((1, 256, 4), 0.3)
    sheet[:, :16] = cells  # in Z-order the corner comes first
    short = block(torch.cat([cells, sheet[:, -16:]]), beyond=2)[:1]
    torch.testing.assert_close(short, block(sheet)[:, :16])


def test_what_a_run_asks_for_reaches_every_layer():
    net = build_model(TrainConfig(dropout=0.3, drift=0.2, sheet=64), get_task("transpose"))
    assert [block.drift for block in net.stack.blocks] == [0.2, 0.2]
    assert {unit.dropout for unit in net.modules() if isinstance(unit, Switch)} == {0.3}
    assert net.sheet == 64
