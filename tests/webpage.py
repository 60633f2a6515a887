"""The explorer's page for its tests: its scripts in Node.js, and the system's Chromium."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "explorer"
NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# as root and without a screen or a network: no sandbox, no GPU, no calls home
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is missing: apt-get install -y nodejs")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install -y chromium")


def javascript(code: str, given: object = None):
    """The value of a JavaScript expression over logic.js (M), network.js (N), sudoku.js (S) and ``given``."""
    script = (
        f"const M = require({json.dumps(str(PAGE / 'logic.js'))});"
        f"const N = require({json.dumps(str(PAGE / 'network.js'))});"
        f"const S = require({json.dumps(str(PAGE / 'sudoku.js'))});"
        "const given = JSON.parse(require('fs').readFileSync(0));"
        f"console.log(JSON.stringify({code}));"
    )
    run = subprocess.run([NODE, "-e", script], input=json.dumps(given), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
