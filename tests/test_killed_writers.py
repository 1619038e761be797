"""Writers killed by SIGKILL at random moments lose nothing that they reported, and leave no half file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from killed_writers import SCENARIOS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forks")

NEEDS = {"checkpoints": "torch", "ledger": "sqlalchemy", "page": "fastapi"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_again_and_again(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_writers.py")), name, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
