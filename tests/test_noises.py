"""What training does to a network that inference does not: drift and dropout."""

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


def test_the_noises_a_run_asks_for_reach_every_layer():
    net = build_model(TrainConfig(dropout=0.3, drift=0.2), get_task("transpose"))
    assert [block.drift for block in net.stack.blocks] == [0.2, 0.2]
    assert {unit.dropout for unit in net.modules() if isinstance(unit, Switch)} == {0.3}
