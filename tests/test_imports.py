"""The reference needs NumPy, SciPy and array-api-compat, and nothing else; shown in fresh interpreters."""

import subprocess
import sys

import mse_ref

USE = """
import sys
{block}
import numpy as np
import mse_ref
from mse_ref import handmade, losses, metrics, tasks

rng = np.random.default_rng(0)
params = mse_ref.init_matrix_se(rng, in_classes=3, out_classes=3, feature_maps=2)
logits = mse_ref.matrix_se(params, np.zeros((1, 4, 4), dtype=int))
losses.cross_entropy(logits, np.zeros((1, 4, 4), dtype=int))
metrics.accuracy(logits.argmax(-1), np.zeros((1, 4, 4), dtype=int))
mse_ref.apply_route(mse_ref.route(np.arange(16)[::-1]), np.arange(16))
mse_ref.matrix_se(handmade.transpose(3), np.zeros((1, 4, 4), dtype=int))
{report}
"""
# Standing in for machines where only the declared dependencies are installed.
BLOCK = """
import importlib.abc

class OnlyDeclared(importlib.abc.MetaPathFinder):
    allowed = {"mse_ref", "numpy", "scipy", "array_api_compat"} | sys.stdlib_module_names

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"not a declared dependency: {name}")

sys.meta_path.insert(0, OnlyDeclared())
"""
REPORT = "print(*sorted({name.split('.')[0] for name in sys.modules}))"


def fresh_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_reference_runs_where_only_its_declared_dependencies_exist():
    fresh_python(USE.format(block=BLOCK, report=""))


def test_using_the_reference_loads_no_heavy_library():
    loaded = set(fresh_python(USE.format(block="", report=REPORT)).split())
    assert {"numpy", "scipy", "array_api_compat", "mse_ref"} <= loaded
    assert not loaded & {"torch", "cupy", "jax", "matplotlib", "numba", "mse_fast", "array_api_strict", "networkx"}


def test_every_public_name_exists_and_is_documented():
    for name in mse_ref.__all__:
        assert getattr(mse_ref, name).__doc__, name


def test_the_promised_names_are_public():
    promised = """zorder qrotate rotate init_matrix_se matrix_se matrix_se_recurrent shuffle_exchange receptive_field
    route apply_route pad from_authors"""
    assert set(promised.split()) <= set(mse_ref.__all__)
