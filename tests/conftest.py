"""The array libraries the reference must run on, and the Hypothesis profiles."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy and torch start: test workers share the cores

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from webpage import CHROMIUM, FLAGS, PAGE

from mse_ref import map_params

# "ci" is quick and the same on every run; HYPOTHESIS_PROFILE=thorough searches wider and differently each time.
settings.register_profile("ci", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


class Library(NamedTuple):
    """An array library under test: how to hand it a NumPy array (or parameters) and get one back."""

    name: str
    put_array: Callable[[np.ndarray], Any]
    fetch: Callable[[Any], np.ndarray]

    def put(self, tree: Any) -> Any:
        return map_params(lambda x: self.put_array(np.asarray(x)), tree)


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False  # a function that mutates its argument raises
    return x


def numpy_library() -> Library:
    return Library("numpy", np.array, np.asarray)


def read_only_library() -> Library:
    return Library("read-only numpy", read_only, np.asarray)


def strict_library() -> Library:
    strict = pytest.importorskip("array_api_strict")
    away = strict.Device("device1")  # NumPy cannot read arrays from there: a leak into NumPy raises

    def fetch(x: Any) -> np.ndarray:
        assert x.device == away
        return np.asarray(x.to_device(strict.Device("CPU_DEVICE")))

    return Library("array_api_strict", lambda x: strict.asarray(x, device=away), fetch)


def torch_library() -> Library:
    torch = pytest.importorskip("torch")
    return Library("torch", lambda x: torch.from_numpy(x.copy()), lambda x: x.numpy())


def cupy_library() -> Library:
    cupy = pytest.importorskip(
        "cupy", exc_type=ImportError, reason="CuPy is not installed: pip install 'matrix-se[cuda12]'"
    )
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no GPU for CuPy: {error}")
    return Library("cupy", cupy.asarray, cupy.asnumpy)


LIBRARIES = {
    "numpy": numpy_library,
    "read_only": read_only_library,
    "strict": strict_library,
    "torch": torch_library,
    "cupy": cupy_library,
}


@pytest.fixture(params=LIBRARIES, scope="session")
def xp(request: pytest.FixtureRequest) -> Library:
    """Each array library in turn; a missing one is reported as skipped."""
    return LIBRARIES[request.param]()


@pytest.fixture
def compiler() -> None:
    """For tests of ``torch.compile``, which writes C++."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("a C++ compiler is missing")


@pytest.fixture(scope="session")
def authors() -> dict[str, np.ndarray]:
    """Arrays computed by the authors' released code; see golden/README.md."""
    with np.load(Path(__file__).parent / "golden" / "authors.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")  # no longer: its event loop and that of the notebooks do not get along
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    """The explorer opened from disk; any message on its console fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 1300}, reduced_motion="reduce")
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto((PAGE / "index.html").as_uri())
    yield tab
    context.close()
    assert not said
